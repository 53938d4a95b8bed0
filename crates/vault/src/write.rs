//! Applies file changes: all or none, durable when [`apply`] returns, and no edit of another program is lost.
//!
//! In order: take the lock and recover an interrupted write; check every change; write the journal, which has what the write is
//! about to do; write new versions under temporary names, fsync; link old versions into the trash, fsync; compare and rename each
//! file into place, fsync its folders; record the history; end the journal. A failure undoes the write. After a kill, the next
//! start or write finishes or undoes it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use quipu_core::model::{ContentHash, FileStat, VaultPath, fold};
use quipu_core::ports::{
    FileChange, LoggedFile, LoggedVersion, LoggedWrite, NoteAction, TrashReason, WriteError, WriteOrigin,
};

use crate::dir::{Dir, FileKind, Metadata, if_exists, is_no_folder};
use crate::failpoint;
use crate::file_op::{FileConflict, FileOp, JournalEntry};
use crate::folder::{FileLocation, ResolvedPath, join, resolve, split};
use crate::folder_vault::FolderVault;
use crate::history::{self, HistoryLine};
use crate::journal::{Journal, JournaledRequest};
use crate::kept_file::KeptFile;
use crate::permissions::copy_permissions;
use crate::read::read_in;
use crate::recovery;
use crate::rules::ExclusionReason;
use crate::temporary;
use crate::trash::{self, Original, TrashBatch};
use crate::walk::find_any_case;
use crate::write_lock::{TIMEOUT, WriteLock, holder_of};
use crate::written;

/// Every folder of a path is opened many times in a write.
const MAX_DEPTH: usize = 64;

/// Files of one write that are synced at the same time.
const SYNC_THREADS: usize = 16;

const TWICE: ExclusionReason = "one write may change a file only once";
const IS_LINK: ExclusionReason = "it is a symbolic link to another note; change that note";
const TOO_DEEP: ExclusionReason = "it lies more than 64 folders deep";
const NOT_A_FILE_NAME: ExclusionReason = "only a file beside the notes can be renamed";
const IS_FOLDER: ExclusionReason = "it is a folder";

/// Applies all changes or none, and records the request and the history. Returns the new stat for each change, `None` for
/// deleted files. A new file that replaces none gets the permissions of the kept version whose text it has, if there is one.
pub(crate) fn apply(
    vault: &FolderVault,
    changes: &[FileChange],
    origin: &WriteOrigin<'_>,
) -> Result<Vec<Option<FileStat>>, WriteError> {
    check_rules(vault, changes)?;
    let Some(first) = changes.first() else { return Ok(Vec::new()) };
    // An error of the lock, the journal or the trash means that this note cannot be written.
    let fail = |source| WriteError::Write { path: first.old_place().to_string(), source };
    let lock = lock(vault).map_err(|source| match holder_of(&source) {
        Some(holder) => WriteError::Busy { path: first.old_place().to_string(), holder },
        None => fail(source),
    })?;
    let (number, at_ns) = history::next(vault, &lock.own).map_err(fail)?;
    let mut plan =
        WritePlan::new(TrashBatch::new(&lock.root, at_ns).map_err(fail)?, origin.action == NoteAction::Restore);
    for change in changes {
        let file = plan.add_change(vault, &lock.root, change, origin.action_on(change))?;
        plan.files.extend(file);
    }
    plan.refuse_same_file()?;
    plan.follow_kept(&lock.root, origin.kept)?;
    let request = origin.request.map(|key| JournaledRequest::new(key, first.place()));
    if plan.ops.is_empty() {
        request.map_or(Ok(()), |request| request.record(&lock.own)).map_err(fail)?;
        return Ok(plan.stats);
    }
    let entries = plan.ops.iter().map(|op| op.entry.clone()).collect();
    let files = std::mem::take(&mut plan.files);
    let line = HistoryLine::from(&LoggedWrite { number, at_ns, by: origin.by.to_owned(), files, unlisted: 0 });
    let journal = Journal::new(&lock, entries, plan.created_folders.clone(), request, line).map_err(fail)?;
    match plan.run(vault, &lock, &journal) {
        Ok(()) => Ok(plan.stats),
        Err(error) => Err(match journal.undo(vault, &lock) {
            Ok(()) => error,
            Err(undo) => {
                // The notes may not be as before, which matters more than the kind of the first error.
                let (path, source) = match error {
                    WriteError::Write { path, source } => (path, source),
                    other => (first.old_place().to_string(), io::Error::other(other)),
                };
                WriteError::Write { path, source: io::Error::new(source.kind(), format!("{source}; {undo}")) }
            }
        }),
    }
}

