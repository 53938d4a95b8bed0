//! Memory in plain maps: the rules of the port, written for reading rather than for speed. It is the model against which
//! real stores are held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_core::RequestKey;
use quipu_core::memory::{
    DuplicateRule, Entity, EntityId, EntityTypes, Memory, MemoryParts, Observation, ObservationId, Relation,
    RelationId, name_key,
};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    Applied, ApplyError, Author, ChangeNumber, Clock, EntityRef, LoggedChange, MemoryChange, MemoryCounts,
    MemoryFailure, MemoryItem, MemoryStore, NoteTie, Refusal, RelationFilter, StoredVector, TextOwner, Touched,
    UndoError,
};

use crate::memory_conformance::MemoryShelf;

/// Keeps memories between runs of a test.
#[derive(Debug, Default)]
pub struct MemMemoryShelf(Arc<Mutex<State>>);

impl MemoryShelf for MemMemoryShelf {
    type Store = MemMemory;

    fn open(&self) -> MemMemory {
        MemMemory(self.0.clone())
    }
}

/// Memory that lives as long as its shelf.
#[derive(Debug, Default)]
pub struct MemMemory(Arc<Mutex<State>>);

#[derive(Debug, Clone, Default)]
struct State {
    entities: BTreeMap<EntityId, Entity>,
    observations: BTreeMap<ObservationId, Observation>,
    relations: BTreeMap<RelationId, Relation>,
    last: (i64, i64, i64),
    log: Vec<LoggedChange>,
    contexts: BTreeMap<String, EntityId>,
    vectors: BTreeMap<(String, TextOwner), StoredVector>,
    ties: BTreeMap<(TextOwner, String), VaultPath>,
    requests: BTreeMap<RequestKey, (i64, Applied)>,
}

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

type Step = (Option<MemoryItem>, Option<MemoryItem>);

