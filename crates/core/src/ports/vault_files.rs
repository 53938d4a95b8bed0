//! The user's files: the source of truth about notes.

use crate::RequestKey;
use crate::model::{ContentHash, FileStat, VaultPath, Warning};

/// Reads and changes the files of one vault. Nothing else in the program opens them.
///
/// A file that the vault's rules exclude (hidden, git-ignored, excluded by settings, not Markdown, a symbolic link out of
/// the vault) does not exist for these methods.
pub trait VaultFiles: Send + Sync {
    /// Every note file, sorted by path in byte order, and what had to be skipped, with the reason.
    fn list(&self) -> Result<Listing, VaultError>;

    /// The note files at or below a path: the file itself, everything in the folder, or nothing if the path does not
    /// exist. Sorted. The cost depends on the files below the path, not on the size of the vault.
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError>;

    /// The whole file; `None` if there is no such note file.
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError>;

    /// The exact paths of all files and folders that equal `path` when case is ignored, excluded ones too: an exact match
    /// first, the others in byte order.
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError>;

    /// The path with symbolic links resolved. Two paths to one file have the same real path.
    fn real_path(&self, path: &VaultPath) -> Result<VaultPath, VaultError> {
        Ok(path.clone())
    }

    /// Every write goes through this method. Applies all changes or none; when it returns `Ok` they are on disk and
    /// survive a power cut.
    ///
    /// Every `expected` version and every absence is checked first, and again as each file is put in place. Files that are
    /// replaced, moved or deleted go to the trash, from where [`VaultFiles::restore`] brings them back. After a crash, the
    /// next opening completes or undoes the write. Returns the new stat of each file, `None` for deleted ones.
    fn apply(&self, changes: &[FileChange]) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.apply_for(changes, None)
    }

    /// Like [`VaultFiles::apply`], for a request that a client may retry: the key is recorded in the same step. The record
    /// survives a kill of the process, not a power cut, after which no client is left to retry.
    fn apply_for(
        &self,
        changes: &[FileChange],
        request: Option<RequestKey>,
    ) -> Result<Vec<Option<FileStat>>, WriteError>;

    /// Removes the empty folders at and below a path, for example after all notes of a folder were moved. Folders with any
    /// file stay.
    fn remove_empty_folders(&self, _folder: &VaultPath) -> Result<(), VaultError> {
        Ok(())
    }

    /// The path of a request's first change, if the request was applied and is still recorded. For a deleted file it is
    /// the old path.
    fn carried_out(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError>;

    /// The files in the trash, newest first.
    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError>;

    /// Deletes every version of the note at a path from the trash, also those under names that it had before; returns their
    /// number.
    fn forget(&self, path: &VaultPath) -> Result<usize, WriteError>;

    /// Restores a file from the trash to its old path. A different file at that path goes to the trash.
    fn restore(&self, trashed: &TrashedFile) -> Result<FileStat, WriteError>;
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Listing {
    /// The note files, sorted by path.
    pub files: Vec<ListedFile>,
    /// Files and folders that were skipped, and why.
    pub warnings: Vec<Warning>,
    /// Folders and files that exist but could not be read, by path; empty for the root. Files in such a folder are
    /// missing from `files`, but may exist.
    pub unread: Vec<String>,
}

impl Listing {
    /// Whether a path could not be read, or lies below one that could not.
    pub fn is_unread(&self, path: &VaultPath) -> bool {
        self.unread.iter().any(|unread| {
            let below = path.as_str().strip_prefix(unread.as_str());
            below.is_some_and(|rest| unread.is_empty() || rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// One file of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path.
    pub path: VaultPath,
    /// Its size and time.
    pub stat: FileStat,
}

/// A file as read. The stat belongs to these bytes: it was the same before and after reading.
#[derive(Debug, Clone)]
pub struct FileContent {
    /// The whole content.
    pub bytes: Vec<u8>,
    /// Size and time.
    pub stat: FileStat,
    /// The hash of the content.
    pub hash: ContentHash,
}

/// One change of [`VaultFiles::apply`].
#[derive(Debug, Clone)]
pub enum FileChange {
    /// A new file; missing folders are created. Fails if a file exists whose path equals it when case is ignored.
    Create {
        /// Its path.
        path: VaultPath,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// New bytes for a file that must be the expected version.
    Replace {
        /// Its path.
        path: VaultPath,
        /// The version it must have now.
        expected: ContentHash,
        /// The new content.
        bytes: Vec<u8>,
    },
    /// A new path, and possibly new bytes, for a file that must be the expected version. The path must be free; a change of
    /// case only is allowed.
    Move {
        /// The old path.
        from: VaultPath,
        /// The new path.
        to: VaultPath,
        /// The version it must have now.
        expected: ContentHash,
        /// The new content.
        bytes: Vec<u8>,
    },
    /// Moves a file to the trash.
    Delete {
        /// Its path.
        path: VaultPath,
        /// The version it must have now.
        expected: ContentHash,
    },
}

impl FileChange {
    /// The path of the file after the change, or its old path if it is deleted.
    pub fn place(&self) -> &VaultPath {
        match self {
            Self::Create { path, .. } | Self::Replace { path, .. } | Self::Delete { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }
}

/// A file that a write replaced, moved or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashedFile {
    /// Identifies this version; sorts by time.
    pub version: String,
    /// Its old path.
    pub path: VaultPath,
    /// When it was moved to the trash, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Why.
    pub reason: TrashReason,
    /// Bytes.
    pub size: u64,
}

/// Why a file is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrashReason {
    /// It was deleted.
    Deleted,
    /// New bytes replaced it.
    Replaced,
    /// It was moved to another path.
    Moved,
}

/// Why the vault could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The file system returned an error.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path, from the vault's root.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// Why a change was refused or failed. Nothing was changed, or all of it was undone.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file is not the version the writer had seen.
    #[error("{path} was changed elsewhere since it was last read")]
    Changed {
        /// Which file.
        path: VaultPath,
    },
    /// The new path is taken.
    #[error("{existing} exists")]
    Exists {
        /// The existing file, in its exact spelling.
        existing: VaultPath,
    },
    /// The file does not exist.
    #[error("{path} does not exist any more")]
    Missing {
        /// Which file.
        path: VaultPath,
    },
    /// The vault's rules exclude the path: hidden, ignored, excluded, reserved, or behind a link out of the vault.
    #[error("{path} cannot hold a note: {reason}")]
    Refused {
        /// Which path.
        path: VaultPath,
        /// Which rule.
        reason: &'static str,
    },
    /// Another process held the write lock for longer than a writer waits.
    #[error("cannot write {path}: {holder} holds the write lock of the vault; retry, and end that process if it hangs")]
    Busy {
        /// The path to be written, from the vault's root.
        path: String,
        /// The process, as far as it is known.
        holder: String,
    },
    /// The file system returned an error: read-only, full, no permission.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path that was written, from the vault's root.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
}