/// Takes the write lock and recovers an interrupted write.
pub(crate) fn lock(vault: &FolderVault) -> io::Result<WriteLock<'_>> {
    lock_within(vault, TIMEOUT)
}

/// Like [`lock`], but waits at most `patience`.
pub(crate) fn lock_within(vault: &FolderVault, patience: Duration) -> io::Result<WriteLock<'_>> {
    if vault.read_only {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the vault is open read-only"));
    }
    let lock = WriteLock::acquire(&vault.writing_threads, vault.open_root()?, patience)?;
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
            FileChange::Move { from, to, .. } | FileChange::Rename { from, to } => (Some(from), Some(to)),
        };
        if let Some(path) = new
            && path.depth() > MAX_DEPTH
        {
            return Err(WriteError::Refused { path: path.clone(), reason: TOO_DEEP });
        }
        for path in old.into_iter().chain(new) {
            match change {
                FileChange::Rename { .. } => drop(other_location(vault, path)?),
                _ => drop(resolve_allowed(vault, path)?),
            }
            if !changed.insert(path) || new == Some(path) && !created.insert(fold(path.as_str())) {
                return Err(WriteError::Refused { path: path.clone(), reason: TWICE });
            }
        }
    }
    Ok(())
}

/// The operations of a write whose changes were all checked.
struct WritePlan<'a> {
    ops: Vec<PlannedOp<'a>>,
    /// Folders to create, outermost first.
    created_folders: Vec<String>,
    /// For each change the stat of its file; set when the new version is written.
    stats: Vec<Option<FileStat>>,
    trash: TrashBatch,
    /// The history's entry for each file.
    files: Vec<LoggedFile>,
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

impl<'a> WritePlan<'a> {
    fn new(trash: TrashBatch, is_restore: bool) -> Self {
        let (files, stats) = (Vec::new(), Vec::new());
        Self { ops: Vec::new(), created_folders: Vec::new(), stats, trash, files, is_restore }
    }

    /// Checks a change against the files and adds its operations. Returns what the history says of it; `None` if nothing is to
    /// be done.
    fn add_change(
        &mut self,
        vault: &FolderVault,
        root: &Dir,
        change: &'a FileChange,
        action: NoteAction,
    ) -> Result<Option<LoggedFile>, WriteError> {
        self.stats.push(None);
        let at_ns = self.trash.at_ns;
        let logged = |path: VaultPath| LoggedFile { action, path, from: None, before: None, after: None, kept: None };
        match change {
            FileChange::Create { path, bytes } => {
                let location =
                    if self.is_restore { absent_location(vault, path)? } else { free_location(vault, path, None)? };
                let after = Some(LoggedVersion::of(bytes, at_ns));
                let file = LoggedFile { after, ..logged(location.path(path)) };
                self.create(path, location, bytes, None);
                Ok(Some(file))
            }
            FileChange::Replace { path, expected, bytes } => {
                let (location, metadata, old) = expected_location(vault, root, path, *expected)?;
                let new = LoggedVersion::of(bytes, at_ns);
                if new.hash == *expected {
                    *self.stats.last_mut().expect("pushed above") = Some(metadata.stat);
                    return Ok(None);
                }
                let trashed = self.trash.version(TrashReason::Replaced, location.path(path));
                let (before, after, kept) = (Some(old), Some(new), Some(trashed.clone()));
                let file = LoggedFile { before, after, kept, ..logged(location.path(path)) };
                let op = FileOp::Replace { old: (*expected).into(), new: new.hash.into(), trashed };
                let template = Template::new(path, &location, metadata);
                self.add(path, location, op, Some(bytes), Some(template));
                Ok(Some(file))
            }
            FileChange::Move { from, to, expected, bytes } => {
                let (location, metadata, old) = expected_location(vault, root, from, *expected)?;
                refuse_link(from, &location)?;
                let is_case_change = fold(from.as_str()) == fold(to.as_str());
                let free = free_location(vault, to, is_case_change.then_some(from))?;
                let (before, after) = (Some(old), Some(LoggedVersion::of(bytes, at_ns)));
                let moved_from = location.path(from);
                let kept = Some(self.trash.version(TrashReason::Moved, &moved_from));
                let file = LoggedFile { from: Some(moved_from), before, after, kept, ..logged(free.path(to)) };
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
                Ok(Some(file))
            }
            FileChange::Rename { from, to } => {
                let (from, path) = self.rename(vault, root, from, to)?;
                Ok(Some(LoggedFile { from: Some(from), ..logged(path) }))
            }
            FileChange::Delete { path, expected } => {
                let (location, _, old) = expected_location(vault, root, path, *expected)?;
                refuse_link(path, &location)?;
                let kept = Some(self.trash.version(TrashReason::Deleted, location.path(path)));
                let file = LoggedFile { before: Some(old), kept, ..logged(location.path(path)) };
                self.delete(path, location, *expected, TrashReason::Deleted);
                Ok(Some(file))
            }
        }
    }

