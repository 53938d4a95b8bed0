//! The three things a write does to a folder, how each is undone, and how one that a crash cut short is finished.
//!
//! What an effect displaces is first moved to a temporary name, in the same step, and only then compared with what was
//! expected: an edit that slipped in is therefore found, and put back. Undoing looks at what is there instead of
//! remembering how far it got, so it can be cut short and done again. What was ever to be seen under a note's name is
//! kept before it is undone: an editor may have it open, and what it adds later is then found in the trash.

use std::io;
use std::time::Duration;

use quipu_core::model::ContentHash;
use serde::{Deserialize, Serialize};

use crate::beneath::{Dir, Kind, leads_down};
use crate::folder::{join, split};
use crate::rules::OWN_FOLDER;
use crate::step;
use crate::temporary;
use crate::trash;

/// One effect on one name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Effect {
    /// The real folder, from the root.
    pub(crate) folder: String,
    pub(crate) name: String,
    /// Our temporary name in the same folder: first for the new version, then for the displaced one.
    pub(crate) temporary: String,
    pub(crate) deed: Deed,
}

/// What is done to the name. The old and the new version of a swap differ.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Deed {
    /// A new file where none is.
    Put { new: Version },
    /// A new version for the expected one.
    Swap { old: Version, new: Version, kept: String },
    /// The expected version goes away.
    Take { old: Version, kept: String },
}

/// A content hash that can be written to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version([u8; 32]);

impl Version {
    /// Something that is no regular file; equal to no version of a note.
    const FOREIGN: Self = Self([0; 32]);
}

impl From<ContentHash> for Version {
    fn from(hash: ContentHash) -> Self {
        Self(hash.0)
    }
}

/// Why an effect could not be had.
pub(crate) enum Conflict {
    /// Another version was there.
    Changed,
    /// Nothing was there.
    Missing,
    /// Something was there.
    Exists,
    /// The file system said no.
    Io(io::Error),
}

impl From<io::Error> for Conflict {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Effect {
    /// Whether it stays among the notes and the kept versions, and calls aside only what is ours. For one that was read
    /// from a file, which anyone may have written.
    pub(crate) fn is_confined(&self) -> bool {
        let Self { folder, name, temporary, deed } = self;
        let kept = match deed {
            Deed::Put { .. } => None,
            Deed::Swap { kept, .. } | Deed::Take { kept, .. } => Some(kept),
        };
        !name.contains('/')
            && is_among_notes(&join(folder, name))
            && temporary::is_ours(temporary)
            && kept.is_none_or(|kept| trash::is_version(kept))
    }

