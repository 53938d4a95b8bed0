//! The open database: one connection for writing, a few for reading, and the implementation of the port.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::RequestKey;
use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, WholeLog};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    Applied, ApplyError, Author, ChangeNumber, ChangedIds, CopyLogError, LoggedChange, MemoryChange, MemoryCounts,
    MemoryFailure, MemoryStore, NoteTie, Redaction, RelationFilter, StoredVector, TextOwner, UndoError,
};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::apply::{ChangeWriter, StepError};
use super::backup::{self, BackupError};
use super::copy_log::{self, CopyFault};
use super::failure::{self, failed};
use super::file_guard::{self, FileGuard};
use super::opening::{self, MemoryOpenError, Opened, REDACTING};
use super::redact::RedactFault;
use super::undo::UndoFault;
use super::{check, contexts, lock_holder, log, migrate, read, redact, requests, ties, undo, vectors};
use crate::sqlite;
use quipu_own_folder::OwnFolder;

/// Read connections that are kept open.
const READERS: usize = 4;

/// Memory in a SQLite file, or without a file.
pub struct MemoryDatabase {
    /// Before the writer, which must close last: only the writer checkpoints.
    readers: Mutex<Vec<Connection>>,
    /// Checks the file, also while another connection reads or writes for long.
    looker: Option<Mutex<Connection>>,
    writer: Mutex<Connection>,
    /// `None` if all reads use the writer: without a file, or for a snapshot.
    file: Option<PathBuf>,
    guard: Option<FileGuard>,
    /// The folder of the file.
    folder: Option<OwnFolder>,
    /// Whether the marker file exists.
    is_marked: AtomicBool,
    id: i64,
    notice: Option<String>,
}

impl MemoryDatabase {
    /// Opens or creates the file. Other processes may have it open.
    pub fn open(file: &Path) -> Result<Self, MemoryOpenError> {
        let Opened { db: writer, folder, notice } = opening::open(file)?;
        let guard = FileGuard::new(file, &folder, &writer).map_err(|source| opening::failed(file, source))?;
        let head = log::head(&writer).map_err(|source| opening::failed(file, source))?;
        let looker = opening::reader(file).map_err(|source| opening::failed(file, source))?;
        let id = file_guard::id_of(&writer).map_err(|source| opening::failed(file, source))?;
        let is_known = opening::is_marked(&folder, file);
        let memory = Self {
            readers: Mutex::default(),
            looker: Some(Mutex::new(looker)),
            writer: Mutex::new(writer),
            file: Some(file.to_owned()),
            guard: Some(guard),
            folder: Some(folder),
            is_marked: AtomicBool::new(false),
            id,
            notice,
        };
        if is_known || head > ChangeNumber(0) {
            memory.mark_as_started();
        }
        memory.finish_redaction();
        Ok(memory)
    }

    /// Checkpoints the log, so that a copy of the file without its log is complete. Useful before exit; nothing depends on it.
    pub fn settle(&self) -> Result<(), MemoryFailure> {
        let writer = self.writer();
        let settle = || {
            self.check_file(&writer)?;
            opening::checkpoint(&writer)?;
            self.check_file(&writer)
        };
        settle().map_err(|error: rusqlite::Error| failed("checkpoint", error))
    }

    /// An empty memory without a file.
    pub fn in_memory() -> Result<Self, MemoryFailure> {
        let open = || {
            let mut db = Connection::open_in_memory()?;
            opening::settle(&db)?;
            migrate::run(&mut db)?;
            Ok(db)
        };
        open().map(Self::of_one).map_err(|error: rusqlite::Error| failed("open", error))
    }

    /// A memory with one connection for everything.
    fn of_one(connection: Connection) -> Self {
        Self {
            readers: Mutex::default(),
            looker: None,
            writer: Mutex::new(connection),
            file: None,
            guard: None,
            folder: None,
            is_marked: AtomicBool::new(true),
            id: 0,
            notice: None,
        }
    }

