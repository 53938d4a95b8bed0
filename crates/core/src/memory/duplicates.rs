//! Whether a new entity is likely one that is there already.
//!
//! Nearness alone refuses too much: `Release 1.2` lies right beside `Release 1.3`. So names speak first (see `names`), and
//! the distance of meanings decides only where they leave it open.

use rustc_hash::FxHashMap;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, name_key, text_of_entity};
use super::names::{Comparison, compare};
use super::write::{Creation, EntityWish};
use crate::ports::{Role, TextOwner};

/// When two things count as one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuplicateRule {
    /// Below this distance a new entity is held for one that is there: 0 is the same, 1 is unrelated. 0 turns it off.
    pub distance: f32,
}

impl Default for DuplicateRule {
    fn default() -> Self {
        Self { distance: 0.25 }
    }
}

/// Names as alike as this are looked at.
const LIKE_AT_LEAST: f32 = 0.5;
const MAX_CANDIDATES: usize = 32;

/// So far on the way from the same to unrelated two short names are apart as far as names can be: see
/// [`meaning_distance`].
const APART_AT: f32 = 0.4;

impl Memory {
    /// What there is that a wish likely means. With `force` only the owner of the very name.
    pub(super) fn duplicate_of(
        &self,
        wish: &EntityWish,
        force: bool,
        meaning: Option<&[f32]>,
    ) -> Result<Option<Creation>, MemoryError> {
        let keys: Vec<String> = [&wish.name].into_iter().chain(&wish.aliases).map(|name| name_key(name)).collect();
        let called = self.store.entities_called(&keys)?;
        for (place, id) in called.iter().enumerate().flat_map(|(place, ids)| ids.iter().map(move |id| (place, *id))) {
            let existing = self.entity(id)?;
            let name_taken = place == 0 && name_key(&existing.name) == keys[0];
            if name_taken || !force {
                return Ok(Some(Creation::Duplicate { existing, distance: 0.0, name_taken }));
            }
        }
        if force || self.rule.distance <= 0.0 {
            return Ok(None);
        }
        let closest = self.closest(wish, meaning)?.filter(|(_, distance)| *distance < self.rule.distance);
        Ok(closest.map(|(existing, distance)| Creation::Duplicate { existing, distance, name_taken: false }))
    }

    /// The entity that a new one would be held for, were the rule's distance great enough, and how far they are apart.
    pub fn closest_to(&self, wish: EntityWish) -> Result<Option<(Entity, f32)>, MemoryError> {
        let wish = self.checked(wish)?;
        self.closest(&wish, self.meaning_of(&wish).as_deref())
    }

    /// The vector of a wish, as it is compared with those of entities.
    pub(super) fn meaning_of(&self, wish: &EntityWish) -> Option<Vec<f32>> {
        let EntityWish { entity_type, name, aliases, description, .. } = wish;
        self.follower.embed(Role::Passage, &text_of_entity(entity_type, name, aliases, description.as_deref()))
    }

    /// The entity that a wish is closest to, and how far they are apart; none where everything near is told apart by its
    /// name.
    fn closest(&self, wish: &EntityWish, meaning: Option<&[f32]>) -> Result<Option<(Entity, f32)>, MemoryError> {
        let (alike, near) = {
            let view = self.follower.view()?;
            let entities_only = |owner| matches!(owner, TextOwner::Entity(_));
            let at_least = cosine_at(1.0, self.follower.unrelated());
            let near =
                meaning.map(|vector| view.vectors.near(vector, at_least, entities_only, |_| true, MAX_CANDIDATES));
            (view.names.like(&wish.name, LIKE_AT_LEAST, MAX_CANDIDATES), near.unwrap_or_default())
        };
        let mut distances: FxHashMap<EntityId, f32> = alike.iter().map(|(id, alike)| (*id, 1.0 - alike)).collect();
        for near in near {
            let by_letters = distances.entry(near.entity).or_insert(1.0);
            *by_letters = by_letters.min(meaning_distance(near.cosine, self.follower.unrelated()));
        }
        let ids: Vec<EntityId> = distances.keys().copied().collect();
        let mut closest: Option<(Entity, f32)> = None;
        for existing in self.store.entities(&ids)?.into_iter().flatten() {
            let between = distances[&existing.id];
            let names = [&existing.name].into_iter().chain(&existing.aliases);
            let apart = names.map(|name| match compare(&wish.name, name) {
                Comparison::Same { distance } => distance.min(between),
                Comparison::Apart => 1.0,
                Comparison::Open => between,
            });
            let distance = apart.fold(1.0, f32::min);
            let is_closer = |(known, best): &(Entity, f32)| (distance, existing.id) < (*best, known.id);
            if distance < 1.0 && closest.as_ref().is_none_or(is_closer) {
                closest = Some((existing, distance));
            }
        }
        Ok(closest)
    }
}

/// How far two names are apart in meaning: 0 is the same, 1 is unrelated. `unrelated` is the cosine of texts that have
/// nothing to do with each other, which each model puts elsewhere.
///
/// Models put all short names close together; taken as it is, the distance would hold back most of what is new
/// (docs/memory.md). It is stretched until it tells as much as the distance of letters.
pub(super) fn meaning_distance(cosine: f32, unrelated: f32) -> f32 {
    ((1.0 - cosine) / whole_way(unrelated)).clamp(0.0, 1.0)
}

/// The cosine at which two names are so far apart, the other way round.
pub(super) fn cosine_at(distance: f32, unrelated: f32) -> f32 {
    1.0 - distance * whole_way(unrelated)
}

fn whole_way(unrelated: f32) -> f32 {
    APART_AT * (1.0 - unrelated)
}
