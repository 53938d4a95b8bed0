//! The user's files: the source of truth about notes.

use std::collections::{BTreeMap, BTreeSet};

use super::note_history::{NoteHistory, WriteOrigin};
use crate::RequestKey;
use crate::model::{ContentHash, FileStat, VaultPath, Warning};
use crate::quote::named;

/// Reads and changes the files of one vault. Nothing else in the program opens them.
///
/// A file that the vault's rules exclude (hidden, git-ignored, excluded by settings, not Markdown, a symbolic link out of
/// the vault) does not exist for these methods.
pub trait VaultFiles: NoteHistory {
    /// Every note file, sorted by path in byte order, and what had to be skipped, with the reason.
    fn list(&self) -> Result<Listing, VaultError>;

    /// The note files at or below a path: the file itself, everything in the folder, or nothing if the path does not
    /// exist. Sorted. The cost depends on the files below the path, not on the size of the vault.
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError>;

    /// The whole file; `None` if there is no such note file.
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError>;

    /// The image that a note shows: its path from the note's folder or from the root, or the end of its path. `None` if there is
    /// none that the rules include.
    fn image(&self, _note: &VaultPath, _target: &str) -> Result<Option<Image>, VaultError> {
        Ok(None)
    }

    /// Reads several files in one step. For each path, in order, what [`VaultFiles::read`] returns.
    fn read_many(&self, paths: &[&VaultPath]) -> Vec<Result<Option<FileContent>, VaultError>> {
        paths.iter().map(|path| self.read(path)).collect()
    }

    /// The number of files to read in one step: more than one where every step costs a round trip.
    fn batch_size(&self) -> usize {
        1
    }

