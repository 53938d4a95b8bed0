//! Export of memory, in batches.

use std::io::{self, Write};

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::ports::{ChangeNumber, MemoryFailure, MemoryItem, MemoryStore, NoteTie, TextOwner};
use serde_json::{Value, json};

use super::log::{self, DeletedOwners};

/// The type of the first line of our own format.
pub(super) const HEADER: &str = "quipu-memory";

/// Rows read at a time.
const BATCH: usize = 1000;

/// The file formats of `quipu export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// Everything: ids, times, aliases, descriptions, and which renamed note a link means.
    Quipu,
    /// The file of the reference memory server: names, types, observations, and relations by name.
    Reference,
    /// One GraphMem document with numbered entities.
    Graphmem,
}

/// Why the export stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error("{failure}: {source}", failure = .0, source = .0.source)]
    Store(#[from] MemoryFailure),
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
}

/// Writes all of memory; returns the number of items. The store must not change meanwhile: it is read in batches.
pub(crate) fn export(store: &dyn MemoryStore, format: ExportFormat, out: &mut dyn Write) -> Result<u64, ExportError> {
    match format {
        ExportFormat::Quipu => quipu(store, out),
        ExportFormat::Reference => reference(store, out),
        ExportFormat::Graphmem => graphmem(store, out),
    }
}

