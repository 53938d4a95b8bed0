//! Queries. Batches of ids are JSON lists, so that one statement serves any number of them.

use std::collections::HashMap;
use std::hash::Hash;

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::ports::{MemoryCounts, MemoryItem, RelationFilter};
use rusqlite::{Connection, OptionalExtension, Row};

use super::rows::{self, ENTITY, OBSERVATION, RELATION};

pub(super) fn entity(db: &Connection, id: EntityId) -> rusqlite::Result<Option<Entity>> {
    let mut find = db.prepare_cached(&format!("SELECT {ENTITY} FROM entity e WHERE e.id = ?1"))?;
    find.query_row([id.0], rows::entity).optional()
}

pub(super) fn entities(db: &Connection, ids: &[EntityId]) -> rusqlite::Result<Vec<Option<Entity>>> {
    let sql = format!("SELECT {ENTITY} FROM entity e WHERE e.id IN (SELECT value FROM json_each(?1))");
    let found = list(db, &sql, [json(ids.iter().map(|id| id.0))], rows::entity)?;
    Ok(in_order(ids, found, |entity| entity.id))
}

pub(super) fn entities_called(db: &Connection, keys: &[String]) -> rusqlite::Result<Vec<Vec<EntityId>>> {
    let mut find = db.prepare_cached(
        "SELECT id, 0 AS place FROM entity WHERE name_key = ?1 UNION ALL \
         SELECT DISTINCT entity, 1 FROM alias WHERE alias_key = ?1 ORDER BY place, id",
    )?;
    let mut called = Vec::with_capacity(keys.len());
    for key in keys {
        let ids = find.query_map([key], |row| row.get(0).map(EntityId))?;
        let mut ids: Vec<EntityId> = ids.collect::<Result<_, _>>()?;
        // An entity's name may be one of its aliases too.
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(*id));
        called.push(ids);
    }
    Ok(called)
}

pub(super) fn entities_after(db: &Connection, after: EntityId, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let sql = format!("SELECT {ENTITY} FROM entity e WHERE e.id > ?1 ORDER BY e.id LIMIT ?2");
    let bytes = |entity: &Entity| {
        let texts = entity.aliases.iter().chain([&entity.name, &entity.entity_type]).chain(&entity.description);
        texts.map(String::len).sum()
    };
    batch(db, &sql, (after.0, bounded(limit)), rows::entity, bytes)
}

pub(super) fn entities_from(db: &Connection, offset: u64, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let sql = format!(
        "SELECT {ENTITY} FROM (SELECT id AS page FROM entity ORDER BY id LIMIT ?2 OFFSET ?1) JOIN entity e ON e.id = page \
         ORDER BY e.id"
    );
    list(db, &sql, (i64::try_from(offset).unwrap_or(i64::MAX), bounded(limit)), rows::entity)
}

pub(super) fn observation(db: &Connection, id: ObservationId) -> rusqlite::Result<Option<Observation>> {
    let mut find = db.prepare_cached(&format!("SELECT {OBSERVATION} FROM observation WHERE id = ?1"))?;
    find.query_row([id.0], rows::observation).optional()
}

pub(super) fn observations(db: &Connection, ids: &[ObservationId]) -> rusqlite::Result<Vec<Option<Observation>>> {
    let sql = format!("SELECT {OBSERVATION} FROM observation WHERE id IN (SELECT value FROM json_each(?1))");
    let found = list(db, &sql, [json(ids.iter().map(|id| id.0))], rows::observation)?;
    Ok(in_order(ids, found, |observation| observation.id))
}

pub(super) fn observations_of(db: &Connection, entity: EntityId) -> rusqlite::Result<Vec<Observation>> {
    let sql = format!("SELECT {OBSERVATION} FROM observation WHERE entity = ?1 ORDER BY id");
    list(db, &sql, [entity.0], rows::observation)
}

pub(super) fn observations_after(
    db: &Connection,
    after: ObservationId,
    limit: usize,
) -> rusqlite::Result<Vec<Observation>> {
    let sql = format!("SELECT {OBSERVATION} FROM observation WHERE id > ?1 ORDER BY id LIMIT ?2");
    batch(db, &sql, (after.0, bounded(limit)), rows::observation, |seen| seen.text.len())
}

pub(super) fn relation(db: &Connection, id: RelationId) -> rusqlite::Result<Option<Relation>> {
    let mut find = db.prepare_cached(&format!("SELECT {RELATION} FROM relation WHERE id = ?1"))?;
    find.query_row([id.0], rows::relation).optional()
}

pub(super) fn relation_id(
    db: &Connection,
    from: EntityId,
    to: EntityId,
    relation_type: &str,
) -> rusqlite::Result<Option<RelationId>> {
    let mut find = db.prepare_cached("SELECT id FROM relation WHERE source = ?1 AND target = ?2 AND type = ?3")?;
    find.query_row((from.0, to.0, relation_type), |row| row.get(0).map(RelationId)).optional()
}

pub(super) fn relations(db: &Connection, ids: &[RelationId]) -> rusqlite::Result<Vec<Option<Relation>>> {
    let sql = format!("SELECT {RELATION} FROM relation WHERE id IN (SELECT value FROM json_each(?1))");
    let found = list(db, &sql, [json(ids.iter().map(|id| id.0))], rows::relation)?;
    Ok(in_order(ids, found, |relation| relation.id))
}

