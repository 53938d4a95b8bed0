//! The log in an imported file: copied into a memory without changes if it leads to the items of the file.

use std::collections::BTreeMap;

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, WholeLog};
use quipu_core::ports::{ChangeNumber, CopyLogError, LoggedChange, MemoryItem, NoteTie};

use super::super::document::ItemPosition;
use super::super::log;
use super::super::record::Record;
use super::{ImportError, Importer};

/// The log of the file, and its items with their ids and times.
#[derive(Default)]
pub(super) struct FileHistory {
    entries: Vec<LoggedChange>,
    /// The place of the first entry.
    first: Option<ItemPosition>,
    entities: BTreeMap<EntityId, Entity>,
    observations: BTreeMap<ObservationId, Observation>,
    relations: BTreeMap<RelationId, Relation>,
    ties: Vec<NoteTie>,
    /// The log, when it fits the items.
    whole: Option<WholeLog>,
}

impl FileHistory {
    pub(super) fn add(&mut self, spot: &ItemPosition, record: &Record) {
        match record {
            Record::Change(entry) => {
                self.first.get_or_insert_with(|| spot.clone());
                self.entries.push(entry.clone());
            }
            Record::Ties(ties) => self.ties.extend_from_slice(ties),
            _ => {
                self.ties.extend(log::ties_of(record));
                match log::item(record) {
                    Some(MemoryItem::Entity(entity)) => drop(self.entities.insert(entity.id, entity)),
                    Some(MemoryItem::Observation(seen)) => drop(self.observations.insert(seen.id, seen)),
                    Some(MemoryItem::Relation(relation)) => drop(self.relations.insert(relation.id, relation)),
                    None => {}
                }
            }
        }
    }

    fn check(&mut self) -> Result<WholeLog, String> {
        let whole = WholeLog::new(std::mem::take(&mut self.entries))?;
        let fits = (&whole.entities, &whole.observations, &whole.relations)
            == (&self.entities, &self.observations, &self.relations);
        if fits { Ok(whole) } else { Err("replaying it gives other items than the file has".to_owned()) }
    }
}

impl Importer<'_> {
    /// Checks the log when the whole file was read.
    pub(super) fn finish_history(&mut self) {
        let Some(first) = self.history.first.clone() else { return };
        match self.history.check() {
            Ok(whole) => self.history.whole = Some(whole),
            Err(reason) => self.problem(&first, format!("the log is not imported: {reason}")),
        }
    }

    /// Copies the log, with all items; `false` if there is none, or memory has changes of its own.
    pub(super) fn copy_history(&mut self) -> Result<bool, ImportError> {
        let Some(whole) = self.history.whole.take() else { return Ok(false) };
        let changes = whole.entries().len();
        let is_empty = self.store.head()? == ChangeNumber(0);
        let copied =
            if is_empty { self.store.copy_log(&whole, &self.history.ties) } else { Err(CopyLogError::NotEmpty) };
        match copied {
            Ok(()) => {
                self.imported.changes = changes;
                Ok(true)
            }
            Err(CopyLogError::NotEmpty) => {
                self.imported.changes_left = changes;
                Ok(false)
            }
            Err(CopyLogError::Failed(failure)) => Err(failure.into()),
        }
    }
}
