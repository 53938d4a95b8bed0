//! Reads a note consistently: all bytes are of one version.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{FileContent, VaultError};

use crate::dir::{Dir, Metadata, if_exists, is_no_folder};
use crate::folder::{ResolvedPath, resolve};
use crate::folder_vault::FolderVault;

/// The maximal size of a note.
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// How often a file that changes during the read is read.
const ATTEMPTS: u32 = 6;

/// The whole note at a path; `None` if there is none.
pub(crate) fn read(vault: &FolderVault, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
    read_note(vault, path).map_err(|source| VaultError::Read { path: path.to_string(), source })
}

fn read_note(vault: &FolderVault, path: &VaultPath) -> io::Result<Option<FileContent>> {
    for attempt in 0..ATTEMPTS {
        let location = match resolve(vault, path) {
            Ok(ResolvedPath::Note(location)) => location,
            Ok(_) => return Ok(None),
            // A folder of the path was removed or replaced by a link meanwhile.
            Err(error) if is_no_folder(&error) && attempt + 1 < ATTEMPTS && vault.open_root().is_ok() => continue,
            Err(error) => return Err(error),
        };
        let content = match vault.open_root()?.open_below(&location.folder) {
            Ok(folder) => read_in(&folder, &location.name)?,
            Err(error) if is_no_folder(&error) => continue,
            Err(error) => return Err(error),
        };
        if let Some((content, _)) = content {
            return Ok(Some(content));
        }
        // Removed, or changed during the read: retry, and give the writer time to finish.
        std::thread::sleep(Duration::from_millis(u64::from(attempt)));
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "the file keeps changing while it is read; retry"))
}

/// Reads a file; `None` if it does not exist or changes during the read.
pub(crate) fn read_in(folder: &Dir, name: &str) -> io::Result<Option<(FileContent, Metadata)>> {
    let Some(file) = if_exists(folder.open_file(name))? else { return Ok(None) };
    let before = Metadata::of(&file)?;
    let bytes = read_all(&file, before.stat.size)?;
    let is_whole = bytes.len() as u64 == before.stat.size;
    // By name, so that a replaced file is detected too. A hard link in the trash changes neither inode nor stat.
    let after = folder.metadata(name)?;
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
            format!("its size of {size} bytes exceeds the limit of {MAX_BYTES} for a note"),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
