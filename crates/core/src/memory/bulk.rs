//! Many changes as one: all of them or none.

use rustc_hash::FxHashMap;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Observation, Relation, name_key};
use super::names::{Comparison, compare};
use super::write::{Creation, EntityWish, creation, text_of};
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
    /// Those that came with entities first, then in the order given.
    pub observations: Vec<Observation>,
    /// In the order given.
    pub relations: Vec<Relation>,
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
        let plan = self.plan(bulk)?;
        let likely_twins = self.likely_twins(&plan.wishes)?;
        let applied = self.store.apply(&plan.changes, author).map_err(|error| match error {
            ApplyError::Refused { change, refusal } => {
                let (place, name) = &plan.places[change];
                MemoryError::refused(&refusal, name).at(place.clone())
            }
            ApplyError::Failed(failure) => failure.into(),
        })?;
        let mut made = Made::default();
        for outcome in applied.outcomes {
            match outcome {
                MemoryItem::Entity(entity) => made.entities.push(entity),
                MemoryItem::Observation(observation) => made.observations.push(observation),
                MemoryItem::Relation(relation) => made.relations.push(relation),
            }
        }
        for entity in &mut made.entities {
            entity.observation_count = made.observations.iter().filter(|made| made.entity == entity.id).count() as u64;
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

    fn plan(&self, bulk: Bulk) -> Result<Plan, MemoryError> {
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
        for (number, observation) in bulk.observations.into_iter().enumerate() {
            let place = format!("observations[{number}]");
            let change = || {
                let entity = plan.resolve(&observation.entity)?;
                Ok(MemoryChange::AddObservation { entity, text: text_of("text_content", &observation.text)? })
            };
            let change = change().map_err(|error: MemoryError| error.at(place.clone()))?;
            plan.push(change, &place, "");
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

#[derive(Default)]
struct Plan {
    /// The entities as they will be, without their observations.
    wishes: Vec<EntityWish>,
    changes: Vec<MemoryChange>,
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
