//! Items of memory from rows, and as JSON for the log.
//!
//! The log does not have an entity's number of observations: adding one does not change the entity.

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::ports::{MemoryItem, TextOwner};
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use crate::row::{BadRow, get, text, unescape};

/// The columns for [`entity`], of a table `entity` with the alias `e`.
pub(super) const ENTITY: &str = "e.id, e.name, e.type, e.description, e.created_ns, e.updated_ns, \
    ARRAY(SELECT alias FROM alias a WHERE a.graph = e.graph AND a.entity = e.id ORDER BY position), \
    (SELECT count(*) FROM observation o WHERE o.graph = e.graph AND o.entity = e.id)";

/// The columns for [`observation`].
pub(super) const OBSERVATION: &str = "id, entity, text, created_ns, updated_ns";

/// The columns for [`relation`].
pub(super) const RELATION: &str = "id, source, target, type, created_ns, updated_ns";

pub(super) fn entity(row: &Row) -> Result<Entity, BadRow> {
    let aliases: Vec<String> = get(row, 6)?;
    Ok(Entity {
        id: EntityId(get(row, 0)?),
        name: text(row, 1)?,
        entity_type: text(row, 2)?,
        description: get::<Option<String>>(row, 3)?.map(unescape),
        created_ns: get(row, 4)?,
        updated_ns: get(row, 5)?,
        aliases: aliases.into_iter().map(unescape).collect(),
        observation_count: get::<i64>(row, 7)?.unsigned_abs(),
    })
}

pub(super) fn observation(row: &Row) -> Result<Observation, BadRow> {
    Ok(Observation {
        id: ObservationId(get(row, 0)?),
        entity: EntityId(get(row, 1)?),
        text: text(row, 2)?,
        created_ns: get(row, 3)?,
        updated_ns: get(row, 4)?,
    })
}

pub(super) fn relation(row: &Row) -> Result<Relation, BadRow> {
    Ok(Relation {
        id: RelationId(get(row, 0)?),
        from: EntityId(get(row, 1)?),
        to: EntityId(get(row, 2)?),
        relation_type: text(row, 3)?,
        created_ns: get(row, 4)?,
        updated_ns: get(row, 5)?,
    })
}

/// The kind and the id of an item, as the log has them.
pub(super) fn key(item: &MemoryItem) -> (&'static str, i64) {
    match item {
        MemoryItem::Entity(entity) => ("entity", entity.id.0),
        MemoryItem::Observation(observation) => ("observation", observation.id.0),
        MemoryItem::Relation(relation) => ("relation", relation.id.0),
    }
}

/// The kind and the id of the item that has a text.
pub(super) fn owner_key(owner: TextOwner) -> (&'static str, i64) {
    match owner {
        TextOwner::Entity(id) => ("entity", id.0),
        TextOwner::Observation(id) => ("observation", id.0),
    }
}

pub(super) fn owner(kind: &str, id: i64) -> TextOwner {
    if kind == "entity" { TextOwner::Entity(EntityId(id)) } else { TextOwner::Observation(ObservationId(id)) }
}

/// An item in the log, with the names that the log of the embedded store has. New ones may be added, none may be changed.
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

pub(super) fn to_json(item: &MemoryItem) -> String {
    let logged = match item.clone() {
        MemoryItem::Entity(entity) => {
            let Entity { name, entity_type, aliases, description, created_ns, updated_ns, .. } = entity;
            Logged::Entity { name, entity_type, aliases, description, created_ns, updated_ns }
        }
        MemoryItem::Observation(Observation { entity, text, created_ns, updated_ns, .. }) => {
            Logged::Observation { entity: entity.0, text, created_ns, updated_ns }
        }
        MemoryItem::Relation(Relation { from, to, relation_type, created_ns, updated_ns, .. }) => {
            Logged::Relation { from: from.0, to: to.0, relation_type, created_ns, updated_ns }
        }
    };
    serde_json::to_string(&logged).expect("texts and numbers are always JSON")
}

pub(super) fn from_json(kind: &str, id: i64, json: &str) -> Result<MemoryItem, BadRow> {
    let bad = |reason: String| BadRow(format!("the log of {kind} {id}: {reason}"));
    let logged: Logged = serde_json::from_str(json).map_err(|error| bad(error.to_string()))?;
    match (kind, logged) {
        ("entity", Logged::Entity { name, entity_type, aliases, description, created_ns, updated_ns }) => {
            let (id, observation_count) = (EntityId(id), 0);
            let entity =
                Entity { id, name, entity_type, aliases, description, observation_count, created_ns, updated_ns };
            Ok(MemoryItem::Entity(entity))
        }
        ("observation", Logged::Observation { entity, text, created_ns, updated_ns }) => {
            let (id, entity) = (ObservationId(id), EntityId(entity));
            Ok(MemoryItem::Observation(Observation { id, entity, text, created_ns, updated_ns }))
        }
        ("relation", Logged::Relation { from, to, relation_type, created_ns, updated_ns }) => {
            let (id, from, to) = (RelationId(id), EntityId(from), EntityId(to));
            Ok(MemoryItem::Relation(Relation { id, from, to, relation_type, created_ns, updated_ns }))
        }
        _ => Err(bad("it has another kind".to_owned())),
    }
}
