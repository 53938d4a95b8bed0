//! Many changes as one: all of them or none.

use rustc_hash::FxHashMap;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Observation, ObservationId, Relation, name_key};
use super::names::{Comparison, compare};
use super::write::{Creation, EntityWish, creation, into_observation, text_of};
use crate::ports::{ApplyError, Author, EntityRef, MemoryChange, MemoryItem};

/// What is to be made in one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bulk {
    /// First these.
    pub entities: Vec<BulkEntity>,
    /// Then these.
    pub observations: Vec<BulkObservation>,
    /// Then these.
    pub relations: Vec<BulkRelation>,
}

/// A new entity of a bulk.
pub type BulkEntity = EntityWish;

/// A new observation of a bulk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkObservation {
    /// Of what.
    pub entity: NameOrId,
    /// In words.
    pub text: String,
}

/// A new relation of a bulk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRelation {
    /// The source.
    pub from: NameOrId,
    /// The target.
    pub to: NameOrId,
    /// Free text.
    pub relation_type: String,
}

/// An entity that is there, by its number, or one made in the same bulk, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameOrId {
    /// Its number.
    Id(EntityId),
    /// Its name. Where no entity of the bulk has it, digits are taken for a number.
    Name(String),
}

/// What a bulk made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    /// In the order given.
    pub entities: Vec<Entity>,
    /// Those that came with entities first, then in the order given, with those that were there before in their places.
    pub observations: Vec<Observation>,
    /// In the order given.
    pub relations: Vec<Relation>,
    /// Observations that were not stored, since the entity had them: their place in the bulk, and which they equal.
    pub repeated: Vec<(usize, ObservationId)>,
    /// New entities, by their place, beside the ones that were there before, or come before them in the bulk, and are likely
    /// the same.
    pub likely_twins: Vec<(usize, Entity)>,
}

impl Memory {
    /// How many things one bulk may make, observations that come with an entity not counted.
    pub const MAX_BULK: usize = 50;

    /// Makes everything or nothing. A name that is taken is refused; what is likely there under another name or spelling
    /// is made all the same, and named in [`Made::likely_twins`]. Meanings are not compared: fifty would take too long.
    pub fn bulk_update(&self, bulk: Bulk, author: &Author) -> Result<Made, MemoryError> {
        let count = bulk.entities.len() + bulk.observations.len() + bulk.relations.len();
        if count == 0 || count > Self::MAX_BULK {
            let advice = if count == 0 { "give at least one" } else { "split it" };
            return Err(MemoryError::BulkSize { count, max: Self::MAX_BULK, advice });
        }
        let _alone = self.creating();
        let is_repeated = self.is_repeated(author)?;
        let plan = self.plan(bulk, is_repeated)?;
        let likely_twins = self.likely_twins(&plan.wishes)?;
        let applied = self.store.apply(&plan.changes, author).map_err(|error| match error {
            ApplyError::Refused { change, refusal } => {
                let (place, name) = &plan.places[change];
                MemoryError::refused(&refusal, name).at(place.clone())
            }
            ApplyError::Failed(failure) => failure.into(),
        })?;
        let mut made = Made::default();
        for outcome in &applied.outcomes {
            match outcome {
                MemoryItem::Entity(entity) => made.entities.push(entity.clone()),
                MemoryItem::Observation(observation) => made.observations.push(observation.clone()),
                MemoryItem::Relation(relation) => made.relations.push(relation.clone()),
            }
        }
        for entity in &mut made.entities {
            entity.observation_count = made.observations.iter().filter(|made| made.entity == entity.id).count() as u64;
        }
        // What the very same call did before is told as it was, which may be less.
        if !is_repeated {
            for (place, equal) in plan.repeated {
                let observation = match equal {
                    Equal::There(observation) => observation,
                    Equal::Made(change) => into_observation(applied.outcomes.get(change).cloned()),
                };
                made.repeated.push((place, observation.id));
                let before = plan.with_entities + place;
                made.observations.insert(before.min(made.observations.len()), observation);
            }
        }
        let twin = |twin: Twin| match twin {
            Twin::There(entity) => entity,
            Twin::Before(place) => made.entities[place].clone(),
        };
        made.likely_twins = likely_twins.into_iter().map(|(place, found)| (place, twin(found))).collect();
        Ok(made)
    }

    fn likely_twins(&self, wishes: &[EntityWish]) -> Result<Vec<(usize, Twin)>, MemoryError> {
        let mut twins = Vec::new();
        for (place, wish) in wishes.iter().enumerate() {
            match self.duplicate_of(wish, false, None)? {
                Some(Creation::Duplicate { name_taken: false, existing, .. }) => {
                    twins.push((place, Twin::There(existing)));
                }
                // A name that is taken is refused by the store in its own words.
                _ => {
                    let before = wishes[..place].iter().position(|before| self.is_twin(wish, before));
                    twins.extend(before.map(|before| (place, Twin::Before(before))));
                }
            }
        }
        Ok(twins)
    }

