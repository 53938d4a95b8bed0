//! Integrity checks of memory: names and their keys, and the log. References are the database's to keep.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::GenericClient;
use quipu_core::memory::limits::{LOG_BATCH, MAX_FINDINGS};
use quipu_core::memory::{Entity, name_key};
use quipu_core::ports::{ChangeNumber, MemoryItem};

use super::{item, log, read};
use crate::failure::DatabaseError;
use crate::row::{get, list, text};

/// Problems, as sentences. In one transaction of one moment: concurrent writes would look like damage.
pub(super) async fn findings(tx: &impl GenericClient, graph: i64) -> Result<Vec<String>, DatabaseError> {
    let mut findings = wrong_keys(tx, graph).await?;
    findings.extend(log_mismatches(tx, graph).await?);
    Ok(findings)
}

/// Names are compared by the key stored with them, which must match.
async fn wrong_keys(tx: &impl GenericClient, graph: i64) -> Result<Vec<String>, DatabaseError> {
    let mut wrong = Vec::new();
    for (table, sql) in [
        ("entity", "SELECT id, name, name_key FROM entity WHERE graph = $1 ORDER BY id"),
        ("alias of entity", "SELECT entity, alias, alias_key FROM alias WHERE graph = $1 ORDER BY entity, position"),
    ] {
        let names = list(tx, sql, &[&graph], |row| Ok((get::<i64>(row, 0)?, text(row, 1)?, text(row, 2)?))).await?;
        let differ = names.into_iter().filter(|(_, name, key)| name_key(name) != *key).take(MAX_FINDINGS);
        wrong.extend(
            differ.map(|(id, name, key)| format!("The {table} {id} has the name {name:?} but the key {key:?}.")),
        );
    }
    Ok(wrong)
}

/// The last log step of each item must match its row, or the row's absence. An item without a step was not written by Quipu.
async fn log_mismatches(tx: &impl GenericClient, graph: i64) -> Result<Vec<String>, DatabaseError> {
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    let mut before = ChangeNumber(i64::MAX);
    loop {
        // The whole log: an entry that cannot be read cannot be undone either.
        let changes = log::before(tx, graph, before, LOG_BATCH).await?;
        let Some(oldest) = changes.last() else { break };
        before = oldest.number;
        let mut latest = Vec::new();
        for (was, is) in changes.iter().flat_map(|change| change.steps.iter().rev()) {
            let Some(last) = is.as_ref().or(was.as_ref()) else { continue };
            if seen.insert(item::key(last)) {
                latest.push((last, is.is_some()));
            }
        }
        wrong.extend(differing(tx, graph, &latest).await?);
    }
    wrong.truncate(MAX_FINDINGS);
    wrong.extend(missing_from_the_log(tx, graph, &seen).await?);
    Ok(wrong)
}

/// The items that are not as the log has them last.
async fn differing(
    tx: &impl GenericClient,
    graph: i64,
    latest: &[(&MemoryItem, bool)],
) -> Result<Vec<String>, DatabaseError> {
    let (mut entities, mut observations, mut relations) = (Vec::new(), Vec::new(), Vec::new());
    for (last, _) in latest {
        match last {
            MemoryItem::Entity(entity) => entities.push(entity.id),
            MemoryItem::Observation(seen) => observations.push(seen.id),
            MemoryItem::Relation(relation) => relations.push(relation.id),
        }
    }
    // The log does not have the number of observations.
    let bare = |entity: Entity| MemoryItem::Entity(Entity { observation_count: 0, ..entity });
    let mut items: Vec<MemoryItem> = Vec::new();
    items.extend(read::entities(tx, graph, &entities).await?.into_iter().flatten().map(bare));
    items
        .extend(read::observations(tx, graph, &observations).await?.into_iter().flatten().map(MemoryItem::Observation));
    items.extend(read::relations(tx, graph, &relations).await?.into_iter().flatten().map(MemoryItem::Relation));
    let now: HashMap<_, _> = items.iter().map(|item| (item::key(item), item)).collect();
    let agrees = |last: &MemoryItem, exists: bool| now.get(&item::key(last)).copied() == exists.then_some(last);
    let wrong = latest.iter().filter(|(last, exists)| !agrees(last, *exists)).map(|(last, _)| item::key(last));
    Ok(wrong.map(|(kind, id)| format!("The {kind} {id} differs from the log.")).collect())
}

async fn missing_from_the_log(
    tx: &impl GenericClient,
    graph: i64,
    seen: &HashSet<(&'static str, i64)>,
) -> Result<Vec<String>, DatabaseError> {
    let mut unknown = Vec::new();
    for kind in ["entity", "observation", "relation"] {
        let sql = format!("SELECT id FROM {kind} WHERE graph = $1 ORDER BY id");
        let ids: Vec<i64> = list(tx, &sql, &[&graph], |row| get(row, 0)).await?;
        let of_kind = ids.into_iter().filter(|id| !seen.contains(&(kind, *id)));
        unknown.extend(of_kind.take(MAX_FINDINGS).map(|id| format!("The {kind} {id} is not in the log.")));
    }
    Ok(unknown)
}
