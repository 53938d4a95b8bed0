//! Reads: one entity, a page of entities, relations, a subgraph.

use rustc_hash::FxHashMap;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Observation, Relation};
use crate::ports::{MemoryFailure, RelationFilter};

/// An entity with its observations and relations, or a part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityDetail {
    pub entity: Entity,
    /// The newest ones, oldest first.
    pub observations: Vec<Observation>,
    pub relations_from: Vec<Relation>,
    pub relations_to: Vec<Relation>,
    /// Whether there are more relations.
    pub has_more_relations: bool,
}

/// Which part of an entity's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetailPart {
    /// How many of the newest observations to skip.
    pub observations_offset: u64,
    /// How many of the oldest relations of each direction to skip.
    pub relations_offset: u64,
    /// The most items of each list.
    pub limit: usize,
}

/// Which part of a long list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub number: u64,
    /// Items per page.
    pub size: usize,
}

impl PageRequest {
    /// How many items come before it.
    pub fn offset(self) -> u64 {
        self.number.saturating_sub(1).saturating_mul(self.size as u64)
    }

    /// The number of pages for a total.
    pub fn pages_of(self, total: u64) -> u64 {
        total.div_ceil(self.size as u64)
    }
}

/// One page of all entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityPage {
    /// Oldest first.
    pub entities: Vec<Entity>,
    /// The number of all entities.
    pub total: u64,
}

/// Some entities with their observations, and the relations among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subgraph {
    /// Each with its observations, oldest first.
    pub entities: Vec<(Entity, Vec<Observation>)>,
    /// With both ends among the entities.
    pub relations: Vec<Relation>,
}

impl Memory {
    /// An entity with its newest observations and its oldest relations in each direction.
    pub fn entity_detail(&self, id: EntityId, part: DetailPart) -> Result<EntityDetail, MemoryError> {
        let DetailPart { observations_offset, relations_offset, limit } = part;
        let entity = self.entity(id)?;
        let mut observations = self.store.observations_of(&[id])?.pop().unwrap_or_default();
        let skip = usize::try_from(observations_offset).unwrap_or(usize::MAX);
        observations.truncate(observations.len().saturating_sub(skip));
        observations.drain(..observations.len().saturating_sub(limit));
        // One more than the limit tells whether there are more.
        let relations = |filter: RelationFilter| self.store.relations_where(&filter, relations_offset, limit + 1);
        let mut relations_from = relations(RelationFilter { from: Some(id), ..RelationFilter::default() })?;
        let mut relations_to = relations(RelationFilter { to: Some(id), ..RelationFilter::default() })?;
        let has_more_relations = relations_from.len() > limit || relations_to.len() > limit;
        relations_from.truncate(limit);
        relations_to.truncate(limit);
        Ok(EntityDetail { entity, observations, relations_from, relations_to, has_more_relations })
    }

    /// The names of entities; unknown ids are ignored.
    pub fn entity_names(&self, ids: &[EntityId]) -> Result<FxHashMap<EntityId, String>, MemoryError> {
        let found = self.store.entities(ids)?.into_iter().flatten();
        Ok(found.map(|entity| (entity.id, entity.name)).collect())
    }

    /// One page of all entities.
    pub fn list_entities(&self, page: PageRequest) -> Result<EntityPage, MemoryError> {
        let total = self.store.entity_count()?;
        Ok(EntityPage { entities: self.store.entities_from(page.offset(), page.size)?, total })
    }

    /// Relations that pass a filter.
    pub fn find_relations(
        &self,
        filter: &RelationFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, MemoryError> {
        Ok(self.store.relations_where(filter, offset, limit)?)
    }

    /// These entities with the relations among them, and the unknown ids. Repeated ids count once.
    pub fn subgraph(&self, ids: &[EntityId]) -> Result<(Subgraph, Vec<EntityId>), MemoryError> {
        let mut wanted: Vec<EntityId> = Vec::with_capacity(ids.len());
        for id in ids {
            if !wanted.contains(id) {
                wanted.push(*id);
            }
        }
        let found = self.store.entities(&wanted)?;
        let missing = wanted.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(id, _)| *id).collect();
        Ok((self.with_surroundings(found.into_iter().flatten().collect())?, missing))
    }

    pub(super) fn with_surroundings(&self, entities: Vec<Entity>) -> Result<Subgraph, MemoryFailure> {
        let ids: Vec<EntityId> = entities.iter().map(|entity| entity.id).collect();
        let observations = self.store.observations_of(&ids)?;
        let relations = self.store.relations_among(&ids)?;
        Ok(Subgraph { entities: entities.into_iter().zip(observations).collect(), relations })
    }
}