    /// Every note with its version. A file that cannot be read is among the unread ones.
    fn versions(&self) -> Result<VaultVersions, VaultError> {
        let Listing { files, unread, .. } = self.list()?;
        let mut versions = VaultVersions { notes: BTreeMap::new(), unread };
        for batch in files.chunks(self.batch_size()) {
            let paths: Vec<&VaultPath> = batch.iter().map(|file| &file.path).collect();
            for (path, read) in paths.iter().zip(self.read_many(&paths)) {
                match read {
                    Ok(Some(content)) => _ = versions.notes.insert((*path).clone(), content.hash),
                    Ok(None) => {}
                    Err(VaultError::Read { .. }) => versions.unread.push(path.to_string()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(versions)
    }

    /// The exact paths of all files and folders that equal `path` when case is ignored, excluded ones too: an exact match
    /// first, the others in byte order.
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError>;

    /// The notes whose paths equal any of these when case is ignored, in one step where every step costs a round trip.
    fn find_notes(&self, paths: &[VaultPath]) -> Result<Vec<VaultPath>, VaultError> {
        let mut found = Vec::new();
        for path in paths {
            for path in self.find_any_case(path)? {
                if self.read(&path)?.is_some() {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// The path of a file or folder with symbolic links resolved, also where the file does not exist yet. Two paths to one file
    /// have the same real path. A link that leads nowhere is its own real path.
    fn real_path(&self, path: &VaultPath) -> Result<VaultPath, VaultError> {
        Ok(path.clone())
    }

    /// Every write goes through this method. Applies all changes or none; when it returns `Ok` they are on disk and
    /// survive a power cut.
    ///
    /// Every `expected` version and every absence is checked first, and again as each file is put in place. Files that are
    /// replaced, moved or deleted go to the trash, from where [`VaultFiles::restore`] brings them back. After a crash, the
    /// next opening or write completes or undoes the write. Returns the new stat of each file, `None` for deleted ones.
    ///
    /// The client's name goes to the history. The key of a request that the client may retry is recorded in the same step.
    /// That record survives a kill of the process, not a power cut, after which no client is left to retry.
    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError>;

    /// [`VaultFiles::apply_for`] no known client, without a key.
    fn apply(&self, changes: &[FileChange]) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.apply_for(changes, &WriteOrigin::UNKNOWN)
    }

    /// The files at or below a folder that are not notes, and what a move of the folder must leave. Without any files in
    /// vaults that hold notes only.
    fn list_others_below(&self, _folder: &VaultPath) -> Result<OtherFiles, VaultError> {
        Ok(OtherFiles::default())
    }

    /// Removes the empty folders at and below a path, for example after all notes of a folder were moved. Folders with any
    /// file stay.
    fn remove_empty_folders(&self, _folder: &VaultPath) -> Result<(), VaultError> {
        Ok(())
    }

    /// The path of a request's first change, if the request was applied and is still recorded. For a deleted file it is
    /// the old path.
    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError>;

    /// Called before a refusal is sent to a client: an attempt of it that is still under way in another process is
    /// refused from then on. Returns what [`Self::applied_request`] does, if one was applied before.
    fn refuse_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        // Without servers on other machines no attempt outlives the process that the client waited for.
        self.applied_request(request)
    }

    /// The files in the trash, newest first.
    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError>;

    /// Restores a file from the trash to its old path, for the command line. A different file at that path goes to the
    /// trash.
    fn restore(&self, trashed: &TrashedFile) -> Result<FileStat, WriteError>;
}

/// Files of a folder that are not notes.
#[derive(Debug, Default)]
pub struct OtherFiles {
    /// Files that may be moved, sorted.
    pub files: Vec<VaultPath>,
    /// Files and folders, these with `/` at the end, that stay: the vault's rules exclude them, so they must not be moved to
    /// where the rules include them; or they are symbolic links. Sorted.
    pub kept: Vec<String>,
}

impl dyn VaultFiles + '_ {
    /// Reads any number of files, in batches of the size that suits this vault.
    pub fn read_in_batches<'a>(
        &'a self,
        paths: &'a [&'a VaultPath],
    ) -> impl Iterator<Item = Result<Option<FileContent>, VaultError>> + 'a {
        paths.chunks(self.batch_size()).flat_map(|batch| self.read_many(batch))
    }
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
        is_at_or_below(path, &self.unread)
    }
}

/// The versions of all notes.
#[derive(Debug, Default)]
pub struct VaultVersions {
    pub notes: BTreeMap<VaultPath, ContentHash>,
    /// Folders and files that exist but could not be read, as in [`Listing::unread`].
    pub unread: Vec<String>,
}

impl VaultVersions {
    /// Whether a path could not be read, or lies below one that could not.
    pub fn is_unread(&self, path: &VaultPath) -> bool {
        is_at_or_below(path, &self.unread)
    }
}

fn is_at_or_below(path: &VaultPath, places: &[String]) -> bool {
    places.iter().any(|place| {
        let below = path.as_str().strip_prefix(place.as_str());
        below.is_some_and(|rest| place.is_empty() || rest.is_empty() || rest.starts_with('/'))
    })
}

/// One file of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
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
    pub hash: ContentHash,
}

/// An image that a note shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its media type, by the extension of its name.
    pub media_type: &'static str,
    /// The whole file.
    pub bytes: Vec<u8>,
}

/// One change of [`VaultFiles::apply`].
#[derive(Debug, Clone)]
pub enum FileChange {
    /// A new file; missing folders are created. Fails if a file exists whose path equals it when case is ignored.
    Create { path: VaultPath, bytes: Vec<u8> },
    /// New bytes for a file that must be the expected version.
    Replace {
        path: VaultPath,
        /// The version it must have now.
        expected: ContentHash,
        bytes: Vec<u8>,
    },
    /// A new path, and possibly new bytes, for a file that must be the expected version. The path must be free; a change of
    /// case only is allowed.
    Move {
        /// The old path.
        from: VaultPath,
        to: VaultPath,
        /// The version it must have now.
        expected: ContentHash,
        bytes: Vec<u8>,
    },
    /// A new path for a file that is not a note, whatever its content. The path must be free. Nothing goes to the trash: the
    /// file itself is renamed, and keeps its content and stat.
    Rename {
        /// The old path.
        from: VaultPath,
        to: VaultPath,
    },
    /// Moves a file to the trash.
    Delete {
        path: VaultPath,
        /// The version it must have now.
        expected: ContentHash,
    },
}

