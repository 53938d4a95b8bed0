//! The items that a list of changes may touch, in memory. Changes are made here, one by one, and then written in a few
//! statements, however long the list is.

use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, name_key};
use quipu_core::model::VaultPath;
use quipu_core::ports::{EntityRef, MemoryChange, MemoryItem, NewEntity, Refusal, TextOwner};

/// An item before and after.
pub(super) type DraftStep = (Option<MemoryItem>, Option<MemoryItem>);

/// The items, complete as far as the changes need them: an id that is not here does not exist.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) entities: BTreeMap<EntityId, Entity>,
    pub(super) observations: BTreeMap<ObservationId, Observation>,
    pub(super) relations: BTreeMap<RelationId, Relation>,
    /// The context of each client, with its time.
    pub(super) contexts: BTreeMap<String, (EntityId, i64)>,
    pub(super) ties: BTreeMap<(TextOwner, String), VaultPath>,
    pub(super) last: LastIds,
    /// The steps that were applied, in order.
    pub(super) steps: Vec<DraftStep>,
    pub(super) replaced_contexts: BTreeMap<String, ReplacedContext>,
    pub(super) new_ties: BTreeMap<(TextOwner, String), VaultPath>,
    names: HashMap<String, EntityId>,
    ends: HashMap<(EntityId, EntityId, String), RelationId>,
    at_ns: i64,
    /// The id that the next created item must get.
    number: Option<i64>,
}

/// The greatest ids given so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastIds {
    pub(super) entity: i64,
    pub(super) observation: i64,
    pub(super) relation: i64,
}

/// A client's context before and after a change.
pub(super) struct ReplacedContext {
    pub(super) before: Option<EntityId>,
    pub(super) after: Option<EntityId>,
    pub(super) set_ns: i64,
}

impl Draft {
    pub(super) fn new(last: LastIds, at_ns: i64) -> Self {
        Self { last, at_ns, ..Self::default() }
    }

    /// Adds an item as it is in the database.
    pub(super) fn load(&mut self, item: MemoryItem) {
        match item {
            MemoryItem::Entity(entity) => {
                self.names.insert(name_key(&entity.name), entity.id);
                self.entities.insert(entity.id, entity);
            }
            MemoryItem::Observation(seen) => drop(self.observations.insert(seen.id, seen)),
            MemoryItem::Relation(relation) => {
                self.ends.insert(ends(&relation), relation.id);
                self.relations.insert(relation.id, relation);
            }
        }
    }

