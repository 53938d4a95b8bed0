//! Memory written out, a page of the store at a time.

use std::io::{self, Write};

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation};
use quipu_core::ports::{MemoryFailure, MemoryStore, RelationFilter, TextOwner};
use serde_json::{Value, json};

/// The first line of our own form.
pub(super) const HEADER: &str = "quipu-memory";

/// Rows read at a time.
const BATCH: usize = 1000;

/// The forms there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Everything: ids, times, aliases, descriptions, which renamed note a link means.
    Quipu,
    /// What the reference memory server keeps: names, types, observations and relations by name.
    Reference,
    /// One document with numbered entities, as GraphMem has it.
    Graphmem,
}

/// Why the export stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error("{failure}: {source}", failure = .0, source = .0.source)]
    Store(#[from] MemoryFailure),
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Writes all of memory; returns how many lines or items.
pub(crate) fn export(store: &dyn MemoryStore, format: Format, out: &mut dyn Write) -> Result<u64, ExportError> {
    match format {
        Format::Quipu => quipu(store, out),
        Format::Reference => reference(store, out),
        Format::Graphmem => graphmem(store, out),
    }
}

fn quipu(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<u64, ExportError> {
    line(out, &json!({"type": HEADER, "version": 1}))?;
    let mut count = 0;
    for_each_entity(store, |entity| {
        count += 1;
        let Entity { id, name, entity_type, aliases, description, created_ns, updated_ns, .. } = entity;
        let mut row = json!({"type": "entity", "id": id.0, "name": name, "entity_type": entity_type, "aliases": aliases,
            "description": description, "created_ns": created_ns, "updated_ns": updated_ns});
        add_ties(store, TextOwner::Entity(id), &mut row)?;
        line(out, &row)
    })?;
    let mut after = ObservationId(0);
    loop {
        let batch = store.observations_after(after, BATCH)?;
        let Some(last) = batch.last() else { break };
        after = last.id;
        for Observation { id, entity, text, created_ns, updated_ns } in batch {
            count += 1;
            let mut row = json!({"type": "observation", "id": id.0, "entity": entity.0, "text": text,
                "created_ns": created_ns, "updated_ns": updated_ns});
            add_ties(store, TextOwner::Observation(id), &mut row)?;
            line(out, &row)?;
        }
    }
    for_each_relation(store, |Relation { id, from, to, relation_type, created_ns, updated_ns }| {
        count += 1;
        let row = json!({"type": "relation", "id": id.0, "from": from.0, "to": to.0, "relation_type": relation_type,
            "created_ns": created_ns, "updated_ns": updated_ns});
        line(out, &row)
    })?;
    Ok(count)
}

fn reference(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<u64, ExportError> {
    let mut count = 0;
    for_each_entity(store, |entity| {
        count += 1;
        let observations = texts(store, entity.id)?;
        let row = json!({"type": "entity", "name": entity.name, "entityType": entity.entity_type,
            "observations": observations});
        line(out, &row)
    })?;
    for_each_relation(store, |relation| {
        count += 1;
        let ends = store.entities(&[relation.from, relation.to])?;
        let name = |place: usize| ends[place].as_ref().map(|entity| entity.name.clone());
        let row = json!({"type": "relation", "from": name(0), "to": name(1), "relationType": relation.relation_type});
        line(out, &row)
    })?;
    Ok(count)
}

fn graphmem(store: &dyn MemoryStore, out: &mut dyn Write) -> Result<u64, ExportError> {
    let mut count = 0;
    out.write_all(b"{\"memory_entities\":[")?;
    let mut separator = "";
    for_each_entity(store, |entity| {
        count += 1;
        let observations: Vec<Value> =
            texts(store, entity.id)?.into_iter().map(|content| json!({ "content": content })).collect();
        let row = json!({"id": entity.id.0, "name": entity.name, "entity_type": entity.entity_type,
            "aliases": entity.aliases.join("|"), "description": entity.description,
            "memory_observations": observations});
        write!(out, "{separator}\n{row}")?;
        separator = ",";
        Ok(())
    })?;
    out.write_all(b"\n],\"memory_relations\":[")?;
    separator = "";
    for_each_relation(store, |relation| {
        count += 1;
        let row = json!({"from_entity_id": relation.from.0, "to_entity_id": relation.to.0,
            "relation_type": relation.relation_type});
        write!(out, "{separator}\n{row}")?;
        separator = ",";
        Ok(())
    })?;
    out.write_all(b"\n]}\n")?;
    Ok(count)
}

/// What the links of a text are tied to, by what is written between their brackets; nothing where none is.
fn add_ties(store: &dyn MemoryStore, owner: TextOwner, row: &mut Value) -> Result<(), MemoryFailure> {
    let ties = store.ties_of(&[owner])?.pop().unwrap_or_default();
    if !ties.is_empty() {
        let ties = ties.into_iter().map(|tie| (tie.target, Value::from(tie.path.as_str())));
        row["ties"] = Value::Object(ties.collect());
    }
    Ok(())
}

fn texts(store: &dyn MemoryStore, entity: EntityId) -> Result<Vec<String>, MemoryFailure> {
    let seen = store.observations_of(&[entity])?.pop().unwrap_or_default();
    Ok(seen.into_iter().map(|seen| seen.text).collect())
}

fn for_each_entity(
    store: &dyn MemoryStore,
    mut write: impl FnMut(Entity) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut after = EntityId(0);
    loop {
        let batch = store.entities_after(after, BATCH)?;
        let Some(last) = batch.last() else { return Ok(()) };
        after = last.id;
        batch.into_iter().try_for_each(&mut write)?;
    }
}

fn for_each_relation(
    store: &dyn MemoryStore,
    mut write: impl FnMut(Relation) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut offset = 0;
    loop {
        let batch = store.relations_where(&RelationFilter::default(), offset, BATCH)?;
        if batch.is_empty() {
            return Ok(());
        }
        offset += batch.len() as u64;
        batch.into_iter().try_for_each(&mut write)?;
    }
}

fn line(out: &mut dyn Write, row: &Value) -> Result<(), ExportError> {
    writeln!(out, "{row}")?;
    Ok(())
}
