//! Files that decide who may come in, read again when they are others: a server runs for months.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file as it is: its place on the disk, its text, and who may change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
    mode: u32,
    owner: (u32, u32),
    /// When any of this was last set, which nobody can choose.
    changed: (i64, i64),
}

impl FileStamp {
    /// Of the file itself, or of a link in its place; `None` where there is neither.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        file.symlink_metadata().ok().map(|metadata| Self::from(&metadata))
    }

    /// Of what a link leads to, where there is one.
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
