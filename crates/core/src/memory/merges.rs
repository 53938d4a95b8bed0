//! Duplicate entities: suggested merges, and the merge.

use rustc_hash::{FxHashMap, FxHashSet};

use super::duplicates::{cosine_at, meaning_distance};
use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Relation};
use super::names::{NameComparison, compare};
use super::search::EntityNames;
use super::write::into_entity;
use crate::ports::{Author, ChangeNumber, MemoryChange, MemoryItem, RelationFilter};

/// Pairs whose entities are read at a time.
const BATCH: usize = 64;

/// Typing errors make names look less alike than they are; names are compared from this similarity on.
const LIKE_NAMES: f32 = 0.5;

/// Relation types that say that two entities are the same.
const SAME: [&str; 5] = ["same_as", "same", "duplicate_of", "duplicates", "alias_of"];

/// Two entities that may be the same.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeSuggestion {
    /// The older one.
    pub a: Entity,
    /// The newer one.
    pub b: Entity,
    /// Their distance: 0 is the same, 1 is unrelated.
    pub distance: f32,
}

/// The changes that a merge would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergePlan {
    /// The remaining entity after the merge.
    pub into: Entity,
    /// The entity that is merged into it and deleted.
    pub from: Entity,
    /// How many observations move.
    pub observations: u64,
    /// How many are dropped, because the remaining entity has one with this text.
    pub observations_dropped: u64,
    /// The description that becomes an observation.
    pub description_observed: Option<String>,
    /// How many relations move.
    pub relations: u64,
    /// How many are dropped as duplicates.
    pub relations_dropped: u64,
    /// How many aliases the remaining entity gets.
    pub aliases: u64,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The remaining entity.
    pub into: Entity,
    /// How many observations moved.
    pub observations: u64,
    /// How many relations moved.
    pub relations: u64,
    /// How many aliases the remaining entity got.
    pub aliases: u64,
    /// The log's entry.
    pub change: ChangeNumber,
}

impl Memory {
    /// Pairs of entities that may be the same, closest first, optionally of one type.
    ///
    /// Entities of different types, and those with a relation between them, are near in meaning because they are about each
    /// other, as a person and her project are: such a pair is left out unless the two have a name in common.
    pub fn suggest_merges(
        &self,
        threshold: f32,
        limit: usize,
        entity_type: Option<&str>,
    ) -> Result<Vec<MergeSuggestion>, MemoryError> {
        let wanted = entity_type.map(|written| self.types.canonical(written));
        let mut suggested = Vec::new();
        for pairs in self.close_pairs(threshold)?.chunks(BATCH) {
            let ids: Vec<EntityId> = pairs.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
            let mut entities = self.store.entities(&ids)?.into_iter();
            let related = self.related_pairs(&ids)?;
            for (_, _, distance) in pairs {
                let (Some(Some(a)), Some(Some(b))) = (entities.next(), entities.next()) else { continue };
                let is_wanted = |entity: &Entity| wanted.as_ref().is_none_or(|wanted| entity.entity_type == *wanted);
                let is_about = a.entity_type != b.entity_type || related.contains(&(a.id.min(b.id), a.id.max(b.id)));
                if is_wanted(&a) && is_wanted(&b) && (!is_about || has_common_name(&a, &b)) {
                    suggested.push(MergeSuggestion { a, b, distance: *distance });
                }
            }
            if suggested.len() >= limit {
                break;
            }
        }
        suggested.truncate(limit);
        Ok(suggested)
    }

    /// The pairs among these entities that have a relation which does not say that they are the same.
    fn related_pairs(&self, ids: &[EntityId]) -> Result<FxHashSet<(EntityId, EntityId)>, MemoryError> {
        let relations = self.store.relations_among(ids)?.into_iter();
        let apart = relations.filter(|relation| !SAME.contains(&relation.relation_type.to_ascii_lowercase().as_str()));
        Ok(apart.map(|relation| (relation.from.min(relation.to), relation.from.max(relation.to))).collect())
    }

