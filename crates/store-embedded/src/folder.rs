//! The store's folder: who owns it, and starting empty where what lies in it is of no use.

#![expect(clippy::disallowed_methods, reason = "makes and looks into the store's own folder")]

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::catalog::{Catalog, CatalogError};
use crate::text::{TextError, TextIndex};

const CATALOG: &str = "catalog.db";
const TEXT: &str = "text";

/// Why a store could not be opened. None of these is cured by deleting the folder.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("the index in {} is in use by another process", folder.display())]
    Owned {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The file system said no: read-only, full, no permission.
    #[error("cannot open the index in {}: {source}", folder.display())]
    Failed {
        /// The store's folder.
        folder: PathBuf,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The opened parts.
pub(crate) struct Folder {
    pub(crate) catalog: Catalog,
    pub(crate) text: TextIndex,
    pub(crate) lock: File,
    /// What had to be started anew, as sentences.
    pub(crate) notices: Vec<String>,
}

/// Opens both parts for this process alone; `empty` forgets first what they hold.
pub(crate) fn open(folder: &Path, empty: bool) -> Result<Folder, OpenError> {
    refuse_odd_files(folder).map_err(|error| failed(folder, error))?;
    let lock = own(folder)?;
    if empty {
        Catalog::remove_file(&folder.join(CATALOG)).map_err(|error| failed(folder, error))?;
        TextIndex::remove_folder(&folder.join(TEXT)).map_err(|error| failed(folder, error))?;
    }
    let mut notices = Vec::new();
    let catalog = open_catalog(folder, &mut notices).map_err(|error| failed(folder, error))?;
    let text = open_text(folder, &mut notices).map_err(|error| failed(folder, error))?;
    Ok(Folder { catalog, text, lock, notices })
}

/// The bytes of all files, the catalog's and the text's.
pub(crate) fn bytes_on_disk(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_on_disk(&entry.path())?,
            Ok(metadata) => metadata.len(),
            // Merging removes files at any time.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(sum)
}

/// A vault from elsewhere may hold links where its index would be: following them would write outside the vault. And what
/// is neither file nor folder, a pipe, would be waited for without end.
fn refuse_odd_files(folder: &Path) -> std::io::Result<()> {
    let check = |path: &Path| match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => Ok(()),
        Ok(metadata) => {
            let what = if metadata.is_symlink() { "a link" } else { "not a file" };
            Err(std::io::Error::other(format!("{} is {what}; remove it", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    // Both parts keep their files flat, so nothing of the store lies deeper.
    for place in [folder.to_owned(), folder.join(TEXT)] {
        check(&place)?;
        let entries = match std::fs::read_dir(&place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            // A file where the text index would be; opening it says what is wrong.
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            check(&entry?.path())?;
        }
    }
    Ok(())
}

/// The operating system drops the lock with the process, however that ends.
fn own(folder: &Path) -> Result<File, OpenError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("index.lock"));
    let lock = lock.map_err(|error| failed(folder, error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Owned { folder: folder.to_owned() }),
        Err(TryLockError::Error(error)) => Err(failed(folder, error)),
    }
}

fn open_catalog(folder: &Path, notices: &mut Vec<String>) -> Result<Catalog, CatalogError> {
    let file = folder.join(CATALOG);
    match Catalog::open(&file) {
        Err(error) if error.is_damage() => {
            notices.push(format!("The index was started anew, since its catalog could not be used: {error}."));
            Catalog::remove_file(&file)?;
            Catalog::open(&file)
        }
        outcome => outcome,
    }
}

fn open_text(folder: &Path, notices: &mut Vec<String>) -> Result<TextIndex, TextError> {
    let folder = folder.join(TEXT);
    match TextIndex::open(&folder) {
        Err(TextError::Damaged(reason)) => {
            notices.push(format!("The text index was started anew, since it could not be used: {reason}."));
            TextIndex::remove_folder(&folder).map_err(|error| TextError::Failed(error.into()))?;
            TextIndex::open(&folder)
        }
        outcome => outcome,
    }
}

fn failed(folder: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OpenError {
    OpenError::Failed { folder: folder.to_owned(), source: source.into() }
}
