//! The four operations of a write on a file name, how each is undone, and how one that a crash interrupted is completed.
//!
//! An operation moves the old version to a temporary name in the same step and only then compares it with the expected
//! version, so a concurrent edit is detected and restored. Undo looks at the files instead of recording its progress, so it
//! can be interrupted and repeated. A version that was visible under a note's name goes to the trash before it is undone:
//! an editor may have it open, and what the editor adds later is then found in the trash.

use std::io;
use std::time::Duration;

use quipu_core::model::ContentHash;
use serde::{Deserialize, Serialize};

use crate::dir::{Dir, FileKind, Metadata, if_exists, is_below};
use crate::failpoint;
use crate::folder::{join, split};
use crate::own_folder::OWN_FOLDER;
use crate::temporary;
use crate::trash;

/// One operation as the journal records it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JournalEntry {
    /// The real folder, from the root.
    pub(crate) folder: String,
    pub(crate) name: String,
    /// A temporary name in the same folder: first of the new version, then of the displaced one.
    pub(crate) temporary: String,
    #[serde(rename = "deed")]
    pub(crate) op: FileOp,
}

/// What is done to the name. `trashed` is the old version's path in the trash. The names in the file are those of earlier
/// versions, whose journals must stay readable.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum FileOp {
    #[serde(rename = "Put")]
    Create { new: FileVersion },
    /// The two versions differ.
    #[serde(rename = "Swap")]
    Replace {
        old: FileVersion,
        new: FileVersion,
        #[serde(rename = "kept")]
        trashed: String,
    },
    #[serde(rename = "Take")]
    Delete {
        old: FileVersion,
        #[serde(rename = "kept")]
        trashed: String,
    },
    /// A file that is not a note gets another path, which was free. Known by its size: hashing its content could take long,
    /// and a copy of the vault may have other times.
    Rename { to_folder: String, to_name: String, size: u64 },
}

/// A content hash that can be written to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileVersion([u8; 32]);

impl FileVersion {
    /// Not a regular file; equal to no version of a note.
    const NOT_A_FILE: Self = Self([0; 32]);
}

impl From<ContentHash> for FileVersion {
    fn from(hash: ContentHash) -> Self {
        Self(hash.0)
    }
}

/// Why an operation failed.
pub(crate) enum FileConflict {
    /// The file has another version than expected.
    Changed,
    /// The file does not exist.
    Missing,
    /// The new name is taken.
    Exists,
    Io(io::Error),
}

impl From<io::Error> for FileConflict {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl FileOp {
    /// The old version and its path in the trash.
    pub(crate) fn displaced(&self) -> Option<(FileVersion, &str)> {
        match self {
            Self::Create { .. } | Self::Rename { .. } => None,
            Self::Replace { old, trashed, .. } | Self::Delete { old, trashed } => Some((*old, trashed)),
        }
    }
}

impl JournalEntry {
    /// Whether it touches only notes, temporary files and the trash. Checked for entries of a journal file, which another
    /// program may have written.
    pub(crate) fn is_confined(&self) -> bool {
        !self.name.contains('/')
            && is_among_notes(&join(&self.folder, &self.name))
            && temporary::is_ours(&self.temporary)
            && self.op.displaced().is_none_or(|(_, trashed)| trash::note_of(trashed).is_some())
            && match &self.op {
                FileOp::Rename { to_folder, to_name, .. } => {
                    !to_name.contains('/') && is_among_notes(&join(to_folder, to_name))
                }
                _ => true,
            }
    }

    /// Runs the operation. The new version is complete under the temporary name, and the old one is in the trash.
    pub(crate) fn run(&self, root: &Dir) -> Result<(), FileConflict> {
        let dir = root.open_below(&self.folder)?;
        match &self.op {
            FileOp::Create { .. } => {
                failpoint::hit("create")?;
                match dir.rename_no_replace(&self.temporary, &self.name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(FileConflict::Exists),
                    other => Ok(other?),
                }
            }
            FileOp::Replace { old, trashed, .. } => {
                // Checked before the exchange too, so that the new version of a refused write is rarely visible.
                expect_version(&dir, &self.name, *old)?;
                failpoint::hit("replace")?;
                match if_exists(dir.exchange(&self.temporary, &self.name))? {
                    None => Err(FileConflict::Missing),
                    Some(true) => self.expect_displaced(&dir, *old),
                    Some(false) => self.replace_without_exchange(root, &dir, *old, trashed),
                }
            }
            FileOp::Delete { old, .. } => {
                failpoint::hit("delete")?;
                if_exists(dir.rename(&self.name, &self.temporary))?.ok_or(FileConflict::Missing)?;
                self.expect_displaced(&dir, *old)
            }
            FileOp::Rename { to_folder, to_name, .. } => {
                failpoint::hit("rename")?;
                let to = root.open_below(to_folder)?;
                match if_exists(dir.move_no_replace(&self.name, &to, to_name)) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(FileConflict::Exists),
                    moved => moved?.ok_or(FileConflict::Missing),
                }
            }
        }
    }

