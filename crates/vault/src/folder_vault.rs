//! A vault in a folder. Each method of the port calls the module that implements it.
//!
//! Every call opens the root again, so a removed folder is an error and never an empty vault.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::RequestKey;
use quipu_core::model::{FileStat, VaultPath, Warning};
use quipu_core::ports::{
    FileChange, FileContent, Image, Listing, LoggedFile, LoggedWrite, NamePeriod, NoteHistory, OtherFiles, TrashedFile,
    VaultError, VaultFiles, WriteError, WriteFilter, WriteNumber, WriteOrigin,
};

use crate::dir::{Dir, FileKind, Metadata, if_exists, is_no_folder};
use crate::folder::{ResolvedPath, resolve, split};
use crate::history::{self, History};
use crate::own_folder::{self, OWN_FOLDER, explain_denied};
use crate::rules::Rules;
use crate::{forget, images, other_files, read, recovery, requests, trash, walk, write};

/// How long what another program did waits for a writer to be recorded: a reader may be waiting for that.
const OUTSIDE_PATIENCE: Duration = Duration::from_millis(200);

/// A folder of Markdown notes.
#[derive(Debug)]
pub struct FolderVault {
    root: PathBuf,
    /// The device of the root when the vault was opened.
    device: u64,
    pub(crate) rules: Rules,
    pub(crate) read_only: bool,
    /// Held by the thread of this process that writes; the lock file does the same between processes.
    pub(crate) writing_threads: Mutex<()>,
    /// Temporary files that a walk found; the next write removes them.
    pub(crate) leftovers: Mutex<BTreeSet<String>>,
    /// Warnings that do not come from a walk; part of every listing.
    pub(crate) notices: Mutex<BTreeSet<Warning>>,
    pub(crate) history: Mutex<History>,
}

/// How a vault is opened.
#[derive(Debug, Clone, Default)]
pub struct VaultOptions {
    /// Globs from the root; if there are any, only files that match one, or lie in a folder that does, are notes. `*` matches
    /// within one folder, `**` across folders.
    pub include: Vec<String>,
    /// Globs from the root; files and folders that match one are excluded.
    pub exclude: Vec<String>,
    /// Refuses every write, and does not recover an interrupted one.
    pub read_only: bool,
}

/// Why a vault could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path does not exist.
    #[error("cannot open {path}: there is no such folder")]
    Missing { path: PathBuf },
    /// The path is not a folder.
    #[error("cannot open {path}: it is not a folder")]
    NotAFolder { path: PathBuf },
    /// The folder cannot be read.
    #[error("cannot open {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    /// An include or exclude pattern is not valid.
    #[error("invalid include or exclude pattern: {source}")]
    Pattern {
        /// The pattern and the cause.
        source: globset::Error,
    },
    /// An interrupted write cannot be recovered.
    #[error("cannot recover an interrupted write in {path}: {source}")]
    Unfinished { path: PathBuf, source: io::Error },
}