    /// Applies one change; `made` are the results of those before it.
    pub(super) fn apply(&mut self, change: &MemoryChange, made: &[MemoryItem]) -> Result<MemoryItem, Refusal> {
        match change {
            MemoryChange::CreateEntity(new) => self.create_entity(new),
            MemoryChange::UpdateEntity { id, update } => {
                let before = self.entity(*id)?;
                if let Some(name) = &update.name {
                    self.refuse_taken(name, Some(*id))?;
                }
                let after = update.applied_to(&before, self.at_ns);
                Ok(self.replace(MemoryItem::Entity(before), MemoryItem::Entity(after)))
            }
            MemoryChange::CompleteEntity { id, aliases, description } => {
                let before = self.entity(*id)?;
                let (aliases, description) = before.completed_by(aliases, description.as_ref());
                let after = Entity { aliases, description, updated_ns: self.at_ns, ..before.clone() };
                Ok(self.replace(MemoryItem::Entity(before), MemoryItem::Entity(after)))
            }
            MemoryChange::DeleteEntity { id } => self.delete_entity(*id),
            MemoryChange::MergeEntity { from, into } => self.merge(*from, *into),
            MemoryChange::AddObservation { entity, text } => self.add_observation(target(*entity, made), text),
            MemoryChange::UpdateObservation { id, text } => {
                let before = self.observations.get(id).cloned().ok_or(Refusal::NoObservation(*id))?;
                let after = Observation { text: text.clone(), updated_ns: self.at_ns, ..before.clone() };
                Ok(self.replace(MemoryItem::Observation(before), MemoryItem::Observation(after)))
            }
            MemoryChange::DeleteObservation { id } => {
                let seen = self.observations.get(id).cloned().ok_or(Refusal::NoObservation(*id))?;
                Ok(self.remove(MemoryItem::Observation(seen)))
            }
            MemoryChange::AddRelation { from, to, relation_type } => {
                self.add_relation(target(*from, made), target(*to, made), relation_type)
            }
            MemoryChange::DeleteRelation { id } => {
                let relation = self.relations.get(id).cloned().ok_or(Refusal::NoRelation(*id))?;
                Ok(self.remove(MemoryItem::Relation(relation)))
            }
            MemoryChange::SetTimes { made: place, created_ns, updated_ns } => {
                let before = made.get(*place).ok_or(Refusal::NoItemCreated(*place))?;
                let after = before.at_times(*created_ns, *updated_ns);
                self.replace(before.clone(), after.clone());
                Ok(after)
            }
            MemoryChange::Tie { made: place, target, path } => {
                let item = made.get(*place).ok_or(Refusal::NoItemCreated(*place))?;
                let owner = item.text_owner().ok_or(Refusal::NoItemCreated(*place))?;
                self.new_ties.insert((owner, target.clone()), path.clone());
                Ok(item.clone())
            }
            MemoryChange::Numbered { number, change } => {
                self.number = Some(*number);
                let outcome = self.apply(change, made);
                self.number = None;
                outcome
            }
        }
    }

