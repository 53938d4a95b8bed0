//! The implementation of the port.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{Client, Transaction};
use quipu_core::RequestKey;
use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, WholeLog};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    Applied, ApplyError, Author, ChangeNumber, ChangedIds, CopyLogError, LoggedChange, MemoryChange, MemoryCounts,
    MemoryFailure, MemoryStore, NoteTie, Redaction, RelationFilter, StoredVector, TextOwner, UndoError,
};

use super::load::{self, Needs};
use super::{check, contexts, copy_log, log, read, redact, requests, save, ties, undo, vectors};
use crate::connection::{PostgresDatabase, READ, Scope};
use crate::failure::DatabaseError;
use crate::graphs::Graph;
use crate::limits;
use crate::request::random_key;
use crate::row::bounded;

/// The memory of one graph.
pub struct PostgresMemory {
    database: Arc<PostgresDatabase>,
    graph: i64,
    scope: Scope,
    /// The start of transactions that read.
    begin: String,
    /// This server, in claims of texts.
    holder: Arc<OnceLock<RequestKey>>,
}

impl PostgresMemory {
    /// The memory of a graph of a database.
    pub fn new(database: Arc<PostgresDatabase>, graph: &Graph) -> Self {
        let (scope, holder) = (Scope::Graph(graph.id), Arc::default());
        Self { database, graph: graph.id, scope, begin: READ.to_owned(), holder }
    }

    /// Reads memory as it is now, whatever is written meanwhile.
    pub fn at_one_moment<T>(&self, work: impl FnOnce(&Self) -> T) -> Result<T, MemoryFailure> {
        let still = |begin: &str| Self {
            database: self.database.clone(),
            begin: begin.to_owned(),
            holder: self.holder.clone(),
            ..*self
        };
        let outcome = self.database.at_one_moment(|begin| work(&still(begin)));
        outcome.map_err(|error| error.into_failure("read"))
    }

    fn read<T>(&self, work: impl AsyncFnMut(&Client) -> Result<T, DatabaseError>) -> Result<T, MemoryFailure> {
        self.database.read_from(&self.begin, self.scope, work).map_err(|error| error.into_failure("read"))
    }

