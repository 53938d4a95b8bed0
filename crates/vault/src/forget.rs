//! Forgets a note's kept versions, and what the history has of it.

use std::collections::BTreeSet;
use std::io;

use quipu_core::model::VaultPath;
use quipu_core::ports::{NamePeriod, VaultFiles, WriteNumber};

use crate::folder_vault::FolderVault;
use crate::{history, requests, trash, write, written};

/// Removes every kept version of a note that had these names; returns their number. The history tells which those are. A
/// version that it does not have, such as that of an undone write, belongs to the note that had its path at that time.
pub(crate) fn forget(vault: &FolderVault, names: &[NamePeriod], unfinished: WriteNumber) -> io::Result<usize> {
    let lock = write::lock(vault)?;
    let (note, others) = history::kept_of(vault, &lock.own, names)?;
    let (note, others): (BTreeSet<String>, BTreeSet<String>) =
        (note.into_iter().collect(), others.into_iter().collect());
    names.iter().try_for_each(|name| written::forget(&lock.root, name.path.as_str()))?;
    let mut count = 0;
    for file in trash::list_all(vault)? {
        let is_named = |path: &VaultPath| names.iter().any(|name| name.covers(path, file.at_ns));
        // Earlier versions of Quipu kept a note that was written through a link under the path of the link.
        let is_at_name = || is_named(&file.path) || vault.real_path(&file.path).is_ok_and(|real| is_named(&real));
        if note.contains(&file.version) || !others.contains(&file.version) && is_at_name() {
            trash::remove(&lock.root, &file.version)?;
            count += 1;
        }
    }
    requests::forget(&lock.own, &names.iter().map(|name| &name.path).collect::<Vec<_>>())?;
    // Last: after an interruption the entries are still needed.
    history::rewrite(vault, &lock.own, |write| write.forget(names, unfinished))?;
    Ok(count)
}

/// Removes the entries of a write.
pub(crate) fn forget_write(vault: &FolderVault, number: WriteNumber) -> io::Result<()> {
    let lock = write::lock(vault)?;
    history::rewrite(vault, &lock.own, |write| {
        if write.number == number {
            write.forget_files();
        }
    })
}
