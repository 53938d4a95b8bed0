//! A log from its first entry, and the items that it leaves.

use std::collections::BTreeMap;

use super::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use crate::ports::{ChangeNumber, LoggedChange, MemoryItem};

/// All entries of a log, oldest first.
#[derive(Debug)]
pub struct WholeLog {
    entries: Vec<LoggedChange>,
    /// The entities after the last entry.
    pub entities: BTreeMap<EntityId, Entity>,
    /// The observations after the last entry.
    pub observations: BTreeMap<ObservationId, Observation>,
    /// The relations after the last entry.
    pub relations: BTreeMap<RelationId, Relation>,
    /// The greatest ids that entities, observations and relations ever had.
    pub greatest: (i64, i64, i64),
}

impl WholeLog {
    /// Fails, with the reason as a sentence part, unless entries are numbered from 1 and undo only earlier ones, each once.
    pub fn new(entries: Vec<LoggedChange>) -> Result<Self, String> {
        let mut undone = std::collections::BTreeSet::new();
        for (number, entry) in (1..).map(ChangeNumber).zip(&entries) {
            if entry.number != number {
                return Err(format!("change {} is in the place of change {}", entry.number.0, number.0));
            }
            if let Some(undoes) = entry.undoes
                && (undoes.0 < 1 || undoes >= number || !undone.insert(undoes))
            {
                return Err(format!("change {} undoes change {}", number.0, undoes.0));
            }
        }
        let mut log = Self {
            entries: Vec::new(),
            entities: BTreeMap::new(),
            observations: BTreeMap::new(),
            relations: BTreeMap::new(),
            greatest: (0, 0, 0),
        };
        for (before, after) in entries.iter().flat_map(|entry| &entry.steps) {
            if let Some(before) = before {
                log.remove(before);
            }
            if let Some(after) = after {
                log.put(after);
            }
        }
        Ok(Self { entries, ..log })
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[LoggedChange] {
        &self.entries
    }

    fn remove(&mut self, item: &MemoryItem) {
        match item {
            MemoryItem::Entity(entity) => drop(self.entities.remove(&entity.id)),
            MemoryItem::Observation(seen) => drop(self.observations.remove(&seen.id)),
            MemoryItem::Relation(relation) => drop(self.relations.remove(&relation.id)),
        }
    }

    fn put(&mut self, item: &MemoryItem) {
        let (greatest, id) = match item {
            MemoryItem::Entity(entity) => {
                self.entities.insert(entity.id, entity.clone());
                (&mut self.greatest.0, entity.id.0)
            }
            MemoryItem::Observation(seen) => {
                self.observations.insert(seen.id, seen.clone());
                (&mut self.greatest.1, seen.id.0)
            }
            MemoryItem::Relation(relation) => {
                self.relations.insert(relation.id, relation.clone());
                (&mut self.greatest.2, relation.id.0)
            }
        };
        *greatest = id.max(*greatest);
    }
}
