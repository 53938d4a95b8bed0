//! Applies file changes: all or none, durable when [`apply`] returns, and no edit of another program is lost.
//!
//! In order: take the lock and recover an interrupted write, check every change, write the journal, write new versions under
//! temporary names, add old versions to the trash, then rename each file into place. A failure undoes the write.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, FileStat, VaultPath, fold};
use quipu_core::ports::{FileChange, TrashReason, WriteError};

use crate::dir::{Dir, Metadata, if_exists, is_no_folder};
use crate::failpoint;
use crate::file_op::{Conflict, FileOp, JournalEntry};
use crate::folder::{FileLocation, Resolved, join, resolve, split};
use crate::folder_vault::FolderVault;
use crate::journal::{Journal, JournaledRequest};
use crate::permissions::copy_permissions;
use crate::read::read_in;
use crate::recovery;
use crate::rules::Reason;
use crate::temporary;
use crate::trash::{self, TrashBatch};
use crate::walk::find_any_case;
use crate::write_lock::{WriteLock, holder_of};

/// Every folder of a path is opened many times in a write.
const MAX_DEPTH: usize = 64;

const TWICE: Reason = "one write may change a file only once";
const IS_LINK: Reason = "it is a symbolic link to another note; change that note";
const TOO_DEEP: Reason = "it lies more than 64 folders deep";
const IS_FOLDER: Reason = "it is a folder";

/// Applies all changes or none, and records the request. Returns the new stat for each change, `None` for deleted files. A new
/// file that replaces none gets the permissions of `template`, if given.
pub(crate) fn apply(
    vault: &FolderVault,
    changes: &[FileChange],
    request: Option<RequestKey>,
    template: Option<Template>,
) -> Result<Vec<Option<FileStat>>, WriteError> {
    check_rules(vault, changes)?;
    let Some(first) = changes.first() else { return Ok(Vec::new()) };
    // An error of the lock, the journal or the trash means that this note cannot be written.
    let fail = |source| WriteError::Write { path: old_path(first).to_string(), source };
    let lock = lock(vault).map_err(|source| match holder_of(&source) {
        Some(holder) => WriteError::Busy { path: old_path(first).to_string(), holder },
        None => fail(source),
    })?;
    let mut plan = Plan::new(TrashBatch::new(&lock.root).map_err(fail)?, template.is_some());
    for change in changes {
        plan.add_change(vault, &lock.root, change)?;
    }
    plan.refuse_same_file()?;
    if let Some(op) = plan.ops.iter_mut().find(|op| op.bytes.is_some() && op.template.is_none()) {
        op.template = template;
    }
    let request = request.map(|key| JournaledRequest::new(key, first.place()));
    if plan.ops.is_empty() {
        request.map_or(Ok(()), |request| request.record(&lock.own)).map_err(fail)?;
        return Ok(plan.stats);
    }
    let entries = plan.ops.iter().map(|op| op.entry.clone()).collect();
    let journal = Journal::new(&lock, entries, plan.created_folders.clone(), request).map_err(fail)?;
    match plan.run(&lock, &journal) {
        Ok(()) => Ok(plan.stats),
        Err(error) => Err(match journal.undo(&lock) {
            Ok(()) => error,
            Err(undo) => {
                // The notes may not be as before, which matters more than the kind of the first error.
                let (path, source) = match error {
                    WriteError::Write { path, source } => (path, source),
                    other => (old_path(first).to_string(), io::Error::other(other)),
                };
                WriteError::Write { path, source: io::Error::new(source.kind(), format!("{source}; {undo}")) }
            }
        }),
    }
}

/// Takes the write lock and recovers an interrupted write.
pub(crate) fn lock(vault: &FolderVault) -> io::Result<WriteLock<'_>> {
    if vault.read_only {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the vault is open read-only"));
    }
    let lock = WriteLock::acquire(&vault.writing_threads, vault.open_root()?)?;
    recovery::recover(vault, &lock)?;
    for leftover in std::mem::take(&mut *vault.leftovers.lock()) {
        // Temporary files exist only while the lock is held, so a crash left this one. It is harmless if it stays.
        let (folder, name) = split(&leftover);
        let _ = lock.root.open_below(folder).and_then(|folder| folder.remove_file(name));
    }
    Ok(lock)
}