impl FileChange {
    /// The path of the file after the change, or its old path if it is deleted.
    pub fn path(&self) -> &VaultPath {
        match self {
            Self::Create { path, .. } | Self::Replace { path, .. } | Self::Delete { path, .. } => path,
            Self::Move { to, .. } | Self::Rename { to, .. } => to,
        }
    }

    /// The path of the file before the change, or its new path if it is created.
    pub fn old_path(&self) -> &VaultPath {
        match self {
            Self::Move { from, .. } | Self::Rename { from, .. } => from,
            other => other.path(),
        }
    }

    /// Fails if two changes of one list are about the same file, or create files that differ only in case.
    pub fn refuse_twice(changes: &[Self]) -> Result<(), WriteError> {
        let (mut touched, mut made) = (BTreeSet::new(), BTreeSet::new());
        for change in changes {
            let (left, taken) = match change {
                Self::Create { path, .. } => (None, Some(path)),
                Self::Replace { path, .. } | Self::Delete { path, .. } => (Some(path), None),
                Self::Move { from, to, .. } | Self::Rename { from, to } => (Some(from), Some(to)),
            };
            for path in left.into_iter().chain(taken) {
                if !touched.insert(path) || taken == Some(path) && !made.insert(path.note_id()) {
                    return Err(WriteError::Refused { path: path.clone(), reason: "one write changes it twice" });
                }
            }
        }
        Ok(())
    }
}

/// A file that a write replaced, moved or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashedFile {
    /// Identifies this version; sorts by time.
    pub version: String,
    pub path: VaultPath,
    /// When it was moved to the trash, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Why the file was moved to the trash.
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
    #[error("cannot read {}: {source}", named(.path))]
    Read {
        /// The path, from the vault's root.
        path: String,
        source: std::io::Error,
    },
    /// The database of the notes did not answer, or refused.
    #[error("cannot read notes: {reason}")]
    Database {
        /// The cause, in words for the client.
        reason: String,
    },
}

/// Why a change was refused or failed. Nothing was changed, or all of it was undone.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file is not the version the writer had seen.
    #[error("{} was changed elsewhere since it was last read", named(.path.as_str()))]
    Changed { path: VaultPath },
    /// The new path is taken.
    #[error("{} exists", named(.existing.as_str()))]
    Exists {
        /// The existing file, in its exact spelling.
        existing: VaultPath,
    },
    /// The file does not exist.
    #[error("{} no longer exists", named(.path.as_str()))]
    Missing { path: VaultPath },
    /// The vault's rules exclude the path: hidden, ignored, excluded, reserved, or behind a link out of the vault.
    #[error("cannot write {}: {reason}", named(.path.as_str()))]
    Refused { path: VaultPath, reason: &'static str },
    /// The vault holds as much as it may hold.
    #[error(
        "cannot write {}: the graph has reached its limit of {limit}; an administrator can raise it with `quipu graph limit`",
        named(.path.as_str())
    )]
    Full {
        path: VaultPath,
        /// The limit with its unit.
        limit: String,
    },
    /// Another process held the write lock for longer than a writer waits.
    #[error(
        "cannot write {}: {holder} holds the write lock of the vault; retry, and end that process if it hangs",
        named(.path)
    )]
    Busy {
        /// The path to be written, from the vault's root.
        path: String,
        /// The process, as far as it is known.
        holder: String,
    },
    /// The file system returned an error: read-only, full, no permission.
    #[error("cannot write {}: {source}", named(.path))]
    Write {
        /// The path that was written, from the vault's root.
        path: String,
        source: std::io::Error,
    },
    /// The database of the notes did not answer, or refused.
    #[error("cannot write {}: {reason}", named(.path))]
    Database {
        /// The path to be written, from the vault's root.
        path: String,
        /// The cause, in words for the client.
        reason: String,
    },
}

/// A file that must be read for a write could not be read.
impl From<VaultError> for WriteError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Read { path, source } => Self::Write { path, source },
            VaultError::Database { reason } => Self::Database { path: "notes".into(), reason },
        }
    }
}
