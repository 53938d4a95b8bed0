//! Rows as things of memory, and things of memory as JSON for the log.
//!
//! How many observations an entity has is not in the log: adding one is not a change of the entity.

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::ports::MemoryItem;
use rusqlite::Row;
use serde::{Deserialize, Serialize};

/// What [`entity`] reads, from a table `entity` called `e`.
pub(super) const ENTITY: &str = "e.id, e.name, e.type, e.description, e.created_ns, e.updated_ns, \
    (SELECT json_group_array(alias ORDER BY position) FROM alias WHERE alias.entity = e.id), \
    (SELECT count(*) FROM observation WHERE observation.entity = e.id)";

/// What [`observation`] reads.
pub(super) const OBSERVATION: &str = "id, entity, text, created_ns, updated_ns";

/// What [`relation`] reads.
pub(super) const RELATION: &str = "id, source, target, type, created_ns, updated_ns";

pub(super) fn entity(row: &Row<'_>) -> rusqlite::Result<Entity> {
    let aliases: String = row.get(6)?;
    let aliases = serde_json::from_str(&aliases)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(6, rusqlite::types::Type::Text, error.into()))?;
    Ok(Entity {
        id: EntityId(row.get(0)?),
        name: row.get(1)?,
        entity_type: row.get(2)?,
        description: row.get(3)?,
        created_ns: row.get(4)?,
        updated_ns: row.get(5)?,
        aliases,
        observation_count: row.get(7)?,
    })
}

pub(super) fn observation(row: &Row<'_>) -> rusqlite::Result<Observation> {
    Ok(Observation {
        id: ObservationId(row.get(0)?),
        entity: EntityId(row.get(1)?),
        text: row.get(2)?,
        created_ns: row.get(3)?,
        updated_ns: row.get(4)?,
    })
}

pub(super) fn relation(row: &Row<'_>) -> rusqlite::Result<Relation> {
    Ok(Relation {
        id: RelationId(row.get(0)?),
        from: EntityId(row.get(1)?),
        to: EntityId(row.get(2)?),
        relation_type: row.get(3)?,
        created_ns: row.get(4)?,
        updated_ns: row.get(5)?,
    })
}

/// A thing in the log. These names are in every database there is: they may be added to, never changed.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Logged {
    Entity {
        name: String,
        entity_type: String,
        aliases: Vec<String>,
        description: Option<String>,
        created_ns: i64,
        updated_ns: i64,
    },
    Observation {
        entity: i64,
        text: String,
        created_ns: i64,
        updated_ns: i64,
    },
    Relation {
        from: i64,
        to: i64,
        relation_type: String,
        created_ns: i64,
        updated_ns: i64,
    },
}

/// The kind and the number of a thing, as the log has them.
pub(super) fn key(item: &MemoryItem) -> (&'static str, i64) {
    match item {
        MemoryItem::Entity(entity) => ("entity", entity.id.0),
        MemoryItem::Observation(observation) => ("observation", observation.id.0),
        MemoryItem::Relation(relation) => ("relation", relation.id.0),
    }
}

pub(super) fn to_json(item: &MemoryItem) -> String {
    let logged = match item.clone() {
        MemoryItem::Entity(Entity {
            id: _,
            name,
            entity_type,
            aliases,
            description,
            observation_count: _,
            created_ns,
            updated_ns,
        }) => Logged::Entity { name, entity_type, aliases, description, created_ns, updated_ns },
        MemoryItem::Observation(Observation { id: _, entity, text, created_ns, updated_ns }) => {
            Logged::Observation { entity: entity.0, text, created_ns, updated_ns }
        }
        MemoryItem::Relation(Relation { id: _, from, to, relation_type, created_ns, updated_ns }) => {
            Logged::Relation { from: from.0, to: to.0, relation_type, created_ns, updated_ns }
        }
    };
    serde_json::to_string(&logged).expect("texts and numbers are always JSON")
}

pub(super) fn from_json(kind: &str, id: i64, json: &str) -> Result<MemoryItem, BadLog> {
    let bad = |reason: String| BadLog { kind: kind.to_owned(), id, reason };
    let logged: Logged = serde_json::from_str(json).map_err(|error| bad(error.to_string()))?;
    match (kind, logged) {
        ("entity", Logged::Entity { name, entity_type, aliases, description, created_ns, updated_ns }) => {
            let id = EntityId(id);
            Ok(MemoryItem::Entity(Entity {
                id,
                name,
                entity_type,
                aliases,
                description,
                observation_count: 0,
                created_ns,
                updated_ns,
            }))
        }
        ("observation", Logged::Observation { entity, text, created_ns, updated_ns }) => {
            let (id, entity) = (ObservationId(id), EntityId(entity));
            Ok(MemoryItem::Observation(Observation { id, entity, text, created_ns, updated_ns }))
        }
        ("relation", Logged::Relation { from, to, relation_type, created_ns, updated_ns }) => {
            let (id, from, to) = (RelationId(id), EntityId(from), EntityId(to));
            Ok(MemoryItem::Relation(Relation { id, from, to, relation_type, created_ns, updated_ns }))
        }
        _ => Err(bad("it is of another kind".to_owned())),
    }
}

/// A log entry that says nothing we understand.
#[derive(Debug, thiserror::Error)]
#[error("the log's entry for {kind} {id} cannot be read: {reason}")]
pub(super) struct BadLog {
    kind: String,
    id: i64,
    reason: String,
}