/// Checks the rules before the lock is taken, so that a refused write leaves no trace in the vault.
fn check_rules(vault: &FolderVault, changes: &[FileChange]) -> Result<(), WriteError> {
    let mut changed = BTreeSet::new();
    // Existing files may differ only in case or Unicode form; two new ones may not.
    let mut created = BTreeSet::new();
    for change in changes {
        let (old, new) = match change {
            FileChange::Create { path, .. } => (None, Some(path)),
            FileChange::Replace { path, .. } | FileChange::Delete { path, .. } => (Some(path), None),
            FileChange::Move { from, to, .. } => (Some(from), Some(to)),
        };
        if let Some(path) = new
            && path.depth() > MAX_DEPTH
        {
            return Err(WriteError::Refused { path: path.clone(), reason: TOO_DEEP });
        }
        for path in old.into_iter().chain(new) {
            resolve_allowed(vault, path)?;
            if !changed.insert(path) || new == Some(path) && !created.insert(fold(path.as_str())) {
                return Err(WriteError::Refused { path: path.clone(), reason: TWICE });
            }
        }
    }
    Ok(())
}

/// The operations of a write whose changes were all checked.
struct Plan<'a> {
    ops: Vec<PlannedOp<'a>>,
    /// Folders to create, outermost first.
    created_folders: Vec<String>,
    /// For each change the stat of its file; set when the new version is written.
    stats: Vec<Option<FileStat>>,
    trash: TrashBatch,
    /// Whether a version from the trash is written.
    is_restore: bool,
}

struct PlannedOp<'a> {
    entry: JournalEntry,
    /// The path that the caller uses, which may lead through a link.
    path: VaultPath,
    /// The index of its change.
    change: usize,
    bytes: Option<&'a [u8]>,
    template: Option<Template>,
}

/// A file whose permissions a new version gets, and whose modification time it must not have.
pub(crate) struct Template {
    /// The path that errors name.
    pub(crate) path: VaultPath,
    /// The real folder, from the root.
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) metadata: Metadata,
}

impl Template {
    fn new(path: &VaultPath, location: &FileLocation, metadata: Metadata) -> Self {
        Self { path: path.clone(), folder: location.folder.clone(), name: location.name.clone(), metadata }
    }
}

impl<'a> Plan<'a> {
    fn new(trash: TrashBatch, is_restore: bool) -> Self {
        Self { ops: Vec::new(), created_folders: Vec::new(), stats: Vec::new(), trash, is_restore }
    }

    /// Checks a change against the files and adds its operations.
    fn add_change(&mut self, vault: &FolderVault, root: &Dir, change: &'a FileChange) -> Result<(), WriteError> {
        self.stats.push(None);
        match change {
            FileChange::Create { path, bytes } => {
                let location =
                    if self.is_restore { absent_location(vault, path)? } else { free_location(vault, path, None)? };
                self.create(path, location, bytes, None);
            }
            FileChange::Replace { path, expected, bytes } => {
                let (location, metadata) = expected_location(vault, root, path, *expected)?;
                let new = ContentHash::of(bytes);
                if new == *expected {
                    *self.stats.last_mut().expect("pushed above") = Some(metadata.stat);
                    return Ok(());
                }
                let trashed = self.trash.version(TrashReason::Replaced, path);
                let op = FileOp::Replace { old: (*expected).into(), new: new.into(), trashed };
                let template = Template::new(path, &location, metadata);
                self.add(path, location, op, Some(bytes), Some(template));
            }
            FileChange::Move { from, to, expected, bytes } => {
                let (location, metadata) = expected_location(vault, root, from, *expected)?;
                refuse_link(from, &location)?;
                let is_case_change = fold(from.as_str()) == fold(to.as_str());
                let free = free_location(vault, to, is_case_change.then_some(from))?;
                let template = Some(Template::new(from, &location, metadata));
                // If the file system ignores case, the name is free only after the old file is deleted. Otherwise the new
                // file comes first, so that the note always exists.
                if is_case_change {
                    self.delete(from, location, *expected, TrashReason::Moved);
                    self.create(to, free, bytes, template);
                } else {
                    self.create(to, free, bytes, template);
                    self.delete(from, location, *expected, TrashReason::Moved);
                }
            }
            FileChange::Delete { path, expected } => {
                let (location, _) = expected_location(vault, root, path, *expected)?;
                refuse_link(path, &location)?;
                self.delete(path, location, *expected, TrashReason::Deleted);
            }
        }
        Ok(())
    }

    fn create(&mut self, path: &VaultPath, location: FileLocation, bytes: &'a [u8], template: Option<Template>) {
        for folder in &location.missing_folders {
            if !self.created_folders.contains(folder) {
                self.created_folders.push(folder.clone());
            }
        }
        self.add(path, location, FileOp::Create { new: ContentHash::of(bytes).into() }, Some(bytes), template);
    }

    fn delete(&mut self, path: &VaultPath, location: FileLocation, expected: ContentHash, reason: TrashReason) {
        let trashed = self.trash.version(reason, path);
        self.add(path, location, FileOp::Delete { old: expected.into(), trashed }, None, None);
    }