fn quipu(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<u64, ExportError> {
    line(out, &json!({"type": HEADER, "version": 1}))?;
    let mut count = 0;
    entities_in_batches(store, |entities| {
        let owners: Vec<TextOwner> = entities.iter().map(|entity| TextOwner::Entity(entity.id)).collect();
        for (entity, ties) in entities.into_iter().zip(store.ties_of(&owners)?) {
            count += 1;
            let mut row = row(&MemoryItem::Entity(entity));
            add_ties(ties, &mut row);
            line(out, &row)?;
        }
        Ok(())
    })?;
    observations_in_batches(store, |observations| {
        let owners: Vec<TextOwner> = observations.iter().map(|seen| TextOwner::Observation(seen.id)).collect();
        for (seen, ties) in observations.into_iter().zip(store.ties_of(&owners)?) {
            count += 1;
            let mut row = row(&MemoryItem::Observation(seen));
            add_ties(ties, &mut row);
            line(out, &row)?;
        }
        Ok(())
    })?;
    relations_in_batches(store, |relations| {
        for relation in relations {
            count += 1;
            line(out, &row(&MemoryItem::Relation(relation)))?;
        }
        Ok(())
    })?;
    Ok(count)
}

/// An item as a line of our own format, without its ties.
pub(super) fn row(item: &MemoryItem) -> Value {
    match item {
        MemoryItem::Entity(entity) => {
            let Entity { id, name, entity_type, aliases, description, created_ns, updated_ns, .. } = entity;
            json!({"type": "entity", "id": id.0, "name": name, "entity_type": entity_type, "aliases": aliases,
                "description": description, "created_ns": created_ns, "updated_ns": updated_ns})
        }
        MemoryItem::Observation(Observation { id, entity, text, created_ns, updated_ns }) => {
            json!({"type": "observation", "id": id.0, "entity": entity.0, "text": text, "created_ns": created_ns,
                "updated_ns": updated_ns})
        }
        MemoryItem::Relation(Relation { id, from, to, relation_type, created_ns, updated_ns }) => {
            json!({"type": "relation", "id": id.0, "from": from.0, "to": to.0, "relation_type": relation_type,
                "created_ns": created_ns, "updated_ns": updated_ns})
        }
    }
}

/// Writes the log of changes, oldest first, after an export in our own format.
pub(crate) fn export_log(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<(), ExportError> {
    let (head, mut gone) = (store.head()?, DeletedOwners::default());
    let mut first = 1;
    while first <= head.0 {
        let next = first + BATCH as i64;
        for entry in store.log_before(ChangeNumber(next), BATCH)?.iter().rev() {
            gone.follow(entry);
            line(out, &log::entry_row(entry))?;
        }
        first = next;
    }
    for owners in gone.owners().chunks(BATCH) {
        for (owner, ties) in owners.iter().zip(store.ties_of(owners)?).filter(|(_, ties)| !ties.is_empty()) {
            line(out, &log::ties_row(*owner, ties))?;
        }
    }
    Ok(())
}

fn reference(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<u64, ExportError> {
    let mut count = 0;
    entities_in_batches(store, |entities| {
        let observations = observations_of(store, &entities)?;
        for (entity, observations) in entities.into_iter().zip(observations) {
            count += 1;
            let observations: Vec<String> = observations.into_iter().map(|seen| seen.text).collect();
            let row = json!({"type": "entity", "name": entity.name, "entityType": entity.entity_type,
                "observations": observations});
            line(out, &row)?;
        }
        Ok(())
    })?;
    relations_in_batches(store, |relations| {
        let ends: Vec<EntityId> = relations.iter().flat_map(|relation| [relation.from, relation.to]).collect();
        let mut names = store.entities(&ends)?.into_iter().map(|end| end.map(|entity| entity.name));
        for relation in relations {
            count += 1;
            let (from, to) = (names.next().flatten(), names.next().flatten());
            let row = json!({"type": "relation", "from": from, "to": to, "relationType": relation.relation_type});
            line(out, &row)?;
        }
        Ok(())
    })?;
    Ok(count)
}

fn graphmem(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<u64, ExportError> {
    let mut count = 0;
    out.write_all(b"{\"memory_entities\":[")?;
    let mut separator = "";
    entities_in_batches(store, |entities| {
        let observations = observations_of(store, &entities)?;
        for (entity, observations) in entities.into_iter().zip(observations) {
            count += 1;
            let observations: Vec<Value> =
                observations.into_iter().map(|seen| json!({ "content": seen.text })).collect();
            let row = json!({"id": entity.id.0, "name": entity.name, "entity_type": entity.entity_type,
                "aliases": entity.aliases.join("|"), "description": entity.description,
                "memory_observations": observations});
            write!(out, "{separator}\n{row}")?;
            separator = ",";
        }
        Ok(())
    })?;
    out.write_all(b"\n],\"memory_relations\":[")?;
    separator = "";
    relations_in_batches(store, |relations| {
        for relation in relations {
            count += 1;
            let row = json!({"from_entity_id": relation.from.0, "to_entity_id": relation.to.0,
                "relation_type": relation.relation_type});
            write!(out, "{separator}\n{row}")?;
            separator = ",";
        }
        Ok(())
    })?;
    out.write_all(b"\n]}\n")?;
    Ok(count)
}

/// Adds the notes that links of a text are tied to, by the text between their brackets.
pub(super) fn add_ties(ties: Vec<NoteTie>, row: &mut Value) {
    if !ties.is_empty() {
        let ties = ties.into_iter().map(|tie| (tie.target, Value::from(tie.path.as_str())));
        row["ties"] = Value::Object(ties.collect());
    }
}

fn observations_of(store: &dyn MemoryStore, entities: &[Entity]) -> Result<Vec<Vec<Observation>>, MemoryFailure> {
    store.observations_of(&entities.iter().map(|entity| entity.id).collect::<Vec<_>>())
}

fn entities_in_batches(
    store: &dyn MemoryStore,
    write: impl FnMut(Vec<Entity>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    in_batches(EntityId(0), |after| store.entities_after(after, BATCH), |entity| entity.id, write)
}

fn observations_in_batches(
    store: &dyn MemoryStore,
    write: impl FnMut(Vec<Observation>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    in_batches(ObservationId(0), |after| store.observations_after(after, BATCH), |seen| seen.id, write)
}

fn relations_in_batches(
    store: &dyn MemoryStore,
    write: impl FnMut(Vec<Relation>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    in_batches(RelationId(0), |after| store.relations_after(after, BATCH), |relation| relation.id, write)
}

/// Reads all rows, each batch after the last id of the one before.
fn in_batches<Id: Copy, T>(
    mut after: Id,
    read: impl Fn(Id) -> Result<Vec<T>, MemoryFailure>,
    id: impl Fn(&T) -> Id,
    mut write: impl FnMut(Vec<T>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    loop {
        let batch = read(after)?;
        let Some(last) = batch.last() else { return Ok(()) };
        after = id(last);
        write(batch)?;
    }
}

fn line(out: &mut dyn Write, row: &Value) -> Result<(), ExportError> {
    writeln!(out, "{row}")?;
    Ok(())
}