    /// Returns the real paths before and after.
    fn rename(
        &mut self,
        vault: &FolderVault,
        root: &Dir,
        from: &VaultPath,
        to: &VaultPath,
    ) -> Result<(VaultPath, VaultPath), WriteError> {
        let fail = |source| WriteError::Write { path: from.to_string(), source };
        let (location, target) = (other_location(vault, from)?, other_location(vault, to)?);
        let folder = if_exists(root.open_below(&location.folder)).map_err(fail)?;
        let metadata = folder.map(|folder| folder.metadata(&location.name)).transpose().map_err(fail)?.flatten();
        let metadata = metadata.filter(|metadata| metadata.kind == FileKind::File);
        let size = metadata.ok_or_else(|| WriteError::Missing { path: from.clone() })?.stat.size;
        let existing = find_any_case(vault, to).map_err(fail)?;
        if let Some(existing) = existing.into_iter().find(|existing| existing != from) {
            return Err(WriteError::Exists { existing });
        }
        self.create_missing_folders(&target);
        let paths = (location.path(from), target.path(to));
        let op = FileOp::Rename { to_folder: target.folder, to_name: target.name, size };
        self.add(from, location, op, None, None);
        Ok(paths)
    }

    fn create_missing_folders(&mut self, location: &FileLocation) {
        for folder in &location.missing_folders {
            if !self.created_folders.contains(folder) {
                self.created_folders.push(folder.clone());
            }
        }
    }

    fn create(&mut self, path: &VaultPath, location: FileLocation, bytes: &'a [u8], template: Option<Template>) {
        self.create_missing_folders(&location);
        self.add(path, location, FileOp::Create { new: ContentHash::of(bytes).into() }, Some(bytes), template);
    }