impl MemMemory {
    /// The greatest ids given so far: of entities, observations and relations.
    pub fn last_ids(&self) -> (i64, i64, i64) {
        self.state().last
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn counted(&self, entity: &Entity) -> Entity {
        let count = self.observations.values().filter(|seen| seen.entity == entity.id).count();
        Entity { observation_count: count as u64, ..entity.clone() }
    }

    fn entity(&self, id: EntityId) -> Result<Entity, Refusal> {
        self.entities.get(&id).cloned().ok_or(Refusal::NoEntity(id))
    }

    fn refuse_taken(&self, name: &str, but_for: Option<EntityId>) -> Result<(), Refusal> {
        let owner = self.entities.values().find(|entity| name_key(&entity.name) == name_key(name));
        match owner.filter(|owner| Some(owner.id) != but_for) {
            Some(owner) => Err(Refusal::NameTaken { by: owner.id }),
            None => Ok(()),
        }
    }

    fn same_relation(&self, from: EntityId, to: EntityId, relation_type: &str) -> Option<RelationId> {
        let same = |relation: &&Relation| {
            relation.from == from && relation.to == to && relation.relation_type == relation_type
        };
        self.relations.values().find(same).map(|relation| relation.id)
    }

    fn ties_where(&self, wanted: impl Fn(&NoteTie) -> bool) -> Vec<NoteTie> {
        let ties = self.ties.iter().map(|((owner, target), path)| NoteTie {
            owner: *owner,
            target: target.clone(),
            path: path.clone(),
        });
        ties.filter(wanted).collect()
    }

    fn touching(&self, id: EntityId) -> Vec<Relation> {
        self.relations.values().filter(|relation| relation.from == id || relation.to == id).cloned().collect()
    }

    fn set(&mut self, steps: &mut Vec<Step>, before: Option<MemoryItem>, after: Option<MemoryItem>) {
        match before.as_ref().or(after.as_ref()).expect("a step changes something") {
            MemoryItem::Entity(Entity { id, .. }) => {
                self.entities.remove(id);
            }
            MemoryItem::Observation(Observation { id, .. }) => {
                self.observations.remove(id);
            }
            MemoryItem::Relation(Relation { id, .. }) => {
                self.relations.remove(id);
            }
        }
        match &after {
            Some(MemoryItem::Entity(entity)) => drop(self.entities.insert(entity.id, entity.clone())),
            Some(MemoryItem::Observation(seen)) => drop(self.observations.insert(seen.id, seen.clone())),
            Some(MemoryItem::Relation(relation)) => drop(self.relations.insert(relation.id, relation.clone())),
            None => {}
        }
        steps.push((before, after));
    }

    fn change(
        &mut self,
        change: &MemoryChange,
        made: &[MemoryItem],
        at_ns: i64,
        steps: &mut Vec<Step>,
    ) -> Result<MemoryItem, Refusal> {
        let target = |entity: &EntityRef| match entity {
            EntityRef::Id(id) => *id,
            EntityRef::Made(place) => match made.get(*place) {
                Some(MemoryItem::Entity(entity)) => entity.id,
                _ => EntityId(0),
            },
        };
        match change {
            MemoryChange::CreateEntity(new) => {
                self.refuse_taken(&new.name, None)?;
                self.last.0 += 1;
                let entity = Entity {
                    id: EntityId(self.last.0),
                    name: new.name.clone(),
                    entity_type: new.entity_type.clone(),
                    aliases: new.aliases.clone(),
                    description: new.description.clone(),
                    observation_count: 0,
                    created_ns: at_ns,
                    updated_ns: at_ns,
                };
                self.set(steps, None, Some(MemoryItem::Entity(entity.clone())));
                Ok(MemoryItem::Entity(entity))
            }
            MemoryChange::UpdateEntity { id, update } => {
                let before = self.entity(*id)?;
                let mut after = before.clone();
                if let Some(name) = &update.name {
                    self.refuse_taken(name, Some(*id))?;
                    after.name.clone_from(name);
                }
                if let Some(entity_type) = &update.entity_type {
                    after.entity_type.clone_from(entity_type);
                }
                if let Some(aliases) = &update.aliases {
                    after.aliases.clone_from(aliases);
                }
                if let Some(description) = &update.description {
                    after.description.clone_from(description);
                }
                after.updated_ns = at_ns;
                self.set(steps, Some(MemoryItem::Entity(before)), Some(MemoryItem::Entity(after.clone())));
                Ok(MemoryItem::Entity(self.counted(&after)))
            }
            MemoryChange::DeleteEntity { id } => {
                let entity = self.entity(*id)?;
                let shown = self.counted(&entity);
                for relation in self.touching(*id) {
                    self.set(steps, Some(MemoryItem::Relation(relation)), None);
                }
                let seen: Vec<_> = self.observations.values().filter(|seen| seen.entity == *id).cloned().collect();
                for observation in seen {
                    self.set(steps, Some(MemoryItem::Observation(observation)), None);
                }
                self.set(steps, Some(MemoryItem::Entity(entity)), None);
                self.contexts.retain(|_, entity| entity != id);
                Ok(MemoryItem::Entity(shown))
            }
            MemoryChange::MergeEntity { from, into } => {
                if from == into {
                    return Err(Refusal::Itself(*from));
                }
                let (gone, kept) = (self.entity(*from)?, self.entity(*into)?);
                let seen: Vec<_> = self.observations.values().filter(|seen| seen.entity == *from).cloned().collect();
                for observation in seen {
                    let moved = Observation { entity: *into, updated_ns: at_ns, ..observation.clone() };
                    let (before, after) = (MemoryItem::Observation(observation), MemoryItem::Observation(moved));
                    self.set(steps, Some(before), Some(after));
                }
                for relation in self.touching(*from) {
                    let end = |id: EntityId| if id == *from { *into } else { id };
                    let (source, target) = (end(relation.from), end(relation.to));
                    let is_new = self.same_relation(source, target, &relation.relation_type).is_none();
                    let moved = Relation { from: source, to: target, updated_ns: at_ns, ..relation.clone() };
                    let after = (source != target && is_new).then_some(MemoryItem::Relation(moved));
                    self.set(steps, Some(MemoryItem::Relation(relation)), after);
                }
                self.set(steps, Some(MemoryItem::Entity(gone.clone())), None);
                self.contexts.retain(|_, entity| entity != from);
                for tie in self.ties_where(|tie| tie.owner == TextOwner::Entity(*from)) {
                    self.ties.entry((TextOwner::Entity(*into), tie.target)).or_insert(tie.path);
                }
                let (aliases, description) = kept.absorbing(&gone);
                let after = Entity { aliases, description, updated_ns: at_ns, ..kept.clone() };
                self.set(steps, Some(MemoryItem::Entity(kept)), Some(MemoryItem::Entity(after.clone())));
                Ok(MemoryItem::Entity(self.counted(&after)))
            }
            MemoryChange::AddObservation { entity, text } => {
                let entity = self.entity(target(entity))?.id;
                self.last.1 += 1;
                let id = ObservationId(self.last.1);
                let seen = Observation { id, entity, text: text.clone(), created_ns: at_ns, updated_ns: at_ns };
                self.set(steps, None, Some(MemoryItem::Observation(seen.clone())));
                Ok(MemoryItem::Observation(seen))
            }
            MemoryChange::DeleteObservation { id } => {
                let seen = self.observations.get(id).cloned().ok_or(Refusal::NoObservation(*id))?;
                self.set(steps, Some(MemoryItem::Observation(seen.clone())), None);
                Ok(MemoryItem::Observation(seen))
            }
            MemoryChange::AddRelation { from, to, relation_type } => {
                let (from, to) = (self.entity(target(from))?.id, self.entity(target(to))?.id);
                if let Some(id) = self.same_relation(from, to, relation_type) {
                    return Err(Refusal::RelationExists(id));
                }
                self.last.2 += 1;
                let id = RelationId(self.last.2);
                let (relation_type, created_ns, updated_ns) = (relation_type.clone(), at_ns, at_ns);
                let relation = Relation { id, from, to, relation_type, created_ns, updated_ns };
                self.set(steps, None, Some(MemoryItem::Relation(relation.clone())));
                Ok(MemoryItem::Relation(relation))
            }
            MemoryChange::DeleteRelation { id } => {
                let relation = self.relations.get(id).cloned().ok_or(Refusal::NoRelation(*id))?;
                self.set(steps, Some(MemoryItem::Relation(relation.clone())), None);
                Ok(MemoryItem::Relation(relation))
            }
            MemoryChange::SetTimes { made: place, created_ns, updated_ns } => {
                let before = made.get(*place).ok_or(Refusal::NothingMade(*place))?;
                let after = before.at_times(*created_ns, *updated_ns);
                self.set(steps, Some(before.clone()), Some(after.clone()));
                Ok(after)
            }
            MemoryChange::Tie { made: place, target, path } => {
                let item = made.get(*place).ok_or(Refusal::NothingMade(*place))?;
                let owner = item.text_owner().ok_or(Refusal::NothingMade(*place))?;
                self.ties.insert((owner, target.clone()), path.clone());
                Ok(item.clone())
            }
            MemoryChange::Numbered { number, change } => {
                let last = match **change {
                    MemoryChange::CreateEntity(_) => &mut self.last.0,
                    MemoryChange::AddObservation { .. } => &mut self.last.1,
                    MemoryChange::AddRelation { .. } => &mut self.last.2,
                    _ => return self.change(change, made, at_ns, steps),
                };
                if *number <= *last {
                    return Err(Refusal::NumberGiven(*number));
                }
                *last = *number - 1;
                self.change(change, made, at_ns, steps)
            }
        }
    }

    /// Turns one step round, or says what is in the way.
    fn turn_round(
        &mut self,
        before: Option<MemoryItem>,
        after: Option<MemoryItem>,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        let now = match after.as_ref() {
            Some(MemoryItem::Entity(Entity { id, .. })) => self.entities.get(id).cloned().map(MemoryItem::Entity),
            Some(MemoryItem::Observation(Observation { id, .. })) => {
                self.observations.get(id).cloned().map(MemoryItem::Observation)
            }
            Some(MemoryItem::Relation(Relation { id, .. })) => {
                self.relations.get(id).cloned().map(MemoryItem::Relation)
            }
            None => None,
        };
        if now != after {
            return Err("it was changed since".into());
        }
        match &before {
            Some(MemoryItem::Entity(back)) => {
                self.refuse_taken(&back.name, Some(back.id)).map_err(|refusal| refusal.to_string())?;
            }
            Some(MemoryItem::Observation(back)) => {
                self.entity(back.entity).map_err(|refusal| refusal.to_string())?;
            }
            Some(MemoryItem::Relation(back)) => {
                self.entity(back.from).and(self.entity(back.to)).map_err(|refusal| refusal.to_string())?;
                let same = self.same_relation(back.from, back.to, &back.relation_type);
                if same.is_some_and(|id| id != back.id) {
                    return Err("a relation says the same".into());
                }
            }
            None => {}
        }
        if let (None, Some(MemoryItem::Entity(made))) = (&before, &after)
            && (!self.touching(made.id).is_empty() || self.observations.values().any(|seen| seen.entity == made.id))
        {
            return Err("something was added to it".into());
        }
        if let (None, Some(MemoryItem::Entity(made))) = (&before, &after) {
            self.contexts.retain(|_, entity| *entity != made.id);
        }
        self.set(steps, after, before);
        Ok(())
    }
}

impl MemoryStore for MemMemory {
    fn apply(&self, changes: &[MemoryChange], author: &Author) -> Result<Applied, ApplyError> {
        if changes.is_empty() {
            return Ok(Applied { change: ChangeNumber(0), outcomes: Vec::new() });
        }
        let mut state = self.state();
        if let Some((_, applied)) = author.request.and_then(|request| state.requests.get(&request)) {
            return Ok(applied.clone());
        }
        let mut next = state.clone();
        let (mut outcomes, mut steps) = (Vec::new(), Vec::new());
        for (number, change) in changes.iter().enumerate() {
            let outcome = next.change(change, &outcomes, author.at_ns, &mut steps);
            outcomes.push(outcome.map_err(|refusal| ApplyError::Refused { change: number, refusal })?);
        }
        let change = ChangeNumber(next.log.len() as i64 + 1);
        // The log does not name the call.
        let logged = Author { request: None, ..author.clone() };
        next.log.push(LoggedChange { number: change, author: logged, undoes: None, undone_by: None, steps });
        let applied = Applied { change, outcomes };
        if let Some(request) = author.request {
            next.requests.retain(|_, (at_ns, _)| *at_ns >= author.at_ns - RequestKey::REMEMBERED_NS);
            next.requests.insert(request, (author.at_ns, applied.clone()));
        }
        *state = next;
        Ok(applied)
    }

