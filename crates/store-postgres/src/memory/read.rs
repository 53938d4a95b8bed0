//! Queries.

use std::collections::HashMap;
use std::hash::Hash;

use deadpool_postgres::GenericClient;
use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::ports::{MemoryCounts, RelationFilter};

use super::item::{self, ENTITY, OBSERVATION, RELATION};
use crate::failure::DatabaseError;
use crate::row::{self, bounded, escape, get, list};

pub(super) async fn entities(
    db: &impl GenericClient,
    graph: i64,
    ids: &[EntityId],
) -> Result<Vec<Option<Entity>>, DatabaseError> {
    let sql = format!("SELECT {ENTITY} FROM entity e WHERE e.graph = $1 AND e.id = ANY ($2)");
    let wanted: Vec<i64> = ids.iter().map(|id| id.0).collect();
    Ok(in_order(ids, list(db, &sql, &[&graph, &wanted], item::entity).await?, |entity| entity.id))
}

pub(super) async fn entities_called(
    db: &impl GenericClient,
    graph: i64,
    keys: &[String],
) -> Result<Vec<Vec<EntityId>>, DatabaseError> {
    let sql = "SELECT wanted.number, found.id FROM unnest($2::text[]) WITH ORDINALITY AS wanted (key, number) \
               CROSS JOIN LATERAL ( \
                   SELECT id, 0 AS place FROM entity WHERE graph = $1 AND name_key = wanted.key UNION ALL \
                   SELECT entity, 1 FROM alias WHERE graph = $1 AND alias_key = wanted.key \
                   AND alias_hash = hashtextextended(wanted.key COLLATE \"C\", 0) \
               ) AS found GROUP BY wanted.number, found.id ORDER BY wanted.number, min(found.place), found.id";
    let wanted: Vec<_> = keys.iter().map(|key| escape(key)).collect();
    let mut called = vec![Vec::new(); keys.len()];
    for (number, id) in list(db, sql, &[&graph, &wanted], |row| Ok((get::<i64>(row, 0)?, get(row, 1)?))).await? {
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        if let Some(ids) = called.get_mut(place) {
            ids.push(EntityId(id));
        }
    }
    Ok(called)
}

pub(super) async fn entities_after(
    db: &impl GenericClient,
    graph: i64,
    after: EntityId,
    limit: usize,
) -> Result<Vec<Entity>, DatabaseError> {
    let sql = format!("SELECT {ENTITY} FROM entity e WHERE e.graph = $1 AND e.id > $2 ORDER BY e.id LIMIT $3");
    list(db, &sql, &[&graph, &after.0, &bounded(limit)], item::entity).await
}

pub(super) async fn entities_from(
    db: &impl GenericClient,
    graph: i64,
    offset: u64,
    limit: usize,
) -> Result<Vec<Entity>, DatabaseError> {
    let sql = format!(
        "SELECT {ENTITY} FROM (SELECT id AS page FROM entity WHERE graph = $1 ORDER BY id LIMIT $3 OFFSET $2) AS pages \
         JOIN entity e ON e.graph = $1 AND e.id = page ORDER BY e.id"
    );
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    list(db, &sql, &[&graph, &offset, &bounded(limit)], item::entity).await
}

pub(super) async fn observations(
    db: &impl GenericClient,
    graph: i64,
    ids: &[ObservationId],
) -> Result<Vec<Option<Observation>>, DatabaseError> {
    let sql = format!("SELECT {OBSERVATION} FROM observation WHERE graph = $1 AND id = ANY ($2)");
    let wanted: Vec<i64> = ids.iter().map(|id| id.0).collect();
    Ok(in_order(ids, list(db, &sql, &[&graph, &wanted], item::observation).await?, |seen| seen.id))
}

pub(super) async fn observations_of(
    db: &impl GenericClient,
    graph: i64,
    entities: &[EntityId],
) -> Result<Vec<Vec<Observation>>, DatabaseError> {
    let sql = format!("SELECT {OBSERVATION} FROM observation WHERE graph = $1 AND entity = ANY ($2) ORDER BY id");
    let wanted: Vec<i64> = entities.iter().map(|id| id.0).collect();
    let mut of: HashMap<EntityId, Vec<Observation>> = HashMap::new();
    for seen in list(db, &sql, &[&graph, &wanted], item::observation).await? {
        of.entry(seen.entity).or_default().push(seen);
    }
    Ok(entities.iter().map(|id| of.get(id).cloned().unwrap_or_default()).collect())
}

