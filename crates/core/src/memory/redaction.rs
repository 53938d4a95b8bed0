//! Redaction: the texts of an item are removed from memory and from every log entry; that something was there stays.

use std::collections::BTreeSet;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Observation, ObservationId, Relation, name_key};
use crate::ports::{Author, LoggedChange, MemoryItem, Redaction, TextOwner};

impl Memory {
    /// Removes an entity, with its observations and relations, or an observation permanently: deletes it, and replaces its texts in
    /// the log by the reason. Also for an item that was deleted before and is only in the log.
    pub fn redact(&self, owner: TextOwner, reason: &str, author: &Author) -> Result<Redaction, MemoryError> {
        let reason = super::write::text_of("reason", reason)?;
        Ok(self.store.redact(owner, &reason, author)?)
    }
}

/// The items whose texts a redaction removes: for an entity also its observations, its relations, and the entities that were
/// merged into it.
#[derive(Debug, Clone, Default)]
pub struct RedactionScope {
    entities: BTreeSet<EntityId>,
    observations: BTreeSet<ObservationId>,
}

impl RedactionScope {
    /// The item itself.
    pub fn of(owner: TextOwner) -> Self {
        match owner {
            TextOwner::Entity(id) => Self { entities: [id].into(), ..Self::default() },
            TextOwner::Observation(id) => Self { observations: [id].into(), ..Self::default() },
        }
    }

    /// Adds what one log entry shows to belong to it. Call it for every entry, newest first. `entity_of` is the present entity
    /// of an observation, and `exists` whether an entity is there: what is another's now is not redacted.
    pub fn widen<E>(
        &mut self,
        change: &LoggedChange,
        exists: impl Fn(EntityId) -> Result<bool, E>,
        entity_of: impl Fn(ObservationId) -> Result<Option<EntityId>, E>,
    ) -> Result<(), E> {
        for (from, into) in merges(change) {
            if self.entities.contains(&into) && !exists(from)? {
                self.entities.insert(from);
            }
        }
        for item in change.steps.iter().flat_map(|(before, after)| before.iter().chain(after)) {
            if let MemoryItem::Observation(Observation { id, entity, .. }) = item
                && self.entities.contains(entity)
                && entity_of(*id)?.is_none_or(|now| self.entities.contains(&now))
            {
                self.observations.insert(*id);
            }
        }
        Ok(())
    }

    /// Whether an item is among them. A relation is, if one of its entities is.
    pub fn covers(&self, item: &MemoryItem) -> bool {
        match item {
            MemoryItem::Entity(entity) => self.entities.contains(&entity.id),
            MemoryItem::Observation(seen) => self.observations.contains(&seen.id),
            MemoryItem::Relation(relation) => {
                self.entities.contains(&relation.from) || self.entities.contains(&relation.to)
            }
        }
    }

    /// The items that own a text.
    pub fn owners(&self) -> impl Iterator<Item = TextOwner> {
        let entities = self.entities.iter().copied().map(TextOwner::Entity);
        entities.chain(self.observations.iter().copied().map(TextOwner::Observation))
    }
}

/// The merges in a log entry: an entity that is deleted while another gets its name as an alias.
pub fn merges(change: &LoggedChange) -> impl Iterator<Item = (EntityId, EntityId)> {
    let deleted = change.steps.iter().filter_map(|step| match step {
        (Some(MemoryItem::Entity(gone)), None) => Some(gone),
        _ => None,
    });
    deleted.filter_map(|gone| {
        let key = name_key(&gone.name);
        let into = change.steps.iter().find_map(|step| match step {
            (Some(MemoryItem::Entity(before)), Some(MemoryItem::Entity(after)))
                if after.aliases.iter().any(|alias| name_key(alias) == key)
                    || (before.id != gone.id && name_key(&after.name) == key) =>
            {
                Some(after.id)
            }
            _ => None,
        });
        into.map(|into| (gone.id, into))
    })
}

impl MemoryItem {
    /// The item with the reason in place of its texts. Names and types differ by id, so that an undo finds them free.
    pub fn redacted(&self, reason: &str) -> Self {
        let text = format!("[redacted: {reason}]");
        match self.clone() {
            Self::Entity(entity) => Self::Entity(Entity {
                name: format!("[redacted {}]", entity.id),
                entity_type: "[redacted]".to_owned(),
                aliases: Vec::new(),
                description: Some(text),
                ..entity
            }),
            Self::Observation(seen) => Self::Observation(Observation { text, ..seen }),
            Self::Relation(relation) => {
                Self::Relation(Relation { relation_type: format!("[redacted {}]", relation.id), ..relation })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ChangeNumber;

    #[test]
    fn failed_look_up_does_not_make_the_scope_smaller() {
        let observation = Observation {
            id: ObservationId(1),
            entity: EntityId(7),
            text: String::new(),
            created_ns: 0,
            updated_ns: 0,
        };
        let change = LoggedChange {
            number: ChangeNumber(1),
            author: Author { client: String::new(), tool: String::new(), at_ns: 0, request: None },
            undoes: None,
            undone_by: None,
            steps: vec![(None, Some(MemoryItem::Observation(observation)))],
        };
        let mut scope = RedactionScope::of(TextOwner::Entity(EntityId(7)));
        assert_eq!(scope.widen(&change, |_| Ok(true), |_| Err("disk error")), Err("disk error"));
        assert_eq!(scope.widen::<&str>(&change, |_| Ok(true), |_| Ok(None)), Ok(()));
        assert!(scope.owners().any(|owner| owner == TextOwner::Observation(ObservationId(1))));
    }
}