    fn create_entity(&mut self, new: &NewEntity) -> Result<MemoryItem, Refusal> {
        self.refuse_taken(&new.name, None)?;
        let id = next(&mut self.last.entity, self.number)?;
        Ok(self.insert(MemoryItem::Entity(Entity {
            id: EntityId(id),
            name: new.name.clone(),
            entity_type: new.entity_type.clone(),
            aliases: new.aliases.clone(),
            description: new.description.clone(),
            observation_count: 0,
            created_ns: self.at_ns,
            updated_ns: self.at_ns,
        })))
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<MemoryItem, Refusal> {
        let entity = MemoryItem::Entity(self.entity(id)?);
        for relation in self.relations_touching(id) {
            self.remove(MemoryItem::Relation(relation));
        }
        for seen in self.observations_of(id) {
            self.remove(MemoryItem::Observation(seen));
        }
        self.remove(entity.clone());
        Ok(entity)
    }

    fn merge(&mut self, from: EntityId, into: EntityId) -> Result<MemoryItem, Refusal> {
        if from == into {
            return Err(Refusal::MergeIntoItself(from));
        }
        let (gone, kept) = (self.entity(from)?, self.entity(into)?);
        let mut texts: HashSet<String> = self.observations_of(into).into_iter().map(|seen| seen.text).collect();
        for seen in self.observations_of(from) {
            if !texts.insert(seen.text.clone()) {
                self.remove(MemoryItem::Observation(seen));
                continue;
            }
            let moved = Observation { entity: into, updated_ns: self.at_ns, ..seen.clone() };
            self.replace(MemoryItem::Observation(seen), MemoryItem::Observation(moved));
        }
        for relation in self.relations_touching(from) {
            let end = |id: EntityId| if id == from { into } else { id };
            let moved =
                Relation { from: end(relation.from), to: end(relation.to), updated_ns: self.at_ns, ..relation.clone() };
            if moved.from == moved.to || self.ends.contains_key(&ends(&moved)) {
                self.remove(MemoryItem::Relation(relation));
            } else {
                self.replace(MemoryItem::Relation(relation), MemoryItem::Relation(moved));
            }
        }
        // First, since deleting it deletes its contexts.
        self.hand_over_contexts(from, Some(into));
        self.remove(MemoryItem::Entity(gone.clone()));
        // With its description the kept entity takes over the ties of its links.
        if kept.description.is_none() {
            self.hand_over_ties(from, TextOwner::Entity(into));
        }
        if let Some(text) = kept.observing_of(&gone).filter(|text| !texts.contains(*text)) {
            let seen = self.add_observation(into, text)?;
            if let Some(owner) = seen.text_owner() {
                self.hand_over_ties(from, owner);
            }
        }
        let (aliases, description) = kept.absorbing(&gone);
        let after = Entity { aliases, description, updated_ns: self.at_ns, ..kept.clone() };
        Ok(self.replace(MemoryItem::Entity(kept), MemoryItem::Entity(after)))
    }

    fn add_observation(&mut self, entity: EntityId, text: &str) -> Result<MemoryItem, Refusal> {
        self.entity(entity)?;
        let id = ObservationId(next(&mut self.last.observation, self.number)?);
        let (text, created_ns, updated_ns) = (text.to_owned(), self.at_ns, self.at_ns);
        Ok(self.insert(MemoryItem::Observation(Observation { id, entity, text, created_ns, updated_ns })))
    }

    fn add_relation(&mut self, from: EntityId, to: EntityId, relation_type: &str) -> Result<MemoryItem, Refusal> {
        self.entity(from)?;
        self.entity(to)?;
        let ends = (from, to, relation_type.to_owned());
        if let Some(id) = self.ends.get(&ends) {
            return Err(Refusal::RelationExists(*id));
        }
        let id = RelationId(next(&mut self.last.relation, self.number)?);
        let (created_ns, updated_ns) = (self.at_ns, self.at_ns);
        Ok(self.insert(MemoryItem::Relation(Relation { id, from, to, relation_type: ends.2, created_ns, updated_ns })))
    }

    /// Adds an item; returns it.
    pub(super) fn insert(&mut self, item: MemoryItem) -> MemoryItem {
        self.put(item.clone());
        self.steps.push((None, Some(item.clone())));
        item
    }

    /// Replaces an item; returns the new one, with its present number of observations.
    pub(super) fn replace(&mut self, before: MemoryItem, after: MemoryItem) -> MemoryItem {
        let count = self.count_of(&before);
        self.take(&before);
        let after = match after {
            MemoryItem::Entity(entity) => MemoryItem::Entity(Entity { observation_count: count, ..entity }),
            other => other,
        };
        self.put(after.clone());
        self.steps.push((Some(before), Some(after.clone())));
        after
    }

    /// Deletes an item; returns it.
    pub(super) fn remove(&mut self, item: MemoryItem) -> MemoryItem {
        if let MemoryItem::Entity(entity) = &item {
            self.hand_over_contexts(entity.id, None);
        }
        self.take(&item);
        self.steps.push((Some(item.clone()), None));
        item
    }

    fn put(&mut self, item: MemoryItem) {
        if let MemoryItem::Observation(seen) = &item
            && let Some(entity) = self.entities.get_mut(&seen.entity)
        {
            entity.observation_count += 1;
        }
        self.load(item);
    }

    fn take(&mut self, item: &MemoryItem) {
        match item {
            MemoryItem::Entity(entity) => {
                if let Some(entity) = self.entities.remove(&entity.id) {
                    self.names.remove(&name_key(&entity.name));
                }
            }
            MemoryItem::Observation(seen) => {
                let taken = self.observations.remove(&seen.id);
                if let Some(entity) = taken.and_then(|seen| self.entities.get_mut(&seen.entity)) {
                    entity.observation_count = entity.observation_count.saturating_sub(1);
                }
            }
            MemoryItem::Relation(relation) => {
                if let Some(relation) = self.relations.remove(&relation.id) {
                    self.ends.remove(&ends(&relation));
                }
            }
        }
    }

    fn count_of(&self, item: &MemoryItem) -> u64 {
        match item {
            MemoryItem::Entity(entity) => self.entities.get(&entity.id).map_or(0, |entity| entity.observation_count),
            MemoryItem::Observation(_) | MemoryItem::Relation(_) => 0,
        }
    }

    /// Replaces an entity as the context of all clients, or removes it where it is deleted.
    fn hand_over_contexts(&mut self, from: EntityId, into: Option<EntityId>) {
        let held = self.contexts.iter().filter(|(_, (entity, _))| *entity == from);
        let held: Vec<(String, i64)> = held.map(|(client, (_, set_ns))| (client.clone(), *set_ns)).collect();
        for (client, set_ns) in held {
            self.replace_context(client, into, set_ns);
        }
    }

    /// Replaces a client's context. The record keeps the context before the first replacement.
    pub(super) fn replace_context(&mut self, client: String, after: Option<EntityId>, set_ns: i64) {
        let before = self.contexts.get(&client).map(|(entity, _)| *entity);
        match after {
            Some(entity) => drop(self.contexts.insert(client.clone(), (entity, set_ns))),
            None => drop(self.contexts.remove(&client)),
        }
        self.replaced_contexts.entry(client).and_modify(|replaced| replaced.after = after).or_insert(ReplacedContext {
            before,
            after,
            set_ns,
        });
    }

    /// Copies the ties of an entity to the owner that takes over its description; ties that the owner has stay.
    fn hand_over_ties(&mut self, from: EntityId, into: TextOwner) {
        let all = self.ties.iter().chain(&self.new_ties);
        let of_entity = all.filter(|((owner, _), _)| *owner == TextOwner::Entity(from));
        let ties: Vec<_> = of_entity.map(|((_, target), path)| (target.clone(), path.clone())).collect();
        for (target, path) in ties {
            let tie = (into, target);
            if !self.ties.contains_key(&tie) {
                self.new_ties.entry(tie).or_insert(path);
            }
        }
    }

    pub(super) fn observations_of(&self, entity: EntityId) -> Vec<Observation> {
        self.observations.values().filter(|seen| seen.entity == entity).cloned().collect()
    }

    pub(super) fn relations_touching(&self, entity: EntityId) -> Vec<Relation> {
        self.relations.values().filter(|relation| relation.from == entity || relation.to == entity).cloned().collect()
    }

    /// The entity that has a name.
    pub(super) fn named(&self, name: &str) -> Option<EntityId> {
        self.names.get(&name_key(name)).copied()
    }

    /// The relation with the same ends and type.
    pub(super) fn equal_relation(&self, relation: &Relation) -> Option<RelationId> {
        self.ends.get(&ends(relation)).copied()
    }

    fn entity(&self, id: EntityId) -> Result<Entity, Refusal> {
        self.entities.get(&id).cloned().ok_or(Refusal::NoEntity(id))
    }

    fn refuse_taken(&self, name: &str, but_for: Option<EntityId>) -> Result<(), Refusal> {
        match self.named(name).filter(|owner| Some(*owner) != but_for) {
            Some(by) => Err(Refusal::NameTaken { by }),
            None => Ok(()),
        }
    }
}

/// The next id of a kind, or the one that was asked for, which must be above all that the kind ever had.
fn next(last: &mut i64, number: Option<i64>) -> Result<i64, Refusal> {
    let id = number.unwrap_or(*last + 1);
    if id <= *last {
        return Err(Refusal::IdAlreadyUsed(id));
    }
    *last = id;
    Ok(id)
}

fn ends(relation: &Relation) -> (EntityId, EntityId, String) {
    (relation.from, relation.to, relation.relation_type.clone())
}

fn target(entity: EntityRef, made: &[MemoryItem]) -> EntityId {
    match entity {
        EntityRef::Id(id) => id,
        EntityRef::Made(place) => match made.get(place) {
            Some(MemoryItem::Entity(entity)) => entity.id,
            // Never an id: refused as missing.
            _ => EntityId(0),
        },
    }
}