    fn add(
        &mut self,
        path: &VaultPath,
        location: FileLocation,
        op: FileOp,
        bytes: Option<&'a [u8]>,
        template: Option<Template>,
    ) {
        let temporary = temporary::name(self.ops.len());
        let entry = JournalEntry { folder: location.folder, name: location.name, temporary, op };
        self.ops.push(PlannedOp { entry, path: path.clone(), change: self.stats.len() - 1, bytes, template });
    }

    /// Two paths may lead to one file through a link. A change of case deletes and creates the same name, which is allowed.
    fn refuse_same_file(&self) -> Result<(), WriteError> {
        let mut files = BTreeSet::new();
        for PlannedOp { entry, path, .. } in &self.ops {
            let is_create = matches!(entry.op, FileOp::Create { .. });
            if !files.insert((is_create, join(&entry.folder, &entry.name))) {
                return Err(WriteError::Refused { path: path.clone(), reason: TWICE });
            }
        }
        Ok(())
    }

    fn run(&mut self, lock: &WriteLock<'_>, journal: &Journal) -> Result<(), WriteError> {
        let root = &lock.root;
        let note = self.ops[0].path.to_string();
        let fail = |source| WriteError::Write { path: note.clone(), source };
        journal.begin(&lock.own).map_err(fail)?;
        let mut changed_folders = create_folders(root, &self.created_folders)?;
        let mut trash_folders = BTreeSet::new();
        for op in &self.ops {
            let stat = op.prepare(root, &mut trash_folders).map_err(|conflict| op.write_error(conflict))?;
            self.stats[op.change] = stat.or(self.stats[op.change]);
            changed_folders.insert(op.entry.folder.clone());
        }
        sync_folders(root, &trash_folders)?;
        for op in &self.ops {
            op.run(root).map_err(|conflict| op.write_error(conflict))?;
        }
        sync_folders(root, &changed_folders)?;
        journal.commit(lock).map_err(fail)
    }
}

impl PlannedOp<'_> {
    /// Writes the new version under its temporary name, then adds the old one to the trash. In this order: a version in the
    /// trash tells recovery that the new one is complete.
    fn prepare(&self, root: &Dir, trash_folders: &mut BTreeSet<String>) -> Result<Option<FileStat>, Conflict> {
        let dir = root.open_below(&self.entry.folder)?;
        let stat = self.bytes.map(|bytes| self.write_new_version(root, &dir, bytes)).transpose()?;
        if let Some((_, trashed)) = self.entry.op.displaced() {
            let added = trash::add(root, (&dir, &self.entry.name), trashed, trash_folders);
            if_exists(added)?.ok_or(Conflict::Missing)?;
        }
        Ok(stat)
    }

    /// Runs the operation. A replaced file whose permissions changed since they were copied is a conflict: the new version
    /// could be open to accounts that the old one was just closed to.
    fn run(&self, root: &Dir) -> Result<(), Conflict> {
        self.entry.run(root)?;
        let (FileOp::Replace { .. }, Some(template)) = (&self.entry.op, &self.template) else { return Ok(()) };
        // `None` on file systems that cannot exchange names.
        match root.open_below(&self.entry.folder)?.metadata(&self.entry.temporary)? {
            Some(displaced) if !displaced.has_permissions_of(&template.metadata) => Err(Conflict::Changed),
            _ => Ok(()),
        }
    }

    fn write_new_version(&self, root: &Dir, dir: &Dir, bytes: &[u8]) -> Result<FileStat, Conflict> {
        failpoint::hit("write")?;
        // Private until it has the permissions of the old file.
        let mut file = match &self.template {
            Some(_) => dir.create_private_file(&self.entry.temporary)?,
            None => dir.create_file(&self.entry.temporary)?,
        };
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        failpoint::hit("write the rest")?;
        file.write_all(rest)?;
        if let Some(template) = &self.template {
            // If it was removed meanwhile, adding it to the trash fails.
            if let Some(source) = if_exists(root.open_below(&template.folder)?.open_file(&template.name))? {
                // Another file of that name, or other permissions than those of the version that was checked.
                let found = Metadata::of(&source)?;
                if found.inode != template.metadata.inode || !found.has_permissions_of(&template.metadata) {
                    return Err(Conflict::Changed);
                }
                copy_permissions(&source, &file)?;
            }
            set_other_time(&file, &template.metadata)?;
        }
        file.sync_all()?;
        Ok(Metadata::of(&file)?.stat)
    }

    fn write_error(&self, conflict: Conflict) -> WriteError {
        let path = self.path.clone();
        match conflict {
            Conflict::Changed => {
                WriteError::Changed { path: self.template.as_ref().map_or(path, |template| template.path.clone()) }
            }
            Conflict::Missing => WriteError::Missing { path },
            Conflict::Exists => WriteError::Exists { existing: path },
            Conflict::Io(source) => WriteError::Write { path: path.to_string(), source },
        }
    }
}

