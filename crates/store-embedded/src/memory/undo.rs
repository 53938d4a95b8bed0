//! Undoing a change: its steps are reversed, last first. Every item must still be as the change left it.

use quipu_core::memory::{Entity, EntityId, name_key};
use quipu_core::ports::{Author, ChangeNumber, LoggedChange, MemoryItem};
use rusqlite::{OptionalExtension, Transaction};

use super::apply::ChangeWriter;
use super::contexts;
use super::log::{self, LogError};
use super::{read, rows};

/// Why a change cannot be undone.
#[derive(Debug, thiserror::Error)]
pub(super) enum UndoFault {
    #[error("unknown change")]
    Unknown,
    #[error("it is undone already")]
    Undone(ChangeNumber),
    #[error("{0}")]
    Depended(String),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<rusqlite::Error> for UndoFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Log(error.into())
    }
}

pub(super) fn undo(tx: &Transaction<'_>, number: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoFault> {
    let change = log::one(tx, number)?.ok_or(UndoFault::Unknown)?;
    if let Some(by) = change.undone_by {
        return Err(UndoFault::Undone(by));
    }
    // A change that was undone and redone is undone by undoing the redo.
    let latest = log::latest_doing(tx, number)?;
    let change = if latest == number { change } else { log::one(tx, latest)?.ok_or(UndoFault::Unknown)? };
    let contexts = contexts::replaced_by(tx, latest)?;
    let mut writing = ChangeWriter::start(tx, author, Some(latest))?;
    for (before, after) in change.steps.into_iter().rev() {
        reverse(&mut writing, before, after)?;
    }
    let undone = writing.change;
    contexts::put_back(tx, undone, contexts)?;
    log::one(tx, undone)?.ok_or(UndoFault::Unknown)
}

fn reverse(
    writing: &mut ChangeWriter<'_>,
    before: Option<MemoryItem>,
    after: Option<MemoryItem>,
) -> Result<(), UndoFault> {
    if let Some(after) = &after {
        refuse_changed(writing.tx, after)?;
    }
    if let Some(before) = &before {
        refuse_unfit(writing.tx, before)?;
    }
    match (before, after) {
        (None, Some(made)) => {
            if let MemoryItem::Entity(entity) = &made {
                refuse_used(writing.tx, entity)?;
            }
            writing.remove(&made)?;
        }
        (Some(removed), None) => writing.insert(&removed)?,
        (Some(before), Some(after)) => writing.replace(&after, &before)?,
        (None, None) => {}
    }
    Ok(())
}

/// Fails unless an item is as the change left it.
fn refuse_changed(tx: &Transaction<'_>, left: &MemoryItem) -> Result<(), UndoFault> {
    let (kind, id) = rows::key(left);
    let name = format!("{kind} {id}");
    let now = read::current(tx, left)?;
    match now {
        Some(now) if now == *left => Ok(()),
        Some(_) => Err(depended(format!("{name} was changed later; undo that first"))),
        None => Err(depended(format!("{name} was deleted later; undo that first"))),
    }
}

/// Fails unless a restored item finds its name free and the entities that it refers to.
fn refuse_unfit(tx: &Transaction<'_>, back: &MemoryItem) -> Result<(), UndoFault> {
    let needs = |id: EntityId, what: String| -> Result<(), UndoFault> {
        match read::entity(tx, id)? {
            Some(_) => Ok(()),
            None => Err(depended(format!("{what} needs entity {id}, which was deleted"))),
        }
    };
    match back {
        MemoryItem::Entity(entity) => {
            let mut find = tx.prepare_cached("SELECT id FROM entity WHERE name_key = ?1 AND id <> ?2")?;
            let taken: Option<i64> =
                find.query_row((name_key(&entity.name), entity.id.0), |row| row.get(0)).optional()?;
            match taken {
                Some(by) => Err(depended(format!("the name {:?} belongs to entity {by} now", entity.name))),
                None => Ok(()),
            }
        }
        MemoryItem::Observation(seen) => needs(seen.entity, format!("observation {}", seen.id)),
        MemoryItem::Relation(relation) => {
            needs(relation.from, format!("relation {}", relation.id))?;
            needs(relation.to, format!("relation {}", relation.id))?;
            match read::relation_id(tx, relation.from, relation.to, &relation.relation_type)? {
                Some(id) if id != relation.id => Err(depended(format!("relation {id} is equal to it by now"))),
                _ => Ok(()),
            }
        }
    }
}

/// Fails if something was added to a created entity later.
fn refuse_used(tx: &Transaction<'_>, entity: &Entity) -> Result<(), UndoFault> {
    let observations = read::observations_of(tx, entity.id)?.len();
    let relations = read::relations_touching(tx, entity.id)?.len();
    if observations + relations == 0 {
        return Ok(());
    }
    Err(depended(format!(
        "entity {} ({}) has {observations} observations and {relations} relations that were added later; \
         undo those first",
        entity.id, entity.name
    )))
}

fn depended(reason: String) -> UndoFault {
    UndoFault::Depended(reason)
}
