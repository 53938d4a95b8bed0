//! The store's folder: its owner, and an empty start where its content is unusable.

#![expect(clippy::disallowed_methods, reason = "makes and looks into the store's own folder")]

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::OFlags;

use crate::catalog::Catalog;
use crate::index_database::IndexFileError;
use crate::lines::{self, LineFiles};
use crate::text::{SectionIndex, TextError};
use quipu_own_folder::OwnFolder;

/// The text index, in a folder of its own.
const TEXT: &str = "text";

/// Why a store could not be opened. Deleting the folder helps against none of these.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// Another process has it open.
    #[error("cannot open the index in {}: another process uses it", folder.display())]
    Owned {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The file system refused: read-only, full, no permission.
    #[error("cannot open the index in {}: {source}", folder.display())]
    Failed {
        /// The store's folder.
        folder: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The opened parts.
pub(crate) struct OpenedFolder {
    pub(crate) own: Arc<OwnFolder>,
    pub(crate) catalog: Catalog,
    pub(crate) text: SectionIndex,
    pub(crate) lines: LineFiles,
    pub(crate) lock: File,
    /// What was rebuilt and why, as sentences.
    pub(crate) notices: Vec<String>,
}

/// An index up to this size is opened whatever the notes are.
const FREE_BYTES: u64 = 512 << 20;
/// The words of a note, their positions, and its row in the catalog take less than this many times its bytes.
const MAX_BYTES_PER_BYTE: u64 = 16;

/// Opens both parts for this process alone, and deletes their content first unless `notes_bytes` is given, the bytes of the notes.
/// It is called for a large index only.
pub(crate) fn open(folder: &Path, notes_bytes: Option<&dyn Fn() -> u64>) -> Result<OpenedFolder, StoreOpenError> {
    let fail = |error: std::io::Error| failed(folder, error);
    refuse_special_files(folder).map_err(fail)?;
    let own = Arc::new(open_folder(folder).map_err(fail)?);
    let lock = lock(&own)?;
    let lines = LineFiles::open(&own).map_err(fail)?;
    let mut notices = Vec::new();
    let is_deleted = match notes_bytes {
        None => true,
        Some(notes_bytes) => {
            let bytes = bytes_read_whole(folder).map_err(fail)?;
            let is_too_large = bytes > FREE_BYTES && bytes / MAX_BYTES_PER_BYTE > notes_bytes();
            if is_too_large {
                notices.push(format!("The index has {bytes} bytes, far more than the notes need; it is rebuilt."));
            }
            is_too_large
        }
    };
    if is_deleted {
        lines.clear().map_err(fail)?;
        Catalog::remove_file(&own).map_err(|error| failed(folder, error))?;
        SectionIndex::remove(&own).map_err(fail)?;
    }
    let catalog = open_catalog(&own, &mut notices).map_err(|error| failed(folder, error))?;
    let started = Instant::now();
    let text = open_text(&own, &mut notices).map_err(|error| failed(folder, error))?;
    tracing::debug!(took = ?started.elapsed(), "opened the text index");
    Ok(OpenedFolder { own, catalog, text, lines, lock, notices })
}

/// The bytes of the catalog and of the text index.
fn bytes_read_whole(folder: &Path) -> std::io::Result<u64> {
    let size = |name: &str| std::fs::symlink_metadata(folder.join(name)).map_or(0, |file| file.len());
    let text = folder.join(TEXT);
    let text = if text.is_dir() { bytes_on_disk(&text)? } else { 0 };
    Ok(text + size("catalog.db") + size("catalog.db-wal"))
}

/// The bytes of all files.
pub(crate) fn bytes_on_disk(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_on_disk(&entry.path())?,
            Ok(metadata) => metadata.len(),
            // A merge may delete files at any time.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(sum)
}

/// A vault from elsewhere may have links where its index would be: following them would write outside the vault. Anything that
/// is neither a file nor a folder, such as a pipe, could block forever.
fn refuse_special_files(folder: &Path) -> std::io::Result<()> {
    let check = |path: &Path| match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => Ok(()),
        Ok(metadata) => {
            let what = if metadata.is_symlink() { "a link" } else { "not a file" };
            Err(std::io::Error::other(format!("{} is {what}; remove it", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    // Neither part has folders of its own below these.
    for place in [folder.to_owned(), folder.join(TEXT), folder.join(lines::FOLDER)] {
        check(&place)?;
        let entries = match std::fs::read_dir(&place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            // A file in place of the text index; opening it fails with the cause.
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            check(&entry?.path())?;
        }
    }
    Ok(())
}

fn open_folder(folder: &Path) -> std::io::Result<OwnFolder> {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name().and_then(|name| name.to_str())) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    quipu_own_folder::create_private(above)?;
    // The index has the text of every note that this account can read; others may not be able to.
    OwnFolder::open(above)?.private_folder(name)
}

/// The operating system releases the lock when the process ends, however it ends.
fn lock(folder: &OwnFolder) -> Result<File, StoreOpenError> {
    let lock = folder.file("index.lock", OFlags::RDWR | OFlags::CREATE);
    let lock = lock.map_err(|error| failed(folder.path(), error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreOpenError::Owned { folder: folder.path().to_owned() }),
        Err(TryLockError::Error(error)) => Err(failed(folder.path(), error)),
    }
}

fn open_catalog(folder: &Arc<OwnFolder>, notices: &mut Vec<String>) -> Result<Catalog, IndexFileError> {
    match Catalog::open(folder) {
        Err(error) if error.is_damage() => {
            notices.push(format!("Cannot use the catalog of the index: {error}; the index is rebuilt."));
            Catalog::remove_file(folder)?;
            Catalog::open(folder)
        }
        outcome => outcome,
    }
}

fn open_text(folder: &Arc<OwnFolder>, notices: &mut Vec<String>) -> Result<SectionIndex, TextError> {
    match SectionIndex::open(folder) {
        Err(TextError::Damaged(reason)) => {
            notices.push(format!("Cannot use the text index: {reason}; it is rebuilt."));
            SectionIndex::remove(folder).map_err(|error| TextError::Failed(error.into()))?;
            SectionIndex::open(folder)
        }
        outcome => outcome,
    }
}

fn failed(folder: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreOpenError {
    StoreOpenError::Failed { folder: folder.to_owned(), source: source.into() }
}