    /// Does it. The new version lies under the temporary name and the old one is in the trash already.
    pub(crate) fn run(&self, root: &Dir) -> Result<(), Conflict> {
        let dir = root.open_below(&self.folder)?;
        match &self.deed {
            Deed::Put { .. } => {
                step::before("put")?;
                match dir.rename_to_free(&self.temporary, &self.name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Conflict::Exists),
                    other => Ok(other?),
                }
            }
            Deed::Swap { old, kept, .. } => {
                // Looked at once more, so that the new version is hardly ever to be seen in vain.
                match version_of(&dir, &self.name)? {
                    Some(placed) if placed == *old => {}
                    Some(_) => return Err(Conflict::Changed),
                    None => return Err(Conflict::Missing),
                }
                step::before("swap")?;
                let is_exchanged = match dir.exchange(&self.temporary, &self.name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Conflict::Missing),
                    other => other?,
                };
                if !is_exchanged {
                    return self.swap_without_exchange(root, &dir, *old, kept);
                }
                step::before("compare")?;
                match version_of(&dir, &self.temporary)? {
                    Some(displaced) if displaced == *old => Ok(()),
                    _ => Err(Conflict::Changed),
                }
            }
            Deed::Take { old, .. } => {
                step::before("take")?;
                match dir.rename(&self.name, &self.temporary) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Conflict::Missing),
                    other => other?,
                }
                step::before("compare")?;
                match version_of(&dir, &self.temporary)? {
                    Some(displaced) if displaced == *old => Ok(()),
                    _ => Err(Conflict::Changed),
                }
            }
        }
    }

    /// For file systems that cannot exchange two names. An edit made in place is found in the trash's link to the same
    /// file; one that another program renames into place between the look and the rename would be lost, a window of
    /// microseconds that such file systems leave to every editor.
    fn swap_without_exchange(&self, root: &Dir, dir: &Dir, old: Version, kept: &str) -> Result<(), Conflict> {
        if version_of(dir, &self.name)? != Some(old) {
            return Err(Conflict::Changed);
        }
        dir.rename(&self.temporary, &self.name)?;
        if trash::version_of(root, kept)? != Some(old) {
            return Err(Conflict::Changed);
        }
        Ok(())
    }

    /// Removes what the effect displaced, once all is done: the trash has it.
    pub(crate) fn drop_displaced(&self, root: &Dir) -> io::Result<()> {
        step::before("drop")?;
        root.open_below(&self.folder)?.remove_file(&self.temporary)
    }

    /// Brings back what was there before, whether or not the effect took place. An edit made on top of ours stays.
    pub(crate) fn undo(&self, root: &Dir) -> io::Result<()> {
        step::before("undo")?;
        let dir = match root.open_below(&self.folder) {
            Ok(dir) => dir,
            // Never made, or removed since with all that was in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.forget_kept(root, None),
            Err(error) => return Err(error),
        };
        match &self.deed {
            Deed::Put { new } => self.undo_put(root, &dir, *new)?,
            Deed::Swap { old, new, kept } => self.undo_swap(root, &dir, (*old, *new), kept)?,
            Deed::Take { old, kept } => self.undo_take(root, &dir, *old, kept)?,
        }
        dir.sync()?;
        self.forget_kept(root, Some(&dir))
    }

    /// Whether an effect that stood alone, and was cut short by the end of its process, was had.
    pub(crate) fn took_place(&self, root: &Dir) -> io::Result<bool> {
        let dir = match root.open_below(&self.folder) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let (aside, placed) = (version_of(&dir, &self.temporary)?, version_of(&dir, &self.name)?);
        Ok(match &self.deed {
            Deed::Put { .. } => self.is_placed(&dir)?,
            Deed::Swap { old, new, .. } => aside == Some(*old) || (aside.is_none() && placed == Some(*new)),
            Deed::Take { old, kept } => {
                aside == Some(*old) || (aside.is_none() && placed.is_none() && trash::version_of(root, kept)?.is_some())
            }
        })
    }

    /// Completes an effect that stood alone: it was done if its one rename was, and an edit that slipped in comes back.
    pub(crate) fn finish(&self, root: &Dir) -> io::Result<()> {
        let dir = match root.open_below(&self.folder) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.forget_kept(root, None),
            Err(error) => return Err(error),
        };
        let aside = version_of(&dir, &self.temporary)?;
        let is_known = match &self.deed {
            Deed::Put { .. } => true,
            Deed::Swap { old, new, kept } => {
                aside.is_none_or(|aside| aside == *old || aside == *new)
                    // Not yet exchanged: what is aside is a new version that was not written to its end.
                    || trash::version_of(root, kept)?.is_none()
            }
            Deed::Take { old, .. } => aside.is_none_or(|aside| aside == *old),
        };
        if !is_known {
            return self.undo(root);
        }
        step::before("finish")?;
        dir.remove_file(&self.temporary)?;
        dir.sync()?;
        self.forget_kept(root, Some(&dir))
    }

    /// Whether what was put has its name, and not only the temporary one. Both names on one file: a rename made of two steps
    /// was cut short. Another version under the name is ours too, edited since: nothing was there before.
    fn is_placed(&self, dir: &Dir) -> io::Result<bool> {
        let (aside, placed) = (dir.see(&self.temporary)?, dir.see(&self.name)?);
        Ok(placed.is_some_and(|placed| aside.is_none_or(|aside| aside.inode == placed.inode)))
    }

    fn undo_put(&self, root: &Dir, dir: &Dir, new: Version) -> io::Result<()> {
        let aside = dir.see(&self.temporary)?;
        if self.is_placed(dir)? && version_of(dir, &self.name)? == Some(new) {
            self.keep_seen(root, dir, &self.name)?;
            step::before("put back")?;
            dir.rename(&self.name, &self.temporary)?;
            if version_of(dir, &self.temporary)? != Some(new) {
                return dir.rename_to_free(&self.temporary, &self.name);
            }
            // A rename between two names of one file does nothing.
            if aside.is_some() {
                dir.remove_file(&self.name)?;
            }
        }
        dir.remove_file(&self.temporary)
    }

    fn undo_swap(&self, root: &Dir, dir: &Dir, (old, new): (Version, Version), kept: &str) -> io::Result<()> {
        let (aside, placed) = (version_of(dir, &self.temporary)?, version_of(dir, &self.name)?);
        match (aside, placed) {
            // Never exchanged, or exchanged back after the new version was kept.
            (Some(aside), _) if aside == new => dir.remove_file(&self.temporary),
            // The old version is kept once the new one is whole: before that, what is aside was not displaced.
            (Some(_), Some(_)) if trash::version_of(root, kept)?.is_none() => dir.remove_file(&self.temporary),
            (Some(_), Some(placed)) if placed == new => self.swap_back(root, dir, (old, new)),
            (Some(_), None) => dir.rename_to_free(&self.temporary, &self.name),
            (Some(_), Some(_)) => self.keep_aside(root, dir, old),
            (None, Some(placed)) if placed == new => {
                self.keep_seen(root, dir, &self.name)?;
                trash::copy_out(root, kept, dir, &self.temporary)?;
                dir.rename(&self.temporary, &self.name)
            }
            (None, _) => Ok(()),
        }
    }

    /// Brings back what a swap displaced. The new version is kept before it loses its name, not after: cut short in
    /// between, nobody could tell that it was ever to be seen.
    fn swap_back(&self, root: &Dir, dir: &Dir, (old, new): (Version, Version)) -> io::Result<()> {
        let seen = dir.see(&self.name)?;
        self.keep_seen(root, dir, &self.name)?;
        step::before("swap back")?;
        if !dir.exchange(&self.temporary, &self.name)? {
            return dir.rename(&self.temporary, &self.name);
        }
        if version_of(dir, &self.temporary)? != Some(new) {
            // Someone saved once more, over ours: that is the newest, and it stays.
            dir.exchange(&self.temporary, &self.name)?;
            return self.keep_aside(root, dir, old);
        }
        let is_kept = dir.see(&self.temporary)?.map(|aside| aside.inode) == seen.map(|seen| seen.inode);
        if !is_kept {
            self.keep_seen(root, dir, &self.temporary)?;
        }
        dir.remove_file(&self.temporary)
    }

    fn undo_take(&self, root: &Dir, dir: &Dir, old: Version, kept: &str) -> io::Result<()> {
        let is_aside = dir.see(&self.temporary)?.is_some();
        let is_free = dir.see(&self.name)?.is_none();
        match (is_aside, is_free) {
            (true, true) => dir.rename_to_free(&self.temporary, &self.name),
            (true, false) => self.keep_aside(root, dir, old),
            (false, true) if trash::version_of(root, kept)?.is_some() => {
                trash::copy_out(root, kept, dir, &self.temporary)?;
                dir.rename_to_free(&self.temporary, &self.name)
            }
            (false, _) => Ok(()),
        }
    }

    /// Moves a displaced version to the trash when its place is taken by a newer edit.
    fn keep_aside(&self, root: &Dir, dir: &Dir, old: Version) -> io::Result<()> {
        if version_of(dir, &self.temporary)? != Some(old) {
            self.keep_seen(root, dir, &self.temporary)?;
        }
        dir.remove_file(&self.temporary)
    }

    /// Keeps, under the note's path, a file that was to be seen there.
    fn keep_seen(&self, root: &Dir, dir: &Dir, name: &str) -> io::Result<()> {
        trash::keep_late(root, dir, name, &join(&self.folder, &self.name))
    }

    /// Takes the old version out of the trash again if it is where it was.
    fn forget_kept(&self, root: &Dir, dir: Option<&Dir>) -> io::Result<()> {
        let (Deed::Swap { old, kept, .. } | Deed::Take { old, kept }) = &self.deed else { return Ok(()) };
        let placed = dir.map(|dir| version_of(dir, &self.name)).transpose()?.flatten();
        if placed == Some(*old) {
            trash::forget(root, kept)?;
        }
        Ok(())
    }
}