    /// Whether a renamed file is at its new path alone.
    pub(crate) fn is_renamed(&self, root: &Dir) -> io::Result<bool> {
        Ok(matches!(self.found_names(root)?, (None, Some(new)) if self.is_renamed_file(&new)))
    }

    /// What is under the old and the new name of a renamed file.
    fn found_names(&self, root: &Dir) -> io::Result<(Option<Metadata>, Option<Metadata>)> {
        let FileOp::Rename { to_folder, to_name, .. } = &self.op else { return Ok((None, None)) };
        let found = |folder: &str, name: &str| match if_exists(root.open_below(folder))? {
            Some(folder) => folder.metadata(name),
            None => Ok(None),
        };
        Ok((found(&self.folder, &self.name)?, found(to_folder, to_name)?))
    }

    fn is_renamed_file(&self, found: &Metadata) -> bool {
        matches!(self.op, FileOp::Rename { size, .. } if found.kind == FileKind::File && found.stat.size == size)
    }

    /// Moves a renamed file back, unless its old path is taken. A rename in two steps may have left both names.
    fn undo_rename(&self, root: &Dir, dir: &Dir) -> io::Result<()> {
        let FileOp::Rename { to_folder, to_name, .. } = &self.op else { return Ok(()) };
        let names = self.found_names(root)?;
        let Some(to) = if_exists(root.open_below(to_folder))? else { return Ok(()) };
        failpoint::hit("undo rename")?;
        match names {
            (None, Some(new)) if self.is_renamed_file(&new) => to.move_no_replace(to_name, dir, &self.name)?,
            // A copy of the vault turns two names of one file into two files.
            (Some(old), Some(new))
                if old.inode == new.inode || version_of(dir, &self.name)? == version_of(&to, to_name)? =>
            {
                to.remove_file(to_name)?;
            }
            _ => return Ok(()),
        }
        to.sync()
    }

    fn expect_displaced(&self, dir: &Dir, old: FileVersion) -> Result<(), FileConflict> {
        failpoint::hit("compare")?;
        if version_of(dir, &self.temporary)? == Some(old) { Ok(()) } else { Err(FileConflict::Changed) }
    }

    /// For file systems that cannot exchange two names. An edit in place is found through the trash's link to the same file.
    /// A file that another program renames into place between the check and the rename is lost; every editor has this window
    /// of microseconds on such file systems.
    fn replace_without_exchange(
        &self,
        root: &Dir,
        dir: &Dir,
        old: FileVersion,
        trashed: &str,
    ) -> Result<(), FileConflict> {
        if version_of(dir, &self.name)? != Some(old) {
            return Err(FileConflict::Changed);
        }
        dir.rename(&self.temporary, &self.name)?;
        if trash::version_of(root, trashed)? == Some(old) { Ok(()) } else { Err(FileConflict::Changed) }
    }

    /// Removes the displaced version once the whole write is done; the trash has it.
    pub(crate) fn remove_displaced(&self, root: &Dir) -> io::Result<()> {
        failpoint::hit("remove displaced")?;
        root.open_below(&self.folder)?.remove_file(&self.temporary)
    }

    /// Restores the old state, whether or not the operation ran. A later edit of the new version stays.
    pub(crate) fn undo(&self, root: &Dir) -> io::Result<()> {
        failpoint::hit("undo")?;
        // A missing folder was never created, or was removed with all files in it.
        let Some(dir) = if_exists(root.open_below(&self.folder))? else { return Ok(()) };
        match &self.op {
            FileOp::Create { new } => self.undo_create(root, &dir, *new)?,
            FileOp::Replace { old, new, trashed } => self.undo_replace(root, &dir, (*old, *new), trashed)?,
            FileOp::Delete { old, trashed } => self.undo_delete(root, &dir, *old, trashed)?,
            FileOp::Rename { .. } => self.undo_rename(root, &dir)?,
        }
        dir.sync()?;
        self.remove_trashed_if_restored(root, &dir)
    }

    /// Whether the trash has the old version unchanged, if an undo would take it from there. Other accounts may be able to
    /// replace files in the trash.
    pub(crate) fn has_old_version(&self, root: &Dir) -> io::Result<bool> {
        let Some(dir) = if_exists(root.open_below(&self.folder))? else { return Ok(true) };
        if dir.metadata(&self.temporary)?.is_some() {
            return Ok(true);
        }
        let current = version_of(&dir, &self.name)?;
        Ok(match &self.op {
            FileOp::Replace { old, new, trashed } if current == Some(*new) => {
                trash::version_of(root, trashed)? == Some(*old)
            }
            FileOp::Delete { old, trashed } if current.is_none() => {
                trash::version_of(root, trashed)?.is_none_or(|version| version == *old)
            }
            _ => true,
        })
    }