    /// Calls `ask` with a read-only snapshot of memory, which ignores concurrent changes. A memory without a file is passed as
    /// it is: no other process can change it.
    pub fn at_one_moment<T, E: From<MemoryFailure>>(
        &self,
        ask: impl FnOnce(&dyn MemoryStore) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(file) = &self.file else { return ask(self) };
        let view = || {
            let db = opening::reader(file)?;
            db.execute_batch("BEGIN")?;
            // A read transaction starts at the first query.
            log::head(&db)?;
            Ok(db)
        };
        let view = view().map_err(|error: rusqlite::Error| failed("read", error))?;
        ask(&Self::of_one(view))
    }

    /// The file, unless memory is kept in the process.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// A notice about its opening for the user, as a sentence.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Copies it to a new file while others write.
    pub fn backup(&self, to: &Path) -> Result<(), BackupError> {
        sqlite::start_operation();
        let failed = |source: rusqlite::Error| BackupError::Failed { file: to.to_owned(), source: source.into() };
        match &self.file {
            // Not a read connection, which must not write the copy.
            Some(file) => backup::copy(&opening::beside_writer(file).map_err(failed)?, to),
            None => backup::copy(&self.writer(), to),
        }
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction rolls it back, so the connection stays usable.
        self.writer.lock()
    }

    fn read<T, E: From<rusqlite::Error> + std::error::Error + Send + Sync + 'static>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, MemoryFailure> {
        sqlite::start_operation();
        let outcome = match &self.file {
            None => ask(&self.writer()),
            Some(file) => {
                self.check_shared_memory().map_err(|error| failed("read", error))?;
                let pooled = self.readers.lock().pop();
                let reader = pooled.map_or_else(|| opening::reader(file), Ok);
                let reader = reader.map_err(|error| failed("read", error))?;
                let outcome = ask(&reader);
                // That another program replaced the file explains more than SQLite's error.
                if outcome.is_err() {
                    self.check_file(&reader).map_err(|error| failed("read", error))?;
                }
                let mut readers = self.readers.lock();
                if readers.len() < READERS {
                    readers.push(reader);
                }
                outcome
            }
        };
        outcome.map_err(|error| failed("read", error))
    }

    /// Runs a change in one transaction.
    fn write<T, E: From<rusqlite::Error>>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let deadline = Instant::now() + opening::BUSY_TIMEOUT;
        // A call that waits for another process makes the calls behind it wait: together no longer than one of them.
        let mut writer = self.writer.try_lock_until(deadline).ok_or_else(locked_by_another_call)?;
        sqlite::start_operation();
        writer.busy_timeout(deadline.saturating_duration_since(Instant::now()))?;
        self.check_shared_memory()?;
        let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.check_file(&tx)?;
        let outcome = change(&tx)?;
        if let Some(guard) = &self.guard {
            guard.mark(&tx)?;
        }
        self.check_file(&tx)?;
        tx.commit()?;
        // A commit to a file that was replaced meanwhile is not acknowledged.
        if let Some(guard) = &self.guard {
            guard.check_committed(&writer)?;
        }
        self.mark_as_started();
        Ok(outcome)
    }

    /// Says, before a redaction is written, that deleted texts must be removed from the file: a kill in between must not leave
    /// them there.
    fn mark_redaction(&self) -> std::io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        folder.create_file(REDACTING)?;
        folder.sync()
    }

    /// Removes deleted texts from the file and its log, then the mark; `false` if a reader in another process prevents it.
    fn rewrite_file(&self) -> rusqlite::Result<bool> {
        let is_rewritten = self.rewrite()?;
        if let Some(folder) = self.folder.as_ref().filter(|_| is_rewritten) {
            // A mark that stays has the file rewritten once more.
            let _ = folder.remove(REDACTING);
        }
        Ok(is_rewritten)
    }

    /// Finishes a redaction that was interrupted.
    fn finish_redaction(&self) {
        let is_marked = self.folder.as_ref().is_some_and(|folder| folder.check(REDACTING).unwrap_or(false));
        if is_marked && let Err(error) = self.rewrite_file() {
            tracing::warn!(%error, "cannot finish a redaction; the next start tries again");
        }
    }

    fn rewrite(&self) -> rusqlite::Result<bool> {
        let writer = self.writer();
        sqlite::start_operation();
        self.check_file(&writer)?;
        let is_rewritten = redact::rewrite_file(&writer)?;
        self.check_file(&writer)?;
        Ok(is_rewritten)
    }

    /// The copies of memory that Quipu made, as paths from the vault.
    fn backups(&self) -> Vec<String> {
        let backups = self.folder.as_ref().and_then(|folder| OwnFolder::open(&folder.path().join("backups")).ok());
        let mut names = backups.and_then(|backups| backups.names().ok()).unwrap_or_default();
        names.sort_unstable();
        names.into_iter().map(|name| format!(".quipu/backups/{name}")).collect()
    }

    /// The failure of a change; one that waited for a lock names the process that has it.
    fn failed_change(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> MemoryFailure {
        let failure = failed("change", error);
        match self.lock_holder().filter(|_| failure::is_locked(&*failure.source)) {
            Some(holder) => MemoryFailure {
                advice: Some(format!("{holder} keeps its file locked; retry, and end that process if it hangs")),
                ..failure
            },
            None => failure,
        }
    }

    /// Another process that has locked the file for writing, on systems with /proc.
    pub fn lock_holder(&self) -> Option<String> {
        lock_holder::of(self.file.as_deref()?)
    }

    /// Creates the marker file: an empty memory file beside it is damaged, not new.
    fn mark_as_started(&self) {
        if let (Some(folder), Some(file), false) =
            (&self.folder, &self.file, self.is_marked.swap(true, Ordering::Relaxed))
            && let Err(error) = opening::keep_id(folder, file, self.id)
        {
            tracing::debug!(%error, "cannot create the marker file; an emptied memory file will not be noticed");
        }
    }

    /// Before the first statement of a connection.
    fn check_shared_memory(&self) -> rusqlite::Result<()> {
        self.guard.as_ref().map_or(Ok(()), FileGuard::check_shared_memory)
    }

    /// Fails if another program replaced the file.
    fn check_file(&self, writer: &Connection) -> rusqlite::Result<()> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.check(writer))
    }
}

