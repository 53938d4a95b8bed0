//! Whether a new entity is likely one that is there already.
//!
//! Two names mean the same thing when each word of the one has its like in the other. A word that stands alone tells the
//! two apart, and so does any number: `Release 1.2` is not `Release 1.3`, however near the two lie in meaning.

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, name_key};
use super::write::{Creation, EntityWish};

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
const LIKE_AT_LEAST: f32 = 0.35;
const MAX_CANDIDATES: usize = 32;

impl Memory {
    pub(super) fn meaning_of(&self, _wish: &EntityWish) -> Option<Vec<f32>> {
        None
    }

    /// What there is that a wish likely means. With `force` only the owner of the very name.
    pub(super) fn duplicate_of(
        &self,
        wish: &EntityWish,
        force: bool,
        _meaning: Option<&[f32]>,
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
        let candidates: Vec<EntityId> = {
            let view = self.follower.view()?;
            view.names.like(&wish.name, LIKE_AT_LEAST, MAX_CANDIDATES).into_iter().map(|(id, _)| id).collect()
        };
        let mut best: Option<(Entity, f32)> = None;
        for existing in self.store.entities(&candidates)?.into_iter().flatten() {
            let distance = names_distance(&wish.name, &existing.name);
            if distance < self.rule.distance && best.as_ref().is_none_or(|(_, known)| distance < *known) {
                best = Some((existing, distance));
            }
        }
        Ok(best.map(|(existing, distance)| Creation::Duplicate { existing, distance, name_taken: false }))
    }
}

/// How far two names are apart: 0 when every word of each has its like in the other, 1 when a word or number tells them
/// apart.
pub(super) fn names_distance(a: &str, b: &str) -> f32 {
    if name_key(a) == name_key(b) { 0.0 } else { 1.0 }
}