    /// Whether the only operation of a write took place before its process was killed.
    pub(crate) fn took_place(&self, root: &Dir) -> io::Result<bool> {
        if matches!(self.op, FileOp::Rename { .. }) {
            return self.is_renamed(root);
        }
        let Some(dir) = if_exists(root.open_below(&self.folder))? else { return Ok(false) };
        let (aside, current) = (version_of(&dir, &self.temporary)?, version_of(&dir, &self.name)?);
        Ok(match &self.op {
            FileOp::Create { .. } => self.is_created(&dir)?,
            FileOp::Rename { .. } => false,
            FileOp::Replace { old, new, .. } => aside == Some(*old) || (aside.is_none() && current == Some(*new)),
            FileOp::Delete { old, trashed } => {
                let is_deleted = aside.is_none() && current.is_none();
                aside == Some(*old) || (is_deleted && trash::version_of(root, trashed)?.is_some())
            }
        })
    }

    /// Cleans up after the only operation of a write, which is a single rename, done or not. Restores a concurrent edit that
    /// the rename displaced.
    pub(crate) fn complete(&self, root: &Dir) -> io::Result<()> {
        let Some(dir) = if_exists(root.open_below(&self.folder))? else { return Ok(()) };
        if matches!(self.op, FileOp::Rename { .. }) {
            return if self.is_renamed(root)? { Ok(()) } else { self.undo_rename(root, &dir) };
        }
        let aside = version_of(&dir, &self.temporary)?;
        let is_expected = match &self.op {
            FileOp::Create { .. } | FileOp::Rename { .. } => true,
            FileOp::Replace { old, new, trashed } => {
                aside.is_none_or(|aside| aside == *old || aside == *new)
                    // Not exchanged yet: the temporary file is a partly written new version.
                    || trash::version_of(root, trashed)?.is_none()
            }
            FileOp::Delete { old, .. } => aside.is_none_or(|aside| aside == *old),
        };
        if !is_expected {
            return self.undo(root);
        }
        failpoint::hit("complete")?;
        dir.remove_file(&self.temporary)?;
        dir.sync()?;
        self.remove_trashed_if_restored(root, &dir)
    }

    /// Whether a created file has its name, and not only the temporary one. Both names of one file: a rename in two steps was
    /// interrupted. Another version under the name is the created file, edited since: the name was free before.
    fn is_created(&self, dir: &Dir) -> io::Result<bool> {
        let (aside, current) = (dir.metadata(&self.temporary)?, dir.metadata(&self.name)?);
        Ok(current.is_some_and(|current| aside.is_none_or(|aside| aside.inode == current.inode)))
    }

    fn undo_create(&self, root: &Dir, dir: &Dir, new: FileVersion) -> io::Result<()> {
        let aside = dir.metadata(&self.temporary)?;
        if self.is_created(dir)? && version_of(dir, &self.name)? == Some(new) {
            self.trash_visible(root, dir, &self.name)?;
            failpoint::hit("undo create")?;
            dir.rename(&self.name, &self.temporary)?;
            if version_of(dir, &self.temporary)? != Some(new) {
                return dir.rename_no_replace(&self.temporary, &self.name);
            }
            // A rename between two names of one file does nothing.
            if aside.is_some() {
                dir.remove_file(&self.name)?;
            }
        }
        dir.remove_file(&self.temporary)
    }

    fn undo_replace(
        &self,
        root: &Dir,
        dir: &Dir,
        (old, new): (FileVersion, FileVersion),
        trashed: &str,
    ) -> io::Result<()> {
        let (aside, current) = (version_of(dir, &self.temporary)?, version_of(dir, &self.name)?);
        match (aside, current) {
            // Never exchanged, or exchanged back after the new version went to the trash.
            (Some(aside), _) if aside == new => dir.remove_file(&self.temporary),
            // The old version goes to the trash once the new one is complete: before that, nothing was displaced.
            (Some(_), Some(_)) if trash::version_of(root, trashed)?.is_none() => dir.remove_file(&self.temporary),
            (Some(_), Some(current)) if current == new => self.exchange_back(root, dir, (old, new)),
            (Some(_), None) => dir.rename_no_replace(&self.temporary, &self.name),
            (Some(_), Some(_)) => self.trash_aside(root, dir, old),
            (None, Some(current)) if current == new => {
                self.trash_visible(root, dir, &self.name)?;
                // The new version has the permissions of the old one.
                let current = dir.open_file(&self.name)?;
                trash::copy_out(root, (trashed, old), (dir, &self.temporary), Some(&current))?;
                dir.rename(&self.temporary, &self.name)
            }
            (None, _) => Ok(()),
        }
    }

