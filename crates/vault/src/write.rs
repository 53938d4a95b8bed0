//! Applies file changes: all or none, durable when [`apply`] returns, and no edit of another program is lost.
//!
//! In order: take the lock and recover an interrupted write; check every change (`write_plan`); write the journal, which has what the write is
//! about to do; write new versions under temporary names, fsync; link old versions into the trash, fsync; compare and rename each
//! file into place, fsync its folders; record the history; end the journal. A failure undoes the write. After a kill, the next
//! start or write finishes or undoes it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use quipu_core::model::FileStat;
use quipu_core::ports::{FileChange, LoggedWrite, NoteAction, WriteError, WriteOrigin};

use crate::dir::{Dir, Metadata, if_exists};
use crate::failpoint;
use crate::file_op::{FileConflict, FileOp};
use crate::folder::split;
use crate::folder_vault::FolderVault;
use crate::history::{self, HistoryLine};
use crate::journal::{Journal, JournaledRequest};
use crate::permissions::copy_permissions;
use crate::recovery;
use crate::trash::{self, Original, TrashBatch};
use crate::write_lock::{TIMEOUT, WriteLock, holder_of};
use crate::write_plan::{PlannedOp, WritePlan, check_rules};
use crate::written;

/// Files of one write that are synced at the same time.
const SYNC_THREADS: usize = 16;

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
    let fail = |source| WriteError::Write { path: first.old_path().to_string(), source };
    let lock = lock(vault).map_err(|source| match holder_of(&source) {
        Some(holder) => WriteError::Busy { path: first.old_path().to_string(), holder },
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
    let request = origin.request.map(|key| JournaledRequest::new(key, first.path()));
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
                    other => (first.old_path().to_string(), io::Error::other(other)),
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

impl WritePlan<'_> {
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

/// Two versions of the same size, saved within one tick of the file system's clock, would look unchanged.
fn set_other_time(file: &File, old: &Metadata) -> io::Result<()> {
    if Metadata::of(file)?.stat.modified_ns != old.stat.modified_ns {
        return Ok(());
    }
    let later = Duration::from_nanos(u64::try_from(old.stat.modified_ns).unwrap_or_default() + 1);
    file.set_modified(UNIX_EPOCH + later)
}