    fn was_applied(&self, request: RequestKey) -> Result<bool, MemoryFailure> {
        Ok(self.state().requests.contains_key(&request))
    }

    fn undo(&self, number: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoError> {
        let mut state = self.state();
        let mut next = state.clone();
        let place = usize::try_from(number.0 - 1).map_err(|_| UndoError::Unknown(number))?;
        let undone = next.log.get(place).cloned().ok_or(UndoError::Unknown(number))?;
        if let Some(by) = undone.undone_by {
            return Err(UndoError::Undone { change: number, by });
        }
        let mut steps = Vec::new();
        for (before, after) in undone.steps.into_iter().rev() {
            next.turn_round(before, after, &mut steps)
                .map_err(|reason| UndoError::Depended { change: number, reason })?;
        }
        let by = ChangeNumber(next.log.len() as i64 + 1);
        next.log[place].undone_by = Some(by);
        let entry = LoggedChange { number: by, author: author.clone(), undoes: Some(number), undone_by: None, steps };
        next.log.push(entry.clone());
        *state = next;
        Ok(entry)
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
        let into = |relation: &&Relation| targets.contains(&relation.to) && relation.relation_type == relation_type;
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

    fn touched_since(&self, change: ChangeNumber) -> Result<Touched, MemoryFailure> {
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
        Ok(Touched {
            head: ChangeNumber(state.log.len() as i64),
            entities: entities.into_iter().collect(),
            observations: observations.into_iter().collect(),
            relations: relations.into_iter().collect(),
        })
    }

    fn log_before(&self, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, MemoryFailure> {
        let state = self.state();
        Ok(state.log.iter().rev().filter(|entry| entry.number < before).take(limit).cloned().collect())
    }

    fn context(&self, client: &str) -> Result<Option<EntityId>, MemoryFailure> {
        Ok(self.state().contexts.get(client).copied())
    }

    fn set_context(&self, client: &str, entity: Option<EntityId>, _at_ns: i64) -> Result<(), MemoryFailure> {
        let mut state = self.state();
        match entity {
            Some(entity) if !state.entities.contains_key(&entity) => {
                return Err(MemoryFailure::new("changed", format!("there is no entity {entity}")));
            }
            Some(entity) => drop(state.contexts.insert(client.to_owned(), entity)),
            None => drop(state.contexts.remove(client)),
        }
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

    fn retie(&self, gone: &[NoteTie], made: &[NoteTie]) -> Result<(), MemoryFailure> {
        let mut state = self.state();
        for tie in gone {
            state.ties.remove(&(tie.owner, tie.target.clone()));
        }
        for tie in made {
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
    crate::memory_conformance!(crate::MemMemoryShelf::default());
}