    /// Restores the version that a replace displaced. The new version goes to the trash before it loses its name: after an
    /// interruption in between, recovery could not tell that it was ever visible.
    fn exchange_back(&self, root: &Dir, dir: &Dir, (old, new): (FileVersion, FileVersion)) -> io::Result<()> {
        let in_trash = dir.metadata(&self.name)?;
        self.trash_visible(root, dir, &self.name)?;
        failpoint::hit("exchange back")?;
        if !dir.exchange(&self.temporary, &self.name)? {
            return dir.rename(&self.temporary, &self.name);
        }
        if version_of(dir, &self.temporary)? != Some(new) {
            // Another program saved over the new version: that edit is the newest and stays.
            dir.exchange(&self.temporary, &self.name)?;
            return self.trash_aside(root, dir, old);
        }
        let is_in_trash = dir.metadata(&self.temporary)?.map(|aside| aside.inode) == in_trash.map(|file| file.inode);
        if !is_in_trash {
            self.trash_visible(root, dir, &self.temporary)?;
        }
        dir.remove_file(&self.temporary)
    }

    fn undo_delete(&self, root: &Dir, dir: &Dir, old: FileVersion, trashed: &str) -> io::Result<()> {
        let is_aside = dir.metadata(&self.temporary)?.is_some();
        let is_free = dir.metadata(&self.name)?.is_none();
        match (is_aside, is_free) {
            (true, true) => dir.rename_no_replace(&self.temporary, &self.name),
            (true, false) => self.trash_aside(root, dir, old),
            (false, true) if trash::version_of(root, trashed)?.is_some() => {
                trash::copy_out(root, (trashed, old), (dir, &self.temporary), None)?;
                dir.rename_no_replace(&self.temporary, &self.name)
            }
            (false, _) => Ok(()),
        }
    }

    /// Moves a displaced version to the trash when a newer edit has its name.
    fn trash_aside(&self, root: &Dir, dir: &Dir, old: FileVersion) -> io::Result<()> {
        if version_of(dir, &self.temporary)? != Some(old) {
            self.trash_visible(root, dir, &self.temporary)?;
        }
        dir.remove_file(&self.temporary)
    }

    /// Adds a file that was visible under the note's path to the trash.
    fn trash_visible(&self, root: &Dir, dir: &Dir, name: &str) -> io::Result<()> {
        trash::add_undone(root, dir, name, &join(&self.folder, &self.name))
    }

    /// Removes the old version from the trash if the note has it again.
    fn remove_trashed_if_restored(&self, root: &Dir, dir: &Dir) -> io::Result<()> {
        match self.op.displaced() {
            Some((old, trashed)) if version_of(dir, &self.name)? == Some(old) => trash::remove(root, trashed),
            _ => Ok(()),
        }
    }
}

fn expect_version(dir: &Dir, name: &str, expected: FileVersion) -> Result<(), FileConflict> {
    match version_of(dir, name)? {
        Some(version) if version == expected => Ok(()),
        Some(_) => Err(FileConflict::Changed),
        None => Err(FileConflict::Missing),
    }
}

/// The version of a file of any size; `None` if it does not exist.
pub(crate) fn version_of(dir: &Dir, name: &str) -> io::Result<Option<FileVersion>> {
    for _ in 0..100 {
        let Some(before) = dir.metadata(name)? else { return Ok(None) };
        if before.kind != FileKind::File {
            return Ok(Some(FileVersion::NOT_A_FILE));
        }
        let Some(file) = if_exists(dir.open_file(name))? else { continue };
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        if dir.metadata(name)?.is_some_and(|after| after.inode == before.inode && after.stat == before.stat) {
            return Ok(Some(FileVersion(*hasher.finalize().as_bytes())));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "the file keeps changing while it is read; retry"))
}

/// Whether a real path lies in the vault and outside `.git` and `.quipu`.
pub(crate) fn is_among_notes(path: &str) -> bool {
    let is_reserved = |part: &str| [".git", OWN_FOLDER].iter().any(|reserved| part.eq_ignore_ascii_case(reserved));
    is_below(path) && !path.split('/').any(is_reserved)
}

/// Removes the folders that an undone write created, innermost first, if they are still empty.
pub(crate) fn remove_created_folders(root: &Dir, created: &[String]) -> io::Result<()> {
    for path in created.iter().rev() {
        let (folder, name) = split(path);
        let Ok(dir) = root.open_below(folder) else { continue };
        match dir.remove_folder(name) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
            removed => removed.and_then(|()| dir.sync())?,
        }
    }
    Ok(())
}
