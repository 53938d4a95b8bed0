//! Watches SQLite's write-ahead log for changes by other programs. Recent commits are only there: after another program deleted,
//! emptied or truncated the log, later commits to it would be lost.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::opening;

/// The first four bytes of a log, without the last bit.
const MAGIC: u32 = 0x377f_0682;

/// The bytes at the start that differ whenever SQLite restarts the log.
const HEADER_BYTES: usize = 24;

/// The watched log.
pub(super) struct Wal {
    path: PathBuf,
    /// The last accepted state.
    known: Mutex<Option<WalState>>,
}

/// What happened to a log since its last accepted state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WalChange {
    /// None, or it has grown.
    Same(Option<WalState>),
    /// Emptied or restarted, which SQLite does once all of it is in the file.
    Restarted(Option<WalState>),
    /// Moved or deleted. Processes that have it open can still use it.
    Moved,
    /// Overwritten or truncated.
    Overwritten,
}

/// A log on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WalState {
    identity: (u64, u64),
    bytes: u64,
    header: Vec<u8>,
}

impl Wal {
    pub(super) fn beside(file: &Path) -> Self {
        Self { path: opening::beside(file, "-wal"), known: Mutex::default() }
    }

    pub(super) fn changes(&self) -> WalChange {
        let now = self.read_state().ok();
        let known = self.known.lock();
        let (Some(known), Some(is)) = (&*known, &now) else {
            return if known.is_some() { WalChange::Moved } else { WalChange::Same(now) };
        };
        match is {
            is if is.identity != known.identity => WalChange::Moved,
            is if is.has_invalid_header() => WalChange::Overwritten,
            is if is.header == known.header && is.bytes < known.bytes => WalChange::Overwritten,
            is if is.header == known.header || known.header.is_empty() => WalChange::Same(now),
            _ => WalChange::Restarted(now),
        }
    }

    /// Compares the log with this state from now on.
    pub(super) fn accept(&self, state: Option<WalState>) {
        *self.known.lock() = state;
    }

    #[expect(clippy::disallowed_methods, reason = "SQLite holds no lock on its log that closing this could undo")]
    fn read_state(&self) -> std::io::Result<WalState> {
        // A pipe or link in its place must not block.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(&self.path)?;
        let metadata = file.metadata()?;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        file.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
        Ok(WalState { identity: (metadata.dev(), metadata.ino()), bytes: metadata.len(), header })
    }
}

impl WalState {
    /// Whether its header is invalid: SQLite writes to a log that another program emptied at the old offset, after a hole.
    fn has_invalid_header(&self) -> bool {
        let magic = self.header.first_chunk().map(|first| u32::from_be_bytes(*first) & !1);
        !self.header.is_empty() && magic != Some(MAGIC)
    }
}
