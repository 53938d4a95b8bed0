//! Forgets a note's kept versions: removes them from the trash, also those under names that the note had before.

use std::collections::BTreeSet;
use std::io;

use quipu_core::model::VaultPath;
use quipu_core::ports::{TrashReason, TrashedFile};

use crate::folder_vault::FolderVault;
use crate::{trash, write};

/// Of the lines of a version under another name, this share must be in a version of the note.
const SHARED_LINES: f64 = 0.8;

/// Removes every kept version of the note at a path; returns their number.
pub(crate) fn forget(vault: &FolderVault, path: &VaultPath) -> io::Result<usize> {
    let lock = write::lock(vault)?;
    let kept = trash::list_all(vault)?;
    let read =
        |file: &TrashedFile| -> io::Result<Vec<u8>> { Ok(trash::read(&lock.root, &file.version)?.unwrap_or_default()) };
    let mut versions: Vec<Vec<u8>> = Vec::new();
    let mut forgotten: BTreeSet<&str> = BTreeSet::new();
    let mut paths = vec![path.clone()];
    while let Some(path) = paths.pop() {
        for file in kept.iter().filter(|file| file.path == path) {
            if forgotten.insert(&file.version) {
                versions.push(read(file)?);
            }
        }
        // A move leaves the old name only in the trash.
        for file in kept.iter().filter(|file| file.reason == TrashReason::Moved && file.path != path) {
            if !forgotten.contains(file.version.as_str()) && is_version(&read(file)?, &versions) {
                paths.push(file.path.clone());
            }
        }
    }
    forgotten.iter().try_for_each(|version| trash::remove(&lock.root, version))?;
    Ok(forgotten.len())
}

/// Whether most lines of a text are in one of the others.
fn is_version(text: &[u8], others: &[Vec<u8>]) -> bool {
    let lines =
        |bytes| <[u8]>::split(bytes, |byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let own: Vec<&[u8]> = lines(text).collect();
    others.iter().any(|other| {
        let theirs: BTreeSet<&[u8]> = lines(other).collect();
        let shared = own.iter().filter(|line| theirs.contains(*line)).count();
        !own.is_empty() && shared as f64 >= SHARED_LINES * own.len() as f64
    })
}