impl Drop for MemoryDatabase {
    /// The last connection to close checkpoints the log, unless the file was replaced.
    fn drop(&mut self) {
        let Some(guard) = &self.guard else { return };
        if let Err(error) = guard.check_closing(&self.writer()) {
            tracing::warn!("memory is closed without a checkpoint: {error}");
        }
    }
}

/// SQLite's error for a lock inside one process.
fn locked_by_another_call() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_LOCKED), None)
}

/// A read transaction for several queries; `None` inside a snapshot.
fn one_view(db: &Connection) -> rusqlite::Result<Option<Transaction<'_>>> {
    db.is_autocommit().then(|| db.unchecked_transaction()).transpose()
}

/// Why a list of changes was not applied.
enum NotApplied {
    /// The log has an entry that the caller did not read.
    Moved,
    /// A step, by its index.
    Step(usize, StepError),
}

impl From<rusqlite::Error> for NotApplied {
    fn from(error: rusqlite::Error) -> Self {
        Self::Step(0, error.into())
    }
}

impl MemoryStore for MemoryDatabase {
    fn apply_at(
        &self,
        head: Option<ChangeNumber>,
        changes: &[MemoryChange],
        author: &Author,
    ) -> Result<Applied, ApplyError> {
        if changes.is_empty() {
            return Ok(Applied { change: ChangeNumber(0), outcomes: Vec::new() });
        }
        let applied = self.write(|tx| {
            if let Some(applied) = author.request.map(|request| requests::recall(tx, request)).transpose()?.flatten() {
                return Ok(applied);
            }
            if let Some(head) = head
                && log::head(tx)? != head
            {
                return Err(NotApplied::Moved);
            }
            let mut writing = ChangeWriter::start(tx, author, None)?;
            let mut outcomes = Vec::with_capacity(changes.len());
            for (number, change) in changes.iter().enumerate() {
                let outcome = writing.apply(change, &outcomes).map_err(|error| NotApplied::Step(number, error))?;
                outcomes.push(outcome);
            }
            let applied = Applied { change: writing.change, outcomes };
            if let Some(request) = author.request {
                requests::remember(tx, request, author.at_ns, &applied)?;
            }
            Ok::<_, NotApplied>(applied)
        });
        applied.map_err(|error| match error {
            NotApplied::Moved => ApplyError::Moved,
            NotApplied::Step(change, StepError::Refused(refusal)) => ApplyError::Refused { change, refusal },
            NotApplied::Step(_, StepError::Sql(error)) => self.failed_change(error).into(),
        })
    }

