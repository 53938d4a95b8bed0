//! Loads what a list of changes may touch: a few queries, however long the list is.

use std::collections::BTreeSet;

use deadpool_postgres::{GenericClient, Transaction};
use quipu_core::memory::{Entity, EntityId, Observation, Relation, name_key};
use quipu_core::ports::{ChangeNumber, EntityRef, LoggedChange, MemoryChange, MemoryItem};

use super::draft::{Draft, LastIds};
use super::item::{self, ENTITY, OBSERVATION, RELATION};
use super::ties;
use crate::failure::DatabaseError;
use crate::row::{self, escape, get, list};

/// What must be loaded before changes can be made.
#[derive(Default)]
pub(super) struct Needs {
    entities: BTreeSet<i64>,
    /// Entities with everything that hangs on them.
    whole: BTreeSet<i64>,
    names: BTreeSet<String>,
    observations: BTreeSet<i64>,
    relations: BTreeSet<i64>,
    /// Relations by their ends and type.
    ends: BTreeSet<(i64, i64, String)>,
    /// Clients whose context is needed.
    pub(super) clients: Vec<String>,
}

impl Needs {
    pub(super) fn of_changes(changes: &[MemoryChange]) -> Self {
        let mut needs = Self::default();
        changes.iter().for_each(|change| needs.add_change(change));
        needs
    }

    /// For undoing a change.
    pub(super) fn of_undo(change: &LoggedChange) -> Self {
        let mut needs = Self::default();
        for item in change.steps.iter().flat_map(|(before, after)| before.iter().chain(after)) {
            needs.add_item(item);
        }
        needs
    }

    fn add_change(&mut self, change: &MemoryChange) {
        match change {
            MemoryChange::CreateEntity(new) => self.add_name(&new.name),
            MemoryChange::UpdateEntity { id, update } => {
                self.entities.insert(id.0);
                update.name.iter().for_each(|name| self.add_name(name));
            }
            MemoryChange::CompleteEntity { id, .. } => drop(self.entities.insert(id.0)),
            MemoryChange::DeleteEntity { id } => self.add_whole(*id),
            MemoryChange::MergeEntity { from, into } => {
                self.add_whole(*from);
                self.add_whole(*into);
            }
            MemoryChange::AddObservation { entity, .. } => self.add_reference(*entity),
            MemoryChange::UpdateObservation { id, .. } | MemoryChange::DeleteObservation { id } => {
                self.observations.insert(id.0);
            }
            MemoryChange::AddRelation { from, to, relation_type } => {
                self.add_reference(*from);
                self.add_reference(*to);
                if let (EntityRef::Id(from), EntityRef::Id(to)) = (from, to) {
                    self.add_ends(*from, *to, relation_type);
                }
            }
            MemoryChange::DeleteRelation { id } => drop(self.relations.insert(id.0)),
            // About what the list itself makes.
            MemoryChange::SetTimes { .. } | MemoryChange::Tie { .. } => {}
            MemoryChange::Numbered { change, .. } => self.add_change(change),
        }
    }

    fn add_item(&mut self, item: &MemoryItem) {
        match item {
            MemoryItem::Entity(entity) => {
                self.add_whole(entity.id);
                self.add_name(&entity.name);
            }
            MemoryItem::Observation(seen) => {
                self.observations.insert(seen.id.0);
                self.entities.insert(seen.entity.0);
            }
            MemoryItem::Relation(relation) => {
                self.relations.insert(relation.id.0);
                self.entities.extend([relation.from.0, relation.to.0]);
                self.add_ends(relation.from, relation.to, &relation.relation_type);
            }
        }
    }

    fn add_whole(&mut self, id: EntityId) {
        self.entities.insert(id.0);
        self.whole.insert(id.0);
    }

    fn add_reference(&mut self, entity: EntityRef) {
        if let EntityRef::Id(id) = entity {
            self.entities.insert(id.0);
        }
    }

    fn add_name(&mut self, name: &str) {
        self.names.insert(escape(&name_key(name)).into_owned());
    }

    fn add_ends(&mut self, from: EntityId, to: EntityId, relation_type: &str) {
        self.ends.insert((from.0, to.0, escape(relation_type).into_owned()));
    }
}

/// Locks memory against other writers until the transaction ends; returns the last numbers given.
pub(super) async fn lock(tx: &Transaction<'_>, graph: i64) -> Result<(ChangeNumber, LastIds), DatabaseError> {
    let sql = "SELECT change, entity, observation, relation FROM memory_head WHERE graph = $1 FOR UPDATE";
    let read = |row: &_| {
        let last = LastIds { entity: get(row, 1)?, observation: get(row, 2)?, relation: get(row, 3)? };
        Ok((ChangeNumber(get(row, 0)?), last))
    };
    let head = row::first(tx, sql, &[&graph], read).await?;
    head.ok_or_else(|| row::BadRow("the graph was deleted".to_owned()).into())
}

