//! The log beside memory's file, watched for what other programs do to it. What was committed lately is there alone: behind
//! the end of a log that was removed, emptied or cut, nobody would find it again.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::opening;

/// What a log begins with, but for its last bit.
const MAGIC: u32 = 0x377f_0682;

/// Where in its beginning stands what is new whenever the log is begun anew.
const SALTS: std::ops::Range<usize> = 16..24;

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
        Ok(State { identity: identity_of(&metadata), bytes: metadata.len(), beginning })
    }
}

impl State {
    /// Whether it begins as no log does: one that another program emptied is written to behind a hole. SQLite empties it too,
    /// and then begins it anew.
    fn is_headless(&self) -> bool {
        let magic = self.beginning.first_chunk().map(|first| u32::from_be_bytes(*first) & !1);
        !self.beginning.is_empty() && magic != Some(MAGIC)
    }

    /// Whether it is another file, or the same log at an earlier time. SQLite never cuts it without beginning it anew.
    fn is_behind(&self, known: &Self) -> bool {
        let is_same_log = self.beginning.get(SALTS) == known.beginning.get(SALTS) && !self.beginning.is_empty();
        self.identity != known.identity || is_same_log && self.bytes < known.bytes
    }
}

/// Device and number of the file at a path.
pub(super) fn identity(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).ok().map(|metadata| identity_of(&metadata))
}

#[cfg(unix)]
fn identity_of(metadata: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity_of(_metadata: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}
