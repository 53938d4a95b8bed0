//! Copying the log of another memory into an empty one.

use quipu_core::memory::WholeLog;
use quipu_core::ports::{ChangeNumber, LoggedChange, MemoryItem, NoteTie};
use rusqlite::Transaction;

use super::apply::{self, ChangeWriter};
use super::{log, rows, ties};

/// Why a log was not copied.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyFault {
    #[error("memory has changes already")]
    NotEmpty,
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
}

pub(super) fn copy(tx: &Transaction<'_>, whole: &WholeLog, made: &[NoteTie]) -> Result<(), CopyFault> {
    if log::head(tx)? != ChangeNumber(0) {
        return Err(CopyFault::NotEmpty);
    }
    for LoggedChange { author, undoes, steps, .. } in whole.entries() {
        // The numbers are those of the log: both count from 1.
        let mut writing = ChangeWriter::start(tx, author, *undoes)?;
        for (before, after) in steps {
            writing.log(before.as_ref(), after.as_ref())?;
        }
    }
    let entities = whole.entities.values().cloned().map(MemoryItem::Entity);
    let observations = whole.observations.values().cloned().map(MemoryItem::Observation);
    let relations = whole.relations.values().cloned().map(MemoryItem::Relation);
    for item in entities.chain(observations).chain(relations) {
        apply::put(tx, Some(rows::key(&item).1), &item)?;
    }
    let (entity, observation, relation) = whole.greatest;
    for (table, greatest) in [("entity", entity), ("observation", observation), ("relation", relation)] {
        tx.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
        tx.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, greatest))?;
    }
    ties::repoint_links(tx, &[], made)?;
    Ok(())
}
