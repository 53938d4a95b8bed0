//! Redaction: rows, log, stored results and ties in one transaction. Vectors are deleted with the item that they belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use deadpool_postgres::Transaction;
use quipu_core::memory::limits::LOG_BATCH;
use quipu_core::memory::{EntityId, ObservationId, RedactionScope, merges};
use quipu_core::ports::{Author, ChangeNumber, MemoryChange, MemoryItem, Redaction, Refusal, TextOwner};

use super::load::{self, Needs};
use super::{item, log, requests, save, ties};
use crate::failure::DatabaseError;
use crate::row::{execute, get, list};

/// What the database keeps elsewhere, out of reach of its clients.
const LEFTOVER: &str = "PostgreSQL deletes the old rows from its files at its next vacuum, and archived write-ahead logs and \
                        backups of the database may still have the text; an administrator must delete those";

/// Deletes an item and everything that belongs to it, and replaces their texts wherever a table has them. Once more, it does the
/// same to the same effect.
pub(super) async fn redact(
    tx: &Transaction<'_>,
    graph: i64,
    owner: TextOwner,
    reason: &str,
    author: &Author,
) -> Result<Result<Redaction, Refusal>, DatabaseError> {
    let (head, last) = load::lock(tx, graph).await?;
    let scope = match scope_of(tx, graph, owner).await? {
        Ok(scope) => scope,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let delete = match owner {
        TextOwner::Entity(id) => MemoryChange::DeleteEntity { id },
        TextOwner::Observation(id) => MemoryChange::DeleteObservation { id },
    };
    let mut draft = load::draft(tx, graph, &Needs::of_changes(slice::from_ref(&delete)), last, author.at_ns).await?;
    // What was deleted before is redacted in the log only.
    let missing = draft.apply(&delete, &[]).err();
    let change = ChangeNumber(head.0 + 1);
    save::save(tx, graph, change, author, None, &draft).await?;
    let log_steps = redact_log(tx, graph, &scope, reason).await?;
    if let Some(refusal) = missing.filter(|_| log_steps == 0) {
        return Ok(Err(refusal));
    }
    requests::redact(tx, graph, &scope, reason).await?;
    let mut items = 0;
    for owner in scope.owners() {
        ties::remove_all(tx, graph, owner).await?;
        items += 1;
    }
    Ok(Ok(Redaction { change, items, log_steps, leftover: Some(LEFTOVER.to_owned()), backups: Vec::new() }))
}

/// What belongs to an item, as the log shows it.
async fn scope_of(
    tx: &Transaction<'_>,
    graph: i64,
    owner: TextOwner,
) -> Result<Result<RedactionScope, Refusal>, DatabaseError> {
    let ids = list(tx, "SELECT id FROM entity WHERE graph = $1", &[&graph], |row| get::<i64>(row, 0)).await?;
    let entities: BTreeSet<i64> = ids.into_iter().collect();
    let sql = "SELECT id, entity FROM observation WHERE graph = $1";
    let ids = list(tx, sql, &[&graph], |row| Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))).await?;
    let observations: BTreeMap<i64, i64> = ids.into_iter().collect();
    let exists = |id: EntityId| entities.contains(&id.0);
    let mut scope = RedactionScope::of(owner);
    let mut before = ChangeNumber(i64::MAX);
    loop {
        let changes = log::before(tx, graph, before, LOG_BATCH).await?;
        let Some(oldest) = changes.last() else { return Ok(Ok(scope)) };
        before = oldest.number;
        for change in &changes {
            let stands = change.undone_by.is_none() && change.undoes.is_none();
            let absorbed =
                merges(change).find(|(from, _)| stands && TextOwner::Entity(*from) == owner && !exists(*from));
            if let Some((_, by)) = absorbed {
                return Ok(Err(Refusal::Absorbed { by }));
            }
            let entity_of = |id: ObservationId| Ok(observations.get(&id.0).copied().map(EntityId));
            scope.widen::<DatabaseError>(change, |id| Ok(exists(id)), entity_of)?;
        }
    }
}

/// Replaces the texts in the log; returns the number of steps that had some.
async fn redact_log(
    tx: &Transaction<'_>,
    graph: i64,
    scope: &RedactionScope,
    reason: &str,
) -> Result<u64, DatabaseError> {
    let shown = |item: &Option<MemoryItem>| item.as_ref().map(|item| item::to_json(&item.redacted(reason)));
    let sql = "UPDATE change_step SET before = $4, after = $5 WHERE graph = $1 AND change = $2 AND position = $3";
    let (mut count, mut older_than) = (0, ChangeNumber(i64::MAX));
    loop {
        let changes = log::before(tx, graph, older_than, LOG_BATCH).await?;
        let Some(oldest) = changes.last() else { return Ok(count) };
        older_than = oldest.number;
        for change in &changes {
            for (position, (before, after)) in (1_i32..).zip(&change.steps) {
                if before.iter().chain(after).any(|item| scope.covers(item)) {
                    execute(tx, sql, &[&graph, &change.number.0, &position, &shown(before), &shown(after)]).await?;
                    count += 1;
                }
            }
        }
    }
}