    fn was_applied(&self, request: RequestKey) -> Result<bool, MemoryFailure> {
        self.read(|db| requests::is_known(db, request))
    }

    fn undo(&self, change: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoError> {
        let undo = |tx: &Transaction<'_>| -> Result<LoggedChange, UndoFault> {
            if let Some(applied) = author.request.map(|request| requests::recall(tx, request)).transpose()?.flatten() {
                return log::one(tx, applied.change)?.ok_or(UndoFault::Unknown);
            }
            let undone = undo::undo(tx, change, author)?;
            if let Some(request) = author.request {
                let applied = Applied { change: undone.number, outcomes: Vec::new() };
                requests::remember(tx, request, author.at_ns, &applied)?;
            }
            Ok(undone)
        };
        self.write(undo).map_err(|fault| match fault {
            UndoFault::Unknown => UndoError::Unknown(change),
            UndoFault::Undone(by) => UndoError::Undone { change, by },
            UndoFault::Depended(reason) => UndoError::Depended { change, reason },
            UndoFault::Log(error) => self.failed_change(error).into(),
        })
    }

    fn redact(&self, owner: TextOwner, reason: &str, author: &Author) -> Result<Redaction, ApplyError> {
        self.mark_redaction().map_err(|error| failed("change", error))?;
        let redacted = self.write(|tx| redact::redact(tx, owner, reason, author)).map_err(|fault| match fault {
            RedactFault::Refused(refusal) => ApplyError::Refused { change: 0, refusal },
            RedactFault::Log(error) => self.failed_change(error).into(),
        })?;
        let is_rewritten = self.rewrite_file().map_err(|error| failed("rewrite", error))?;
        let leftover = (!is_rewritten).then(|| {
            "another process is reading memory, so parts of the text may still be in .quipu/memory.db-wal; call redact again later"
                .to_owned()
        });
        Ok(Redaction { leftover, backups: self.backups(), ..redacted })
    }

    fn entities(&self, ids: &[EntityId]) -> Result<Vec<Option<Entity>>, MemoryFailure> {
        self.read(|db| read::entities(db, ids))
    }

    fn entities_called(&self, keys: &[String]) -> Result<Vec<Vec<EntityId>>, MemoryFailure> {
        self.read(|db| read::entities_called(db, keys))
    }

    fn entities_after(&self, after: EntityId, limit: usize) -> Result<Vec<Entity>, MemoryFailure> {
        self.read(|db| read::entities_after(db, after, limit))
    }

    fn entities_from(&self, offset: u64, limit: usize) -> Result<Vec<Entity>, MemoryFailure> {
        self.read(|db| read::entities_from(db, offset, limit))
    }

    fn observations(&self, ids: &[ObservationId]) -> Result<Vec<Option<Observation>>, MemoryFailure> {
        self.read(|db| read::observations(db, ids))
    }

    fn observations_of(&self, entities: &[EntityId]) -> Result<Vec<Vec<Observation>>, MemoryFailure> {
        self.read(|db| entities.iter().map(|id| read::observations_of(db, *id)).collect::<Result<_, rusqlite::Error>>())
    }

    fn observations_after(&self, after: ObservationId, limit: usize) -> Result<Vec<Observation>, MemoryFailure> {
        self.read(|db| read::observations_after(db, after, limit))
    }

    fn relations(&self, ids: &[RelationId]) -> Result<Vec<Option<Relation>>, MemoryFailure> {
        self.read(|db| read::relations(db, ids))
    }

