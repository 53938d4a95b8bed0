//! The user's files: the truth about notes.

use crate::RequestKey;
use crate::model::{ContentHash, FileStat, VaultPath, Warning};

/// Reads and changes the files of one vault. Nothing else in the program opens them.
///
/// A file that the vault's rules leave out (hidden, git-ignored, excluded, not Markdown, a link out of the vault) does not
/// exist for any method here.
pub trait VaultFiles: Send + Sync {
    /// Every note file, sorted by path in byte order, and what had to be left out with the reason.
    fn list(&self) -> Result<Listing, VaultError>;

    /// The note files at or below a path: the file itself, everything in the folder, or nothing where neither is there.
    /// Sorted. Costs what lies below the path, not what lies in the vault.
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError>;

    /// The whole file as it is now; `None` when there is no such note file.
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError>;

    /// The paths, in their true spelling, of all files and folders at `path` when case is ignored, rules or no rules: an
    /// exact match first, the others in byte order.
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError>;

    /// Where the file at a path really lies: elsewhere when a link is on the way. Two paths to one file have one real path.
    fn real_path(&self, path: &VaultPath) -> Result<VaultPath, VaultError> {
        Ok(path.clone())
    }

    /// The one write door. Applies all changes or none; when it returns `Ok` they are on disk and survive a power cut.
    ///
    /// Every `expected` version and every absence is checked first, and again as each file is put in place. Whatever is
    /// replaced, moved away or deleted is kept and can be brought back by [`VaultFiles::restore`]. A crash in the middle
    /// is finished or undone at the next opening. Returns what each changed file is now, `None` for deleted ones.
    fn apply(&self, changes: &[FileChange]) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.apply_for(changes, None)
    }

    /// The same for a request that may come again: that it was carried out is remembered in the same step, as far as the
    /// end of a process goes. Nobody is left to repeat it after a power cut.
    fn apply_for(
        &self,
        changes: &[FileChange],
        request: Option<RequestKey>,
    ) -> Result<Vec<Option<FileStat>>, WriteError>;

    /// Where the file of a request's first change is, if the request was carried out and is remembered. For a deleted file
    /// it is where it was.
    fn carried_out(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError>;

    /// What was kept, newest first.
    fn kept(&self) -> Result<Vec<Kept>, VaultError>;

    /// Brings a kept version back to where it was. A file that is there now is kept in its turn, unless it is equal.
    fn restore(&self, kept: &Kept) -> Result<FileStat, WriteError>;
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Listing {
    /// The note files, sorted by path.
    pub files: Vec<ListedFile>,
    /// What could not be read or named, and why.
    pub warnings: Vec<Warning>,
    /// Folders and files that are there and could not be read, by path; empty for the root. Files in such a folder are
    /// missing from this list, which says nothing of whether they are there.
    pub unread: Vec<String>,
}

impl Listing {
    /// Whether a path is one that could not be read, or lies below one.
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
    /// Where it lies.
    pub path: VaultPath,
    /// Its size and time.
    pub stat: FileStat,
}

/// A file as read: the stat was taken before and after and is that of these bytes.
#[derive(Debug, Clone)]
pub struct FileContent {
    /// Every byte.
    pub bytes: Vec<u8>,
    /// Size and time.
    pub stat: FileStat,
    /// The version.
    pub hash: ContentHash,
}

/// One change of the write door.
#[derive(Debug, Clone)]
pub enum FileChange {
    /// A new file; its folders are made as needed. Refused when anything is there in any case.
    Create {
        /// Where.
        path: VaultPath,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// New bytes for a file that must be the expected version.
    Replace {
        /// Where.
        path: VaultPath,
        /// What it must be now.
        expected: ContentHash,
        /// What it becomes.
        bytes: Vec<u8>,
    },
    /// A new place, and possibly new bytes, for a file that must be the expected version. The place must be free, but a
    /// change of case alone is allowed.
    Move {
        /// From where.
        from: VaultPath,
        /// To where.
        to: VaultPath,
        /// What it must be now.
        expected: ContentHash,
        /// What it becomes.
        bytes: Vec<u8>,
    },
    /// Gone from the vault, kept for [`VaultFiles::restore`].
    Delete {
        /// Where.
        path: VaultPath,
        /// What it must be now.
        expected: ContentHash,
    },
}

impl FileChange {
    /// Where the file is afterwards, or where it was.
    pub fn place(&self) -> &VaultPath {
        match self {
            Self::Create { path, .. } | Self::Replace { path, .. } | Self::Delete { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }
}

/// A version that a write replaced or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Names this version; sorts by time.
    pub version: String,
    /// Where it was.
    pub path: VaultPath,
    /// When it was put aside, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Why.
    pub reason: KeptReason,
    /// Bytes.
    pub size: u64,
}

/// Why a version was put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptReason {
    /// Its note was deleted.
    Deleted,
    /// New bytes took its place.
    Replaced,
    /// It was moved to another path.
    Moved,
}

/// Why the vault could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The file system said no.
    #[error("cannot read {path}: {source}")]
    Read {
        /// What was read, from the vault's root.
        path: String,
        /// What it said.
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
    /// There is something at the new path.
    #[error("{existing} exists")]
    Exists {
        /// What is there, in its true spelling.
        existing: VaultPath,
    },
    /// The file is gone.
    #[error("{path} is no longer there")]
    Missing {
        /// Which file.
        path: VaultPath,
    },
    /// The vault's rules leave the path out: hidden, ignored, excluded, reserved, or reached through a link out of it.
    #[error("{path} cannot hold a note: {reason}")]
    Refused {
        /// Which path.
        path: VaultPath,
        /// Which rule.
        reason: &'static str,
    },
    /// Another process has been writing for longer than a writer waits. Nothing was changed.
    #[error("cannot write {path}: {holder} holds the write lock of the vault; retry, and end that process if it hangs")]
    Busy {
        /// What was to be written, from the vault's root.
        path: String,
        /// The process, as far as it is known.
        holder: String,
    },
    /// The file system said no: read-only, full, no permission.
    #[error("cannot write {path}: {source}")]
    Write {
        /// What was written, from the vault's root.
        path: String,
        /// What it said.
        source: std::io::Error,
    },
}
