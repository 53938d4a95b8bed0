//! The log beside memory's file, watched for what other programs do to it. What was committed lately is there alone: behind
//! the end of a log that was removed, emptied or cut, nobody would find it again.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::opening;

/// What a log begins with, but for its last bit.
const MAGIC: u32 = 0x377f_0682;

/// Where in its beginning stands what is new whenever the log is begun anew.
const SALTS: std::ops::Range<usize> = 16..24;

/// A log is begun anew by other processes, between two looks at it, less often than this.
const MOST_BEGINNINGS: u32 = 1 << 16;

/// SQLite's write-ahead log.
#[derive(Default)]
pub(super) struct Wal {
    path: PathBuf,
    /// As it was last seen.
    known: Mutex<Option<State>>,
}

#[derive(Clone, PartialEq, Eq)]
struct State {
    identity: (u64, u64),
    bytes: u64,
    beginning: Vec<u8>,
}

impl Wal {
    pub(super) fn beside(file: &Path) -> Self {
        Self { path: opening::beside(file, "-wal"), known: Mutex::default() }
    }

    /// Whether what is written to it now, or was just written, would be found by nobody.
    pub(super) fn is_lost(&self) -> bool {
        let now = self.state().ok();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_lost = match (&*known, &now) {
            (None, None) => false,
            (Some(_), None) => true,
            (known, Some(now)) => now.is_headless() || known.as_ref().is_some_and(|known| now.is_behind(known)),
        };
        if !is_lost {
            *known = now;
        }
        is_lost
    }

    #[expect(clippy::disallowed_methods, reason = "SQLite holds no lock on its log that closing this could undo")]
    fn state(&self) -> std::io::Result<State> {
        let file = std::fs::File::open(&self.path)?;
        let metadata = file.metadata()?;
        let mut beginning = Vec::with_capacity(SALTS.end);
        file.take(SALTS.end as u64).read_to_end(&mut beginning)?;
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

    /// Whether it is another file, another log, or the same log at an earlier time. SQLite never cuts it without beginning it
    /// anew, and then counts the first salt up by one.
    fn is_behind(&self, known: &Self) -> bool {
        if self.identity != known.identity {
            return true;
        }
        match (self.first_salt(), known.first_salt()) {
            (Some(now), Some(then)) if now == then => {
                self.bytes < known.bytes || self.beginning[SALTS] != known.beginning[SALTS]
            }
            (Some(now), Some(then)) => now.wrapping_sub(then) > MOST_BEGINNINGS,
            _ => false,
        }
    }

    fn first_salt(&self) -> Option<u32> {
        self.beginning.get(SALTS)?.first_chunk().map(|salt| u32::from_be_bytes(*salt))
    }
}