    fn delete(&mut self, path: &VaultPath, location: FileLocation, expected: ContentHash, reason: TrashReason) {
        let trashed = self.trash.version(reason, location.path(path));
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

    /// Checks each kept version whose text is written, and takes the permissions of a new file from it.
    fn follow_kept(&mut self, root: &Dir, kept: &[Option<String>]) -> Result<(), WriteError> {
        for op in self.ops.iter_mut().filter(|op| op.bytes.is_some()) {
            let Some(Some(version)) = kept.get(op.change) else { continue };
            let fail = |source| WriteError::Write { path: op.path.to_string(), source };
            let missing = || WriteError::Missing { path: op.path.clone() };
            let kept = KeptFile::open(root, version).map_err(fail)?.ok_or_else(missing)?;
            if !kept.has_text(op.bytes.unwrap_or_default()).map_err(fail)? {
                return Err(missing());
            }
            let replaced = op.template.as_ref().map(|template| (template.folder.as_str(), template.name.as_str()));
            let refused = kept.refusal(root, &op.entry.folder, replaced).map_err(fail)?;
            if let Some(reason) = refused {
                return Err(fail(io::Error::new(io::ErrorKind::PermissionDenied, reason)));
            }
            if op.template.is_none() {
                op.template = Some(kept.template(&op.path, version));
            }
        }
        Ok(())
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

    fn run(&mut self, vault: &FolderVault, lock: &WriteLock<'_>, journal: &Journal) -> Result<(), WriteError> {
        let root = &lock.root;
        let note = self.ops[0].path.to_string();
        let fail = |source| WriteError::Write { path: note.clone(), source };
        journal.begin(&lock.own).map_err(fail)?;
        let mut changed_folders = create_folders(root, &self.created_folders)?;
        let mut trash_folders = BTreeSet::new();
        // The new versions before the old ones: a version in the trash tells recovery that the new one is complete.
        for op in &self.ops {
            let stat = op.write_new_version(root).map_err(|conflict| op.write_error(conflict))?;
            self.stats[op.change] = stat.or(self.stats[op.change]);
            changed_folders.extend(op.changed_folders().map(str::to_owned));
        }
        sync_files(root, &self.ops)?;
        for op in &self.ops {
            op.trash_old_version(root, &mut trash_folders).map_err(|conflict| op.write_error(conflict))?;
        }
        sync_folders(root, &trash_folders)?;
        for op in &self.ops {
            op.run(root).map_err(|conflict| op.write_error(conflict))?;
        }
        sync_folders(root, &changed_folders)?;
        journal.record_history(vault, &lock.own).map_err(fail)?;
        journal.commit(lock).map_err(fail)?;
        written::follow_write(vault, root, self.ops.iter().map(|op| (&op.entry, op.bytes)));
        Ok(())
    }
}

impl PlannedOp<'_> {
    /// The folders whose entries it changes.
    fn changed_folders(&self) -> impl Iterator<Item = &str> {
        let target = match &self.entry.op {
            FileOp::Rename { to_folder, .. } => Some(to_folder.as_str()),
            _ => None,
        };
        [self.entry.folder.as_str()].into_iter().chain(target)
    }

    /// The names in its folder whose content must be on disk: the new version, and the old one, since an editor's latest save
    /// may not be there yet.
    fn files_to_sync(&self) -> impl Iterator<Item = &str> {
        let new = self.bytes.map(|_| self.entry.temporary.as_str());
        new.into_iter().chain(self.entry.op.displaced().map(|_| self.entry.name.as_str()))
    }

    fn trash_old_version(&self, root: &Dir, trash_folders: &mut BTreeSet<String>) -> Result<(), FileConflict> {
        let Some((_, trashed)) = self.entry.op.displaced() else { return Ok(()) };
        let dir = root.open_below(&self.entry.folder)?;
        let original = Original { dir: &dir, folder: &self.entry.folder, name: &self.entry.name };
        let added = trash::add(root, &original, trashed, trash_folders);
        if_exists(added)?.ok_or(FileConflict::Missing)
    }

    /// Runs the operation. A replaced file whose permissions changed since they were copied is a conflict: the new version
    /// could be open to accounts that the old one was just closed to.
    fn run(&self, root: &Dir) -> Result<(), FileConflict> {
        self.entry.run(root)?;
        let (FileOp::Replace { .. }, Some(template)) = (&self.entry.op, &self.template) else { return Ok(()) };
        // `None` on file systems that cannot exchange names.
        match root.open_below(&self.entry.folder)?.metadata(&self.entry.temporary)? {
            Some(displaced) if !displaced.has_permissions_of(&template.metadata) => Err(FileConflict::Changed),
            _ => Ok(()),
        }
    }

    /// Writes the new version under its temporary name, not yet synced.
    fn write_new_version(&self, root: &Dir) -> Result<Option<FileStat>, FileConflict> {
        let Some(bytes) = self.bytes else { return Ok(None) };
        let dir = root.open_below(&self.entry.folder)?;
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
                    return Err(FileConflict::Changed);
                }
                copy_permissions(&source, &file)?;
            }
            set_other_time(&file, &template.metadata)?;
        }
        Ok(Some(Metadata::of(&file)?.stat))
    }

    fn write_error(&self, conflict: FileConflict) -> WriteError {
        let path = self.path.clone();
        match conflict {
            FileConflict::Changed => {
                WriteError::Changed { path: self.template.as_ref().map_or(path, |template| template.path.clone()) }
            }
            FileConflict::Missing => WriteError::Missing { path },
            FileConflict::Exists => WriteError::Exists { existing: path },
            FileConflict::Io(source) => WriteError::Write { path: path.to_string(), source },
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

/// Makes the content of files durable. Several at once: a file system syncs many files in little more time than one.
fn sync_files(root: &Dir, ops: &[PlannedOp<'_>]) -> Result<(), WriteError> {
    let sync = |op: &PlannedOp<'_>| -> Result<(), WriteError> {
        let fail = |source| WriteError::Write { path: op.path.to_string(), source };
        let dir = root.open_below(&op.entry.folder).map_err(fail)?;
        for name in op.files_to_sync() {
            // An old version that was removed meanwhile is a conflict when it is added to the trash.
            if let Some(file) = if_exists(dir.open_file(name)).map_err(fail)? {
                file.sync_all().map_err(fail)?;
            }
        }
        Ok(())
    };
    if ops.len() < SYNC_THREADS {
        return ops.iter().try_for_each(sync);
    }
    std::thread::scope(|scope| {
        let chunks = ops.chunks(ops.len().div_ceil(SYNC_THREADS));
        let threads: Vec<_> = chunks.map(|chunk| scope.spawn(move || chunk.iter().try_for_each(sync))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn sync_folders(root: &Dir, folders: &BTreeSet<String>) -> Result<(), WriteError> {
    folders.iter().try_for_each(|folder| {
        failpoint::hit("sync")
            .and_then(|()| root.open_below(folder)?.sync())
            .map_err(|source| WriteError::Write { path: folder.clone(), source })
    })
}

fn resolve_allowed(vault: &FolderVault, path: &VaultPath) -> Result<ResolvedPath, WriteError> {
    match resolve(vault, path) {
        Ok(ResolvedPath::Excluded(reason)) => Err(WriteError::Refused { path: path.clone(), reason }),
        Ok(resolved) => Ok(resolved),
        Err(source) => Err(WriteError::Write { path: path.to_string(), source }),
    }
}

/// The location of a file that is not a note: where a note beside it would be.
fn other_location(vault: &FolderVault, path: &VaultPath) -> Result<FileLocation, WriteError> {
    let refused = |reason| WriteError::Refused { path: path.clone(), reason };
    let note = VaultPath::parse(&format!("{path}.md")).map_err(|_| refused(NOT_A_FILE_NAME))?;
    let is_hidden = path.file_name().starts_with('.');
    match resolve_allowed(vault, &note)? {
        // A link of that name leads to another folder.
        ResolvedPath::Note(location) | ResolvedPath::Absent(location)
            if !is_hidden && !path.is_markdown() && !location.is_link =>
        {
            Ok(FileLocation { name: path.file_name().to_owned(), is_link: false, ..location })
        }
        _ => Err(refused(NOT_A_FILE_NAME)),
    }
}

/// The location of a path that is free in this spelling: a restored note may differ in case from another, as before.
fn absent_location(vault: &FolderVault, path: &VaultPath) -> Result<FileLocation, WriteError> {
    match resolve_allowed(vault, path)? {
        ResolvedPath::Absent(location) => Ok(location),
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
        ResolvedPath::Absent(location) => Ok(location),
        // The file that the move removes, under its new name.
        ResolvedPath::Note(location) if removes.is_some() => Ok(location),
        _ => Err(WriteError::Exists { existing: path.clone() }),
    }
}

/// The location of a file that has the expected version.
fn expected_location(
    vault: &FolderVault,
    root: &Dir,
    path: &VaultPath,
    expected: ContentHash,
) -> Result<(FileLocation, Metadata, LoggedVersion), WriteError> {
    let location = match resolve_allowed(vault, path)? {
        ResolvedPath::Note(location) => location,
        ResolvedPath::Folder(_) => return Err(WriteError::Refused { path: path.clone(), reason: IS_FOLDER }),
        ResolvedPath::Absent(_) | ResolvedPath::Excluded(_) => return Err(WriteError::Missing { path: path.clone() }),
    };
    match root.open_below(&location.folder).and_then(|folder| read_in(&folder, &location.name)) {
        Ok(Some((content, metadata))) if content.hash == expected => {
            let version = LoggedVersion::of(&content.bytes, metadata.stat.modified_ns);
            Ok((location, metadata, version))
        }
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
