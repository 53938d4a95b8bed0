//! The text that this program wrote last to each note, in case another program replaces it.
//!
//! A write keeps the text that it displaces; another program does not. Many editors save in place, which would change a hard
//! link too, so each text is copied when it is written, to a folder in `.quipu/trash/` under the path of its note. The next write
//! replaces the copy. When the history learns that another program changed the note, the copy becomes a version of the trash,
//! and the new text is copied. Only notes that this program has written have copies.
//!
//! Copies are not synced and no part of the journal: one is used only if its hash is that of the displaced text.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

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

/// The folder in the trash for copies of written texts. The listing of the trash ignores the name.
const WRITTEN: &str = "written";
/// The folder in the trash for copies of written texts where a group shares `.quipu`. Copies that were made before stay private
/// to their account: a folder that was private is never opened to others, since a member of the group could have put another
/// folder in its place.
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
    let dir = root.open_below(folder)?;
    let note = dir.open_file(name)?;
    let mut found = Vec::new();
    (&note).take(bytes.len() as u64 + 1).read_to_end(&mut found)?;
    let is_shared = root.open(OWN_FOLDER)?.is_shared()?;
    let (copies, outdated) = if is_shared { (WRITTEN_BY_GROUP, WRITTEN) } else { (WRITTEN, WRITTEN_BY_GROUP) };
    trash::if_permitted(trash::remove(root, &join(outdated, path)))?;
    let folder = trash::create_folder(root, &join(copies, folder), (&dir, folder), &mut BTreeSet::new())?;
    folder.remove_file(name)?;
    let mut copy = folder.create_private_file(name)?;
    copy.write_all(bytes)?;
    // The permissions of another file say nothing about this text: the copy stays private.
    if found == bytes { copy_permissions(&note, &copy) } else { Ok(()) }
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the user, and a member of the group who exchanges folders")]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::mpsc::channel;

    use quipu_core::model::{ContentHash, VaultPath};
    use quipu_core::ports::{FileChange, VaultFiles};

    use crate::failpoint::fault::with_hook;
    use crate::{FolderVault, VaultOptions};

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    /// A readable note in a closed folder of a vault with a shared `.quipu`, and an open folder with a note of that name. Returns
    /// what `see` sees at each later step of a write, after `exchange` at the first one of that name.
    fn seen_after<T: 'static>(
        at: &'static str,
        exchange: impl Fn(&Path) + 'static,
        see: impl Fn(&Path) -> Option<T> + 'static,
    ) -> (tempfile::TempDir, Vec<T>) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().to_owned();
        for (folder, text, folder_mode) in [("closed", "old", 0o700), ("planted", "theirs", 0o777)] {
            std::fs::create_dir(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("a.md"), text).unwrap();
            set_mode(&root.join(folder).join("a.md"), 0o666);
            set_mode(&root.join(folder), folder_mode);
        }
        std::fs::create_dir(root.join(".quipu")).unwrap();
        set_mode(&root.join(".quipu"), 0o2770);
        let vault = FolderVault::open(&root, VaultOptions::default()).unwrap();
        let (sender, seen) = channel();
        let mut is_done = false;
        let hook = move |step: &str| {
            if !is_done && step == at {
                exchange(&root);
                is_done = true;
            } else if is_done && let Some(saw) = see(&root) {
                sender.send(saw).unwrap();
            }
            Ok(())
        };
        let (path, expected) = (VaultPath::parse("closed/a.md").unwrap(), ContentHash::of(b"old"));
        let change = FileChange::Replace { path, expected, bytes: b"new".to_vec() };
        // It may be refused: the folder is another one.
        let _ = with_hook(hook, || vault.apply(&[change])).unwrap();
        (home, seen.iter().collect())
    }

    fn exchange_folders(root: &Path) {
        std::fs::rename(root.join("closed"), root.join("real")).unwrap();
        std::fs::rename(root.join("planted"), root.join("closed")).unwrap();
    }

    #[test]
    fn copy_of_a_note_whose_folder_was_exchanged_is_private() {
        let (home, _) = seen_after("copy", exchange_folders, |_| None::<()>);
        let copy = home.path().join(".quipu/trash/written-group/closed/a.md");
        assert_eq!((std::fs::read_to_string(&copy).unwrap().as_str(), mode(&copy)), ("new", 0o600));
    }

    #[test]
    fn trash_folder_of_a_note_whose_folder_was_exchanged_is_private() {
        let version_folder = |root: &Path| {
            let trash = std::fs::read_dir(root.join(".quipu/trash")).ok()?;
            let mut versions = trash.map(|entry| entry.unwrap().path().join("closed"));
            versions.find(|folder| folder.join("a.md").exists()).map(|folder| mode(&folder))
        };
        let (_home, modes) = seen_after("trash", exchange_folders, version_folder);
        assert!(!modes.is_empty() && modes.iter().all(|mode| mode & 0o077 == 0), "{modes:?}");
    }

    #[test]
    fn private_folder_in_the_place_of_a_new_shared_one_stays_private() {
        let exchange = |root: &Path| {
            std::fs::rename(root.join(".quipu/trash"), root.join("new")).unwrap();
            std::fs::rename(root.join("closed"), root.join(".quipu/trash")).unwrap();
        };
        let (home, _) = seen_after("share the new folder", exchange, |_| None::<()>);
        let moved = home.path().join(".quipu/trash");
        assert!(moved.join("a.md").exists());
        assert_eq!(mode(&moved), 0o700);
    }
}
