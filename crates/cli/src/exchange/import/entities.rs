//! Imported entities: created, or completed if they exist.

use quipu_core::memory::{EntityId, name_key};
use quipu_core::ports::{EntityRef, MemoryChange, NewEntity};

use super::super::document::ItemPosition;
use super::super::record::EntityRecord;
use super::{ImportError, Importer, key};

/// The type of an entity without one.
const UNTYPED: &str = "Thing";

impl Importer<'_> {
    pub(super) fn take_entity(&mut self, spot: &ItemPosition, given: EntityRecord) -> Result<(), ImportError> {
        let given = EntityRecord { name: given.name.trim().to_owned(), ..given };
        let mut given = if self.is_ours { given } else { given.normalized() };
        if !self.is_ours {
            given.entity_type = given.entity_type.map(|written| self.types.canonical(&written));
        }
        let observations = std::mem::take(&mut given.observations);
        let (id, entity_type) = (given.origin.id, given.entity_type.clone());
        let name = given.name.clone();
        for fault in std::mem::take(&mut given.faults) {
            self.problem(spot, format!("{name:?}: {fault}; the rest of the entity is imported"));
        }
        let place = match self.named(&name)? {
            Some(known) => {
                self.imported.known += 1;
                self.complete(spot, known, given);
                known
            }
            None => self.create(given),
        };
        if let Some(id) = id {
            self.by_id.insert(id, place);
        }
        if let Some(given) = entity_type {
            let (first, at) = self.typed.entry(key(place)).or_insert_with(|| (given.clone(), spot.line));
            if *first != given {
                let message = format!("{name:?} has type {first} on line {at} and {given} here; the first is used");
                self.problem(spot, message);
            }
        }
        self.unmatched.remove(&key(place));
        for (text, origin) in observations {
            self.observe(place, &text, origin)?;
        }
        Ok(())
    }

    fn create(&mut self, given: EntityRecord) -> EntityRef {
        let EntityRecord { name, entity_type, aliases, description, origin, .. } = given;
        let key = name_key(&name);
        let entity_type = entity_type.unwrap_or_else(|| UNTYPED.to_owned());
        let new = NewEntity { name, entity_type, aliases, description };
        let made = EntityRef::Made(self.push(MemoryChange::CreateEntity(new), origin));
        self.imported.entities += 1;
        self.by_name.insert(key, made);
        made
    }

    /// Adds missing aliases and a missing description to an entity of memory or of the file. A different description is
    /// reported and not imported, and neither are its ties.
    fn complete(&mut self, spot: &ItemPosition, place: EntityRef, given: EntityRecord) {
        let is_typed = self.typed.contains_key(&key(place));
        let (aliases, description) = match place {
            EntityRef::Made(made) => {
                let MemoryChange::CreateEntity(new) = &mut self.changes[made] else { return };
                if let Some(entity_type) = given.entity_type.as_ref().filter(|_| !is_typed) {
                    new.entity_type.clone_from(entity_type);
                }
                (&mut new.aliases, &mut new.description)
            }
            EntityRef::Id(id) => {
                let Some(entity) = self.there.get_mut(&id) else { return };
                (&mut entity.aliases, &mut entity.description)
            }
        };
        let more = given.new_aliases(aliases);
        let (own, other) = (said(description.as_ref()), said(given.description.as_ref()));
        let is_another = own.is_some() && other.is_some() && own != other;
        let is_described = own.is_none() && other.is_some();
        let new_description = given.description.filter(|_| is_described);
        if is_described {
            description.clone_from(&new_description);
        }
        aliases.extend_from_slice(&more);
        if is_another {
            self.problem(spot, format!("{:?} already has another description, which is kept", given.name));
        }
        let made = match place {
            EntityRef::Made(made) => made,
            EntityRef::Id(_) if !is_described && more.is_empty() => return,
            EntityRef::Id(id) => self.give(id, more, new_description),
        };
        if is_described {
            self.tie(made, given.origin.ties);
        }
    }

    /// Adds to the change that completes an entity of memory; returns its index.
    fn give(&mut self, id: EntityId, more: Vec<String>, description: Option<String>) -> usize {
        let place = *self.given.entry(id).or_insert_with(|| {
            self.imported.completed += 1;
            self.changes.push(MemoryChange::CompleteEntity { id, aliases: Vec::new(), description: None });
            self.changes.len() - 1
        });
        if let MemoryChange::CompleteEntity { aliases, description: said, .. } = &mut self.changes[place] {
            aliases.extend(more);
            *said = said.take().or(description);
        }
        place
    }
}

/// A description, unless it is blank.
fn said(description: Option<&String>) -> Option<&str> {
    description.map(|text| text.trim()).filter(|text| !text.is_empty())
}
