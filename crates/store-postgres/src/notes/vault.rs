//! The implementation of the port.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Client, Transaction};
use parking_lot::Mutex;
use quipu_core::RequestKey;
use quipu_core::model::{FileStat, VaultPath};
use quipu_core::ports::{
    FeedError, FileChange, FileContent, ListedFile, Listing, LogHeads, LoggedFile, LoggedWrite, NamePeriod,
    NoteChanges, NoteFeed, NoteHistory, TrashReason, TrashedFile, VaultError, VaultFiles, VaultVersions, WriteError,
    WriteFilter, WriteNumber, WriteOrigin,
};

use super::files::excluded;
use super::history;
use super::read::{self, Recorded};
use super::save;
use crate::connection::{PostgresDatabase, Scope, WakeListener, Wakeups};
use crate::failure::DatabaseError;
use crate::graphs::Graph;
use crate::request::random_key;

/// Notes read by one query: enough that the round trip costs little, and a few megabytes at most of usual notes.
const BATCH: usize = 128;

/// A slow connection to the database.
const BYTES_A_SECOND: f64 = 1_000_000.0;

/// Versions deleted by one transaction.
const PRUNED: i64 = 500;

/// The notes of one graph.
pub struct PostgresVault {
    database: Arc<PostgresDatabase>,
    graph: i64,
    scope: Scope,
    wakeups: Option<Arc<Wakeups>>,
    /// Woken by changes as long as this vault is open.
    listeners: Mutex<Vec<Arc<WakeListener>>>,
}

impl PostgresVault {
    /// The notes of a graph of a database.
    pub fn new(database: Arc<PostgresDatabase>, graph: &Graph) -> Self {
        let scope = Scope::Graph(graph.id);
        Self { database, graph: graph.id, scope, wakeups: None, listeners: Mutex::default() }
    }

    /// Adds notifications that wake the readers of the feed.
    #[must_use]
    pub fn with_wakeups(self, wakeups: Arc<Wakeups>) -> Self {
        Self { wakeups: Some(wakeups), ..self }
    }

    /// Deletes versions that were replaced, moved or deleted before a time; returns their number.
    pub fn prune(&self, before_ns: i64) -> io::Result<usize> {
        let mut pruned = 0;
        loop {
            // Some at a time: other writes wait meanwhile.
            let outcome = self.database.write(self.scope, async |tx| {
                Ok(Ok::<_, Infallible>(save::prune(tx, self.graph, before_ns, PRUNED).await?))
            });
            let some = outcome.map_err(io::Error::other)?.unwrap_or_else(|never| match never {});
            pruned += some;
            if some < PRUNED.unsigned_abs() {
                return Ok(usize::try_from(pruned).unwrap_or(usize::MAX));
            }
        }
    }

    fn read<T>(&self, work: impl AsyncFnMut(&Client) -> Result<T, DatabaseError>) -> Result<T, VaultError> {
        self.database.read(self.scope, work).map_err(|error| VaultError::Database { reason: error.reason() })
    }

    async fn apply_in(
        &self,
        tx: &Transaction<'_>,
        changes: &[FileChange],
        origin: &WriteOrigin<'_>,
        request: RequestKey,
    ) -> Result<Result<Vec<Option<FileStat>>, WriteError>, DatabaseError> {
        let moment = save::lock(tx, self.graph).await?;
        match (read::request(tx, self.graph, request).await?, changes.first()) {
            (Some(Recorded::Applied(_, at_ns)), _) => {
                return Ok(Ok(changes.iter().map(|change| written(change, at_ns)).collect()));
            }
            (Some(Recorded::Refused), Some(first)) => {
                return Ok(Err(WriteError::Changed { path: first.path().clone() }));
            }
            _ => {}
        }
        let mut files = read::around(tx, self.graph, changes.iter().flat_map(paths)).await?;
        let mut stats = Vec::with_capacity(changes.len());
        let mut logged = Vec::with_capacity(changes.len());
        for change in changes {
            let before = (files.logged_version(change.old_path()), files.taken.len());
            match files.apply(change, moment.at_ns) {
                Ok(stat) => stats.push(stat),
                Err(refused) => return Ok(Err(refused)),
            }
            logged.extend(history::logged(&files, change, before, origin.action_on(change), moment));
        }
        let Some(first) = changes.first() else { return Ok(Ok(stats)) };
        if let Some(limit) = save::limit_reached(tx, self.graph, &files).await? {
            return Ok(Err(WriteError::Full { path: first.path().clone(), limit }));
        }
        save::save(tx, self.graph, moment, &files).await?;
        history::record(tx, self.graph, moment, origin, &logged).await?;
        save::remember(tx, self.graph, request, first.path(), moment.at_ns).await?;
        Ok(Ok(stats))
    }