    fn relations_after(&self, after: RelationId, limit: usize) -> Result<Vec<Relation>, MemoryFailure> {
        self.read(|db| read::relations_after(db, after, limit))
    }

    fn relations_where(
        &self,
        filter: &RelationFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, MemoryFailure> {
        self.read(|db| read::relations_where(db, filter, offset, limit))
    }

    fn relations_among(&self, entities: &[EntityId]) -> Result<Vec<Relation>, MemoryFailure> {
        self.read(|db| read::relations_among(db, entities))
    }

    fn sources_into(&self, targets: &[EntityId], relation_type: &str) -> Result<Vec<EntityId>, MemoryFailure> {
        self.read(|db| read::sources_into(db, targets, relation_type))
    }

    fn entity_count(&self) -> Result<u64, MemoryFailure> {
        self.read(read::entity_count)
    }

    fn counts(&self) -> Result<MemoryCounts, MemoryFailure> {
        self.read(read::counts)
    }

    fn head(&self) -> Result<ChangeNumber, MemoryFailure> {
        self.read(log::head)
    }

    fn changed_since(&self, change: ChangeNumber) -> Result<ChangedIds, MemoryFailure> {
        self.read(|db| {
            let _view = one_view(db)?;
            log::changed_since(db, change)
        })
    }

    fn log_before(&self, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, MemoryFailure> {
        self.read(|db| log::before(db, before, limit))
    }

    fn copy_log(&self, log: &WholeLog, ties: &[NoteTie]) -> Result<(), CopyLogError> {
        self.write(|tx| copy_log::copy(tx, log, ties)).map_err(|fault| match fault {
            CopyFault::NotEmpty => CopyLogError::NotEmpty,
            CopyFault::Sql(error) => self.failed_change(error).into(),
        })
    }

    fn context(&self, client: &str) -> Result<Option<EntityId>, MemoryFailure> {
        self.read(|db| contexts::of(db, client))
    }

    fn set_context(&self, client: &str, entity: Option<EntityId>, at_ns: i64) -> Result<(), MemoryFailure> {
        self.write(|tx| contexts::set(tx, client, entity, at_ns))
            .map_err(|error: rusqlite::Error| self.failed_change(error))
    }

    fn vectors_after(
        &self,
        space: &str,
        after: Option<TextOwner>,
        limit: usize,
    ) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure> {
        self.read(|db| vectors::after(db, space, after, limit))
    }

    fn put_vectors(&self, space: &str, vectors: &[(TextOwner, StoredVector)]) -> Result<(), MemoryFailure> {
        self.write(|tx| vectors::put(tx, space, vectors)).map_err(|error: rusqlite::Error| self.failed_change(error))
    }

    fn ties_of(&self, owners: &[TextOwner]) -> Result<Vec<Vec<NoteTie>>, MemoryFailure> {
        self.read(|db| ties::of(db, owners))
    }

    fn ties_to(&self, path: &VaultPath) -> Result<Vec<NoteTie>, MemoryFailure> {
        self.read(|db| ties::to(db, path))
    }

    fn linking_texts_gone(&self) -> Result<Vec<(TextOwner, String)>, MemoryFailure> {
        self.read(log::linking_texts_gone)
    }

    fn repoint_links(&self, removed: &[NoteTie], added: &[NoteTie]) -> Result<(), MemoryFailure> {
        self.write(|tx| ties::repoint_links(tx, removed, added))
            .map_err(|error: rusqlite::Error| self.failed_change(error))
    }

    fn replaced(&self) -> Option<String> {
        let (guard, looker) = (self.guard.as_ref()?, self.looker.as_ref()?);
        let looker = looker.lock();
        sqlite::start_operation();
        failed("read", guard.check_committed(&looker).err()?).advice
    }

    fn check(&self) -> Result<Vec<String>, MemoryFailure> {
        let found = self.read(|db| {
            let _view = one_view(db)?;
            check::findings(db)
        });
        found.map_err(|failure| MemoryFailure { action: "check", ..failure })
    }
}
