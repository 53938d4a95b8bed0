//! The log beside memory's file, watched for what other programs do to it. What was committed lately is there alone: behind
//! the end of a log that was removed, emptied or cut, nobody would find it again.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::opening;

/// What a log begins with, but for its last bit.
const MAGIC: u32 = 0x377f_0682;

/// The bytes at its beginning that are others whenever it is begun anew.
const BEGINNING: usize = 24;

/// SQLite's write-ahead log.
pub(super) struct Wal {
    path: PathBuf,
    /// As it was last accepted.
    known: Mutex<Option<State>>,
}

/// How a log is, compared with how it was last accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// The same log, which may have grown.
    Same(Option<State>),
    /// Emptied or begun anew. SQLite does so when all of it is in the file.
    Restarted(Option<State>),
    /// It is not where it was, and whole for those who have it open.
    Moved,
    /// Something else is in it.
    Overwritten,
}

/// A log as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    identity: (u64, u64),
    bytes: u64,
    beginning: Vec<u8>,
}

impl Wal {
    pub(super) fn beside(file: &Path) -> Self {
        Self { path: opening::beside(file, "-wal"), known: Mutex::default() }
    }

    pub(super) fn look(&self) -> Look {
        let now = self.state().ok();
        let known = self.known.lock();
        let (Some(known), Some(is)) = (&*known, &now) else {
            return if known.is_some() { Look::Moved } else { Look::Same(now) };
        };
        match is {
            is if is.identity != known.identity => Look::Moved,
            is if is.is_headless() => Look::Overwritten,
            is if is.beginning == known.beginning && is.bytes < known.bytes => Look::Overwritten,
            is if is.beginning == known.beginning || known.beginning.is_empty() => Look::Same(now),
            _ => Look::Restarted(now),
        }
    }

    /// Compares the log with this one from now on.
    pub(super) fn accept(&self, state: Option<State>) {
        *self.known.lock() = state;
    }

    #[expect(clippy::disallowed_methods, reason = "SQLite holds no lock on its log that closing this could undo")]
    fn state(&self) -> std::io::Result<State> {
        // Whatever took its place is not waited for.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(&self.path)?;
        let metadata = file.metadata()?;
        let mut beginning = Vec::with_capacity(BEGINNING);
        file.take(BEGINNING as u64).read_to_end(&mut beginning)?;
        Ok(State { identity: (metadata.dev(), metadata.ino()), bytes: metadata.len(), beginning })
    }
}

impl State {
    /// Whether it begins as no log does: one that another program emptied is written to behind a hole. SQLite empties it too,
    /// and then begins it anew.
    fn is_headless(&self) -> bool {
        let magic = self.beginning.first_chunk().map(|first| u32::from_be_bytes(*first) & !1);
        !self.beginning.is_empty() && magic != Some(MAGIC)
    }
}
