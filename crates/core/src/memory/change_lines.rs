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
        (Some(MemoryItem::Observation(before)), Some(MemoryItem::Observation(after))) if before.text != after.text => {
            format!("~ observation {} of entity {}: {}", after.id, after.entity, replaced(&before.text, &after.text))
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
        let text = |entity: &Entity| entity.description.clone().unwrap_or_default();
        found.push(format!("description {}", replaced(&text(before), &text(after))));
    }
    if found.is_empty() { "only its time".to_owned() } else { found.join(", ") }
}

/// An old text and the new one in half a line each, where both start shortly before their first difference.
fn replaced(before: &str, after: &str) -> String {
    const MAX_CHARS: usize = 50;
    const CONTEXT: usize = 15;
    let is_long = [before, after].iter().any(|text| text.chars().nth(MAX_CHARS).is_some());
    let equal = before.chars().zip(after.chars()).take_while(|(old, new)| old == new).count();
    let start = if is_long { equal.saturating_sub(CONTEXT) } else { 0 };
    let part = |text: &str| {
        let rest: String = text.chars().skip(start).collect();
        let rest = if start > 0 { format!("…{rest}") } else { rest };
        cut_to(&rest, MAX_CHARS)
    };
    format!("{:?} to {:?}", part(before), part(after))
}

/// A text cut to the length of a line.
fn cut(text: &str) -> String {
    cut_to(text, 80)
}

fn cut_to(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    text.chars().take(max_chars - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shown_where_they_differ() {
        assert_eq!(replaced("sails", "rows"), r#""sails" to "rows""#);
        assert_eq!(replaced("", "a \"b\""), r#""" to "a \"b\"""#);
        let long = |port: &str| {
            format!("{}, and it listens on port {port}.{}", "The server starts".repeat(5), " x".repeat(50))
        };
        let shown = replaced(&long("8080"), &long("9090"));
        assert!(
            shown.starts_with(r#""…istens on port 8080. x"#) && shown.contains(r#"…" to "…istens on port 9090. x"#),
            "{shown}"
        );
        assert!(shown.chars().count() <= 108, "{shown}");
    }
}
