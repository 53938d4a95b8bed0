//! Items of memory from rows, and as JSON for the log.
//!
//! The log does not have an entity's number of observations: adding one does not change the entity.

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, limits};
use quipu_core::ports::{MemoryItem, TextOwner};
use rusqlite::types::Type;
use rusqlite::{Row, ffi};
use serde::{Deserialize, Serialize};

/// The columns for [`entity`], of a table `entity` with the alias `e`.
pub(super) const ENTITY: &str = "e.id, e.name, e.type, e.description, e.created_ns, e.updated_ns, \
    (SELECT json_group_array(alias ORDER BY position) FROM alias WHERE alias.entity = e.id), \
    (SELECT count(*) FROM observation WHERE observation.entity = e.id)";

/// The columns for [`observation`].
pub(super) const OBSERVATION: &str = "id, entity, text, created_ns, updated_ns";

/// The columns for [`relation`].
pub(super) const RELATION: &str = "id, source, target, type, created_ns, updated_ns";

/// The bytes of a text of so many characters, with room for those that an older version allowed.
const BYTES_PER_CHAR: usize = 16;

/// Refuses a text that is far longer than any that Quipu writes: the file may come from another person, and answers would have
/// it whole.
fn check_length(text: &str, max_chars: usize) -> rusqlite::Result<()> {
    if text.len() <= max_chars * BYTES_PER_CHAR {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None))
}

/// The text in a column.
pub(super) fn text(row: &Row<'_>, column: usize, max_chars: usize) -> rusqlite::Result<String> {
    let text = row.get_ref(column)?.as_str()?;
    check_length(text, max_chars)?;
    Ok(text.to_owned())
}

fn optional_text(row: &Row<'_>, column: usize, max_chars: usize) -> rusqlite::Result<Option<String>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| check_length(text, max_chars).map(|()| text.to_owned())).transpose()
}

pub(super) fn entity(row: &Row<'_>) -> rusqlite::Result<Entity> {
    let aliases: Vec<String> = serde_json::from_str(row.get_ref(6)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(6, Type::Text, error.into()))?;
    // Merges collect aliases of several entities.
    aliases.iter().try_for_each(|alias| check_length(alias, limits::ALIASES))?;
    Ok(Entity {
        id: EntityId(row.get(0)?),
        name: text(row, 1, limits::NAME)?,
        entity_type: text(row, 2, limits::TYPE)?,
        description: optional_text(row, 3, limits::DESCRIPTION)?,
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
        text: text(row, 2, limits::OBSERVATION)?,
        created_ns: row.get(3)?,
        updated_ns: row.get(4)?,
    })
}

pub(super) fn relation(row: &Row<'_>) -> rusqlite::Result<Relation> {
    Ok(Relation {
        id: RelationId(row.get(0)?),
        from: EntityId(row.get(1)?),
        to: EntityId(row.get(2)?),
        relation_type: text(row, 3, limits::TYPE)?,
        created_ns: row.get(4)?,
        updated_ns: row.get(5)?,
    })
}

/// An item in the log. Every existing database has these names: new ones may be added, none may be changed.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LoggedValue {
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

impl LoggedValue {
    fn check_lengths(&self) -> rusqlite::Result<()> {
        match self {
            Self::Entity { name, entity_type, aliases, description, .. } => {
                check_length(name, limits::NAME)?;
                check_length(entity_type, limits::TYPE)?;
                aliases.iter().try_for_each(|alias| check_length(alias, limits::ALIASES))?;
                check_length(description.as_deref().unwrap_or_default(), limits::DESCRIPTION)
            }
            Self::Observation { text, .. } => check_length(text, limits::OBSERVATION),
            Self::Relation { relation_type, .. } => check_length(relation_type, limits::TYPE),
        }
    }
}

/// The kind and the id of an item, as the log has them.
pub(super) fn key(item: &MemoryItem) -> (&'static str, i64) {
    match item {
        MemoryItem::Entity(entity) => ("entity", entity.id.0),
        MemoryItem::Observation(observation) => ("observation", observation.id.0),
        MemoryItem::Relation(relation) => ("relation", relation.id.0),
    }
}

/// The item with another id.
pub(super) fn with_id(mut item: MemoryItem, id: i64) -> MemoryItem {
    match &mut item {
        MemoryItem::Entity(entity) => entity.id = EntityId(id),
        MemoryItem::Observation(observation) => observation.id = ObservationId(id),
        MemoryItem::Relation(relation) => relation.id = RelationId(id),
    }
    item
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
        }) => LoggedValue::Entity { name, entity_type, aliases, description, created_ns, updated_ns },
        MemoryItem::Observation(Observation { id: _, entity, text, created_ns, updated_ns }) => {
            LoggedValue::Observation { entity: entity.0, text, created_ns, updated_ns }
        }
        MemoryItem::Relation(Relation { id: _, from, to, relation_type, created_ns, updated_ns }) => {
            LoggedValue::Relation { from: from.0, to: to.0, relation_type, created_ns, updated_ns }
        }
    };
    serde_json::to_string(&logged).expect("texts and numbers are always JSON")
}

pub(super) fn from_json(kind: &str, id: i64, json: &str) -> Result<MemoryItem, BadLog> {
    let bad = |reason: String| BadLog { kind: kind.to_owned(), id, reason };
    let logged: LoggedValue = serde_json::from_str(json).map_err(|error| bad(error.to_string()))?;
    logged.check_lengths().map_err(|_| bad("its text is longer than any that Quipu writes".to_owned()))?;
    match (kind, logged) {
        ("entity", LoggedValue::Entity { name, entity_type, aliases, description, created_ns, updated_ns }) => {
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
        ("observation", LoggedValue::Observation { entity, text, created_ns, updated_ns }) => {
            let (id, entity) = (ObservationId(id), EntityId(entity));
            Ok(MemoryItem::Observation(Observation { id, entity, text, created_ns, updated_ns }))
        }
        ("relation", LoggedValue::Relation { from, to, relation_type, created_ns, updated_ns }) => {
            let (id, from, to) = (RelationId(id), EntityId(from), EntityId(to));
            Ok(MemoryItem::Relation(Relation { id, from, to, relation_type, created_ns, updated_ns }))
        }
        _ => Err(bad("it has another kind".to_owned())),
    }
}

/// A log entry that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the log entry of {kind} {id}: {reason}")]
pub(super) struct BadLog {
    kind: String,
    id: i64,
    reason: String,
}
