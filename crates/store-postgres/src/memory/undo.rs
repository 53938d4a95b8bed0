//! Undoing a change: its steps are reversed, last first. Every item must still be as the change left it.

use quipu_core::memory::{Entity, EntityId};
use quipu_core::ports::MemoryItem;

use super::draft::{Draft, DraftStep};
use super::item;

/// Reverses steps. The error says what is in the way, as the rest of a sentence.
pub(super) fn reverse(draft: &mut Draft, steps: Vec<DraftStep>) -> Result<(), String> {
    for (before, after) in steps.into_iter().rev() {
        if let Some(after) = &after {
            refuse_changed(draft, after)?;
        }
        if let Some(before) = &before {
            refuse_unfit(draft, before)?;
        }
        match (before, after) {
            (None, Some(made)) => {
                if let MemoryItem::Entity(entity) = &made {
                    refuse_used(draft, entity)?;
                }
                draft.remove(made);
            }
            (Some(removed), None) => drop(draft.insert(removed)),
            (Some(before), Some(after)) => drop(draft.replace(after, before)),
            (None, None) => {}
        }
    }
    Ok(())
}

/// Fails unless an item is as the change left it.
fn refuse_changed(draft: &Draft, left: &MemoryItem) -> Result<(), String> {
    let (kind, id) = item::key(left);
    let now = match left {
        // The log does not have the number of observations.
        MemoryItem::Entity(Entity { id, observation_count, .. }) => draft
            .entities
            .get(id)
            .map(|now| MemoryItem::Entity(Entity { observation_count: *observation_count, ..now.clone() })),
        MemoryItem::Observation(seen) => draft.observations.get(&seen.id).cloned().map(MemoryItem::Observation),
        MemoryItem::Relation(relation) => draft.relations.get(&relation.id).cloned().map(MemoryItem::Relation),
    };
    match now {
        Some(now) if now == *left => Ok(()),
        Some(_) => Err(format!("{kind} {id} was changed later; undo that first")),
        None => Err(format!("{kind} {id} was deleted later; undo that first")),
    }
}

/// Fails unless a restored item finds its name free and the entities that it refers to.
fn refuse_unfit(draft: &Draft, back: &MemoryItem) -> Result<(), String> {
    let needs = |id: EntityId, what: String| {
        if draft.entities.contains_key(&id) {
            Ok(())
        } else {
            Err(format!("{what} needs entity {id}, which was deleted"))
        }
    };
    match back {
        MemoryItem::Entity(entity) => match draft.named(&entity.name).filter(|owner| *owner != entity.id) {
            Some(by) => Err(format!("the name {:?} belongs to entity {by} now", entity.name)),
            None => Ok(()),
        },
        MemoryItem::Observation(seen) => needs(seen.entity, format!("observation {}", seen.id)),
        MemoryItem::Relation(relation) => {
            needs(relation.from, format!("relation {}", relation.id))?;
            needs(relation.to, format!("relation {}", relation.id))?;
            match draft.equal_relation(relation) {
                Some(id) if id != relation.id => Err(format!("relation {id} is equal to it by now")),
                _ => Ok(()),
            }
        }
    }
}

/// Fails if something was added to a created entity later.
fn refuse_used(draft: &Draft, entity: &Entity) -> Result<(), String> {
    let observations = draft.observations_of(entity.id).len();
    let relations = draft.relations_touching(entity.id).len();
    if observations + relations == 0 {
        return Ok(());
    }
    Err(format!(
        "entity {} ({}) has {observations} observations and {relations} relations that were added later; \
         undo those first",
        entity.id, entity.name
    ))
}