pub(super) async fn observations_after(
    db: &impl GenericClient,
    graph: i64,
    after: ObservationId,
    limit: usize,
) -> Result<Vec<Observation>, DatabaseError> {
    let sql = format!("SELECT {OBSERVATION} FROM observation WHERE graph = $1 AND id > $2 ORDER BY id LIMIT $3");
    list(db, &sql, &[&graph, &after.0, &bounded(limit)], item::observation).await
}

pub(super) async fn relations(
    db: &impl GenericClient,
    graph: i64,
    ids: &[RelationId],
) -> Result<Vec<Option<Relation>>, DatabaseError> {
    let sql = format!("SELECT {RELATION} FROM relation WHERE graph = $1 AND id = ANY ($2)");
    let wanted: Vec<i64> = ids.iter().map(|id| id.0).collect();
    Ok(in_order(ids, list(db, &sql, &[&graph, &wanted], item::relation).await?, |relation| relation.id))
}

pub(super) async fn relations_after(
    db: &impl GenericClient,
    graph: i64,
    after: RelationId,
    limit: usize,
) -> Result<Vec<Relation>, DatabaseError> {
    let sql = format!("SELECT {RELATION} FROM relation WHERE graph = $1 AND id > $2 ORDER BY id LIMIT $3");
    list(db, &sql, &[&graph, &after.0, &bounded(limit)], item::relation).await
}

pub(super) async fn relations_where(
    db: &impl GenericClient,
    graph: i64,
    filter: &RelationFilter,
    offset: u64,
    limit: usize,
) -> Result<Vec<Relation>, DatabaseError> {
    let sql = format!(
        "SELECT {RELATION} FROM relation WHERE graph = $1 AND ($2::bigint IS NULL OR source = $2) \
         AND ($3::bigint IS NULL OR target = $3) AND ($4::text IS NULL OR type = $4) ORDER BY id LIMIT $5 OFFSET $6"
    );
    let (from, to) = (filter.from.map(|id| id.0), filter.to.map(|id| id.0));
    let relation_type = filter.relation_type.as_deref().map(escape);
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    list(db, &sql, &[&graph, &from, &to, &relation_type, &bounded(limit), &offset], item::relation).await
}

pub(super) async fn relations_among(
    db: &impl GenericClient,
    graph: i64,
    entities: &[EntityId],
) -> Result<Vec<Relation>, DatabaseError> {
    let sql = format!(
        "SELECT {RELATION} FROM relation WHERE graph = $1 AND source = ANY ($2) AND target = ANY ($2) ORDER BY id"
    );
    let ids: Vec<i64> = entities.iter().map(|id| id.0).collect();
    list(db, &sql, &[&graph, &ids], item::relation).await
}

pub(super) async fn sources_into(
    db: &impl GenericClient,
    graph: i64,
    targets: &[EntityId],
    relation_type: &str,
) -> Result<Vec<EntityId>, DatabaseError> {
    // In the collation of the columns, `lower` changes ASCII only.
    let sql = "SELECT source FROM relation WHERE graph = $1 AND target = ANY ($2) AND lower(type) = lower($3 COLLATE \"C\") \
               ORDER BY id";
    let ids: Vec<i64> = targets.iter().map(|id| id.0).collect();
    list(db, sql, &[&graph, &ids, &escape(relation_type)], |row| get(row, 0).map(EntityId)).await
}

pub(super) async fn entity_count(db: &impl GenericClient, graph: i64) -> Result<u64, DatabaseError> {
    let sql = "SELECT count(*) FROM entity WHERE graph = $1";
    let count: Option<i64> = row::first(db, sql, &[&graph], |row| get(row, 0)).await?;
    Ok(count.unwrap_or_default().unsigned_abs())
}

pub(super) async fn counts(db: &impl GenericClient, graph: i64) -> Result<MemoryCounts, DatabaseError> {
    let sql = "SELECT (SELECT count(*) FROM entity WHERE graph = $1), (SELECT count(*) FROM observation WHERE graph = $1), \
               (SELECT count(*) FROM relation WHERE graph = $1)";
    let number = |row: &_, column| get::<i64>(row, column).map(i64::unsigned_abs);
    let read = |row: &_| {
        Ok(MemoryCounts { entities: number(row, 0)?, observations: number(row, 1)?, relations: number(row, 2)? })
    };
    Ok(row::first(db, sql, &[&graph], read).await?.unwrap_or_default())
}

fn in_order<K: Copy + Eq + Hash, T: Clone>(keys: &[K], found: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Option<T>> {
    let found: HashMap<K, T> = found.into_iter().map(|item| (key(&item), item)).collect();
    keys.iter().map(|wanted| found.get(wanted).cloned()).collect()
}
