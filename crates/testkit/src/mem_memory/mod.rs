//! Memory in plain maps, written to be read rather than to be fast: the model that real stores are compared with.

mod redact;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::RequestKey;
use quipu_core::memory::{
    DuplicateRule, Entity, EntityId, EntityTypes, Memory, MemoryParts, Observation, ObservationId, Relation,
    RelationId, WholeLog, name_key,
};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    Applied, ApplyError, Author, ChangeNumber, ChangedIds, Clock, CopyLogError, LoggedChange, MemoryChange,
    MemoryCounts, MemoryFailure, MemoryItem, MemoryStore, NoteTie, Redaction, RelationFilter, StoredVector, TextOwner,
    UndoError,
};

use self::state::State;
use crate::memory_conformance::MemoryStorage;

/// The storage of a [`MemMemory`], which survives reopening as a disk does.
#[derive(Debug, Default)]
pub struct MemMemoryStorage(Arc<Mutex<State>>);

impl MemoryStorage for MemMemoryStorage {
    type Store = MemMemory;

    fn open(&self) -> MemMemory {
        MemMemory(self.0.clone())
    }
}

/// A memory store; see the module.
#[derive(Debug, Default)]
pub struct MemMemory(Arc<Mutex<State>>);

/// A memory over maps, without an embedder.
pub fn mem_memory(clock: Arc<dyn Clock>) -> Memory {
    Memory::new(MemoryParts {
        store: Arc::new(MemMemory::default()),
        embedder: None,
        clock,
        types: EntityTypes::default(),
        rule: DuplicateRule::default(),
    })
}

