//! Whether memory is whole: SQLite's own look at its pages, the references, and what our own rules say.

use std::collections::HashSet;

use quipu_core::memory::{Entity, name_key};
use quipu_core::ports::{ChangeNumber, MemoryItem};
use rusqlite::Connection;

use super::read::list;
use super::{log, read, rows};

/// More than this many findings of a kind say no more.
const MAX_FINDINGS: usize = 20;

/// Log entries read at a time.
const LOG_BATCH: usize = 500;

/// All is asked of one view, which the caller holds: what others write meanwhile would look like damage.
pub(super) fn findings(db: &Connection) -> Result<Vec<String>, log::LogError> {
    let text = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let mut findings: Vec<String> = list(db, &format!("PRAGMA integrity_check({MAX_FINDINGS})"), [], text)?;
    findings.retain(|finding| finding != "ok");
    if !findings.is_empty() {
        // Whatever else is asked of such a file means nothing.
        return Ok(findings.into_iter().map(|finding| format!("The file is damaged: {finding}.")).collect());
    }
    let broken = list(db, "PRAGMA foreign_key_check", [], |row| {
        Ok(format!(
            "A row of {} refers to a row of {} that is not there.",
            row.get::<_, String>(0)?,
            row.get::<_, String>(2)?
        ))
    })?;
    findings.extend(broken.into_iter().take(MAX_FINDINGS));
    findings.extend(wrong_keys(db)?);
    findings.extend(unlike_the_log(db)?);
    Ok(findings)
}

/// Names are compared by a key beside them; the two must agree.
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
                wrong.push(format!("The {table} {id} is called {name:?} but is found under {key:?}."));
            }
        }
    }
    Ok(wrong)
}

/// The last step of the log for each thing says what it is now, or that it is gone. What has no step came in by another way.
fn unlike_the_log(db: &Connection) -> Result<Vec<String>, log::LogError> {
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    let mut before = ChangeNumber(i64::MAX);
    loop {
        // All of it: an entry that cannot be read cannot be undone either.
        let changes = log::before(db, before, LOG_BATCH)?;
        let Some(oldest) = changes.last() else { break };
        before = oldest.number;
        for (was, is) in changes.iter().flat_map(|change| change.steps.iter().rev()) {
            let Some(item) = is.as_ref().or(was.as_ref()) else { continue };
            let (kind, id) = rows::key(item);
            if seen.insert((kind, id)) && !agrees(db, item, is.is_some())? && wrong.len() < MAX_FINDINGS {
                wrong.push(format!("The {kind} {id} is not what the log says of it."));
            }
        }
    }
    wrong.extend(unknown_to_the_log(db, &seen)?);
    Ok(wrong)
}

fn unknown_to_the_log(db: &Connection, seen: &HashSet<(&'static str, i64)>) -> rusqlite::Result<Vec<String>> {
    let mut unknown = Vec::new();
    for kind in ["entity", "observation", "relation"] {
        let ids: Vec<i64> = list(db, &format!("SELECT id FROM {kind} ORDER BY id"), [], |row| row.get(0))?;
        let of_kind = ids.into_iter().filter(|id| !seen.contains(&(kind, *id)));
        unknown.extend(of_kind.take(MAX_FINDINGS).map(|id| format!("The {kind} {id} is not in the log.")));
    }
    Ok(unknown)
}

/// Whether a thing is there as the log has it last, or is not there where it went last.
fn agrees(db: &Connection, last: &MemoryItem, stays: bool) -> rusqlite::Result<bool> {
    let now = match last {
        MemoryItem::Entity(entity) => read::entity(db, entity.id)?
            .map(|now| MemoryItem::Entity(Entity { observation_count: entity.observation_count, ..now })),
        MemoryItem::Observation(seen) => read::observation(db, seen.id)?.map(MemoryItem::Observation),
        MemoryItem::Relation(relation) => read::relation(db, relation.id)?.map(MemoryItem::Relation),
    };
    Ok(if stays { now.as_ref() == Some(last) } else { now.is_none() })
}
