//! What the files say about a write that its journal calls unfinished, judged by content alone.
//!
//! Needed where a journal may be older than the notes around it or newer: in a vault that was copied, comes out of a backup,
//! or lies on a drive whose inodes changed when it was mounted again.

use std::io;

use crate::beneath::Dir;
use crate::effect::{Deed, Effect, Version, version_of};
use crate::trash;

/// How far an effect got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    After,
    /// Changed since by someone else.
    Other,
}

/// Whether every effect took place and displaced nothing but what it should: then the write is done, and not to be undone.
pub(crate) fn is_complete(effects: &[Effect], root: &Dir) -> io::Result<bool> {
    for effect in effects {
        let Some(files) = Files::of(effect, root)? else { return Ok(false) };
        let is_known = match &effect.deed {
            Deed::Put { new } => files.aside.is_none_or(|aside| aside == *new),
            Deed::Swap { old, .. } | Deed::Take { old, .. } => files.aside.is_none_or(|aside| aside == *old),
        };
        if !is_known || files.state(&effect.deed) != State::After {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Prepares the undoing of a write in a copy of the vault it was begun in. Whether it can be undone: not where a note was
/// changed since, nor where the version from before was not copied. Then nothing is changed.
pub(crate) fn adopt(effects: &[Effect], root: &Dir) -> io::Result<bool> {
    let mut doubled = Vec::new();
    for effect in effects {
        let Some(files) = Files::of(effect, root)? else { continue };
        let can_be_undone = match &effect.deed {
            // A rename made of two steps that was cut short leaves two names of one file, of which a copy makes two files.
            // The temporary one goes.
            Deed::Put { new } if files.placed == Some(*new) && files.aside.is_some() => {
                doubled.push(effect);
                files.aside == files.placed
            }
            Deed::Put { .. } => true,
            Deed::Swap { old, kept, .. } | Deed::Take { old, kept } => {
                [files.placed, files.aside, trash::version_of(root, kept)?].contains(&Some(*old))
            }
        };
        if !can_be_undone || files.state(&effect.deed) == State::Other {
            return Ok(false);
        }
    }
    for effect in doubled {
        root.open_below(&effect.folder)?.remove_file(&effect.temporary)?;
    }
    Ok(true)
}

/// What lies under an effect's two names.
struct Files {
    placed: Option<Version>,
    aside: Option<Version>,
}

impl Files {
    /// `None` where the folder is not there.
    fn of(effect: &Effect, root: &Dir) -> io::Result<Option<Self>> {
        let dir = match root.open_below(&effect.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            dir => dir?,
        };
        Ok(Some(Self { placed: version_of(&dir, &effect.name)?, aside: version_of(&dir, &effect.temporary)? }))
    }

    fn state(&self, deed: &Deed) -> State {
        let (before, after) = match deed {
            Deed::Put { new } => (None, Some(*new)),
            Deed::Swap { old, new, .. } => (Some(*old), Some(*new)),
            Deed::Take { old, .. } => (Some(*old), None),
        };
        match self.placed {
            placed if placed == before => State::Before,
            placed if placed == after => State::After,
            _ => State::Other,
        }
    }
}