/// Returns the folders that got a new entry.
fn create_folders(root: &Dir, created: &[String]) -> Result<BTreeSet<String>, WriteError> {
    let mut changed = BTreeSet::new();
    for path in created {
        let (folder, name) = split(path);
        failpoint::hit("create folder")
            .and_then(|()| root.open_below(folder)?.create_folder(name))
            .map_err(|source| WriteError::Write { path: path.clone(), source })?;
        changed.insert(folder.to_owned());
    }
    Ok(changed)
}

fn sync_folders(root: &Dir, folders: &BTreeSet<String>) -> Result<(), WriteError> {
    folders.iter().try_for_each(|folder| {
        failpoint::hit("sync")
            .and_then(|()| root.open_below(folder)?.sync())
            .map_err(|source| WriteError::Write { path: folder.clone(), source })
    })
}

/// The path of a change's file before the write.
fn old_path(change: &FileChange) -> &VaultPath {
    match change {
        FileChange::Move { from, .. } => from,
        other => other.place(),
    }
}

fn resolve_allowed(vault: &FolderVault, path: &VaultPath) -> Result<Resolved, WriteError> {
    match resolve(vault, path) {
        Ok(Resolved::Excluded(reason)) => Err(WriteError::Refused { path: path.clone(), reason }),
        Ok(resolved) => Ok(resolved),
        Err(source) => Err(WriteError::Write { path: path.to_string(), source }),
    }
}

/// The location of a path that is free in this spelling: a restored note may differ in case from another, as before.
fn absent_location(vault: &FolderVault, path: &VaultPath) -> Result<FileLocation, WriteError> {
    match resolve_allowed(vault, path)? {
        Resolved::Absent(location) => Ok(location),
        _ => Err(WriteError::Exists { existing: path.clone() }),
    }
}

/// The location of a path that is free in every spelling of case, except for the file that a move `removes`.
fn free_location(
    vault: &FolderVault,
    path: &VaultPath,
    removes: Option<&VaultPath>,
) -> Result<FileLocation, WriteError> {
    let resolved = resolve_allowed(vault, path)?;
    let existing = find_any_case(vault, path).map_err(|source| WriteError::Write { path: path.to_string(), source })?;
    if let Some(existing) = existing.into_iter().find(|existing| Some(existing) != removes) {
        return Err(WriteError::Exists { existing });
    }
    match resolved {
        Resolved::Absent(location) => Ok(location),
        // The file that the move removes, under its new name.
        Resolved::Note(location) if removes.is_some() => Ok(location),
        _ => Err(WriteError::Exists { existing: path.clone() }),
    }
}

/// The location of a file that has the expected version.
fn expected_location(
    vault: &FolderVault,
    root: &Dir,
    path: &VaultPath,
    expected: ContentHash,
) -> Result<(FileLocation, Metadata), WriteError> {
    let location = match resolve_allowed(vault, path)? {
        Resolved::Note(location) => location,
        Resolved::Folder(_) => return Err(WriteError::Refused { path: path.clone(), reason: IS_FOLDER }),
        Resolved::Absent(_) | Resolved::Excluded(_) => return Err(WriteError::Missing { path: path.clone() }),
    };
    match root.open_below(&location.folder).and_then(|folder| read_in(&folder, &location.name)) {
        Ok(Some((content, metadata))) if content.hash == expected => Ok((location, metadata)),
        // Another version, or one that another program is writing.
        Ok(_) => Err(WriteError::Changed { path: path.clone() }),
        Err(error) if is_no_folder(&error) => Err(WriteError::Missing { path: path.clone() }),
        Err(source) => Err(WriteError::Write { path: path.to_string(), source }),
    }
}

/// Replace writes through a link. Move and delete would have to choose between the link and its target.
fn refuse_link(path: &VaultPath, location: &FileLocation) -> Result<(), WriteError> {
    if location.is_link { Err(WriteError::Refused { path: path.clone(), reason: IS_LINK }) } else { Ok(()) }
}

/// Two versions of the same size, saved within one tick of the file system's clock, would look unchanged.
fn set_other_time(file: &File, old: &Metadata) -> io::Result<()> {
    if Metadata::of(file)?.stat.modified_ns != old.stat.modified_ns {
        return Ok(());
    }
    let later = Duration::from_nanos(u64::try_from(old.stat.modified_ns).unwrap_or_default() + 1);
    file.set_modified(UNIX_EPOCH + later)
}
