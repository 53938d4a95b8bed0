//! Integrity checks of memory: SQLite's own, foreign keys, names, and the log.

use std::collections::HashSet;

use quipu_core::memory::limits::{LOG_BATCH, MAX_FINDINGS};
use quipu_core::memory::name_key;
use quipu_core::ports::{ChangeNumber, MemoryItem};
use rusqlite::Connection;

use super::read::list;
use super::{log, read, rows};
use crate::sqlite;

/// Problems, as sentences. The caller holds a read transaction: concurrent writes would look like damage.
pub(super) fn findings(db: &Connection) -> Result<Vec<String>, log::LogError> {
    let damages = sqlite::integrity_check(db)?;
    if !damages.is_empty() {
        // Further checks of such a file mean nothing.
        return Ok(damages.into_iter().map(|damage| format!("The file is damaged: {damage}.")).collect());
    }
    let broken = list(db, "PRAGMA foreign_key_check", [], |row| {
        Ok(format!("A row of {} refers to a missing row of {}.", row.get::<_, String>(0)?, row.get::<_, String>(2)?))
    })?;
    let mut findings: Vec<String> = broken.into_iter().take(MAX_FINDINGS).collect();
    findings.extend(wrong_keys(db)?);
    findings.extend(log_mismatches(db)?);
    Ok(findings)
}

/// Names are compared by the key stored with them, which must match.
fn wrong_keys(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (table, sql) in [
        ("entity", "SELECT id, name, name_key FROM entity ORDER BY id"),
        ("alias of entity", "SELECT entity, alias, alias_key FROM alias ORDER BY entity, position"),
    ] {
        let mut rows = db.prepare(sql)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (id, name, key): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if name_key(&name) != key && wrong.len() < MAX_FINDINGS {
                wrong.push(format!("The {table} {id} has the name {name:?} but the key {key:?}."));
            }
        }
    }
    Ok(wrong)
}

/// The last log step of each item must match its row, or the row's absence. An item without a step was not written by Quipu.
fn log_mismatches(db: &Connection) -> Result<Vec<String>, log::LogError> {
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    let mut before = ChangeNumber(i64::MAX);
    loop {
        // The whole log: an entry that cannot be read cannot be undone either.
        let changes = log::before(db, before, LOG_BATCH)?;
        let Some(oldest) = changes.last() else { break };
        before = oldest.number;
        for (was, is) in changes.iter().flat_map(|change| change.steps.iter().rev()) {
            let Some(item) = is.as_ref().or(was.as_ref()) else { continue };
            let (kind, id) = rows::key(item);
            if seen.insert((kind, id)) && !agrees(db, item, is.is_some())? && wrong.len() < MAX_FINDINGS {
                wrong.push(format!("The {kind} {id} differs from the log."));
            }
        }
    }
    wrong.extend(missing_from_the_log(db, &seen)?);
    Ok(wrong)
}

fn missing_from_the_log(db: &Connection, seen: &HashSet<(&'static str, i64)>) -> rusqlite::Result<Vec<String>> {
    let mut unknown = Vec::new();
    for kind in ["entity", "observation", "relation"] {
        let ids: Vec<i64> = list(db, &format!("SELECT id FROM {kind} ORDER BY id"), [], |row| row.get(0))?;
        let of_kind = ids.into_iter().filter(|id| !seen.contains(&(kind, *id)));
        unknown.extend(of_kind.take(MAX_FINDINGS).map(|id| format!("The {kind} {id} is not in the log.")));
    }
    Ok(unknown)
}

/// Whether an item is as the log has it last, or missing if the log deleted it last.
fn agrees(db: &Connection, last: &MemoryItem, exists: bool) -> rusqlite::Result<bool> {
    let now = read::current(db, last)?;
    Ok(if exists { now.as_ref() == Some(last) } else { now.is_none() })
}
