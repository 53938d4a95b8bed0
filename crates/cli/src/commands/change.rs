//! A change to memory, for `quipu audit` and `quipu undo`.

use jiff::Timestamp;
use quipu_core::memory::{Entity, Observation, Relation, change_line};
use quipu_core::ports::{LoggedChange, MemoryItem};
use serde_json::{Value, json};

/// Steps of a change that are listed: an import may have a hundred thousand.
const MAX_LISTED: usize = 20;

/// One line for each step, up to the limit.
pub(super) fn lines(change: &LoggedChange) -> Vec<String> {
    let more = change.steps.len().saturating_sub(MAX_LISTED);
    let listed = change.steps.iter().take(MAX_LISTED).map(change_line);
    listed.chain((more > 0).then(|| format!("… and {more} more; --json lists all of them"))).collect()
}

/// Time, client, tool, and what it undoes or what undid it.
pub(super) fn heading(change: &LoggedChange) -> String {
    let client = if change.author.client.is_empty() { "unnamed client" } else { &change.author.client };
    let mut text = format!("{}  {client}  {}", at(change), change.author.tool);
    if let Some(undone) = change.undoes {
        text.push_str(&format!("  (undoes {})", undone.0));
    }
    if let Some(by) = change.undone_by {
        text.push_str(&format!("  (undone by {})", by.0));
    }
    text
}

pub(super) fn to_json(change: &LoggedChange) -> Value {
    let steps: Vec<Value> = change
        .steps
        .iter()
        .map(|(before, after)| json!({ "before": before.as_ref().map(item), "after": after.as_ref().map(item) }))
        .collect();
    json!({
        "change": change.number.0,
        "at": at(change),
        "client": change.author.client,
        "tool": change.author.tool,
        "undoes": change.undoes.map(|number| number.0),
        "undone_by": change.undone_by.map(|number| number.0),
        "steps": steps,
    })
}

fn item(item: &MemoryItem) -> Value {
    match item {
        MemoryItem::Entity(Entity { id, name, entity_type, aliases, description, .. }) => json!({
            "entity_id": id.0, "name": name, "entity_type": entity_type, "aliases": aliases, "description": description,
        }),
        MemoryItem::Observation(Observation { id, entity, text, .. }) => {
            json!({ "observation_id": id.0, "entity_id": entity.0, "text": text })
        }
        MemoryItem::Relation(Relation { id, from, to, relation_type, .. }) => json!({
            "relation_id": id.0, "from_entity_id": from.0, "to_entity_id": to.0, "relation_type": relation_type,
        }),
    }
}

/// The time of the change.
pub(super) fn at(change: &LoggedChange) -> String {
    let time = Timestamp::from_nanosecond(i128::from(change.author.at_ns));
    format!("{:.0}", time.expect("64 bits of nanoseconds reach 1677 to 2262"))
}
