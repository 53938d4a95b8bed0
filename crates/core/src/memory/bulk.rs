//! Many changes in one transaction.

use rustc_hash::{FxHashMap, FxHashSet};

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Observation, ObservationId, Relation, name_key};
use super::names::{NameComparison, NameWords};
use super::write::{Creation, EntityDraft, creation, into_observation, text_of};
use crate::ports::{ApplyError, Author, ChangeNumber, EntityRef, MemoryChange, MemoryItem};

/// Items to create in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bulk {
    /// Created first; the others may name them.
    pub entities: Vec<BulkEntity>,
    /// Added after the entities.
    pub observations: Vec<BulkObservation>,
    /// Added after the observations.
    pub relations: Vec<BulkRelation>,
}

/// A new entity of a bulk.
pub type BulkEntity = EntityDraft;

/// A new observation of a bulk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkObservation {
    pub entity: NameOrId,
    pub text: String,
}

/// A new relation of a bulk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRelation {
    pub from: NameOrId,
    pub to: NameOrId,
    /// Free text.
    pub relation_type: String,
}

/// An existing entity by its id, or one created in the same bulk by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameOrId {
    Id(EntityId),
    /// Its name. If no entity of the bulk has it, digits are read as an id.
    Name(String),
}

/// The result of a bulk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkResult {
    /// In the order given.
    pub entities: Vec<Entity>,
    /// First the observations of new entities, then the others in the order given; a repeated one is the existing observation.
    pub observations: Vec<Observation>,
    /// In the order given.
    pub relations: Vec<Relation>,
    /// Observations that the entity had already: the index in the bulk, and the id of the existing observation.
    pub repeated: Vec<(usize, ObservationId)>,
    /// New entities that are likely duplicates: the index in the bulk, and the older entity, or the earlier one of the bulk.
    pub likely_duplicates: Vec<(usize, Entity)>,
}

impl Memory {
    /// The most items of one bulk, not counting observations of new entities.
    pub const MAX_BULK: usize = 50;

    /// Creates everything or nothing. A taken name is refused; a likely duplicate of another name is created and listed in
    /// [`BulkResult::likely_duplicates`]. Meanings are not compared: fifty would take too long.
    pub fn bulk_update(&self, bulk: &Bulk, author: &Author) -> Result<BulkResult, MemoryError> {
        let count = bulk.entities.len() + bulk.observations.len() + bulk.relations.len();
        if count == 0 || count > Self::MAX_BULK {
            let advice = if count == 0 { "give at least one" } else { "split it" };
            return Err(MemoryError::BulkSize { count, max: Self::MAX_BULK, advice });
        }
        if !bulk.entities.is_empty() {
            // While memory is still being read, this waits here, and not where other writes wait for it.
            self.follower.read_first()?;
        }
        self.checked_at_head(|head| self.bulk_update_at(head, bulk.clone(), author))
    }

    fn bulk_update_at(
        &self,
        head: Option<ChangeNumber>,
        bulk: Bulk,
        author: &Author,
    ) -> Result<BulkResult, MemoryError> {
        let is_repeated = self.is_repeated(author)?;
        let plan = self.plan(bulk, is_repeated)?;
        let likely_duplicates = self.likely_duplicates(&plan.drafts)?;
        let applied = self.store.apply_at(head, &plan.changes, author).map_err(|error| match error {
            ApplyError::Refused { change, refusal } => {
                let (place, name) = &plan.places[change];
                MemoryError::refused(&refusal, name).at(place.clone())
            }
            other => other.into(),
        })?;
        let mut made = BulkResult::default();
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
        // A repeated call returns what the first one did.
        if !is_repeated {
            for (place, equal) in plan.repeated {
                let observation = match equal {
                    Equal::Existing(observation) => observation,
                    Equal::Made(change) => into_observation(applied.outcomes.get(change).cloned()),
                };
                made.repeated.push((place, observation.id));
                let before = plan.with_entities + place;
                made.observations.insert(before.min(made.observations.len()), observation);
            }
        }
        let duplicate = |duplicate: DuplicateReason| match duplicate {
            DuplicateReason::Existing(entity) => entity,
            DuplicateReason::InBulk(place) => made.entities[place].clone(),
        };
        made.likely_duplicates =
            likely_duplicates.into_iter().map(|(place, found)| (place, duplicate(found))).collect();
        Ok(made)
    }

    fn likely_duplicates(&self, drafts: &[EntityDraft]) -> Result<Vec<(usize, DuplicateReason)>, MemoryError> {
        let mut duplicates = Vec::new();
        let in_bulk = duplicates_in_bulk(drafts, self.rule.distance);
        for (place, draft) in drafts.iter().enumerate() {
            match self.duplicate_of(draft, false, None)? {
                Some(Creation::Duplicate { name_taken: false, existing, .. }) => {
                    duplicates.push((place, DuplicateReason::Existing(existing)));
                }
                // A taken name is refused by the store.
                _ => {
                    duplicates.extend(in_bulk[place].map(|before| (place, DuplicateReason::InBulk(before))));
                }
            }
        }
        Ok(duplicates)
    }

