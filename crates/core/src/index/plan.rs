//! Which files to read and which notes to remove, found by comparing the vault with the last snapshot.

use std::fmt;

use rustc_hash::FxHashSet;

use super::snapshot::Snapshot;
use super::writer::Writer;
use crate::model::{NoteKey, VaultPath, Warning};
use crate::ports::{ListedFile, Listing, VaultError, VaultFiles};

/// Files that may have changed.
#[derive(Debug, Clone)]
pub enum FileBatch {
    /// The whole vault; files whose time and size are unchanged are not opened.
    All,
    /// The whole vault, every file opened and hashed.
    AllRehashed,
    /// These files and everything below these folders, opened whatever their times say.
    Paths(Vec<VaultPath>),
    /// These files, and no folders: nothing is listed.
    Files(Vec<VaultPath>),
}

/// Files of a pass that are read in parallel and stored as one change; also the most unsaved notes that a small batch retries.
pub(super) const CHUNK: usize = 512;

/// The files that a pass reads and the notes that it removes.
#[derive(Default)]
pub(super) struct ReadPlan {
    pub(super) read: Vec<FileToRead>,
    pub(super) removed: Vec<NoteKey>,
    pub(super) warnings: Vec<Warning>,
    /// Paths of the batch that could not be listed.
    pub(super) unlisted: usize,
}

/// A file, and its note if the index has one.
pub(super) struct FileToRead {
    pub(super) path: VaultPath,
    pub(super) key: Option<NoteKey>,
}

impl ReadPlan {
    pub(super) fn new(
        vault: &dyn VaultFiles,
        writer: &Writer,
        snapshot: &Snapshot,
        batch: &FileBatch,
    ) -> Result<Self, VaultError> {
        let mut plan = Self::default();
        match batch {
            FileBatch::All => return Ok(Self::for_older_listing(vault, writer, snapshot, vault.list()?)),
            FileBatch::AllRehashed => {
                plan.compare(snapshot, vault.list()?, snapshot.files().collect(), |_| false, |_| true);
            }
            FileBatch::Files(paths) => {
                let read = |path: &VaultPath| FileToRead { path: path.clone(), key: snapshot.find_exact(path) };
                plan.read.extend(paths.iter().map(read));
                plan.retry_unsaved(writer, snapshot);
            }
            FileBatch::Paths(paths) => {
                for path in paths {
                    match vault.list_below(path) {
                        Ok(listing) => {
                            plan.compare(snapshot, listing, snapshot.files_below(path), |_| false, |_| true);
                        }
                        // The other paths are still read, and the notes known here stay.
                        Err(error) => {
                            plan.unlisted += 1;
                            plan.warnings.push(unreadable(path, &error));
                        }
                    }
                }
                plan.retry_unsaved(writer, snapshot);
            }
        }
        Ok(plan.without_duplicates())
    }

    /// The plan for some files of a listing: those that the index has already are skipped.
    pub(super) fn of_listed(snapshot: &Snapshot, files: &[ListedFile]) -> Self {
        let to_read = |file: &ListedFile| {
            let key = snapshot.find_exact(&file.path);
            let is_known = key.is_some_and(|key| snapshot.note(key).stat == file.stat);
            (!is_known).then(|| FileToRead { path: file.path.clone(), key })
        };
        Self { read: files.iter().filter_map(to_read).collect(), ..Self::default() }
    }

    /// Adds some notes that the store failed to write.
    fn retry_unsaved(&mut self, writer: &Writer, snapshot: &Snapshot) {
        let unsaved = writer.unsaved.iter().take(CHUNK).filter_map(|key| Some((*key, snapshot.get(*key)?)));
        self.read.extend(unsaved.map(|(key, note)| FileToRead { path: note.path.clone(), key: Some(key) }));
    }

    /// The plan for the whole vault: a file is skipped when its time and size are unchanged and can be trusted.
    pub(super) fn for_listing(writer: &Writer, snapshot: &Snapshot, listing: Listing) -> Self {
        Self::of_all(writer, snapshot, listing, |_| true)
    }

    /// Like [`Self::for_listing`], for a listing that may be older than the snapshot: a note that it does not have may be new, so
    /// its file is looked for.
    pub(super) fn for_older_listing(
        vault: &dyn VaultFiles,
        writer: &Writer,
        snapshot: &Snapshot,
        listing: Listing,
    ) -> Self {
        // A file that cannot be looked for is not removed: the next pass decides.
        let is_gone = |path: &VaultPath| {
            vault.list_below(path).is_ok_and(|below| below.files.iter().all(|file| file.path != *path))
        };
        Self::of_all(writer, snapshot, listing, is_gone)
    }

    fn of_all(writer: &Writer, snapshot: &Snapshot, listing: Listing, is_gone: impl Fn(&VaultPath) -> bool) -> Self {
        let mut plan = Self::default();
        let trusted = |key: NoteKey| !writer.unsaved.contains(&key) && !writer.unsettled.contains(&key);
        plan.compare(snapshot, listing, snapshot.files().collect(), trusted, is_gone);
        plan.without_duplicates()
    }

    /// Adds the differences between some files and the notes known there. `is_gone` is asked about a note that the listing
    /// does not have.
    fn compare(
        &mut self,
        snapshot: &Snapshot,
        mut listing: Listing,
        mut known: Vec<NoteKey>,
        trusted: impl Fn(NoteKey) -> bool,
        is_gone: impl Fn(&VaultPath) -> bool,
    ) {
        let path_of = |key: NoteKey| &snapshot.note(key).path;
        self.warnings.append(&mut listing.warnings);
        let mut files = std::mem::take(&mut listing.files);
        // Both nearly are in order already, since ids are paths in lower case.
        files.sort_by(|a, b| a.path.cmp(&b.path));
        known.sort_by(|a, b| path_of(*a).cmp(path_of(*b)));
        let mut known = known.into_iter().peekable();
        // A folder that cannot be read for a moment has lost no notes.
        let lose = |removed: &mut Vec<NoteKey>, key: NoteKey| {
            if !listing.is_unread(path_of(key)) && is_gone(path_of(key)) {
                removed.push(key);
            }
        };
        for file in files {
            while let Some(key) = known.next_if(|key| *path_of(*key) < file.path) {
                lose(&mut self.removed, key);
            }
            let key = known.next_if(|key| *path_of(*key) == file.path);
            // Of several notes of one path, one stays.
            self.removed.extend(std::iter::from_fn(|| known.next_if(|key| *path_of(*key) == file.path)));
            if !key.is_some_and(|key| trusted(key) && snapshot.note(key).stat == file.stat) {
                self.read.push(FileToRead { path: file.path, key });
            }
        }
        known.for_each(|key| lose(&mut self.removed, key));
    }

    /// One decision for each file. A folder and a file in it are listed a moment apart and may disagree: then reading the
    /// file decides.
    fn without_duplicates(mut self) -> Self {
        self.read.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.read.dedup_by(|a, b| a.path == b.path);
        let read: FxHashSet<NoteKey> = self.read.iter().filter_map(|file| file.key).collect();
        self.removed.retain(|key| !read.contains(key));
        self.removed.sort_unstable();
        self.removed.dedup();
        self
    }
}

pub(super) fn unreadable(path: &VaultPath, error: &VaultError) -> Warning {
    let cause: &dyn fmt::Display = match error {
        VaultError::Read { source, .. } => source,
        VaultError::Database { reason } => reason,
    };
    Warning { path: path.to_string(), message: format!("cannot be read: {cause}") }
}
