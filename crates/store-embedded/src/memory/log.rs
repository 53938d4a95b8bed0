//! Reading the log of changes.

use quipu_core::memory::{EntityId, ObservationId, RelationId, limits};
use quipu_core::ports::{Author, ChangeNumber, ChangedIds, LoggedChange, MemoryItem, TextOwner};
use rusqlite::{Connection, OptionalExtension, Row};

use super::read::{bounded, list};
use super::rows::{self, BadLog};

/// The columns of a change. The last is the change that undid it, which may have been undone in turn, and so on: every second
/// of them redoes the change. Only later changes count, so that the recursion ends in a corrupt file too.
const CHANGE: &str = "number, at_ns, client, tool, undoes, (
    WITH RECURSIVE later (number) AS (
        SELECT by.number FROM change by WHERE by.undoes = change.number
        UNION ALL SELECT by.number FROM later JOIN change by ON by.undoes = later.number AND by.number > later.number
    ) SELECT iif(count(*) % 2 = 1, min(later.number), NULL) FROM later)";

/// Why the log could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    // Not transparent: that would hide the database's error in the chain of sources.
    #[error("{0}")]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    Bad(#[from] BadLog),
}

pub(super) fn head(db: &Connection) -> rusqlite::Result<ChangeNumber> {
    let mut find = db.prepare_cached("SELECT coalesce(max(number), 0) FROM change")?;
    find.query_row([], |row| row.get(0).map(ChangeNumber))
}

pub(super) fn changed_since(db: &Connection, change: ChangeNumber) -> rusqlite::Result<ChangedIds> {
    // Before the steps: a change in between is found the next time.
    let mut touched = ChangedIds { head: head(db)?, ..ChangedIds::default() };
    let sql = "SELECT DISTINCT kind, id FROM change_step WHERE change > ?1 ORDER BY kind, id";
    for (kind, id) in list(db, sql, [change.0], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))? {
        match kind.as_str() {
            "entity" => touched.entities.push(EntityId(id)),
            "observation" => touched.observations.push(ObservationId(id)),
            _ => touched.relations.push(RelationId(id)),
        }
    }
    Ok(touched)
}

/// Fast for any length of the log: these steps have an index of their own.
pub(super) fn linking_texts_gone(db: &Connection) -> Result<Vec<(TextOwner, String)>, LogError> {
    let sql = "SELECT kind, id, before FROM change_step WHERE instr(before, '[[') > 0 ORDER BY change, position";
    let steps: Vec<(String, i64, String)> = list(db, sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut texts = Vec::new();
    for (kind, id, before) in steps {
        let text = match rows::from_json(&kind, id, &before)? {
            MemoryItem::Entity(entity) => entity.description.map(|text| (TextOwner::Entity(entity.id), text)),
            MemoryItem::Observation(seen) => Some((TextOwner::Observation(seen.id), seen.text)),
            MemoryItem::Relation(_) => None,
        };
        texts.extend(text.filter(|(_, text)| text.contains("[[")));
    }
    Ok(texts)
}

pub(super) fn before(db: &Connection, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, LogError> {
    let sql = format!("SELECT {CHANGE} FROM change WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
    let changes = list(db, &sql, (before.0, bounded(limit)), change)?;
    changes.into_iter().map(|change| with_steps(db, change)).collect()
}

pub(super) fn one(db: &Connection, number: ChangeNumber) -> Result<Option<LoggedChange>, LogError> {
    let sql = format!("SELECT {CHANGE} FROM change WHERE number = ?1");
    let found = db.prepare_cached(&sql)?.query_row([number.0], change).optional()?;
    found.map(|change| with_steps(db, change)).transpose()
}

/// The last change with the same effect: itself, or the last redo of it.
pub(super) fn latest_doing(db: &Connection, standing: ChangeNumber) -> rusqlite::Result<ChangeNumber> {
    let sql = "WITH RECURSIVE later (number) AS (
            SELECT ?1 UNION ALL SELECT by.number FROM later JOIN change by ON by.undoes = later.number AND by.number > later.number
        ) SELECT max(number) FROM later";
    db.prepare_cached(sql)?.query_row([standing.0], |row| row.get(0).map(ChangeNumber))
}

fn change(row: &Row<'_>) -> rusqlite::Result<LoggedChange> {
    Ok(LoggedChange {
        number: ChangeNumber(row.get(0)?),
        author: Author {
            at_ns: row.get(1)?,
            client: rows::text(row, 2, limits::NAME)?,
            tool: rows::text(row, 3, limits::NAME)?,
            request: None,
        },
        undoes: row.get::<_, Option<i64>>(4)?.map(ChangeNumber),
        undone_by: row.get::<_, Option<i64>>(5)?.map(ChangeNumber),
        steps: Vec::new(),
    })
}

fn with_steps(db: &Connection, mut change: LoggedChange) -> Result<LoggedChange, LogError> {
    type Texts = (String, i64, Option<String>, Option<String>);
    let sql = "SELECT kind, id, before, after FROM change_step WHERE change = ?1 ORDER BY position";
    let texts: Vec<Texts> =
        list(db, sql, [change.number.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    for (kind, id, before, after) in texts {
        let item = |json: Option<String>| -> Result<Option<MemoryItem>, BadLog> {
            json.map(|json| rows::from_json(&kind, id, &json)).transpose()
        };
        change.steps.push((item(before)?, item(after)?));
    }
    Ok(change)
}
