//! Reading one note whole, as it is at one moment.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{FileContent, VaultError};

use crate::beneath::{Dir, Seen, is_no_folder, see_open};
use crate::folder::{Found, find};
use crate::folder_vault::FolderVault;

/// No note is larger; a file that is cannot be meant as one.
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// How often a file that changes while it is read is read again.
const ATTEMPTS: u32 = 6;

/// The whole file at a path; `None` when there is no note.
pub(crate) fn read(vault: &FolderVault, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
    read_note(vault, path).map_err(|source| VaultError::Read { path: path.to_string(), source })
}

fn read_note(vault: &FolderVault, path: &VaultPath) -> io::Result<Option<FileContent>> {
    for attempt in 0..ATTEMPTS {
        let spot = match find(vault, path) {
            Ok(Found::Note(spot)) => spot,
            Ok(_) => return Ok(None),
            // A folder on the way that was removed or became a link since it was looked at.
            Err(error) if is_no_folder(&error) && attempt + 1 < ATTEMPTS && vault.open_root().is_ok() => continue,
            Err(error) => return Err(error),
        };
        let content = match vault.open_root()?.open_below(&spot.folder) {
            Ok(folder) => read_in(&folder, &spot.name)?,
            Err(error) if is_no_folder(&error) => continue,
            Err(error) => return Err(error),
        };
        if let Some((content, _)) = content {
            return Ok(Some(content));
        }
        // Gone, or changed while it was read: look again, giving a writer time to finish.
        std::thread::sleep(Duration::from_millis(u64::from(attempt)));
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it keeps changing while it is read; try again"))
}

/// Reads a file, unless it is gone or changes meanwhile.
pub(crate) fn read_in(folder: &Dir, name: &str) -> io::Result<Option<(FileContent, Seen)>> {
    let file = match folder.open_file(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let before = see_open(&file)?;
    let bytes = read_all(&file, before.stat.size)?;
    let is_whole = bytes.len() as u64 == before.stat.size;
    // By its name, so that a file put in its place meanwhile is seen too. Linking it to the trash changes neither.
    let after = folder.see(name)?;
    let is_same = after.is_some_and(|after| after.inode == before.inode && after.stat == before.stat);
    if !is_whole || !is_same {
        return Ok(None);
    }
    let hash = ContentHash::of(&bytes);
    Ok(Some((FileContent { bytes, stat: before.stat, hash }, before)))
}

fn read_all(file: &File, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has {size} bytes; a note has at most {MAX_BYTES}"),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