    /// Whether two wishes are likely of one thing, by their names and aliases.
    fn is_twin(&self, wish: &EntityWish, before: &EntityWish) -> bool {
        fn names(wish: &EntityWish) -> impl Iterator<Item = &String> {
            [&wish.name].into_iter().chain(&wish.aliases)
        }
        names(before).any(|other| {
            let is_shared = names(wish).any(|name| name_key(name) == name_key(other));
            let same = compare(&wish.name, other);
            is_shared || matches!(same, Comparison::Same { distance } if distance < self.rule.distance)
        })
    }

    fn plan(&self, bulk: Bulk, is_repeated: bool) -> Result<Plan, MemoryError> {
        let mut plan = Plan::default();
        for (number, wish) in bulk.entities.into_iter().enumerate() {
            let place = format!("entities[{number}]");
            let wish = self.checked(wish).map_err(|error| error.at(place.clone()))?;
            let at = plan.changes.len();
            let name = wish.name.clone();
            plan.wishes.push(EntityWish { observations: Vec::new(), ..wish.clone() });
            // Said here, since the store would name an entity that goes again with the whole call.
            if let Some(first) = plan.made.insert(name_key(&name), at) {
                let first = plan.places[first].0.clone();
                return Err(MemoryError::Twice { first }.at(place));
            }
            for change in creation(wish, at) {
                plan.push(change, &place, &name);
            }
        }
        plan.with_entities = plan.changes.len() - plan.wishes.len();
        for (number, observation) in bulk.observations.into_iter().enumerate() {
            let place = format!("observations[{number}]");
            let change = || {
                let entity = plan.resolve(&observation.entity)?;
                Ok((entity, text_of("text_content", &observation.text)?))
            };
            let (entity, text) = change().map_err(|error: MemoryError| error.at(place.clone()))?;
            let there = match entity {
                EntityRef::Id(id) if !is_repeated => self.observation_like(id, &text)?.map(Equal::There),
                _ => None,
            };
            let change = MemoryChange::AddObservation { entity, text };
            let earlier = || plan.changes.iter().position(|earlier| *earlier == change).map(Equal::Made);
            match there.or_else(earlier) {
                Some(equal) => plan.repeated.push((number, equal)),
                None => plan.push(change, &place, ""),
            }
        }
        for (number, relation) in bulk.relations.into_iter().enumerate() {
            let place = format!("relations[{number}]");
            let change = || {
                let (from, to) = (plan.resolve(&relation.from)?, plan.resolve(&relation.to)?);
                Ok(MemoryChange::AddRelation {
                    from,
                    to,
                    relation_type: text_of("relation_type", &relation.relation_type)?,
                })
            };
            let change = change().map_err(|error: MemoryError| error.at(place.clone()))?;
            if let Some(first) = plan.changes.iter().position(|earlier| *earlier == change) {
                let first = plan.places[first].0.clone();
                return Err(MemoryError::Twice { first }.at(place));
            }
            plan.push(change, &place, "");
        }
        Ok(plan)
    }
}

/// What a wish of a bulk is likely the same as.
enum Twin {
    There(Entity),
    /// At this place of the same bulk.
    Before(usize),
}

/// What an observation of a bulk repeats.
enum Equal {
    There(Observation),
    /// By an earlier change of the same bulk.
    Made(usize),
}

#[derive(Default)]
struct Plan {
    /// The entities as they will be, without their observations.
    wishes: Vec<EntityWish>,
    changes: Vec<MemoryChange>,
    /// How many observations come with entities.
    with_entities: usize,
    /// Observations, by their place in the bulk, that need no change.
    repeated: Vec<(usize, Equal)>,
    /// For each change the part of the bulk it comes from, and the name it wants.
    places: Vec<(String, String)>,
    /// Which change makes the entity of a name.
    made: FxHashMap<String, usize>,
}

impl Plan {
    fn push(&mut self, change: MemoryChange, place: &str, name: &str) {
        self.changes.push(change);
        self.places.push((place.to_owned(), name.to_owned()));
    }

    fn resolve(&self, wanted: &NameOrId) -> Result<EntityRef, MemoryError> {
        let name = match wanted {
            NameOrId::Id(id) => return Ok(EntityRef::Id(*id)),
            NameOrId::Name(name) => name,
        };
        let made = self.made.get(&name_key(name)).map(|place| EntityRef::Made(*place));
        let by_number = || name.trim().parse().ok().map(|id| EntityRef::Id(EntityId(id)));
        made.or_else(by_number).ok_or_else(|| MemoryError::UnknownName { name: name.clone() })
    }
}
