//! What a write is about to do, told to whoever comes after a crash.
//!
//! Written before the first file is touched and given another name when the last one is in place: several effects that a
//! crash cut short are undone before that moment and tidied up after it. One effect alone is a single rename, done or
//! not: its journal is only for tidying up, is never synced, and so must never undo.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::beneath::{Dir, is_no_folder};
use crate::effect::{Effect, remove_made};
use crate::rules::OWN_FOLDER;
use crate::step;

const NAME: &str = "journal.json";
const DONE_NAME: &str = "journal.done.json";
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
        Ok(own) => Ok(own.see(NAME)?.is_some() || own.see(DONE_NAME)?.is_some()),
        // A file of that name holds no journal. The notes can still be read; the first write says what is wrong.
        Err(error) if is_no_folder(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Finishes or undoes what the last writer left. The caller holds the lock.
pub(crate) fn recover(root: &Dir, own: &Dir) -> io::Result<()> {
    if let Some(done) = read(own, DONE_NAME)? {
        done.effects.iter().try_for_each(|effect| effect.drop_displaced(root))?;
    }
    if let Some(journal) = read(own, NAME)? {
        match journal.effects.as_slice() {
            [only] => only.finish(root)?,
            _ => journal.undo_effects(root)?,
        }
        remove_made(root, &journal.made)?;
    }
    for name in [DONE_NAME, NAME] {
        if own.see(name)?.is_some() {
            own.remove_file(name)?;
            own.sync()?;
        }
    }
    Ok(())
}

fn read(own: &Dir, name: &str) -> io::Result<Option<Journal>> {
    if own.see(name)?.is_none() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    own.open_file(name)?.read_to_end(&mut bytes)?;
    match serde_json::from_slice::<Journal>(&bytes) {
        Ok(journal) if journal.format == FORMAT => Ok(Some(journal)),
        Ok(journal) => {
            let message = format!("the journal has format {}; a newer Quipu must finish it", journal.format);
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
        // One that must be heeded was synced before it got its name, so this is the trace of a single effect.
        Err(_) => Ok(None),
    }
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

    /// The end of the write: once this returns, or the program ends behind it, nothing is undone.
    pub(crate) fn close(&self, root: &Dir, own: &Dir) -> io::Result<()> {
        step::before("close")?;
        if self.must_be_undone() {
            own.rename(NAME, DONE_NAME)?;
            if let Err(error) = own.sync() {
                own.rename(DONE_NAME, NAME)?;
                return Err(error);
            }
        }
        // What cannot be tidied up now is left, with the journal, to the next writer: the write itself is done.
        let tidied = self.effects.iter().try_for_each(|effect| effect.drop_displaced(root));
        let _ = tidied.and_then(|()| own.remove_file(if self.must_be_undone() { DONE_NAME } else { NAME }));
        Ok(())
    }

    /// Undoes all of it, wherever it stopped.
    pub(crate) fn undo(&self, root: &Dir, own: &Dir) -> io::Result<()> {
        self.undo_effects(root)?;
        remove_made(root, &self.made)?;
        for name in [NAME, UNSYNCED_NAME] {
            own.remove_file(name)?;
        }
        own.sync()
    }

    fn undo_effects(&self, root: &Dir) -> io::Result<()> {
        self.effects.iter().rev().try_for_each(|effect| effect.undo(root))
    }

    fn must_be_undone(&self) -> bool {
        self.effects.len() > 1
    }
}
