//! The context entity of each client.

use deadpool_postgres::{GenericClient, Transaction};
use quipu_core::memory::EntityId;
use quipu_core::ports::ChangeNumber;

use crate::failure::DatabaseError;
use crate::row::{self, escape, execute, get, list};

pub(super) async fn of(db: &impl GenericClient, graph: i64, client: &str) -> Result<Option<EntityId>, DatabaseError> {
    let sql = "SELECT entity FROM context WHERE graph = $1 AND client = $2";
    row::first(db, sql, &[&graph, &escape(client)], |row| get(row, 0).map(EntityId)).await
}

/// Sets a client's context. No undo replaces it from then on.
pub(super) async fn set(
    tx: &Transaction<'_>,
    graph: i64,
    client: &str,
    entity: Option<EntityId>,
    at_ns: i64,
) -> Result<(), DatabaseError> {
    let client = escape(client);
    execute(tx, "DELETE FROM change_context WHERE graph = $1 AND client = $2", &[&graph, &client]).await?;
    put(tx, graph, &client, entity.map(|id| id.0), at_ns).await
}

/// Writes the context of a client, whose name is escaped.
pub(super) async fn put(
    tx: &Transaction<'_>,
    graph: i64,
    client: &str,
    entity: Option<i64>,
    set_ns: i64,
) -> Result<(), DatabaseError> {
    match entity {
        Some(entity) => {
            let sql = "INSERT INTO context (graph, client, entity, set_ns) VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (graph, client) DO UPDATE SET entity = excluded.entity, set_ns = excluded.set_ns";
            execute(tx, sql, &[&graph, &client, &entity, &set_ns]).await?;
        }
        None => {
            execute(tx, "DELETE FROM context WHERE graph = $1 AND client = $2", &[&graph, &client]).await?;
        }
    }
    Ok(())
}

/// The contexts that a change replaced and that are still as it left them: client, context before, and its time.
pub(super) async fn replaced_by(
    tx: &Transaction<'_>,
    graph: i64,
    change: ChangeNumber,
) -> Result<Vec<(String, Option<EntityId>, i64)>, DatabaseError> {
    let sql = "SELECT client, before, set_ns FROM change_context moved WHERE graph = $1 AND change = $2 \
               AND after IS NOT DISTINCT FROM (SELECT entity FROM context WHERE graph = $1 AND client = moved.client) \
               ORDER BY client";
    let read = |row: &_| Ok((row::text(row, 0)?, get::<Option<i64>>(row, 1)?.map(EntityId), get(row, 2)?));
    list(tx, sql, &[&graph, &change.0], read).await
}