/// A draft with everything that is needed.
pub(super) async fn draft(
    tx: &Transaction<'_>,
    graph: i64,
    needs: &Needs,
    last: LastIds,
    at_ns: i64,
) -> Result<Draft, DatabaseError> {
    let whole: Vec<i64> = needs.whole.iter().copied().collect();
    let (entities, observations, relations, contexts, ties) = tokio::try_join!(
        entities(tx, graph, needs),
        observations(tx, graph, needs, &whole),
        relations(tx, graph, needs, &whole),
        contexts(tx, graph, &needs.clients, &whole),
        ties::of_entities(tx, graph, &whole),
    )?;
    let mut draft = Draft::new(last, at_ns);
    entities.into_iter().for_each(|entity| draft.load(MemoryItem::Entity(entity)));
    observations.into_iter().for_each(|seen| draft.load(MemoryItem::Observation(seen)));
    relations.into_iter().for_each(|relation| draft.load(MemoryItem::Relation(relation)));
    draft.contexts = contexts.into_iter().collect();
    draft.ties = ties.into_iter().map(|tie| ((tie.owner, tie.target), tie.path)).collect();
    Ok(draft)
}

async fn entities(tx: &impl GenericClient, graph: i64, needs: &Needs) -> Result<Vec<Entity>, DatabaseError> {
    if needs.entities.is_empty() && needs.names.is_empty() {
        return Ok(Vec::new());
    }
    let sql =
        format!("SELECT {ENTITY} FROM entity e WHERE e.graph = $1 AND (e.id = ANY ($2) OR e.name_key = ANY ($3))");
    let ids: Vec<i64> = needs.entities.iter().copied().collect();
    let names: Vec<&String> = needs.names.iter().collect();
    list(tx, &sql, &[&graph, &ids, &names], item::entity).await
}

async fn observations(
    tx: &impl GenericClient,
    graph: i64,
    needs: &Needs,
    whole: &Vec<i64>,
) -> Result<Vec<Observation>, DatabaseError> {
    if needs.observations.is_empty() && whole.is_empty() {
        return Ok(Vec::new());
    }
    let sql =
        format!("SELECT {OBSERVATION} FROM observation WHERE graph = $1 AND (id = ANY ($2) OR entity = ANY ($3))");
    let ids: Vec<i64> = needs.observations.iter().copied().collect();
    list(tx, &sql, &[&graph, &ids, whole], item::observation).await
}

async fn relations(
    tx: &impl GenericClient,
    graph: i64,
    needs: &Needs,
    whole: &Vec<i64>,
) -> Result<Vec<Relation>, DatabaseError> {
    if needs.relations.is_empty() && needs.ends.is_empty() && whole.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {RELATION} FROM relation WHERE graph = $1 AND (id = ANY ($2) OR source = ANY ($3) OR target = ANY ($3)) \
         UNION SELECT {RELATION} FROM relation \
         JOIN unnest($4::bigint[], $5::bigint[], $6::text[]) AS wanted (source, target, type) USING (source, target, type) \
         WHERE graph = $1"
    );
    let ids: Vec<i64> = needs.relations.iter().copied().collect();
    let sources: Vec<i64> = needs.ends.iter().map(|ends| ends.0).collect();
    let targets: Vec<i64> = needs.ends.iter().map(|ends| ends.1).collect();
    let types: Vec<&String> = needs.ends.iter().map(|ends| &ends.2).collect();
    list(tx, &sql, &[&graph, &ids, whole, &sources, &targets, &types], item::relation).await
}

async fn contexts(
    tx: &impl GenericClient,
    graph: i64,
    clients: &[String],
    whole: &Vec<i64>,
) -> Result<Vec<(String, (EntityId, i64))>, DatabaseError> {
    if clients.is_empty() && whole.is_empty() {
        return Ok(Vec::new());
    }
    let sql =
        "SELECT client, entity, set_ns FROM context WHERE graph = $1 AND (entity = ANY ($2) OR client = ANY ($3))";
    let clients: Vec<_> = clients.iter().map(|client| escape(client)).collect();
    let read = |row: &_| Ok((row::text(row, 0)?, (EntityId(get(row, 1)?), get(row, 2)?)));
    list(tx, sql, &[&graph, whole, &clients], read).await
}