pub(super) fn relations_touching(db: &Connection, entity: EntityId) -> rusqlite::Result<Vec<Relation>> {
    let sql = format!("SELECT {RELATION} FROM relation WHERE source = ?1 OR target = ?1 ORDER BY id");
    list(db, &sql, [entity.0], rows::relation)
}

pub(super) fn relations_after(db: &Connection, after: RelationId, limit: usize) -> rusqlite::Result<Vec<Relation>> {
    let sql = format!("SELECT {RELATION} FROM relation WHERE id > ?1 ORDER BY id LIMIT ?2");
    batch(db, &sql, (after.0, bounded(limit)), rows::relation, |relation| relation.relation_type.len())
}

pub(super) fn relations_where(
    db: &Connection,
    filter: &RelationFilter,
    offset: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Relation>> {
    // Only the conditions that are needed, so that SQLite can use an index.
    let mut conditions: Vec<&str> = Vec::new();
    if filter.from.is_some() {
        conditions.push("source = ?1");
    }
    if filter.to.is_some() {
        conditions.push("target = ?2");
    }
    if filter.relation_type.is_some() {
        conditions.push("type = ?3");
    }
    let conditions = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") };
    let sql = format!(
        "SELECT {RELATION} FROM relation WHERE {conditions} AND ?1 IS ?1 AND ?2 IS ?2 AND ?3 IS ?3 \
         ORDER BY id LIMIT ?4 OFFSET ?5"
    );
    let RelationFilter { from, to, relation_type } = filter;
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    let values = (from.map(|id| id.0), to.map(|id| id.0), relation_type, bounded(limit), offset);
    list(db, &sql, values, rows::relation)
}

pub(super) fn relations_among(db: &Connection, entities: &[EntityId]) -> rusqlite::Result<Vec<Relation>> {
    let sql = format!(
        "SELECT {RELATION} FROM relation WHERE source IN (SELECT value FROM json_each(?1)) \
         AND target IN (SELECT value FROM json_each(?1)) ORDER BY id"
    );
    list(db, &sql, [json(entities.iter().map(|id| id.0))], rows::relation)
}

pub(super) fn sources_into(
    db: &Connection,
    targets: &[EntityId],
    relation_type: &str,
) -> rusqlite::Result<Vec<EntityId>> {
    let sql = "SELECT source FROM relation WHERE target IN (SELECT value FROM json_each(?1)) \
               AND type = ?2 COLLATE NOCASE ORDER BY id";
    list(db, sql, (json(targets.iter().map(|id| id.0)), relation_type), |row| row.get(0).map(EntityId))
}

pub(super) fn entity_count(db: &Connection) -> rusqlite::Result<u64> {
    db.prepare_cached("SELECT count(*) FROM entity")?.query_row([], |row| row.get(0))
}

pub(super) fn counts(db: &Connection) -> rusqlite::Result<MemoryCounts> {
    let mut count = db.prepare_cached(
        "SELECT (SELECT count(*) FROM entity), (SELECT count(*) FROM observation), (SELECT count(*) FROM relation)",
    )?;
    count.query_row([], |row| {
        Ok(MemoryCounts { entities: row.get(0)?, observations: row.get(1)?, relations: row.get(2)? })
    })
}

/// The item with the id of this one, as it is now. Its number of observations is that of this one: the log does not have it.
pub(super) fn current(db: &Connection, item: &MemoryItem) -> rusqlite::Result<Option<MemoryItem>> {
    Ok(match item {
        MemoryItem::Entity(Entity { id, observation_count, .. }) => {
            entity(db, *id)?.map(|now| MemoryItem::Entity(Entity { observation_count: *observation_count, ..now }))
        }
        MemoryItem::Observation(seen) => observation(db, seen.id)?.map(MemoryItem::Observation),
        MemoryItem::Relation(known) => relation(db, known.id)?.map(MemoryItem::Relation),
    })
}

/// All rows of a query.
pub(super) fn list<T>(
    db: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(values, row)?.collect()
}

/// After this many bytes a batch ends, whatever its limit is.
pub(super) const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The first rows of a query, at least one if there are any.
pub(super) fn batch<T>(
    db: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    bytes: impl Fn(&T) -> usize,
) -> rusqlite::Result<Vec<T>> {
    let (mut found, mut left) = (Vec::new(), BATCH_BYTES);
    for item in db.prepare_cached(sql)?.query_map(values, row)? {
        let item = item?;
        left = left.saturating_sub(bytes(&item));
        found.push(item);
        if left == 0 {
            break;
        }
    }
    Ok(found)
}

/// A list of numbers for SQLite's `json_each`.
pub(super) fn json(ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    format!("[{}]", ids.join(","))
}

pub(super) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn in_order<K: Copy + Eq + Hash, T: Clone>(keys: &[K], found: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Option<T>> {
    let found: HashMap<K, T> = found.into_iter().map(|item| (key(&item), item)).collect();
    keys.iter().map(|wanted| found.get(wanted).cloned()).collect()
}
