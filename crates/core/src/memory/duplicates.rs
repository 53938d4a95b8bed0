//! Whether a new entity is likely a duplicate.
//!
//! Distance in meaning alone refuses too much: `Release 1.2` is very near `Release 1.3`. So names decide first (see `names`), and
//! the distance only where they leave it open.

use rustc_hash::FxHashMap;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, name_key, text_of_entity};
use super::names::{NameComparison, compare};
use super::write::{Creation, EntityDraft};
use crate::ports::{Role, TextOwner};

/// When two entities count as duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuplicateRule {
    /// A new entity below this distance is a duplicate: 0 is the same, 1 is unrelated. A limit of 0 turns the check off.
    pub distance: f32,
}

impl Default for DuplicateRule {
    fn default() -> Self {
        Self { distance: 0.25 }
    }
}

/// Names at least this similar are compared.
const LIKE_AT_LEAST: f32 = 0.5;
const MAX_CANDIDATES: usize = 32;

/// The share of the way from equal to unrelated at which two short names count as unrelated: see [`meaning_distance`].
const APART_AT: f32 = 0.4;

impl Memory {
    /// The entity that a draft likely duplicates. With `force`, only one with the same name.
    pub(super) fn duplicate_of(
        &self,
        draft: &EntityDraft,
        force: bool,
        meaning: Option<&[f32]>,
    ) -> Result<Option<Creation>, MemoryError> {
        let keys: Vec<String> = [&draft.name].into_iter().chain(&draft.aliases).map(|name| name_key(name)).collect();
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
        let closest = self.closest(draft, meaning)?.filter(|(_, distance)| *distance < self.rule.distance);
        Ok(closest.map(|(existing, distance)| Creation::Duplicate { existing, distance, name_taken: false }))
    }

    /// The entity closest to a draft, with its distance, whatever the rule's limit.
    pub fn closest_to(&self, draft: EntityDraft) -> Result<Option<(Entity, f32)>, MemoryError> {
        let draft = self.checked(draft)?;
        self.closest(&draft, self.meaning_of(&draft).as_deref())
    }

    /// The vector of a draft.
    pub(super) fn meaning_of(&self, draft: &EntityDraft) -> Option<Vec<f32>> {
        let EntityDraft { entity_type, name, aliases, description, .. } = draft;
        self.follower.embed(Role::Passage, &text_of_entity(entity_type, name, aliases, description.as_deref()))
    }

    /// The entity closest to a draft, and their distance; `None` if the names of all near entities differ clearly from the draft's.
    fn closest(&self, draft: &EntityDraft, meaning: Option<&[f32]>) -> Result<Option<(Entity, f32)>, MemoryError> {
        let (alike, near) = {
            let view = self.follower.view()?;
            let entities_only = |owner| matches!(owner, TextOwner::Entity(_));
            let at_least = cosine_at(1.0, self.follower.unrelated());
            let near =
                meaning.map(|vector| view.vectors.near(vector, at_least, entities_only, |_| true, MAX_CANDIDATES));
            (view.names.like(&draft.name, LIKE_AT_LEAST, MAX_CANDIDATES), near.unwrap_or_default())
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
            let apart = names.map(|name| match compare(&draft.name, name) {
                NameComparison::Same { distance } => distance.min(between),
                NameComparison::Apart => 1.0,
                NameComparison::Open => between,
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

/// The distance of two names in meaning: 0 is the same, 1 is unrelated. `unrelated` is the model's cosine of unrelated texts.
///
/// Models put all short names close together: unscaled, most new names would count as duplicates (docs/memory.md). So the
/// distance is scaled to be comparable with the distance of letters.
pub(super) fn meaning_distance(cosine: f32, unrelated: f32) -> f32 {
    ((1.0 - cosine) / scale(unrelated)).clamp(0.0, 1.0)
}

/// The inverse: the cosine of a distance.
pub(super) fn cosine_at(distance: f32, unrelated: f32) -> f32 {
    1.0 - distance * scale(unrelated)
}

fn scale(unrelated: f32) -> f32 {
    APART_AT * (1.0 - unrelated)
}