    async fn restore_in(
        &self,
        tx: &Transaction<'_>,
        trashed: &TrashedFile,
        request: RequestKey,
    ) -> Result<Result<FileStat, WriteError>, DatabaseError> {
        let path = trashed.path.clone();
        let moment = save::lock(tx, self.graph).await?;
        let Some((bytes, reason)) = read::version(tx, self.graph, trashed).await? else {
            return Ok(Err(WriteError::Missing { path }));
        };
        if let Some(Recorded::Applied(_, modified_ns)) = read::request(tx, self.graph, request).await? {
            return Ok(Ok(FileStat { modified_ns, size: bytes.len() as u64 }));
        }
        let mut files = read::around(tx, self.graph, [&path].into_iter()).await?;
        let change = match (files.notes.get(&path), files.in_other_case(&path)) {
            (Some(current), _) => FileChange::Replace { path, expected: current.hash, bytes },
            // A note that differs only in case is replaced, if it is the only one. After a delete it is another note.
            (None, Some((from, expected))) if reason != TrashReason::Deleted => {
                FileChange::Move { from, to: path, expected, bytes }
            }
            (None, _) => FileChange::Create { path, bytes },
        };
        let before = (files.logged_version(change.old_path()), files.taken.len());
        let restored = match &change {
            FileChange::Create { path, bytes } => files.create_beside(path, bytes, moment.at_ns).map(Some),
            other => files.apply(other, moment.at_ns),
        };
        match restored {
            Ok(stat) => {
                if let Some(limit) = save::limit_reached(tx, self.graph, &files).await? {
                    return Ok(Err(WriteError::Full { path: trashed.path.clone(), limit }));
                }
                save::save(tx, self.graph, moment, &files).await?;
                let origin = WriteOrigin::RESTORE;
                let logged = history::logged(&files, &change, before, origin.action, moment);
                history::record(tx, self.graph, moment, &origin, &Vec::from_iter(logged)).await?;
                save::remember(tx, self.graph, request, &trashed.path, moment.at_ns).await?;
                Ok(Ok(stat.expect("a change that leaves a note returns its stat")))
            }
            Err(refused) => Ok(Err(refused)),
        }
    }
}

impl VaultFiles for PostgresVault {
    fn list(&self) -> Result<Listing, VaultError> {
        Ok(listing(self.read(async |db| read::all(db, self.graph).await)?))
    }

    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        Ok(listing(self.read(async |db| read::below(db, self.graph, path).await)?))
    }

    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        if excluded(path).is_some() {
            return Ok(None);
        }
        self.read(async |db| read::content(db, self.graph, path).await)
    }

    fn read_many(&self, paths: &[&VaultPath]) -> Vec<Result<Option<FileContent>, VaultError>> {
        let notes: Vec<&VaultPath> = paths.iter().copied().filter(|path| excluded(path).is_none()).collect();
        match self.read(async |db| read::contents(db, self.graph, &notes).await) {
            Ok(found) => paths.iter().map(|path| Ok(found.get(path.as_str()).cloned())).collect(),
            Err(error) => {
                let reason = error.to_string();
                paths.iter().map(|_| Err(VaultError::Database { reason: reason.clone() })).collect()
            }
        }
    }

    fn batch_size(&self) -> usize {
        BATCH
    }

    fn versions(&self) -> Result<VaultVersions, VaultError> {
        let mut all = self.read(async |db| read::all_versions(db, self.graph).await)?;
        all.retain(|(path, _)| excluded(path).is_none());
        Ok(VaultVersions { notes: all.into_iter().collect(), unread: Vec::new() })
    }

    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        let around = self.read(async |db| read::around(db, self.graph, [path].into_iter()).await)?;
        Ok(around.find_any_case(path))
    }

    fn find_notes(&self, paths: &[VaultPath]) -> Result<Vec<VaultPath>, VaultError> {
        let notes: Vec<&VaultPath> = paths.iter().filter(|path| excluded(path).is_none()).collect();
        if notes.is_empty() {
            return Ok(Vec::new());
        }
        self.read(async |db| read::in_any_case(db, self.graph, &notes).await)
    }

    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        FileChange::refuse_twice(changes)?;
        let path = changes.first().map(|change| change.path().to_string()).unwrap_or_default();
        let request = match origin.request.map_or_else(random_key, Ok) {
            Ok(request) => request,
            Err(source) => return Err(WriteError::Write { path, source }),
        };
        let longer = time_for(changes);
        let apply = async |tx: &Transaction<'_>| self.apply_in(tx, changes, origin, request).await;
        let outcome = self.database.write_for(self.scope, longer, apply);
        outcome.map_err(|error| write_failed(path, &error))?
    }

    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        self.read(async |db| read::applied_request(db, self.graph, request).await)
    }

    fn refuse_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        let refuse = async |tx: &Transaction<'_>| {
            // Waits for an attempt that is being committed.
            let moment = save::lock(tx, self.graph).await?;
            save::remember_refused(tx, self.graph, request, moment.at_ns).await?;
            Ok(Ok::<_, Infallible>(read::applied_request(tx, self.graph, request).await?))
        };
        let outcome = self.database.write(self.scope, refuse);
        let outcome = outcome.map_err(|error| VaultError::Database { reason: error.reason() })?;
        Ok(outcome.unwrap_or_else(|never| match never {}))
    }

    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.read(async |db| read::versions(db, self.graph).await)
    }

    fn restore(&self, trashed: &TrashedFile) -> Result<FileStat, WriteError> {
        let path = trashed.path.to_string();
        let request = match random_key() {
            Ok(request) => request,
            Err(source) => return Err(WriteError::Write { path, source }),
        };
        let outcome = self.database.write(self.scope, async |tx| self.restore_in(tx, trashed, request).await);
        outcome.map_err(|error| write_failed(path, &error))?
    }
}

