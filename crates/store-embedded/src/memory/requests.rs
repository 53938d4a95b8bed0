//! Requests that were applied, with their results: a repeated request gets the same result and changes nothing.

use quipu_core::RequestKey;
use quipu_core::memory::RedactionScope;
use quipu_core::ports::{Applied, ChangeNumber, MemoryItem};
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};

use super::read::list;
use super::rows;

/// One result: an item as in the log, and the field that the log leaves out.
#[derive(Serialize, Deserialize)]
struct OutcomeRow {
    kind: String,
    id: i64,
    item: String,
    #[serde(default)]
    observation_count: u64,
}

pub(super) fn is_known(db: &Connection, request: RequestKey) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM request WHERE key = ?1")?.exists([request.to_string()])
}

/// The result of a request that was applied.
pub(super) fn recall(db: &Connection, request: RequestKey) -> rusqlite::Result<Option<Applied>> {
    let mut find = db.prepare_cached("SELECT change, outcomes FROM request WHERE key = ?1")?;
    let found: Option<(i64, String)> =
        find.query_row([request.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((change, outcomes)) = found else { return Ok(None) };
    let outcomes: Vec<OutcomeRow> = serde_json::from_str(&outcomes).map_err(|error| bad(error.into()))?;
    let items = outcomes.into_iter().map(|outcome| {
        let item = rows::from_json(&outcome.kind, outcome.id, &outcome.item).map_err(|error| bad(error.into()))?;
        Ok(match item {
            MemoryItem::Entity(mut entity) => {
                entity.observation_count = outcome.observation_count;
                MemoryItem::Entity(entity)
            }
            other => other,
        })
    });
    let outcomes = items.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Applied { change: ChangeNumber(change), outcomes }))
}

/// Stores the result of a request, and deletes expired ones.
pub(super) fn remember(
    tx: &Transaction<'_>,
    request: RequestKey,
    at_ns: i64,
    applied: &Applied,
) -> rusqlite::Result<()> {
    let outcome = |item: &MemoryItem| {
        let (kind, id) = rows::key(item);
        let observation_count = match item {
            MemoryItem::Entity(entity) => entity.observation_count,
            MemoryItem::Observation(_) | MemoryItem::Relation(_) => 0,
        };
        OutcomeRow { kind: kind.to_owned(), id, item: rows::to_json(item), observation_count }
    };
    let outcomes: Vec<OutcomeRow> = applied.outcomes.iter().map(outcome).collect();
    let outcomes = serde_json::to_string(&outcomes).expect("texts and numbers are always JSON");
    tx.prepare_cached("DELETE FROM request WHERE at_ns < ?1")?.execute([at_ns - RequestKey::REMEMBERED_NS])?;
    tx.prepare_cached("INSERT INTO request (key, at_ns, change, outcomes) VALUES (?1, ?2, ?3, ?4)")?.execute((
        request.to_string(),
        at_ns,
        applied.change.0,
        outcomes,
    ))?;
    Ok(())
}

/// Replaces the texts of redacted items in the stored results.
pub(super) fn redact(tx: &Transaction<'_>, scope: &RedactionScope, reason: &str) -> rusqlite::Result<()> {
    let stored: Vec<(String, String)> =
        list(tx, "SELECT key, outcomes FROM request", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (key, outcomes) in stored {
        let mut outcomes: Vec<OutcomeRow> = serde_json::from_str(&outcomes).map_err(|error| bad(error.into()))?;
        for outcome in &mut outcomes {
            let item = rows::from_json(&outcome.kind, outcome.id, &outcome.item).map_err(|error| bad(error.into()))?;
            if scope.covers(&item) {
                outcome.item = rows::to_json(&item.redacted(reason));
            }
        }
        let outcomes = serde_json::to_string(&outcomes).expect("texts and numbers are always JSON");
        tx.prepare_cached("UPDATE request SET outcomes = ?2 WHERE key = ?1")?.execute((key, outcomes))?;
    }
    Ok(())
}

fn bad(error: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error)
}
