//! The steps of a logged change in words, one line each.

use super::model::{Entity, EntityId, Observation, Relation};
use crate::ports::{MemoryFailure, MemoryItem, MemoryStore};

/// One step: `+` for a created item, `-` for a deleted one, `~` for a changed one.
pub fn change_line(step: &(Option<MemoryItem>, Option<MemoryItem>)) -> String {
    match step {
        (None, Some(created)) => format!("+ {}", named(created)),
        (Some(deleted), None) => format!("- {}", named(deleted)),
        (Some(MemoryItem::Entity(before)), Some(MemoryItem::Entity(after))) => {
            format!("~ entity {}: {}", after.id, differences(before, after))
        }
        (_, Some(after)) => format!("~ {}", named(after)),
        (None, None) => String::new(),
    }
}

/// A relation by the names of its entities; a deleted one has its number.
pub fn relation_by_name(store: &dyn MemoryStore, relation: &Relation) -> Result<String, MemoryFailure> {
    let found = store.entities(&[relation.from, relation.to])?;
    let name = |place: usize, id: EntityId| {
        found.get(place).and_then(Option::as_ref).map_or_else(|| format!("entity {id}"), |entity| entity.name.clone())
    };
    Ok(format!("{} {} {}", name(0, relation.from), relation.relation_type, name(1, relation.to)))
}

fn named(item: &MemoryItem) -> String {
    match item {
        MemoryItem::Entity(Entity { id, name, entity_type, .. }) => format!("entity {id} {entity_type}: {name}"),
        MemoryItem::Observation(Observation { id, entity, text, .. }) => {
            format!("observation {id} of entity {entity}: {}", cut(text))
        }
        MemoryItem::Relation(Relation { id, from, to, relation_type, .. }) => {
            format!("relation {id}: {from} {relation_type} {to}")
        }
    }
}

fn differences(before: &Entity, after: &Entity) -> String {
    let mut found = Vec::new();
    if before.name != after.name {
        found.push(format!("name {:?} to {:?}", before.name, after.name));
    }
    if before.entity_type != after.entity_type {
        found.push(format!("type {} to {}", before.entity_type, after.entity_type));
    }
    if before.aliases != after.aliases {
        found.push(format!("aliases {:?} to {:?}", before.aliases, after.aliases));
    }
    if before.description != after.description {
        found.push("description".to_owned());
    }
    if found.is_empty() { "only its time".to_owned() } else { found.join(", ") }
}

/// A text cut to the length of a line.
fn cut(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    if text.chars().count() <= MAX_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}
