//! The implementation of the port.

use std::io;
use std::sync::Arc;

use deadpool_postgres::{Client, Transaction};
use quipu_core::RequestKey;
use quipu_core::model::{FileStat, VaultPath};
use quipu_core::ports::{
    FileChange, FileContent, ListedFile, Listing, TrashReason, TrashedFile, VaultError, VaultFiles, WriteError,
};

use super::files::{excluded, refuse_twice};
use super::read::{self, NoteChanges};
use super::save;
use crate::connection::PostgresDatabase;
use crate::failure::DatabaseError;
use crate::graphs::Graph;
use crate::request::random_key;

/// The notes of one graph.
pub struct PostgresVault {
    database: Arc<PostgresDatabase>,
    graph: i64,
}

impl PostgresVault {
    /// The notes of a graph of a database.
    pub fn new(database: Arc<PostgresDatabase>, graph: &Graph) -> Self {
        Self { database, graph: graph.id }
    }

    /// The change feed: the paths that changed after a number, in whichever process. Numbers commit in order, so that none is
    /// missed. The first is 1.
    pub fn changes_since(&self, change: i64) -> Result<NoteChanges, DatabaseError> {
        self.database.read(async |db| read::changes_since(db, self.graph, change).await)
    }

    fn read<T>(
        &self,
        path: &str,
        work: impl AsyncFnMut(&mut Client) -> Result<T, DatabaseError>,
    ) -> Result<T, VaultError> {
        let failed = |error| VaultError::Read { path: path.to_owned(), source: io::Error::other(error) };
        self.database.read(work).map_err(failed)
    }

    async fn apply_in(
        &self,
        tx: &Transaction<'_>,
        changes: &[FileChange],
        request: RequestKey,
    ) -> Result<Result<Vec<Option<FileStat>>, WriteError>, DatabaseError> {
        let moment = save::lock(tx, self.graph).await?;
        let mut files = read::around(tx, self.graph, changes.iter().flat_map(paths)).await?;
        if read::carried_out(tx, self.graph, request).await?.is_some() {
            let stat = |change: &FileChange| match change {
                FileChange::Delete { .. } => None,
                left => files.notes.get(left.place()).map(|version| version.stat),
            };
            return Ok(Ok(changes.iter().map(stat).collect()));
        }
        let mut stats = Vec::with_capacity(changes.len());
        for change in changes {
            match files.apply(change, moment.at_ns) {
                Ok(stat) => stats.push(stat),
                Err(refused) => return Ok(Err(refused)),
            }
        }
        save::save(tx, self.graph, moment, &files).await?;
        if let Some(first) = changes.first() {
            save::remember(tx, self.graph, request, first.place(), moment.at_ns).await?;
        }
        Ok(Ok(stats))
    }

    async fn restore_in(
        &self,
        tx: &Transaction<'_>,
        trashed: &TrashedFile,
    ) -> Result<Result<FileStat, WriteError>, DatabaseError> {
        let path = trashed.path.clone();
        let moment = save::lock(tx, self.graph).await?;
        let Some((bytes, reason)) = read::version(tx, self.graph, trashed).await? else {
            return Ok(Err(WriteError::Missing { path }));
        };
        let mut files = read::around(tx, self.graph, [&path].into_iter()).await?;
        let change = match (files.notes.get(&path), files.in_other_case(&path)) {
            (Some(current), _) => FileChange::Replace { path, expected: current.hash, bytes },
            // A note that differs only in case is replaced, if it is the only one. After a delete it is another note.
            (None, Some((from, expected))) if reason != TrashReason::Deleted => {
                FileChange::Move { from, to: path, expected, bytes }
            }
            (None, _) => FileChange::Create { path, bytes },
        };
        let restored = match &change {
            FileChange::Create { path, bytes } => files.create_beside(path, bytes, moment.at_ns).map(Some),
            other => files.apply(other, moment.at_ns),
        };
        match restored {
            Ok(stat) => {
                save::save(tx, self.graph, moment, &files).await?;
                Ok(Ok(stat.expect("a change that leaves a note returns its stat")))
            }
            Err(refused) => Ok(Err(refused)),
        }
    }
}

impl VaultFiles for PostgresVault {
    fn list(&self) -> Result<Listing, VaultError> {
        Ok(listing(self.read("", async |db| read::all(db, self.graph).await)?))
    }

    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        Ok(listing(self.read(path.as_str(), async |db| read::below(db, self.graph, path).await)?))
    }

    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        if excluded(path).is_some() {
            return Ok(None);
        }
        self.read(path.as_str(), async |db| read::content(db, self.graph, path).await)
    }

    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        let around = self.read(path.as_str(), async |db| read::around(db, self.graph, [path].into_iter()).await)?;
        Ok(around.find_any_case(path))
    }

    fn apply_for(
        &self,
        changes: &[FileChange],
        request: Option<RequestKey>,
    ) -> Result<Vec<Option<FileStat>>, WriteError> {
        refuse_twice(changes)?;
        let path = changes.first().map(|change| change.place().to_string()).unwrap_or_default();
        let failed = |source: io::Error| WriteError::Write { path, source };
        let request = match request.map_or_else(random_key, Ok) {
            Ok(request) => request,
            Err(error) => return Err(failed(error)),
        };
        let outcome = self.database.write(async |tx| self.apply_in(tx, changes, request).await);
        outcome.map_err(|error| failed(io::Error::other(error)))?
    }

    fn carried_out(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        self.read("", async |db| read::carried_out(db, self.graph, request).await)
    }

    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.read("", async |db| read::versions(db, self.graph).await)
    }

    fn forget(&self, path: &VaultPath) -> Result<usize, WriteError> {
        let forgotten = self.database.write(async |tx| {
            save::lock(tx, self.graph).await?;
            Ok(Ok::<_, WriteError>(save::forget(tx, self.graph, path).await?))
        });
        let failed = |error| WriteError::Write { path: path.to_string(), source: io::Error::other(error) };
        Ok(usize::try_from(forgotten.map_err(failed)??).unwrap_or(usize::MAX))
    }

    fn restore(&self, trashed: &TrashedFile) -> Result<FileStat, WriteError> {
        let failed = |error| WriteError::Write { path: trashed.path.to_string(), source: io::Error::other(error) };
        self.database.write(async |tx| self.restore_in(tx, trashed).await).map_err(failed)?
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
        FileChange::Move { from, to, .. } => (from, Some(to)),
    };
    [first].into_iter().chain(second)
}
