//! Applying and undoing changes in plain maps.

use std::collections::{BTreeMap, BTreeSet};

use quipu_core::RequestKey;
use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, name_key};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    Applied, Author, ChangeNumber, EntityRef, LoggedChange, MemoryChange, MemoryItem, NoteTie, Refusal, StoredVector,
    TextOwner,
};

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) entities: BTreeMap<EntityId, Entity>,
    pub(super) observations: BTreeMap<ObservationId, Observation>,
    pub(super) relations: BTreeMap<RelationId, Relation>,
    pub(super) last: (i64, i64, i64),
    /// Which changes are undone follows from `undoes`.
    pub(super) log: Vec<LoggedChange>,
    pub(super) contexts: BTreeMap<String, EntityId>,
    /// Contexts that a change replaced or removed, before and after it.
    pub(super) moved: BTreeMap<(ChangeNumber, String), (Option<EntityId>, Option<EntityId>)>,
    pub(super) vectors: BTreeMap<(String, TextOwner), StoredVector>,
    pub(super) ties: BTreeMap<(TextOwner, String), VaultPath>,
    pub(super) requests: BTreeMap<RequestKey, (i64, Applied)>,
}

/// An item before and after a change.
pub(super) type Step = (Option<MemoryItem>, Option<MemoryItem>);

impl State {
    pub(super) fn counted(&self, entity: &Entity) -> Entity {
        let count = self.observations.values().filter(|seen| seen.entity == entity.id).count();
        Entity { observation_count: count as u64, ..entity.clone() }
    }

    pub(super) fn entity(&self, id: EntityId) -> Result<Entity, Refusal> {
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

    pub(super) fn ties_where(&self, wanted: impl Fn(&NoteTie) -> bool) -> Vec<NoteTie> {
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

    pub(super) fn change(
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
                if let Some(name) = &update.name {
                    self.refuse_taken(name, Some(*id))?;
                }
                let after = update.applied_to(&before, at_ns);
                self.set(steps, Some(MemoryItem::Entity(before)), Some(MemoryItem::Entity(after.clone())));
                Ok(MemoryItem::Entity(self.counted(&after)))
            }
            MemoryChange::CompleteEntity { id, aliases, description } => {
                let before = self.entity(*id)?;
                let (aliases, description) = before.completed_by(aliases, description.as_ref());
                let after = Entity { aliases, description, updated_ns: at_ns, ..before.clone() };
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
                    return Err(Refusal::MergeIntoItself(*from));
                }
                let (gone, kept) = (self.entity(*from)?, self.entity(*into)?);
                let seen: Vec<_> = self.observations.values().filter(|seen| seen.entity == *from).cloned().collect();
                let own = self.observations.values().filter(|seen| seen.entity == *into);
                let mut texts: BTreeSet<String> = own.map(|seen| seen.text.clone()).collect();
                for observation in seen {
                    let moved = Observation { entity: *into, updated_ns: at_ns, ..observation.clone() };
                    let after = texts.insert(moved.text.clone()).then_some(MemoryItem::Observation(moved));
                    self.set(steps, Some(MemoryItem::Observation(observation)), after);
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
                self.contexts.values_mut().filter(|entity| *entity == from).for_each(|entity| *entity = *into);
                let heir = if kept.description.is_none() {
                    Some(TextOwner::Entity(*into))
                } else if let Some(text) = kept.observing_of(&gone).filter(|text| !texts.contains(*text)) {
                    let observe = MemoryChange::AddObservation { entity: EntityRef::Id(*into), text: text.to_owned() };
                    self.change(&observe, made, at_ns, steps)?.text_owner()
                } else {
                    None
                };
                if let Some(heir) = heir {
                    for tie in self.ties_where(|tie| tie.owner == TextOwner::Entity(*from)) {
                        self.ties.entry((heir, tie.target)).or_insert(tie.path);
                    }
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
            MemoryChange::UpdateObservation { id, text } => {
                let before = self.observations.get(id).cloned().ok_or(Refusal::NoObservation(*id))?;
                let after = Observation { text: text.clone(), updated_ns: at_ns, ..before.clone() };
                self.set(steps, Some(MemoryItem::Observation(before)), Some(MemoryItem::Observation(after.clone())));
                Ok(MemoryItem::Observation(after))
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
                let before = made.get(*place).ok_or(Refusal::NoItemCreated(*place))?;
                let after = before.at_times(*created_ns, *updated_ns);
                self.set(steps, Some(before.clone()), Some(after.clone()));
                Ok(after)
            }
            MemoryChange::Tie { made: place, target, path } => {
                let item = made.get(*place).ok_or(Refusal::NoItemCreated(*place))?;
                let owner = item.text_owner().ok_or(Refusal::NoItemCreated(*place))?;
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
                    return Err(Refusal::IdAlreadyUsed(*number));
                }
                *last = *number - 1;
                self.change(change, made, at_ns, steps)
            }
        }
    }

    /// Records the result of a request that may be repeated.
    pub(super) fn remember(&mut self, author: &Author, applied: Applied) {
        if let Some(request) = author.request {
            self.requests.retain(|_, (at_ns, _)| *at_ns >= author.at_ns - RequestKey::REMEMBERED_NS);
            self.requests.insert(request, (author.at_ns, applied));
        }
    }

    /// An entry that the log has.
    pub(super) fn logged(&self, number: ChangeNumber) -> &LoggedChange {
        self.log.iter().find(|entry| entry.number == number).expect("it is in the log")
    }

    pub(super) fn set_context(&mut self, client: &str, entity: Option<EntityId>) {
        match entity {
            Some(entity) => drop(self.contexts.insert(client.to_owned(), entity)),
            None => drop(self.contexts.remove(client)),
        }
    }

    /// Records the contexts that a change replaced.
    pub(super) fn note_moved(&mut self, change: ChangeNumber, before: &BTreeMap<String, EntityId>) {
        for client in before.keys().chain(self.contexts.keys()) {
            let (was, is) = (before.get(client).copied(), self.contexts.get(client).copied());
            if was != is {
                self.moved.insert((change, client.clone()), (was, is));
            }
        }
    }

    /// The contexts that are still as a change left them, with their values before it.
    pub(super) fn moved_by(&self, change: ChangeNumber) -> Vec<(String, Option<EntityId>)> {
        let moved = self.moved.iter().filter(|((by, _), _)| *by == change);
        let still = moved.filter(|((_, client), (_, after))| self.contexts.get(client) == after.as_ref());
        still.map(|((_, client), (before, _))| (client.clone(), *before)).collect()
    }

    fn undo_of(&self, number: ChangeNumber) -> Option<ChangeNumber> {
        self.log.iter().find(|entry| entry.undoes == Some(number)).map(|entry| entry.number)
    }

    /// The change that undid a change, unless it was undone itself.
    pub(super) fn standing_undo(&self, number: ChangeNumber) -> Option<ChangeNumber> {
        self.undo_of(number).filter(|by| self.standing_undo(*by).is_none())
    }

    /// The last change with the same effect: itself, or the last redo of it.
    pub(super) fn latest_doing(&self, standing: ChangeNumber) -> &LoggedChange {
        let brought_back = self.undo_of(standing).and_then(|undo| self.undo_of(undo));
        match brought_back {
            Some(again) => self.latest_doing(again),
            None => self.logged(standing),
        }
    }

    /// Reverses one step, or says why it cannot.
    pub(super) fn turn_round(
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