    /// Pairs closer than this whose names do not rule it out, closest first.
    fn close_pairs(&self, threshold: f32) -> Result<Vec<(EntityId, EntityId, f32)>, MemoryError> {
        // Not the view itself: this takes seconds, and holding it would block writers and then readers.
        let (names, vectors) = {
            let view = self.follower.view()?;
            (view.names.clone(), view.vectors.clone())
        };
        let mut distances: FxHashMap<(EntityId, EntityId), f32> = FxHashMap::default();
        let mut note = |a, b, distance: f32| {
            let known = distances.entry((a, b)).or_insert(distance);
            *known = known.min(distance);
        };
        let unrelated = self.follower.unrelated();
        let names_of = |id: EntityId| names.names_of(id);
        let may_be_one = |a: &Option<EntityNames<'_>>, b: &Option<EntityNames<'_>>| match (a, b) {
            (Some(a), Some(b)) => !a.tell_apart(b),
            _ => false,
        };
        for (a, b, cosine) in vectors.near_pairs(cosine_at(threshold, unrelated), names_of, may_be_one) {
            note(a, b, meaning_distance(cosine, unrelated));
        }
        let named = names.pairs(1.0 - threshold.max(LIKE_NAMES)).into_iter();
        for (a, b, said, alike) in named.filter(|(a, b, ..)| may_be_one(&names_of(*a), &names_of(*b))) {
            match said {
                NameComparison::Same { distance } => note(a, b, distance),
                _ => note(a, b, 1.0 - alike),
            }
        }
        let mut pairs: Vec<_> = distances.into_iter().map(|((a, b), distance)| (a, b, distance.max(0.0))).collect();
        pairs.retain(|(_, _, distance)| *distance < threshold);
        pairs.sort_by(|a, b| a.2.total_cmp(&b.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        Ok(pairs)
    }

    /// What [`Memory::merge_entities`] would do. Nothing is changed.
    pub fn plan_merge(&self, from: EntityId, into: EntityId) -> Result<MergePlan, MemoryError> {
        if from == into {
            return Err(MemoryError::MergeIntoItself(from));
        }
        let (from, kept) = (self.entity(from)?, self.entity(into)?);
        let (aliases, description) = kept.absorbing(&from);
        let of = |id: EntityId| -> Result<Vec<Relation>, MemoryError> {
            let from = RelationFilter { from: Some(id), ..RelationFilter::default() };
            let to = RelationFilter { to: Some(id), ..RelationFilter::default() };
            let mut relations = self.store.relations_where(&from, 0, usize::MAX)?;
            relations.extend(self.store.relations_where(&to, 0, usize::MAX)?);
            // One with itself is found both ways.
            relations.sort_by_key(|relation| relation.id);
            relations.dedup_by_key(|relation| relation.id);
            Ok(relations)
        };
        let end = |id: EntityId| if id == from.id { kept.id } else { id };
        let says = |relation: Relation| (end(relation.from), end(relation.to), relation.relation_type);
        let own = of(kept.id)?.into_iter().filter(|relation| relation.from != from.id && relation.to != from.id);
        let mut said: FxHashSet<_> = own.map(says).collect();
        let theirs = of(from.id)?;
        let count = theirs.len();
        let moved = theirs.into_iter().map(says).filter(|(source, target, _)| source != target);
        let moved = moved.filter(|relation| said.insert(relation.clone())).count();
        let texts =
            |id| Ok::<_, MemoryError>(self.observations_of(id)?.into_iter().map(|observation| observation.text));
        let mut observed: FxHashSet<String> = texts(kept.id)?.collect();
        let (own, theirs) = (observed.len(), texts(from.id)?);
        observed.extend(theirs);
        let observations = (observed.len() - own) as u64;
        let description_observed = kept.observing_of(&from).filter(|text| !observed.contains(*text)).map(str::to_owned);
        let observation_count = kept.observation_count + observations + u64::from(description_observed.is_some());
        Ok(MergePlan {
            observations,
            observations_dropped: from.observation_count - observations,
            description_observed,
            relations: moved as u64,
            relations_dropped: (count - moved) as u64,
            aliases: (aliases.len() - kept.aliases.len()) as u64,
            into: Entity { aliases, description, observation_count, ..kept },
            from,
        })
    }

    /// Merges one entity into another: its names become aliases, its observations and relations move.
    pub fn merge_entities(&self, from: EntityId, into: EntityId, author: &Author) -> Result<Merged, MemoryError> {
        let applied = self.store.apply(&[MemoryChange::MergeEntity { from, into }], author)?;
        let mut merged = Merged {
            into: into_entity(applied.outcomes.into_iter().next()),
            observations: 0,
            relations: 0,
            aliases: 0,
            change: applied.change,
        };
        // The log has what this change did, whatever else is written meanwhile, and also when the call is repeated.
        let logged = self.store.log_before(ChangeNumber(applied.change.0 + 1), 1)?;
        for step in logged.iter().flat_map(|change| &change.steps) {
            match step {
                (Some(MemoryItem::Observation(_)), Some(_)) => merged.observations += 1,
                (Some(MemoryItem::Relation(_)), Some(_)) => merged.relations += 1,
                (Some(MemoryItem::Entity(before)), Some(MemoryItem::Entity(after))) => {
                    merged.aliases = (after.aliases.len() - before.aliases.len()) as u64;
                }
                _ => {}
            }
        }
        Ok(merged)
    }
}

/// Whether a name or alias of one is, but for its spelling, a name or alias of the other.
fn has_common_name(a: &Entity, b: &Entity) -> bool {
    let names =
        |entity: &Entity| -> Vec<String> { [&entity.name].into_iter().chain(&entity.aliases).cloned().collect() };
    let (of_a, of_b) = (names(a), names(b));
    of_a.iter().any(|a| of_b.iter().any(|b| matches!(compare(a, b), NameComparison::Same { .. })))
}