/// The version under a name, whatever its size; `None` when nothing is there.
pub(crate) fn version_of(dir: &Dir, name: &str) -> io::Result<Option<Version>> {
    for _ in 0..100 {
        let Some(seen) = dir.see(name)? else { return Ok(None) };
        if seen.kind != Kind::File {
            return Ok(Some(Version::FOREIGN));
        }
        let mut hasher = blake3::Hasher::new();
        match dir.open_file(name) {
            Ok(file) => hasher.update_reader(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if dir.see(name)?.is_some_and(|after| after.inode == seen.inode && after.stat == seen.stat) {
            return Ok(Some(Version(*hasher.finalize().as_bytes())));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it keeps changing while it is read"))
}

/// Whether a real path stays in the vault and out of what git and we keep there.
pub(crate) fn is_among_notes(path: &str) -> bool {
    let is_reserved = |part: &str| [".git", OWN_FOLDER].iter().any(|reserved| part.eq_ignore_ascii_case(reserved));
    leads_down(path) && !path.split('/').any(is_reserved)
}

/// Removes folders that were made for files that did not come to be, innermost first, where they are still empty.
pub(crate) fn remove_made(root: &Dir, made: &[String]) -> io::Result<()> {
    for path in made.iter().rev() {
        let (folder, name) = split(path);
        if let Ok(dir) = root.open_below(folder) {
            match dir.remove_folder(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                other => {
                    other?;
                    dir.sync()?;
                }
            }
        }
    }
    Ok(())
}