    /// A change that may be made twice to the same effect.
    fn write(
        &self,
        mut work: impl AsyncFnMut(&Transaction<'_>) -> Result<(), DatabaseError>,
    ) -> Result<(), MemoryFailure> {
        let outcome = self.database.write(self.scope, async |tx| Ok(Ok::<_, Infallible>(work(tx).await?)));
        outcome.map(|done| done.unwrap_or_else(|never| match never {})).map_err(|error| error.into_failure("change"))
    }

    async fn apply_in(
        &self,
        tx: &Transaction<'_>,
        seen: Option<ChangeNumber>,
        changes: &[MemoryChange],
        author: &Author,
        request: RequestKey,
    ) -> Result<Result<Applied, ApplyError>, DatabaseError> {
        let (head, last) = load::lock(tx, self.graph).await?;
        if let Some(applied) = requests::recall(tx, self.graph, request).await? {
            return Ok(Ok(applied));
        }
        if seen.is_some_and(|seen| seen != head) {
            return Ok(Err(ApplyError::Moved));
        }
        let mut draft = load::draft(tx, self.graph, &Needs::of_changes(changes), last, author.at_ns).await?;
        let mut outcomes = Vec::with_capacity(changes.len());
        for (place, change) in changes.iter().enumerate() {
            match draft.apply(change, &outcomes) {
                Ok(outcome) => outcomes.push(outcome),
                Err(refusal) => return Ok(Err(ApplyError::Refused { change: place, refusal })),
            }
        }
        let applied = Applied { change: ChangeNumber(head.0 + 1), outcomes };
        save::save(tx, self.graph, applied.change, author, None, &draft).await?;
        if !changes.iter().all(is_deletion)
            && let Some(full) = full(tx, self.graph).await?
        {
            return Ok(Err(full.into()));
        }
        requests::remember(tx, self.graph, request, &applied).await?;
        Ok(Ok(applied))
    }

    async fn undo_in(
        &self,
        tx: &Transaction<'_>,
        number: ChangeNumber,
        author: &Author,
        request: RequestKey,
    ) -> Result<Result<LoggedChange, UndoError>, DatabaseError> {
        let (head, last) = load::lock(tx, self.graph).await?;
        if let Some(applied) = requests::recall(tx, self.graph, request).await? {
            let undone = log::one(tx, self.graph, applied.change).await?;
            return Ok(undone.ok_or(UndoError::Unknown(number)));
        }
        let Some(change) = log::one(tx, self.graph, number).await? else { return Ok(Err(UndoError::Unknown(number))) };
        if let Some(by) = change.undone_by {
            return Ok(Err(UndoError::Undone { change: number, by }));
        }
        // A change that was undone and redone is undone by undoing the redo.
        let latest = log::latest_doing(tx, self.graph, number).await?;
        let Some(change) = log::one(tx, self.graph, latest).await? else { return Ok(Err(UndoError::Unknown(number))) };
        let replaced = contexts::replaced_by(tx, self.graph, latest).await?;
        let mut needs = Needs::of_undo(&change);
        needs.clients = replaced.iter().map(|(client, ..)| client.clone()).collect();
        let mut draft = load::draft(tx, self.graph, &needs, last, author.at_ns).await?;
        if let Err(reason) = undo::reverse(&mut draft, change.steps) {
            return Ok(Err(UndoError::Depended { change: number, reason }));
        }
        for (client, before, set_ns) in replaced {
            draft.replace_context(client, before, set_ns);
        }
        let undone = ChangeNumber(head.0 + 1);
        save::save(tx, self.graph, undone, author, Some(latest), &draft).await?;
        if let Some(full) = full(tx, self.graph).await? {
            return Ok(Err(full.into()));
        }
        let applied = Applied { change: undone, outcomes: Vec::new() };
        requests::remember(tx, self.graph, request, &applied).await?;
        Ok(log::one(tx, self.graph, undone).await?.ok_or(UndoError::Unknown(number)))
    }
}

/// Whether a change only deletes, which a full graph allows.
fn is_deletion(change: &MemoryChange) -> bool {
    use MemoryChange::{DeleteEntity, DeleteObservation, DeleteRelation};
    matches!(change, DeleteEntity { .. } | DeleteObservation { .. } | DeleteRelation { .. })
}

/// The error for a change with which the graph exceeds its limit.
async fn full(tx: &Transaction<'_>, graph: i64) -> Result<Option<MemoryFailure>, DatabaseError> {
    // The bytes of the change are counted already.
    let Some(limit) = limits::exceeded(tx, graph, 0, Some(0)).await? else { return Ok(None) };
    let advice =
        format!("the graph has reached its limit of {limit}; an administrator can raise it with `quipu graph limit`");
    Ok(Some(MemoryFailure { action: "change", source: advice.clone().into(), advice: Some(advice) }))
}

/// How long so many changes may take.
fn time_for(changes: &[MemoryChange]) -> Duration {
    Duration::from_millis(changes.len() as u64)
}

/// The key of a call, or a new one.
fn key(author: &Author) -> Result<RequestKey, MemoryFailure> {
    author.request.map_or_else(random_key, Ok).map_err(|error| MemoryFailure::new("change", error))
}

impl MemoryStore for PostgresMemory {
    fn apply_at(
        &self,
        head: Option<ChangeNumber>,
        changes: &[MemoryChange],
        author: &Author,
    ) -> Result<Applied, ApplyError> {
        if changes.is_empty() {
            return Ok(Applied { change: ChangeNumber(0), outcomes: Vec::new() });
        }
        let request = key(author)?;
        let apply = async |tx: &Transaction<'_>| self.apply_in(tx, head, changes, author, request).await;
        let outcome = self.database.write_for(self.scope, time_for(changes), apply);
        outcome.map_err(|error| error.into_failure("change"))?
    }