impl MemMemory {
    /// The greatest ids so far: of entities, observations and relations.
    pub fn last_ids(&self) -> (i64, i64, i64) {
        self.state().last
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl MemoryStore for MemMemory {
    fn apply_at(
        &self,
        head: Option<ChangeNumber>,
        changes: &[MemoryChange],
        author: &Author,
    ) -> Result<Applied, ApplyError> {
        if changes.is_empty() {
            return Ok(Applied { change: ChangeNumber(0), outcomes: Vec::new() });
        }
        let mut state = self.state();
        if let Some((_, applied)) = author.request.and_then(|request| state.requests.get(&request)) {
            return Ok(applied.clone());
        }
        if head.is_some_and(|head| head != ChangeNumber(state.log.len() as i64)) {
            return Err(ApplyError::Moved);
        }
        let mut next = state.clone();
        let (mut outcomes, mut steps) = (Vec::new(), Vec::new());
        for (number, change) in changes.iter().enumerate() {
            let outcome = next.change(change, &outcomes, author.at_ns, &mut steps);
            outcomes.push(outcome.map_err(|refusal| ApplyError::Refused { change: number, refusal })?);
        }
        let change = ChangeNumber(next.log.len() as i64 + 1);
        next.note_moved(change, &state.contexts);
        // The log does not have the request.
        let logged = Author { request: None, ..author.clone() };
        next.log.push(LoggedChange { number: change, author: logged, undoes: None, undone_by: None, steps });
        let applied = Applied { change, outcomes };
        next.remember(author, applied.clone());
        *state = next;
        Ok(applied)
    }

    fn was_applied(&self, request: RequestKey) -> Result<bool, MemoryFailure> {
        Ok(self.state().requests.contains_key(&request))
    }

    fn undo(&self, number: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoError> {
        let mut state = self.state();
        if let Some((_, applied)) = author.request.and_then(|request| state.requests.get(&request)) {
            return Ok(state.logged(applied.change).clone());
        }
        let mut next = state.clone();
        if !next.log.iter().any(|entry| entry.number == number) {
            return Err(UndoError::Unknown(number));
        }
        if let Some(by) = next.standing_undo(number) {
            return Err(UndoError::Undone { change: number, by });
        }
        let undone = next.latest_doing(number).clone();
        let contexts = next.moved_by(undone.number);
        let mut steps = Vec::new();
        for (before, after) in undone.steps.into_iter().rev() {
            next.turn_round(before, after, &mut steps)
                .map_err(|reason| UndoError::Depended { change: number, reason })?;
        }
        let by = ChangeNumber(next.log.len() as i64 + 1);
        contexts.into_iter().for_each(|(client, before)| next.set_context(&client, before));
        next.note_moved(by, &state.contexts);
        let (undoes, logged) = (Some(undone.number), Author { request: None, ..author.clone() });
        let entry = LoggedChange { number: by, author: logged, undoes, undone_by: None, steps };
        next.log.push(entry.clone());
        next.remember(author, Applied { change: by, outcomes: Vec::new() });
        *state = next;
        Ok(entry)
    }

    fn redact(&self, owner: TextOwner, reason: &str, author: &Author) -> Result<Redaction, ApplyError> {
        let mut state = self.state();
        let next = state.redacted(owner, reason, author);
        let (next, redaction) = next.map_err(|refusal| ApplyError::Refused { change: 0, refusal })?;
        *state = next;
        Ok(redaction)
    }

    fn entities(&self, ids: &[EntityId]) -> Result<Vec<Option<Entity>>, MemoryFailure> {
        let state = self.state();
        Ok(ids.iter().map(|id| state.entities.get(id).map(|entity| state.counted(entity))).collect())
    }

    fn entities_called(&self, keys: &[String]) -> Result<Vec<Vec<EntityId>>, MemoryFailure> {
        let state = self.state();
        let called = |key: &String| {
            let named = state.entities.values().filter(|entity| name_key(&entity.name) == *key);
            let also = state.entities.values().filter(|entity| {
                name_key(&entity.name) != *key && entity.aliases.iter().any(|alias| name_key(alias) == *key)
            });
            named.chain(also).map(|entity| entity.id).collect()
        };
        Ok(keys.iter().map(called).collect())
    }

    fn entities_after(&self, after: EntityId, limit: usize) -> Result<Vec<Entity>, MemoryFailure> {
        let state = self.state();
        let behind = state.entities.values().filter(|entity| entity.id > after);
        Ok(behind.take(limit).map(|entity| state.counted(entity)).collect())
    }

    fn entities_from(&self, offset: u64, limit: usize) -> Result<Vec<Entity>, MemoryFailure> {
        let state = self.state();
        let page = state.entities.values().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
        Ok(page.map(|entity| state.counted(entity)).collect())
    }

    fn observations(&self, ids: &[ObservationId]) -> Result<Vec<Option<Observation>>, MemoryFailure> {
        let state = self.state();
        Ok(ids.iter().map(|id| state.observations.get(id).cloned()).collect())
    }

    fn observations_of(&self, entities: &[EntityId]) -> Result<Vec<Vec<Observation>>, MemoryFailure> {
        let state = self.state();
        let of = |id: &EntityId| state.observations.values().filter(|seen| seen.entity == *id).cloned().collect();
        Ok(entities.iter().map(of).collect())
    }

    fn observations_after(&self, after: ObservationId, limit: usize) -> Result<Vec<Observation>, MemoryFailure> {
        Ok(self.state().observations.values().filter(|seen| seen.id > after).take(limit).cloned().collect())
    }

    fn relations(&self, ids: &[RelationId]) -> Result<Vec<Option<Relation>>, MemoryFailure> {
        let state = self.state();
        Ok(ids.iter().map(|id| state.relations.get(id).cloned()).collect())
    }

    fn relations_after(&self, after: RelationId, limit: usize) -> Result<Vec<Relation>, MemoryFailure> {
        Ok(self.state().relations.values().filter(|relation| relation.id > after).take(limit).cloned().collect())
    }

    fn relations_where(
        &self,
        filter: &RelationFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, MemoryFailure> {
        let passes = |relation: &&Relation| {
            filter.from.is_none_or(|from| relation.from == from)
                && filter.to.is_none_or(|to| relation.to == to)
                && filter.relation_type.as_ref().is_none_or(|wanted| relation.relation_type == *wanted)
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(self.state().relations.values().filter(passes).skip(offset).take(limit).cloned().collect())
    }

    fn relations_among(&self, entities: &[EntityId]) -> Result<Vec<Relation>, MemoryFailure> {
        let among = |relation: &&Relation| entities.contains(&relation.from) && entities.contains(&relation.to);
        Ok(self.state().relations.values().filter(among).cloned().collect())
    }

    fn sources_into(&self, targets: &[EntityId], relation_type: &str) -> Result<Vec<EntityId>, MemoryFailure> {
        let into = |relation: &&Relation| {
            targets.contains(&relation.to) && relation.relation_type.eq_ignore_ascii_case(relation_type)
        };
        Ok(self.state().relations.values().filter(into).map(|relation| relation.from).collect())
    }

    fn entity_count(&self) -> Result<u64, MemoryFailure> {
        Ok(self.state().entities.len() as u64)
    }

    fn counts(&self) -> Result<MemoryCounts, MemoryFailure> {
        let state = self.state();
        Ok(MemoryCounts {
            entities: state.entities.len() as u64,
            observations: state.observations.len() as u64,
            relations: state.relations.len() as u64,
        })
    }

    fn head(&self) -> Result<ChangeNumber, MemoryFailure> {
        Ok(ChangeNumber(self.state().log.len() as i64))
    }

    fn changed_since(&self, change: ChangeNumber) -> Result<ChangedIds, MemoryFailure> {
        let state = self.state();
        let mut entities = BTreeSet::new();
        let mut observations = BTreeSet::new();
        let mut relations = BTreeSet::new();
        for (before, after) in state.log.iter().filter(|entry| entry.number > change).flat_map(|entry| &entry.steps) {
            match after.as_ref().or(before.as_ref()) {
                Some(MemoryItem::Entity(entity)) => drop(entities.insert(entity.id)),
                Some(MemoryItem::Observation(seen)) => drop(observations.insert(seen.id)),
                Some(MemoryItem::Relation(relation)) => drop(relations.insert(relation.id)),
                None => {}
            }
        }
        Ok(ChangedIds {
            head: ChangeNumber(state.log.len() as i64),
            entities: entities.into_iter().collect(),
            observations: observations.into_iter().collect(),
            relations: relations.into_iter().collect(),
        })
    }

    fn log_before(&self, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, MemoryFailure> {
        let state = self.state();
        let entries = state.log.iter().rev().filter(|entry| entry.number < before).take(limit);
        let shown =
            |entry: &LoggedChange| LoggedChange { undone_by: state.standing_undo(entry.number), ..entry.clone() };
        Ok(entries.map(shown).collect())
    }

    fn copy_log(&self, log: &WholeLog, ties: &[NoteTie]) -> Result<(), CopyLogError> {
        let mut state = self.state();
        if !state.log.is_empty() {
            return Err(CopyLogError::NotEmpty);
        }
        state.entities.clone_from(&log.entities);
        state.observations.clone_from(&log.observations);
        state.relations.clone_from(&log.relations);
        state.last = log.greatest;
        state.log = log.entries().iter().map(|entry| LoggedChange { undone_by: None, ..entry.clone() }).collect();
        state.ties.extend(ties.iter().map(|tie| ((tie.owner, tie.target.clone()), tie.path.clone())));
        Ok(())
    }

    fn context(&self, client: &str) -> Result<Option<EntityId>, MemoryFailure> {
        Ok(self.state().contexts.get(client).copied())
    }

    fn set_context(&self, client: &str, entity: Option<EntityId>, _at_ns: i64) -> Result<(), MemoryFailure> {
        let mut state = self.state();
        if let Some(entity) = entity.filter(|entity| !state.entities.contains_key(entity)) {
            return Err(MemoryFailure::new("change", format!("there is no entity {entity}")));
        }
        state.moved.retain(|(_, of), _| of != client);
        state.set_context(client, entity);
        Ok(())
    }

    fn vectors_after(
        &self,
        space: &str,
        after: Option<TextOwner>,
        limit: usize,
    ) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure> {
        let state = self.state();
        let of_space = state.vectors.iter().filter(|((of, owner), _)| of == space && Some(*owner) > after);
        let alive = of_space.filter(|((_, owner), _)| match owner {
            TextOwner::Entity(id) => state.entities.contains_key(id),
            TextOwner::Observation(id) => state.observations.contains_key(id),
        });
        Ok(alive.take(limit).map(|((_, owner), vector)| (*owner, vector.clone())).collect())
    }

    fn put_vectors(&self, space: &str, vectors: &[(TextOwner, StoredVector)]) -> Result<(), MemoryFailure> {
        let mut state = self.state();
        for (owner, vector) in vectors {
            state.vectors.insert((space.to_owned(), *owner), vector.clone());
        }
        Ok(())
    }

    fn ties_of(&self, owners: &[TextOwner]) -> Result<Vec<Vec<NoteTie>>, MemoryFailure> {
        let state = self.state();
        Ok(owners.iter().map(|owner| state.ties_where(|tie| tie.owner == *owner)).collect())
    }

    fn ties_to(&self, path: &VaultPath) -> Result<Vec<NoteTie>, MemoryFailure> {
        Ok(self.state().ties_where(|tie| tie.path == *path))
    }

    fn linking_texts_gone(&self) -> Result<Vec<(TextOwner, String)>, MemoryFailure> {
        let text = |item: &MemoryItem| match item {
            MemoryItem::Entity(entity) => Some((TextOwner::Entity(entity.id), entity.description.clone()?)),
            MemoryItem::Observation(seen) => Some((TextOwner::Observation(seen.id), seen.text.clone())),
            MemoryItem::Relation(_) => None,
        };
        let state = self.state();
        let gone = state.log.iter().flat_map(|entry| &entry.steps).filter_map(|(before, _)| text(before.as_ref()?));
        Ok(gone.filter(|(_, text)| text.contains("[[")).collect())
    }

    fn repoint_links(&self, removed: &[NoteTie], added: &[NoteTie]) -> Result<(), MemoryFailure> {
        let mut state = self.state();
        for tie in removed {
            state.ties.remove(&(tie.owner, tie.target.clone()));
        }
        for tie in added {
            state.ties.insert((tie.owner, tie.target.clone()), tie.path.clone());
        }
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, MemoryFailure> {
        drop(self.state());
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    crate::memory_conformance!(crate::MemMemoryStorage::default());
}
