//! The log of changes in an export: a line for each entry, and the ties of deleted items, which an undo restores.

use std::collections::BTreeMap;

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::ports::{Author, ChangeNumber, LoggedChange, MemoryItem, NoteTie, TextOwner};
use serde_json::{Map, Value, json};

use super::export;
use super::record::{self, Record, RecordOrigin, Reference};

/// The type of the line of an entry, and that of the ties of a deleted item.
pub(super) const CHANGE: &str = "change";
pub(super) const TIES: &str = "ties";

/// The line of an entry.
pub(super) fn entry_row(entry: &LoggedChange) -> Value {
    let steps: Vec<Value> =
        entry.steps.iter().map(|(before, after)| step_row(before.as_ref(), after.as_ref())).collect();
    let Author { client, tool, at_ns, .. } = &entry.author;
    json!({"type": CHANGE, "number": entry.number.0, "at_ns": at_ns, "client": client, "tool": tool,
        "undoes": entry.undoes.map(|undone| undone.0), "steps": steps})
}

/// An item without a `type`: half a line of the log must not be read as items.
fn step_row(before: Option<&MemoryItem>, after: Option<&MemoryItem>) -> Value {
    let fields = |item: &MemoryItem| {
        let mut row = export::row(item);
        if let Some(row) = row.as_object_mut() {
            row.shift_remove("type");
            row.shift_remove("id");
        }
        row
    };
    let (kind, id) = after.or(before).map_or(("entity", 0), key);
    json!({"kind": kind, "id": id, "before": before.map(fields), "after": after.map(fields)})
}

fn key(item: &MemoryItem) -> (&'static str, i64) {
    match item {
        MemoryItem::Entity(entity) => ("entity", entity.id.0),
        MemoryItem::Observation(seen) => ("observation", seen.id.0),
        MemoryItem::Relation(relation) => ("relation", relation.id.0),
    }
}

/// The line of the ties of a deleted item.
pub(super) fn ties_row(owner: TextOwner, ties: Vec<NoteTie>) -> Value {
    let (kind, id) = match owner {
        TextOwner::Entity(id) => ("entity", id.0),
        TextOwner::Observation(id) => ("observation", id.0),
    };
    let mut row = json!({"type": TIES, "kind": kind, "id": id});
    export::add_ties(ties, &mut row);
    row
}

/// The owners of texts that a log deletes, and does not restore.
#[derive(Default)]
pub(super) struct DeletedOwners(BTreeMap<TextOwner, bool>);

impl DeletedOwners {
    pub(super) fn follow(&mut self, entry: &LoggedChange) {
        for (before, after) in &entry.steps {
            let owner = after.as_ref().or(before.as_ref()).and_then(MemoryItem::text_owner);
            self.0.extend(owner.map(|owner| (owner, after.is_none())));
        }
    }

    pub(super) fn owners(self) -> Vec<TextOwner> {
        self.0.into_iter().filter(|(_, is_gone)| *is_gone).map(|(owner, _)| owner).collect()
    }
}

/// An entry from its line.
pub(super) fn entry(object: &Map<String, Value>) -> Result<LoggedChange, String> {
    let number = |key: &str| object.get(key).and_then(Value::as_i64);
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    let (Some(given), Some(at_ns), Some(client), Some(tool), Some(steps)) = (
        number("number"),
        number("at_ns"),
        text("client"),
        text("tool"),
        object.get("steps").and_then(Value::as_array),
    ) else {
        return Err("it is a change without its `number`, `at_ns`, `client`, `tool` or `steps`".to_owned());
    };
    let steps = steps.iter().map(step).collect::<Option<Vec<_>>>();
    Ok(LoggedChange {
        number: ChangeNumber(given),
        author: Author { client, tool, at_ns, request: None },
        undoes: number("undoes").map(ChangeNumber),
        undone_by: None,
        steps: steps.ok_or("it is a change with an invalid step")?,
    })
}

fn step(step: &Value) -> Option<(Option<MemoryItem>, Option<MemoryItem>)> {
    let item_of = |fields: &Value| {
        let mut whole = fields.clone();
        let object = whole.as_object_mut()?;
        object.insert("type".to_owned(), step.get("kind")?.clone());
        object.insert("id".to_owned(), step.get("id")?.clone());
        item(&record::record(&whole).ok()?)
    };
    let state = |key: &str| match step.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(fields) => item_of(fields).map(Some),
    };
    let (before, after) = (state("before")?, state("after")?);
    (before.is_some() || after.is_some()).then_some((before, after))
}

/// The ties of a deleted item from their line.
pub(super) fn ties(object: &Map<String, Value>) -> Result<Vec<NoteTie>, String> {
    let id = object.get("id").and_then(Value::as_i64);
    let owner = match (object.get("kind").and_then(Value::as_str), id) {
        (Some("entity"), Some(id)) => TextOwner::Entity(EntityId(id)),
        (Some("observation"), Some(id)) => TextOwner::Observation(ObservationId(id)),
        _ => return Err("its ties name no entity or observation".to_owned()),
    };
    Ok(owned(owner, record::ties(object)?))
}

fn owned(owner: TextOwner, ties: Vec<(String, quipu_core::model::VaultPath)>) -> Vec<NoteTie> {
    ties.into_iter().map(|(target, path)| NoteTie { owner, target, path }).collect()
}

/// The item that a record describes completely, as our own export does.
pub(super) fn item(record: &Record) -> Option<MemoryItem> {
    let id_of = |reference: &Reference| match reference {
        Reference::Id(id) => Some(EntityId(*id)),
        Reference::Name(_) => None,
    };
    match record.clone() {
        Record::Entity(given) => {
            let RecordOrigin { id: Some(id), times: Some((created_ns, updated_ns)), .. } = given.origin else {
                return None;
            };
            Some(MemoryItem::Entity(Entity {
                id: EntityId(id),
                name: given.name,
                entity_type: given.entity_type?,
                aliases: given.aliases,
                description: given.description,
                observation_count: 0,
                created_ns,
                updated_ns,
            }))
        }
        Record::Observation { entity, text, origin } => {
            let (id, (created_ns, updated_ns)) = (ObservationId(origin.id?), origin.times?);
            let entity = id_of(&entity)?;
            Some(MemoryItem::Observation(Observation { id, entity, text, created_ns, updated_ns }))
        }
        Record::Relation { from, to, relation_type, origin } => {
            let (id, (created_ns, updated_ns)) = (RelationId(origin.id?), origin.times?);
            let (from, to) = (id_of(&from)?, id_of(&to)?);
            Some(MemoryItem::Relation(Relation { id, from, to, relation_type, created_ns, updated_ns }))
        }
        Record::Header { .. } | Record::Change(_) | Record::Ties(_) => None,
    }
}

/// The ties of a record's own text.
pub(super) fn ties_of(record: &Record) -> Vec<NoteTie> {
    match record {
        Record::Entity(given) => {
            let owner = given.origin.id.map(|id| TextOwner::Entity(EntityId(id)));
            owner.map_or_else(Vec::new, |owner| owned(owner, given.origin.ties.clone()))
        }
        Record::Observation { origin, .. } => {
            let owner = origin.id.map(|id| TextOwner::Observation(ObservationId(id)));
            owner.map_or_else(Vec::new, |owner| owned(owner, origin.ties.clone()))
        }
        Record::Relation { .. } | Record::Header { .. } | Record::Change(_) | Record::Ties(_) => Vec::new(),
    }
}
