//! The text that this program wrote last to each note, in case another program replaces it.
//!
//! A write keeps the text that it displaces; another program does not. Many editors save in place, which would change a hard
//! link too, so each text is copied when it is written, to a folder in `.quipu/trash/` under the path of its note. The next write
//! replaces the copy. When the history learns that another program changed the note, the copy becomes a version of the trash,
//! and the new text is copied. Only notes that this program has written have copies.
//!
//! Copies are not synced and no part of the journal: one is used only if its hash is that of the displaced text.

use std::collections::BTreeSet;
use std::io::{self, Write};

use quipu_core::model::{ContentHash, Warning};
use quipu_core::ports::{LoggedFile, TrashReason};

use crate::dir::{Dir, if_exists};
use crate::failpoint;
use crate::file_op::{FileOp, JournalEntry};
use crate::folder::{join, split};
use crate::folder_vault::FolderVault;
use crate::own_folder::OWN_FOLDER;
use crate::permissions::copy_permissions;
use crate::read::read_in;
use crate::trash::{self, TrashBatch};

/// Its folder in the trash. The listing of the trash ignores the name.
const WRITTEN: &str = "written";
/// The same where a group shares `.quipu`. Copies that were made before stay private to their account: a folder that was private
/// is never opened to others, since a member of the group could have put another folder in its place.
const WRITTEN_BY_GROUP: &str = "written-group";

/// Copies the new texts of a write that took place and removes the copies of deleted notes. A failure is a warning: the write
/// itself is done.
pub(crate) fn follow_write<'a>(
    vault: &FolderVault,
    root: &Dir,
    ops: impl Iterator<Item = (&'a JournalEntry, Option<&'a [u8]>)>,
) {
    for (entry, bytes) in ops {
        let path = join(&entry.folder, &entry.name);
        let copied = match (bytes, &entry.op) {
            (Some(bytes), _) => keep(root, &path, bytes),
            (None, FileOp::Delete { .. }) => forget(root, &path),
            (None, _) => Ok(()),
        };
        report(vault, &path, copied);
    }
}

/// Moves the copy of a text that another program replaced to the trash, if the change `is_news`, and copies the text that the
/// file has now. Returns where the replaced text is kept.
pub(crate) fn follow_outside(
    vault: &FolderVault,
    root: &Dir,
    file: &LoggedFile,
    (trash, is_news): (&TrashBatch, bool),
) -> Option<String> {
    let mut kept = None;
    let mut follow = || -> io::Result<()> {
        let mut is_copied = false;
        for copy in copies(file.old_path().as_str()) {
            let Some(bytes) = trash::if_permitted(trash::read(root, &copy))?.flatten() else { continue };
            is_copied = true;
            let before = file.before.map(|before| before.hash);
            let is_displaced = before == Some(ContentHash::of(&bytes)) && before != file.after.map(|after| after.hash);
            if is_news && is_displaced && kept.is_none() {
                let reason = if file.after.is_some() { TrashReason::Replaced } else { TrashReason::Deleted };
                let version = trash.version(reason, file.old_path());
                trash::add_version(root, &copy, &version)?;
                kept = Some(version);
            }
        }
        if !is_copied {
            return Ok(());
        }
        forget(root, file.old_path().as_str())?;
        let (folder, name) = split(file.path.as_str());
        let Some(folder) = if_exists(root.open_below(folder))? else { return Ok(()) };
        match read_in(&folder, name)? {
            Some((content, _)) if file.after.is_some_and(|after| after.hash == content.hash) => {
                keep(root, file.path.as_str(), &content.bytes)
            }
            _ => Ok(()),
        }
    };
    let followed = follow();
    report(vault, file.path.as_str(), followed);
    kept
}

/// Removes the copy of a note's text, unless another account made it before `.quipu` was shared.
pub(crate) fn forget(root: &Dir, path: &str) -> io::Result<()> {
    copies(path).iter().try_for_each(|copy| trash::if_permitted(trash::remove(root, copy)).map(drop))
}

/// Where a note's text may be copied.
fn copies(path: &str) -> [String; 2] {
    [WRITTEN_BY_GROUP, WRITTEN].map(|folder| join(folder, path))
}

/// Removes the copies of texts that were written before a time.
pub(crate) fn prune(root: &Dir, before_ns: i64) -> io::Result<()> {
    for folder in [WRITTEN_BY_GROUP, WRITTEN] {
        let files = trash::if_permitted(trash::files_of(root, folder))?;
        for (copy, _) in files.into_iter().flatten().filter(|(_, modified_ns)| *modified_ns < before_ns) {
            trash::remove(root, &copy)?;
        }
    }
    Ok(())
}

fn keep(root: &Dir, path: &str, bytes: &[u8]) -> io::Result<()> {
    failpoint::hit("copy")?;
    let (folder, name) = split(path);
    let note = root.open_below(folder)?.open_file(name)?;
    let is_shared = root.open(OWN_FOLDER)?.is_shared()?;
    let (copies, outdated) = if is_shared { (WRITTEN_BY_GROUP, WRITTEN) } else { (WRITTEN, WRITTEN_BY_GROUP) };
    trash::if_permitted(trash::remove(root, &join(outdated, path)))?;
    let folder = trash::create_folder(root, &join(copies, folder), &mut BTreeSet::new())?;
    folder.remove_file(name)?;
    let mut copy = folder.create_private_file(name)?;
    copy.write_all(bytes)?;
    copy_permissions(&note, &copy)
}

/// Another program may have removed or closed the note meanwhile.
fn report(vault: &FolderVault, path: &str, copied: io::Result<()>) {
    if let Err(error) =
        copied.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    {
        let message = format!("its text is not kept if another program changes it: {error}");
        vault.notices.lock().insert(Warning { path: path.to_owned(), message });
    }
}
