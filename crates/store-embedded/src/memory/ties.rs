//! Ties: the paths of the notes that links in memory mean.

use quipu_core::memory::EntityId;
use quipu_core::model::VaultPath;
use quipu_core::ports::{NoteTie, TextOwner};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction};

use super::read::list;
use super::rows;

pub(super) fn of(db: &Connection, owners: &[TextOwner]) -> rusqlite::Result<Vec<Vec<NoteTie>>> {
    let sql = "SELECT kind, owner, target, path FROM note_tie WHERE kind = ?1 AND owner = ?2 ORDER BY target";
    owners.iter().map(|owner| list(db, sql, rows::owner_key(*owner), tie)).collect()
}

pub(super) fn to(db: &Connection, path: &VaultPath) -> rusqlite::Result<Vec<NoteTie>> {
    let sql = "SELECT kind, owner, target, path FROM note_tie WHERE path = ?1 ORDER BY kind, owner, target";
    list(db, sql, [path.as_str()], tie)
}

pub(super) fn repoint_links(tx: &Transaction<'_>, gone: &[NoteTie], made: &[NoteTie]) -> rusqlite::Result<()> {
    for tie in gone {
        let (kind, id) = rows::owner_key(tie.owner);
        tx.prepare_cached("DELETE FROM note_tie WHERE kind = ?1 AND owner = ?2 AND target = ?3")?.execute((
            kind,
            id,
            &tie.target,
        ))?;
    }
    for tie in made {
        let (kind, id) = rows::owner_key(tie.owner);
        tx.prepare_cached("INSERT OR REPLACE INTO note_tie (kind, owner, target, path) VALUES (?1, ?2, ?3, ?4)")?
            .execute((kind, id, &tie.target, tie.path.as_str()))?;
    }
    Ok(())
}

/// Copies the ties of an entity to the owner that takes over its description; ties that the owner has stay.
pub(super) fn hand_over(tx: &Transaction<'_>, from: EntityId, into: TextOwner) -> rusqlite::Result<()> {
    let (kind, owner) = rows::owner_key(into);
    tx.execute(
        "INSERT OR IGNORE INTO note_tie (kind, owner, target, path) \
         SELECT ?2, ?3, target, path FROM note_tie WHERE kind = 'entity' AND owner = ?1",
        (from.0, kind, owner),
    )?;
    Ok(())
}

fn tie(row: &Row<'_>) -> rusqlite::Result<NoteTie> {
    let (kind, id): (String, i64) = (row.get(0)?, row.get(1)?);
    let path: String = row.get(3)?;
    let path = VaultPath::parse(&path)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(3, Type::Text, error.into()))?;
    Ok(NoteTie { owner: rows::owner(&kind, id), target: row.get(2)?, path })
}
