//! Redaction in the database: rows, log, stored results and ties in one transaction; then the file is rewritten, since deleted
//! texts stay in free space and in the write-ahead log.

use std::time::Duration;

use quipu_core::memory::limits::LOG_BATCH;
use quipu_core::memory::{EntityId, RedactionScope, merges};
use quipu_core::ports::{Author, ChangeNumber, LoggedChange, MemoryItem, Redaction, Refusal, TextOwner};
use rusqlite::{Connection, Transaction};

use super::apply::{ChangeWriter, StepError};
use super::log::{self, LogError};
use super::{read, requests, rows};

/// How often the write-ahead log is emptied: a reader in another process prevents it.
const ATTEMPTS: u32 = 50;

/// Why nothing was redacted.
#[derive(Debug, thiserror::Error)]
pub(super) enum RedactFault {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<rusqlite::Error> for RedactFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Log(error.into())
    }
}

impl From<StepError> for RedactFault {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Refused(refusal) => refusal.into(),
            StepError::Sql(error) => error.into(),
        }
    }
}

/// Deletes an item and everything that belongs to it, and replaces their texts wherever the database has them.
pub(super) fn redact(
    tx: &Transaction<'_>,
    owner: TextOwner,
    reason: &str,
    author: &Author,
) -> Result<Redaction, RedactFault> {
    let scope = scope_of(tx, owner)?;
    let mut writing = ChangeWriter::start(tx, author, None)?;
    let mut redaction = Redaction { change: writing.change, ..Redaction::default() };
    match owner {
        _ if !is_there(tx, owner)? => {}
        TextOwner::Entity(id) => drop(writing.delete_entity(id)?),
        TextOwner::Observation(id) => drop(writing.delete_observation(id)?),
    }
    each_change(tx, |change| {
        for (position, (before, after)) in change.steps.iter().enumerate() {
            if before.iter().chain(after).any(|item| scope.covers(item)) {
                let shown = |item: &MemoryItem| rows::to_json(&item.redacted(reason));
                let mut update = tx.prepare_cached(
                    "UPDATE change_step SET before = ?3, after = ?4 WHERE change = ?1 AND position = ?2",
                )?;
                let (before, after) = (before.as_ref().map(shown), after.as_ref().map(shown));
                update.execute((change.number.0, position as i64, before, after))?;
                redaction.log_steps += 1;
            }
        }
        Ok(())
    })?;
    if redaction.log_steps == 0 {
        return Err(missing(owner).into());
    }
    requests::redact(tx, &scope, reason)?;
    for owner in scope.owners() {
        let (kind, id) = rows::owner_key(owner);
        tx.prepare_cached("DELETE FROM note_tie WHERE kind = ?1 AND owner = ?2")?.execute((kind, id))?;
        redaction.items += 1;
    }
    Ok(redaction)
}

/// Rewrites the file without free space and empties the write-ahead log; `false` if a reader in another process prevents that.
pub(super) fn rewrite_file(db: &Connection) -> rusqlite::Result<bool> {
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.execute_batch("VACUUM")?;
    for _ in 0..ATTEMPTS {
        let is_busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if !is_busy {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(false)
}

fn scope_of(tx: &Transaction<'_>, owner: TextOwner) -> Result<RedactionScope, RedactFault> {
    let mut scope = RedactionScope::of(owner);
    let exists = |id: EntityId| read::entity(tx, id).map(|entity| entity.is_some());
    let is_gone = match owner {
        TextOwner::Entity(id) => !exists(id)?,
        TextOwner::Observation(_) => false,
    };
    let mut absorbed = None;
    each_change(tx, |change| {
        if is_gone && absorbed.is_none() && change.undone_by.is_none() && change.undoes.is_none() {
            absorbed = merges(&change).find(|(from, _)| TextOwner::Entity(*from) == owner).map(|(_, into)| into);
        }
        let entity_of = |id| read::observation(tx, id).map(|found| found.map(|observation| observation.entity));
        Ok(scope.widen(&change, exists, entity_of)?)
    })?;
    match absorbed {
        Some(by) => Err(Refusal::Absorbed { by }.into()),
        None => Ok(scope),
    }
}

/// Calls `take` with every log entry, newest first.
fn each_change(
    tx: &Transaction<'_>,
    mut take: impl FnMut(LoggedChange) -> Result<(), RedactFault>,
) -> Result<(), RedactFault> {
    let mut before = ChangeNumber(i64::MAX);
    loop {
        let changes = log::before(tx, before, LOG_BATCH)?;
        let Some(oldest) = changes.last() else { return Ok(()) };
        before = oldest.number;
        changes.into_iter().try_for_each(&mut take)?;
    }
}

fn is_there(tx: &Transaction<'_>, owner: TextOwner) -> rusqlite::Result<bool> {
    match owner {
        TextOwner::Entity(id) => Ok(read::entity(tx, id)?.is_some()),
        TextOwner::Observation(id) => Ok(read::observation(tx, id)?.is_some()),
    }
}

fn missing(owner: TextOwner) -> Refusal {
    match owner {
        TextOwner::Entity(id) => Refusal::NoEntity(id),
        TextOwner::Observation(id) => Refusal::NoObservation(id),
    }
}