impl FolderVault {
    /// Opens a folder. Writes nothing, unless a crash interrupted a write, which is then completed or undone.
    pub fn open(root: &Path, options: VaultOptions) -> Result<Self, OpenError> {
        let fail = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { path: root.to_owned() },
            io::ErrorKind::NotADirectory => OpenError::NotAFolder { path: root.to_owned() },
            _ => OpenError::Unreadable { path: root.to_owned(), source },
        };
        let real = std::fs::canonicalize(root).map_err(fail)?;
        let dir = Dir::open_root(&real).map_err(fail)?;
        dir.entries().map_err(fail)?;
        let VaultOptions { include, exclude, read_only } = options;
        let vault = Self {
            device: Metadata::of(&dir).map_err(fail)?.device,
            rules: Rules::new(&real, &include, &exclude).map_err(|source| OpenError::Pattern { source })?,
            root: real,
            read_only,
            writing_threads: Mutex::default(),
            leftovers: Mutex::default(),
            notices: Mutex::default(),
            history: Mutex::default(),
        };
        if !read_only && recovery::is_needed(&dir).map_err(fail)? {
            vault.recover().map_err(|source| OpenError::Unfinished { path: root.to_owned(), source })?;
        }
        Ok(vault)
    }

    fn recover(&self) -> io::Result<()> {
        match write::lock(self).map(drop) {
            // The notes on a read-only disk can still be read.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied) =>
            {
                Ok(())
            }
            // Not interrupted: its process is stopped or slow.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                tracing::warn!("{error}");
                Ok(())
            }
            other => other,
        }
    }

    /// The folder's real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folder `.quipu` for files other than notes, unless it exists. Also for a vault that refuses writes.
    pub fn make_own_folder(&self) -> io::Result<()> {
        own_folder::open_or_create(&self.open_root()?).map(drop)
    }

    /// Deletes the versions in the trash that are older than a time, and returns their number. Refused like a write if the
    /// vault cannot be written or an interrupted write cannot be recovered.
    pub fn prune_kept(&self, before_ns: i64) -> io::Result<usize> {
        trash::prune(self, before_ns)
    }

    /// The number of damaged lines of the history, for tests.
    #[cfg(test)]
    pub(crate) fn history_damage(&self) -> usize {
        self.history.lock().damaged()
    }

    /// Temporary files that a crash left, as found by the last walk; the next write removes them. Paths from the root, sorted.
    pub fn leftovers(&self) -> Vec<String> {
        self.leftovers.lock().iter().cloned().collect()
    }

    /// Opens the root. An empty folder on another device is the mount point of an unmounted volume, not the vault.
    pub(crate) fn open_root(&self) -> io::Result<Dir> {
        let dir = Dir::open_root(&self.root)?;
        if Metadata::of(&dir)?.device != self.device && dir.entries()?.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the volume of the vault is not mounted"));
        }
        Ok(dir)
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

    fn image(&self, note: &VaultPath, target: &str) -> Result<Option<Image>, VaultError> {
        images::find(self, note, target)
    }

    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        walk::find_any_case(self, path).map_err(|source| VaultError::Read { path: path.to_string(), source })
    }

    fn real_path(&self, path: &VaultPath) -> Result<VaultPath, VaultError> {
        match resolve(self, path) {
            Ok(ResolvedPath::Note(location) | ResolvedPath::Absent(location)) => Ok(location.path(path)),
            Ok(ResolvedPath::Folder(folder)) => Ok(VaultPath::parse(&folder.real).unwrap_or_else(|_| path.clone())),
            Ok(_) => Ok(path.clone()),
            Err(source) => Err(VaultError::Read { path: path.to_string(), source }),
        }
    }

    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        write::apply(self, changes, origin)
    }

    fn list_others_below(&self, folder: &VaultPath) -> Result<OtherFiles, VaultError> {
        other_files::list_below(self, folder).map_err(|source| VaultError::Read { path: folder.to_string(), source })
    }

    fn remove_empty_folders(&self, folder: &VaultPath) -> Result<(), VaultError> {
        let remove = || {
            let lock = write::lock(self)?;
            let (parent, name) = split(folder.as_str());
            match if_exists(lock.root.open_below(parent))? {
                Some(parent) => remove_if_empty(&parent, name),
                None => Ok(()),
            }
        };
        remove().map_err(|source| VaultError::Read { path: folder.to_string(), source })
    }

    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        let find = || {
            let root = self.open_root()?;
            match root.open(OWN_FOLDER) {
                Err(error) if is_no_folder(&error) => Ok(None),
                Err(error) => Err(explain_denied(error, &root, OWN_FOLDER)),
                Ok(own) => requests::find(&own, request),
            }
        };
        find().map_err(|source| VaultError::Read { path: OWN_FOLDER.to_owned(), source })
    }

    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        trash::list(self)
    }

    fn restore(&self, kept: &TrashedFile) -> Result<FileStat, WriteError> {
        trash::restore(self, kept)
    }
}

impl NoteHistory for FolderVault {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        history::writes(self, filter).map_err(|source| VaultError::Read { path: OWN_FOLDER.to_owned(), source })
    }

    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        // The history may come from another program: only names of the trash are looked up.
        if trash::note_of(kept).is_none() {
            return Ok(None);
        }
        let read = self.open_root().and_then(|root| trash::read(&root, kept));
        read.map_err(|source| VaultError::Read { path: kept.to_owned(), source })
    }

    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError> {
        // A vault that is open read-only keeps no history, and a folder that Quipu has not written to gets none.
        if self.read_only || files.is_empty() || !self.open_root().is_ok_and(|root| root.open(OWN_FOLDER).is_ok()) {
            return Ok(());
        }
        let record = || history::record_outside(self, &write::lock_within(self, OUTSIDE_PATIENCE)?, files);
        match record() {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied) =>
            {
                Ok(())
            }
            recorded => recorded.map_err(|source| WriteError::Write { path: OWN_FOLDER.to_owned(), source }),
        }
    }

    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        forget::forget(self, names, unfinished)
            .map_err(|source| WriteError::Write { path: OWN_FOLDER.to_owned(), source })
    }

    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        forget::forget_write(self, number).map_err(|source| WriteError::Write { path: OWN_FOLDER.to_owned(), source })
    }
}

/// Removes a folder if no file is at or below it. A link to a folder is a file.
fn remove_if_empty(parent: &Dir, name: &str) -> io::Result<()> {
    if let Some(folder) = if_exists(parent.open(name))? {
        for (name, kind) in folder.entries()? {
            if let (FileKind::Folder, Some(name)) = (kind, name.to_str()) {
                remove_if_empty(&folder, name)?;
            }
        }
    }
    match parent.remove_folder(name) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => Err(error),
        _ => Ok(()),
    }
}
