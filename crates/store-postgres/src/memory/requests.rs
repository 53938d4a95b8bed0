//! Requests that were applied, with their results: a repeated request gets the same result and changes nothing.

use deadpool_postgres::{GenericClient, Transaction};
use quipu_core::RequestKey;
use quipu_core::memory::RedactionScope;
use quipu_core::ports::{Applied, ChangeNumber, MemoryItem};
use serde::{Deserialize, Serialize};

use super::item;
use crate::failure::DatabaseError;
use crate::row::{self, BadRow, execute, get};

/// One result: an item as in the log, and the field that the log leaves out.
#[derive(Serialize, Deserialize)]
struct StoredOutcome {
    kind: String,
    id: i64,
    item: String,
    observation_count: u64,
}

pub(super) async fn is_known(db: &impl GenericClient, graph: i64, request: RequestKey) -> Result<bool, DatabaseError> {
    let sql = "SELECT true FROM memory_request WHERE graph = $1 AND key = $2";
    Ok(row::first(db, sql, &[&graph, &request.to_string()], |row| get(row, 0)).await?.unwrap_or_default())
}

/// The result of a request that was applied.
pub(super) async fn recall(
    db: &impl GenericClient,
    graph: i64,
    request: RequestKey,
) -> Result<Option<Applied>, DatabaseError> {
    let sql = "SELECT change, outcomes FROM memory_request WHERE graph = $1 AND key = $2";
    let read = |row: &_| Ok((ChangeNumber(get(row, 0)?), outcomes(get(row, 1)?)?));
    let found = row::first(db, sql, &[&graph, &request.to_string()], read).await?;
    Ok(found.map(|(change, outcomes)| Applied { change, outcomes }))
}

fn stored(json: &str) -> Result<Vec<StoredOutcome>, BadRow> {
    serde_json::from_str(json).map_err(|error| BadRow(format!("the results of a request: {error}")))
}

fn outcomes(json: &str) -> Result<Vec<MemoryItem>, BadRow> {
    let item = |outcome: StoredOutcome| match item::from_json(&outcome.kind, outcome.id, &outcome.item)? {
        MemoryItem::Entity(mut entity) => {
            entity.observation_count = outcome.observation_count;
            Ok(MemoryItem::Entity(entity))
        }
        other => Ok(other),
    };
    stored(json)?.into_iter().map(item).collect()
}

/// The database's time, since the clocks of servers differ: one that is ahead must not delete the records of others.
const NOW_NS: &str = "(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint";

/// Stores the result of a request, and deletes expired ones.
pub(super) async fn remember(
    tx: &Transaction<'_>,
    graph: i64,
    request: RequestKey,
    applied: &Applied,
) -> Result<(), DatabaseError> {
    let outcome = |item: &MemoryItem| {
        let (kind, id) = item::key(item);
        let observation_count = match item {
            MemoryItem::Entity(entity) => entity.observation_count,
            MemoryItem::Observation(_) | MemoryItem::Relation(_) => 0,
        };
        StoredOutcome { kind: kind.to_owned(), id, item: item::to_json(item), observation_count }
    };
    let outcomes: Vec<StoredOutcome> = applied.outcomes.iter().map(outcome).collect();
    let outcomes = serde_json::to_string(&outcomes).expect("texts and numbers are always JSON");
    let sql = format!("DELETE FROM memory_request WHERE graph = $1 AND at_ns < {NOW_NS} - $2");
    execute(tx, &sql, &[&graph, &RequestKey::REMEMBERED_NS]).await?;
    let sql =
        format!("INSERT INTO memory_request (graph, key, at_ns, change, outcomes) VALUES ($1, $2, {NOW_NS}, $3, $4)");
    execute(tx, &sql, &[&graph, &request.to_string(), &applied.change.0, &outcomes]).await?;
    Ok(())
}

/// Replaces the texts of redacted items in the stored results.
pub(super) async fn redact(
    tx: &Transaction<'_>,
    graph: i64,
    scope: &RedactionScope,
    reason: &str,
) -> Result<(), DatabaseError> {
    let read = |row: &_| Ok((get::<String>(row, 0)?, stored(get(row, 1)?)?));
    let sql = "SELECT key, outcomes FROM memory_request WHERE graph = $1";
    for (key, mut outcomes) in row::list(tx, sql, &[&graph], read).await? {
        for outcome in &mut outcomes {
            let item = item::from_json(&outcome.kind, outcome.id, &outcome.item)?;
            if scope.covers(&item) {
                outcome.item = item::to_json(&item.redacted(reason));
            }
        }
        let outcomes = serde_json::to_string(&outcomes).expect("texts and numbers are always JSON");
        let update = "UPDATE memory_request SET outcomes = $3 WHERE graph = $1 AND key = $2";
        execute(tx, update, &[&graph, &key, &outcomes]).await?;
    }
    Ok(())
}
