//! One vault in one folder: opening it, and the port's methods, each handed to the room that does it.
//!
//! The root is opened anew for every call, so a folder that went away is an error and never an empty vault.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use quipu_core::RequestKey;
use quipu_core::model::{FileStat, VaultPath, Warning};
use quipu_core::ports::{FileChange, FileContent, Kept, Listing, VaultError, VaultFiles, WriteError};

use crate::beneath::{Dir, is_no_folder};
use crate::folder::{Found, find, join};
use crate::rules::{OWN_FOLDER, Rules};
use crate::write_lock::{Turns, explain_closed};
use crate::{journal, read, requests, trash, walk, write};

/// A folder of Markdown notes.
#[derive(Debug)]
pub struct FolderVault {
    root: PathBuf,
    /// The device the root was on when it was opened.
    device: u64,
    rules: Rules,
    read_only: bool,
    /// Which thread of this process may write; the lock file does the same between processes.
    turns: Turns,
    /// Temporary files that a walk came across, to be removed by the next write.
    leftovers: Mutex<BTreeSet<String>>,
    /// What a person should know and no walk can see; part of every listing.
    notices: Mutex<BTreeSet<Warning>>,
}

/// How a vault is opened.
#[derive(Debug, Clone, Default)]
pub struct VaultOptions {
    /// Globs from the root; when there are any, only files that match one, or lie in a folder that does, are notes.
    /// `*` stays in one folder, `**` goes down.
    pub include: Vec<String>,
    /// Globs from the root; files and folders that match one are left out.
    pub exclude: Vec<String>,
    /// Refuses every write, and leaves what a crash left unfinished as it is.
    pub read_only: bool,
}

/// Why a vault could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is there.
    #[error("there is no folder {path}")]
    Missing {
        /// What was to be opened.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// What was to be opened.
        path: PathBuf,
    },
    /// It may not be read, or another trouble.
    #[error("cannot open {path}: {source}")]
    Unreadable {
        /// What was to be opened.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// An include or exclude pattern that is none.
    #[error("not a pattern for include or exclude: {source}")]
    Pattern {
        /// Which, and why.
        source: globset::Error,
    },
    /// A write that a crash left unfinished could not be finished.
    #[error("an unfinished write in {path} could not be finished: {source}")]
    Unfinished {
        /// The vault.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

impl FolderVault {
    /// Opens a folder. Writes nothing, unless a crash left a write of several files half done, which is then finished
    /// or undone.
    pub fn open(root: &Path, options: VaultOptions) -> Result<Self, OpenError> {
        let refuse = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { path: root.to_owned() },
            io::ErrorKind::NotADirectory => OpenError::NotAFolder { path: root.to_owned() },
            _ => OpenError::Unreadable { path: root.to_owned(), source },
        };
        let real = std::fs::canonicalize(root).map_err(refuse)?;
        let dir = Dir::open_root(&real).map_err(refuse)?;
        dir.entries().map_err(refuse)?;
        let VaultOptions { include, exclude, read_only } = options;
        let vault = Self {
            device: dir.see_self().map_err(refuse)?.device,
            rules: Rules::new(&real, &include, &exclude).map_err(|source| OpenError::Pattern { source })?,
            root: real,
            read_only,
            turns: Turns::default(),
            leftovers: Mutex::default(),
            notices: Mutex::default(),
        };
        match journal::is_pending(&dir).map_err(refuse)? && !read_only {
            true => write::finish_pending(&vault),
            false => Ok(()),
        }
        .or_else(|source| match source.kind() {
            // On a disk that cannot be written the notes can still be read.
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Ok(()),
            // The write is not left over: the process that does it is there, and stopped or slow.
            io::ErrorKind::TimedOut => {
                tracing::warn!("{source}");
                Ok(())
            }
            _ => Err(OpenError::Unfinished { path: root.to_owned(), source }),
        })?;
        Ok(vault)
    }

    /// The folder's real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder `.quipu`, where an index may be kept beside the notes, unless it is there already. A vault that
    /// refuses writes to notes may still have one.
    pub fn make_own_folder(&self) -> io::Result<()> {
        write::open_own_folder(&self.open_root()?).map(drop)
    }

    /// Removes for good the versions in the trash that were put aside before a moment, and says how many. Refused like any
    /// write where the vault cannot be written or an unfinished write cannot be finished.
    pub fn prune_kept(&self, before_ns: i64) -> io::Result<usize> {
        trash::prune(self, before_ns)
    }

    /// Temporary files of ours that the last walk came across while nobody wrote: left by a crash, and removed by the
    /// next write. Paths from the root, sorted.
    pub fn leftovers(&self) -> Vec<String> {
        self.leftovers.lock().iter().cloned().collect()
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Opens the root. Where a volume was unmounted an empty folder is left: that is not the vault.
    pub(crate) fn open_root(&self) -> io::Result<Dir> {
        let dir = Dir::open_root(&self.root)?;
        if dir.see_self()?.device != self.device && dir.entries()?.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the vault's volume is not mounted"));
        }
        Ok(dir)
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(crate) fn remember_leftovers(&self, paths: &[String]) {
        self.leftovers.lock().extend(paths.iter().cloned());
    }

    pub(crate) fn notices(&self) -> BTreeSet<Warning> {
        self.notices.lock().clone()
    }

    pub(crate) fn notice(&self, path: String, message: String) {
        self.notices.lock().insert(Warning { path, message });
    }

    pub(crate) fn take_leftovers(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.leftovers.lock())
    }
}

impl VaultFiles for FolderVault {
    fn list(&self) -> Result<Listing, VaultError> {
        walk::list(self)
    }

    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        walk::list_below(self, path)
    }

    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        read::read(self, path)
    }

    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        walk::find_any_case(self, path).map_err(|source| VaultError::Read { path: path.to_string(), source })
    }

    fn real_path(&self, path: &VaultPath) -> Result<VaultPath, VaultError> {
        match find(self, path) {
            Ok(Found::Note(spot)) => {
                Ok(VaultPath::parse(&join(&spot.folder, &spot.name)).unwrap_or_else(|_| path.clone()))
            }
            Ok(_) => Ok(path.clone()),
            Err(source) => Err(VaultError::Read { path: path.to_string(), source }),
        }
    }

    fn apply_for(
        &self,
        changes: &[FileChange],
        request: Option<RequestKey>,
    ) -> Result<Vec<Option<FileStat>>, WriteError> {
        write::apply(self, changes, request)
    }

    fn carried_out(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        let recall = || {
            let root = self.open_root()?;
            match root.open(OWN_FOLDER) {
                Err(error) if is_no_folder(&error) => Ok(None),
                Err(error) => Err(explain_closed(error, &root, OWN_FOLDER)),
                Ok(own) => requests::recall(&own, request),
            }
        };
        recall().map_err(|source| VaultError::Read { path: OWN_FOLDER.to_owned(), source })
    }

    fn kept(&self) -> Result<Vec<Kept>, VaultError> {
        trash::kept(self)
    }

    fn restore(&self, kept: &Kept) -> Result<FileStat, WriteError> {
        trash::restore(self, kept)
    }
}
