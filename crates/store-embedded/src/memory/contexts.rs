//! The context entity of each client. A change that replaces or deletes it records that, for its undo.

use quipu_core::memory::EntityId;
use quipu_core::ports::ChangeNumber;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::read::list;

pub(super) fn of(db: &Connection, client: &str) -> rusqlite::Result<Option<EntityId>> {
    let mut find = db.prepare_cached("SELECT entity FROM context WHERE client = ?1")?;
    find.query_row([client], |row| row.get(0).map(EntityId)).optional()
}

/// Sets a client's context. No undo replaces it from then on.
pub(super) fn set(tx: &Transaction<'_>, client: &str, entity: Option<EntityId>, at_ns: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM change_context WHERE client = ?1")?.execute([client])?;
    put(tx, client, entity, at_ns)
}

/// Replaces an entity as the context of all clients, or removes it where it is deleted.
pub(super) fn hand_over(
    tx: &Transaction<'_>,
    change: ChangeNumber,
    from: EntityId,
    into: Option<EntityId>,
) -> rusqlite::Result<()> {
    let sql = "SELECT client, set_ns FROM context WHERE entity = ?1 ORDER BY client";
    let clients: Vec<(String, i64)> = list(tx, sql, [from.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (client, set_ns) in clients {
        replace(tx, change, &ContextRow { client, before: Some(from), set_ns }, into)?;
    }
    Ok(())
}

/// A client's context before a change.
pub(super) struct ContextRow {
    client: String,
    before: Option<EntityId>,
    set_ns: i64,
}

/// The contexts that a change replaced and that are still as it left them. Call it before the change is undone.
pub(super) fn replaced_by(tx: &Transaction<'_>, change: ChangeNumber) -> rusqlite::Result<Vec<ContextRow>> {
    let sql = "SELECT client, before, set_ns FROM change_context moved WHERE change = ?1 \
               AND after IS (SELECT entity FROM context WHERE context.client = moved.client) ORDER BY client";
    list(tx, sql, [change.0], |row| {
        Ok(ContextRow { client: row.get(0)?, before: row.get::<_, Option<i64>>(1)?.map(EntityId), set_ns: row.get(2)? })
    })
}

/// Restores contexts in an undo, once the entities are restored.
pub(super) fn put_back(tx: &Transaction<'_>, undo: ChangeNumber, moved: Vec<ContextRow>) -> rusqlite::Result<()> {
    for ContextRow { client, before, set_ns } in moved {
        let now = of(tx, &client)?;
        replace(tx, undo, &ContextRow { client, before: now, set_ns }, before)?;
    }
    Ok(())
}

/// Records a replaced context and replaces it. The record of a change keeps the context before its first replacement.
fn replace(
    tx: &Transaction<'_>,
    change: ChangeNumber,
    moved: &ContextRow,
    after: Option<EntityId>,
) -> rusqlite::Result<()> {
    let ContextRow { client, before, set_ns } = moved;
    let mut note = tx.prepare_cached(
        "INSERT INTO change_context (change, client, before, after, set_ns) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (change, client) DO UPDATE SET after = excluded.after",
    )?;
    note.execute((change.0, client, before.map(|id| id.0), after.map(|id| id.0), set_ns))?;
    put(tx, client, after, *set_ns)
}

fn put(tx: &Transaction<'_>, client: &str, entity: Option<EntityId>, set_ns: i64) -> rusqlite::Result<()> {
    match entity {
        Some(entity) => tx
            .prepare_cached("INSERT OR REPLACE INTO context (client, entity, set_ns) VALUES (?1, ?2, ?3)")?
            .execute((client, entity.0, set_ns)),
        None => tx.prepare_cached("DELETE FROM context WHERE client = ?1")?.execute([client]),
    }
    .map(drop)
}