impl NoteFeed for PostgresVault {
    fn head(&self) -> Result<i64, FeedError> {
        let head = self.database.read_now(self.scope, async |db| read::head(db, self.graph).await);
        head.map_err(|error| FeedError(error.into()))
    }

    fn changes_since(&self, number: i64) -> Result<NoteChanges, FeedError> {
        let changes = self.database.read_now(self.scope, async |db| read::changes_since(db, self.graph, number).await);
        changes.map_err(|error| FeedError(error.into()))
    }

    fn redacted_since(&self, known: LogHeads) -> Result<(LogHeads, bool), FeedError> {
        let found = self.database.read_now(self.scope, async |db| read::redacted_since(db, self.graph, known).await);
        found.map_err(|error| FeedError(error.into()))
    }

    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>) {
        if let Some(wakeups) = &self.wakeups {
            let listener: Arc<WakeListener> = Arc::from(wake);
            wakeups.listen(self.graph, &listener);
            self.listeners.lock().push(listener);
        }
    }
}

impl NoteHistory for PostgresVault {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        self.read(async |db| history::writes(db, self.graph, filter).await)
    }

    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        self.read(async |db| history::kept_bytes(db, self.graph, kept).await)
    }

    /// Only servers write to the database, and each write is in the history.
    fn record_outside(&self, _: &[LoggedFile]) -> Result<(), WriteError> {
        Ok(())
    }

    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        let forgotten = self.database.write(self.scope, async |tx| {
            save::lock(tx, self.graph).await?;
            Ok(Ok::<_, WriteError>(history::forget(tx, self.graph, names, unfinished).await?))
        });
        let forgotten = forgotten.map_err(|error| write_failed("the history".into(), &error))??;
        Ok(usize::try_from(forgotten).unwrap_or(usize::MAX))
    }

    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        let forgotten = self.database.write(self.scope, async |tx| {
            save::lock(tx, self.graph).await?;
            Ok(Ok::<_, WriteError>(history::forget_write(tx, self.graph, number).await?))
        });
        forgotten.map_err(|error| write_failed("the history".into(), &error))?
    }
}

fn write_failed(path: String, error: &DatabaseError) -> WriteError {
    WriteError::Database { path, reason: error.reason() }
}

/// How long the texts of changes may take on the way to the database.
fn time_for(changes: &[FileChange]) -> Duration {
    let bytes = |change: &FileChange| match change {
        FileChange::Create { bytes, .. } | FileChange::Replace { bytes, .. } | FileChange::Move { bytes, .. } => {
            bytes.len()
        }
        FileChange::Rename { .. } | FileChange::Delete { .. } => 0,
    };
    let bytes: usize = changes.iter().map(bytes).sum();
    Duration::from_secs_f64(bytes as f64 / BYTES_A_SECOND)
}

/// The stat of a note as a change left it. It may have been changed or deleted since.
fn written(change: &FileChange, at_ns: i64) -> Option<FileStat> {
    match change {
        FileChange::Create { bytes, .. } | FileChange::Replace { bytes, .. } | FileChange::Move { bytes, .. } => {
            Some(FileStat { modified_ns: at_ns, size: bytes.len() as u64 })
        }
        FileChange::Rename { .. } | FileChange::Delete { .. } => None,
    }
}

/// Only notes: a row that is none was not written by this program.
fn listing(mut files: Vec<ListedFile>) -> Listing {
    files.retain(|file| excluded(&file.path).is_none());
    Listing { files, ..Listing::default() }
}

/// The paths that a change is about.
fn paths(change: &FileChange) -> impl Iterator<Item = &VaultPath> + Clone {
    let (first, second) = match change {
        FileChange::Create { path, .. } | FileChange::Replace { path, .. } | FileChange::Delete { path, .. } => {
            (path, None)
        }
        FileChange::Move { from, to, .. } | FileChange::Rename { from, to } => (from, Some(to)),
    };
    [first].into_iter().chain(second)
}
