//! Stamps of files that control access, so that they are read again when they change: a server runs for months.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity, content times, owner and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathStamp {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
    mode: u32,
    owner: (u32, u32),
    /// The inode change time, which no program can set.
    changed: (i64, i64),
}

impl PathStamp {
    /// The stamp of the file itself, or of a symlink in its place; `None` if neither exists.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        file.symlink_metadata().ok().map(|metadata| Self::from(&metadata))
    }

    /// The stamp of a symlink's target, if it exists.
    #[cfg(feature = "oauth")]
    pub(crate) fn of_target(file: &Path) -> Option<Self> {
        file.metadata().ok().map(|metadata| Self::from(&metadata))
    }

    fn from(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