    fn plan(&self, bulk: Bulk, is_repeated: bool) -> Result<BulkPlan, MemoryError> {
        let mut plan = BulkPlan::default();
        for (number, draft) in bulk.entities.into_iter().enumerate() {
            let place = format!("entities[{number}]");
            let draft = self.checked(draft).map_err(|error| error.at(place.clone()))?;
            let at = plan.changes.len();
            let name = draft.name.clone();
            plan.drafts.push(EntityDraft { observations: Vec::new(), ..draft.clone() });
            // Checked here: the store would name an entity that is rolled back with the call.
            if let Some(first) = plan.made.insert(name_key(&name), at) {
                let first = plan.places[first].0.clone();
                return Err(MemoryError::Twice { first }.at(place));
            }
            for change in creation(draft, at) {
                plan.push(change, &place, &name);
            }
        }
        plan.with_entities = plan.changes.len() - plan.drafts.len();
        for (number, observation) in bulk.observations.into_iter().enumerate() {
            let place = format!("observations[{number}]");
            let change = || {
                let entity = plan.resolve(&observation.entity)?;
                Ok((entity, text_of("text_content", &observation.text)?))
            };
            let (entity, text) = change().map_err(|error: MemoryError| error.at(place.clone()))?;
            let there = match entity {
                EntityRef::Id(id) if !is_repeated => self.observation_like(id, &text)?.map(Equal::Existing),
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

/// The names of a draft, prepared to be compared with those of others: a draft may have hundreds of aliases.
struct DraftNames {
    /// The keys of its name and its aliases.
    keys: FxHashSet<String>,
    /// Their words; the name first.
    words: Vec<NameWords>,
}

impl DraftNames {
    fn of(draft: &EntityDraft) -> Self {
        let names = || [&draft.name].into_iter().chain(&draft.aliases);
        Self {
            keys: names().map(|name| name_key(name)).collect(),
            words: names().map(|name| NameWords::of(name)).collect(),
        }
    }
}

/// For each draft the first earlier one that it likely duplicates, by their names and aliases.
fn duplicates_in_bulk(drafts: &[EntityDraft], limit: f32) -> Vec<Option<usize>> {
    let names: Vec<DraftNames> = drafts.iter().map(DraftNames::of).collect();
    let is_duplicate = |draft: &DraftNames, before: &DraftNames| {
        let is_same = |other: &NameWords| matches!(draft.words[0].compare(other), NameComparison::Same { distance } if distance < limit);
        !draft.keys.is_disjoint(&before.keys) || before.words.iter().any(is_same)
    };
    let first = |place: usize| names[..place].iter().position(|before| is_duplicate(&names[place], before));
    (0..names.len()).map(first).collect()
}

/// The likely duplicate of a draft.
enum DuplicateReason {
    Existing(Entity),
    /// At this place of the same bulk.
    InBulk(usize),
}

/// The observation that one of a bulk repeats.
enum Equal {
    Existing(Observation),
    /// By an earlier change of the same bulk.
    Made(usize),
}

#[derive(Default)]
struct BulkPlan {
    /// The entities as they will be, without their observations.
    drafts: Vec<EntityDraft>,
    changes: Vec<MemoryChange>,
    /// The number of observations of new entities.
    with_entities: usize,
    /// Repeated observations, by their place in the bulk.
    repeated: Vec<(usize, Equal)>,
    /// For each change, its item in the bulk and the name it would take.
    places: Vec<(String, String)>,
    /// By name key, the change that creates the entity.
    made: FxHashMap<String, usize>,
}

impl BulkPlan {
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn draft(name: &str, aliases: impl Iterator<Item = String>) -> EntityDraft {
        EntityDraft { name: name.to_owned(), aliases: aliases.collect(), ..EntityDraft::default() }
    }

    #[test]
    fn duplicates_in_a_bulk_share_a_name_or_an_alias() {
        let aliases = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into_iter();
        let drafts = [
            draft("Rain Gauge", aliases(&["Pluviometer"])),
            draft("Barometer", aliases(&[])),
            draft("Udometer", aliases(&["Ombrometer", " PLUVIOMETER"])),
            draft(" barometer", aliases(&[])),
            draft("Pluviometers", aliases(&[])),
            draft("Anemometer", aliases(&["Barometers"])),
        ];
        assert_eq!(duplicates_in_bulk(&drafts, 0.25), [None, None, Some(0), Some(1), Some(0), None]);
    }

    #[test]
    fn time_for_a_bulk_of_many_aliases_is_bounded() {
        let aliases = |entity: usize| (0..800).map(move |number| format!("a{entity:02}{number:03}"));
        let drafts: Vec<EntityDraft> =
            (0..20).map(|entity| draft(&format!("Entity {entity}"), aliases(entity))).collect();
        let started = Instant::now();
        assert_eq!(duplicates_in_bulk(&drafts, 0.25), [None; 20]);
        // More than a minute if each alias is compared with each.
        assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    }
}
