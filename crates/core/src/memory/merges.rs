//! Two entities that are one: which they may be, and making them one.

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId};
use super::write::into_entity;
use crate::ports::{Author, MemoryChange, RelationFilter};

/// Two entities that may be one.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeSuggestion {
    /// The older one.
    pub a: Entity,
    /// The newer one.
    pub b: Entity,
    /// How far they are apart: 0 is the same, 1 is unrelated.
    pub distance: f32,
}

/// What a merge does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergePlan {
    /// What stays, as it will be.
    pub into: Entity,
    /// What goes.
    pub from: Entity,
    /// How many observations move.
    pub observations: u64,
    /// How many relations move, or go where they would say nothing new.
    pub relations: u64,
}

impl Memory {
    /// What [`Memory::merge_entities`] would do. Nothing is changed.
    pub fn plan_merge(&self, from: EntityId, into: EntityId) -> Result<MergePlan, MemoryError> {
        if from == into {
            return Err(MemoryError::Itself(from));
        }
        let (from, kept) = (self.entity(from)?, self.entity(into)?);
        let (aliases, description) = kept.absorbing(&from);
        let count = |filter: RelationFilter| -> Result<u64, MemoryError> {
            Ok(self.store.relations_where(&filter, 0, usize::MAX)?.len() as u64)
        };
        let relations = count(RelationFilter { from: Some(from.id), ..RelationFilter::default() })?
            + count(RelationFilter { to: Some(from.id), ..RelationFilter::default() })?;
        let observation_count = kept.observation_count + from.observation_count;
        Ok(MergePlan {
            observations: from.observation_count,
            relations,
            into: Entity { aliases, description, observation_count, ..kept },
            from,
        })
    }

    /// Makes one entity part of another: its names become aliases, its observations and relations move.
    pub fn merge_entities(&self, from: EntityId, into: EntityId, author: &Author) -> Result<Entity, MemoryError> {
        let applied = self.store.apply(&[MemoryChange::MergeEntity { from, into }], author)?;
        Ok(into_entity(applied.outcomes.into_iter().next()))
    }
}
