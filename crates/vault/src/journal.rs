//! What a write is about to do, told to whoever comes after a crash.
//!
//! Written before the first file is touched and removed when the last one is in place. Several effects are undone after a
//! crash, since their end is the removal of a journal that is known to be on disk. One effect alone is a single rename,
//! done or not: its journal is only for tidying up, is never synced, and so must never undo.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::beneath::Dir;
use crate::effect::{Effect, remove_made};
use crate::rules::OWN_FOLDER;
use crate::step;

const NAME: &str = "journal.json";
const UNSYNCED_NAME: &str = "journal.json.new";

/// One write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    format: u32,
    pub(crate) effects: Vec<Effect>,
    /// Folders that are made on the way, outermost first, by real path.
    pub(crate) made: Vec<String>,
}

const FORMAT: u32 = 1;

/// Whether a write was left unfinished.
pub(crate) fn is_pending(root: &Dir) -> io::Result<bool> {
    match root.open(OWN_FOLDER) {
        Ok(own) => Ok(own.see(NAME)?.is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Finishes or undoes what the last writer left. The caller holds the lock.
pub(crate) fn recover(root: &Dir, own: &Dir) -> io::Result<()> {
    if own.see(NAME)?.is_none() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    own.open_file(NAME)?.read_to_end(&mut bytes)?;
    match serde_json::from_slice::<Journal>(&bytes) {
        Ok(journal) if journal.format == FORMAT => {
            if let [only] = journal.effects.as_slice() {
                only.finish(root)?;
            } else {
                journal.undo_effects(root)?;
            }
            remove_made(root, &journal.made)?;
        }
        Ok(journal) => {
            let message = format!("the journal has format {}; a newer Quipu must finish it", journal.format);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        // One that must be heeded was synced before it got its name, so this is the trace of a single effect.
        Err(_) => {}
    }
    own.remove_file(NAME)?;
    own.sync()
}

impl Journal {
    pub(crate) fn new(effects: Vec<Effect>, made: Vec<String>) -> Self {
        Self { format: FORMAT, effects, made }
    }

    /// Says what is about to happen.
    pub(crate) fn write(&self, own: &Dir) -> io::Result<()> {
        step::before("journal")?;
        own.remove_file(UNSYNCED_NAME)?;
        let mut file = own.create_file(UNSYNCED_NAME)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        if self.must_be_undone() {
            file.sync_all()?;
        }
        step::before("journal in place")?;
        own.rename(UNSYNCED_NAME, NAME)?;
        if self.must_be_undone() {
            own.sync()?;
        }
        Ok(())
    }

    /// The end of the write: from here on nothing is undone.
    pub(crate) fn close(&self, root: &Dir, own: &Dir) -> io::Result<()> {
        step::before("close")?;
        if self.must_be_undone() {
            own.remove_file(NAME)?;
            own.sync()?;
        }
        // What cannot be removed now is a leftover, found by the next walk.
        for effect in &self.effects {
            let _ = effect.drop_displaced(root);
        }
        if !self.must_be_undone() {
            own.remove_file(NAME)?;
        }
        Ok(())
    }

    /// Undoes all of it, wherever it stopped.
    pub(crate) fn undo(&self, root: &Dir, own: &Dir) -> io::Result<()> {
        self.undo_effects(root)?;
        remove_made(root, &self.made)?;
        own.remove_file(NAME)?;
        own.remove_file(UNSYNCED_NAME)?;
        own.sync()
    }

    fn undo_effects(&self, root: &Dir) -> io::Result<()> {
        self.effects.iter().rev().try_for_each(|effect| effect.undo(root))
    }

    fn must_be_undone(&self) -> bool {
        self.effects.len() > 1
    }
}