    fn was_applied(&self, request: RequestKey) -> Result<bool, MemoryFailure> {
        self.read(async |db| requests::is_known(db, self.graph, request).await)
    }

    fn undo(&self, change: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoError> {
        let request = key(author)?;
        let outcome = self.database.write(self.scope, async |tx| self.undo_in(tx, change, author, request).await);
        outcome.map_err(|error| error.into_failure("change"))?
    }

    fn redact(&self, owner: TextOwner, reason: &str, author: &Author) -> Result<Redaction, ApplyError> {
        let redact = async |tx: &Transaction<'_>| redact::redact(tx, self.graph, owner, reason, author).await;
        let outcome = self.database.write(self.scope, redact).map_err(|error| error.into_failure("change"))?;
        outcome.map_err(|refusal| ApplyError::Refused { change: 0, refusal })
    }

    fn entities(&self, ids: &[EntityId]) -> Result<Vec<Option<Entity>>, MemoryFailure> {
        self.read(async |db| read::entities(db, self.graph, ids).await)
    }

    fn entities_called(&self, keys: &[String]) -> Result<Vec<Vec<EntityId>>, MemoryFailure> {
        self.read(async |db| read::entities_called(db, self.graph, keys).await)
    }

    fn entities_after(&self, after: EntityId, limit: usize) -> Result<Vec<Entity>, MemoryFailure> {
        self.read(async |db| read::entities_after(db, self.graph, after, limit).await)
    }

    fn entities_from(&self, offset: u64, limit: usize) -> Result<Vec<Entity>, MemoryFailure> {
        self.read(async |db| read::entities_from(db, self.graph, offset, limit).await)
    }

    fn observations(&self, ids: &[ObservationId]) -> Result<Vec<Option<Observation>>, MemoryFailure> {
        self.read(async |db| read::observations(db, self.graph, ids).await)
    }

    fn observations_of(&self, entities: &[EntityId]) -> Result<Vec<Vec<Observation>>, MemoryFailure> {
        self.read(async |db| read::observations_of(db, self.graph, entities).await)
    }

    fn observations_after(&self, after: ObservationId, limit: usize) -> Result<Vec<Observation>, MemoryFailure> {
        self.read(async |db| read::observations_after(db, self.graph, after, limit).await)
    }

    fn relations(&self, ids: &[RelationId]) -> Result<Vec<Option<Relation>>, MemoryFailure> {
        self.read(async |db| read::relations(db, self.graph, ids).await)
    }

    fn relations_after(&self, after: RelationId, limit: usize) -> Result<Vec<Relation>, MemoryFailure> {
        self.read(async |db| read::relations_after(db, self.graph, after, limit).await)
    }

    fn relations_where(
        &self,
        filter: &RelationFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, MemoryFailure> {
        self.read(async |db| read::relations_where(db, self.graph, filter, offset, limit).await)
    }

    fn relations_among(&self, entities: &[EntityId]) -> Result<Vec<Relation>, MemoryFailure> {
        self.read(async |db| read::relations_among(db, self.graph, entities).await)
    }

    fn sources_into(&self, targets: &[EntityId], relation_type: &str) -> Result<Vec<EntityId>, MemoryFailure> {
        self.read(async |db| read::sources_into(db, self.graph, targets, relation_type).await)
    }

    fn entity_count(&self) -> Result<u64, MemoryFailure> {
        self.read(async |db| read::entity_count(db, self.graph).await)
    }

    fn counts(&self) -> Result<MemoryCounts, MemoryFailure> {
        self.read(async |db| read::counts(db, self.graph).await)
    }

    fn head(&self) -> Result<ChangeNumber, MemoryFailure> {
        self.read(async |db| log::head(db, self.graph).await)
    }

    fn changed_since(&self, change: ChangeNumber) -> Result<ChangedIds, MemoryFailure> {
        self.read(async |db| log::changed_since(db, self.graph, change).await)
    }

    fn log_before(&self, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, MemoryFailure> {
        self.read(async |db| log::before(db, self.graph, before, limit).await)
    }

    fn copy_log(&self, log: &WholeLog, ties: &[NoteTie]) -> Result<(), CopyLogError> {
        let copy = async |tx: &Transaction<'_>| copy_log::copy(tx, self.graph, log, ties).await;
        self.database.write(self.scope, copy).map_err(|error| error.into_failure("change"))?
    }

    fn context(&self, client: &str) -> Result<Option<EntityId>, MemoryFailure> {
        self.read(async |db| contexts::of(db, self.graph, client).await)
    }

    fn set_context(&self, client: &str, entity: Option<EntityId>, at_ns: i64) -> Result<(), MemoryFailure> {
        self.write(async |tx| {
            load::lock(tx, self.graph).await?;
            contexts::set(tx, self.graph, client, entity, at_ns).await
        })
    }

    fn vectors_after(
        &self,
        space: &str,
        after: Option<TextOwner>,
        limit: usize,
    ) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure> {
        self.read(async |db| vectors::after(db, self.graph, space, after, limit).await)
    }

    fn vectors_of(&self, space: &str, owners: &[TextOwner]) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure> {
        self.read(async |db| vectors::of(db, self.graph, space, owners).await)
    }

    fn claim_texts(&self, space: &str, hashes: &[i64], limit: usize) -> Result<Vec<i64>, MemoryFailure> {
        let holder = match self.holder.get() {
            Some(holder) => *holder,
            None => {
                let new = random_key().map_err(|error| MemoryFailure::new("change", error))?;
                *self.holder.get_or_init(|| new)
            }
        };
        let (holder, limit) = (holder.to_string(), bounded(limit));
        let claim = async |tx: &Transaction<'_>| vectors::claim(tx, self.graph, space, hashes, &holder, limit).await;
        self.database.write_quietly(self.scope, claim).map_err(|error| error.into_failure("change"))
    }

    fn put_vectors(&self, space: &str, vectors: &[(TextOwner, StoredVector)]) -> Result<(), MemoryFailure> {
        let put = async |tx: &Transaction<'_>| vectors::put(tx, self.graph, space, vectors).await;
        self.database.write_quietly(self.scope, put).map_err(|error| error.into_failure("change"))
    }

    fn ties_of(&self, owners: &[TextOwner]) -> Result<Vec<Vec<NoteTie>>, MemoryFailure> {
        self.read(async |db| ties::of(db, self.graph, owners).await)
    }

    fn ties_to(&self, path: &VaultPath) -> Result<Vec<NoteTie>, MemoryFailure> {
        self.read(async |db| ties::to(db, self.graph, path).await)
    }

    fn linking_texts_gone(&self) -> Result<Vec<(TextOwner, String)>, MemoryFailure> {
        self.read(async |db| log::linking_texts_gone(db, self.graph).await)
    }

    fn repoint_links(&self, removed: &[NoteTie], added: &[NoteTie]) -> Result<(), MemoryFailure> {
        self.write(async |tx| {
            load::lock(tx, self.graph).await?;
            for tie in removed {
                ties::remove(tx, self.graph, tie.owner, &tie.target).await?;
            }
            ties::put(tx, self.graph, added.iter().map(|tie| (tie.owner, tie.target.as_str(), &tie.path))).await
        })
    }

    fn check(&self) -> Result<Vec<String>, MemoryFailure> {
        let find = async |db: &Client| check::findings(db, self.graph).await;
        let findings = self.database.at_one_moment(|begin| self.database.read_from(begin, self.scope, find));
        findings.and_then(|findings| findings).map_err(|error| error.into_failure("check"))
    }
}
