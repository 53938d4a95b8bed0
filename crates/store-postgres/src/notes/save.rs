//! Writes what a list of changes did to the notes.

use deadpool_postgres::Transaction;
use quipu_core::RequestKey;
use quipu_core::model::VaultPath;
use quipu_core::ports::TrashReason;

use super::files::Files;
use super::read::REFUSED;
use crate::failure::DatabaseError;
use crate::limits;
use crate::row::{self, BadRow, escape, execute, get};

/// The number and the time of a write.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteStamp {
    pub(super) change: i64,
    pub(super) at_ns: i64,
}

/// Locks the notes against other writers until the transaction ends. The time is the database's, since servers' clocks differ,
/// and later than that of every earlier write.
pub(super) async fn lock(tx: &Transaction<'_>, graph: i64) -> Result<WriteStamp, DatabaseError> {
    let sql = "SELECT change + 1, greatest(at_ns + 1, (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint) \
               FROM note_head WHERE graph = $1 FOR UPDATE";
    let stamp =
        row::first(tx, sql, &[&graph], |row| Ok(WriteStamp { change: get(row, 0)?, at_ns: get(row, 1)? })).await?;
    stamp.ok_or_else(|| BadRow("the graph was deleted".to_owned()).into())
}

pub(super) async fn save(
    tx: &Transaction<'_>,
    graph: i64,
    stamp: WriteStamp,
    files: &Files<'_>,
) -> Result<(), DatabaseError> {
    let WriteStamp { change, at_ns } = stamp;
    let touched: Vec<_> = files.touched().into_iter().map(|path| escape(path.as_str())).collect();
    if touched.is_empty() {
        return Ok(());
    }
    save_versions(tx, graph, stamp, files).await?;
    save_notes(tx, graph, files).await?;
    // Followers need the last change of each path only.
    execute(tx, "DELETE FROM note_change WHERE graph = $1 AND path = ANY ($2)", &[&graph, &touched]).await?;
    let feed =
        "INSERT INTO note_change (graph, change, path, at_ns) SELECT $1, $2, path, $3 FROM unnest($4::text[]) AS path";
    execute(tx, feed, &[&graph, &change, &at_ns, &touched]).await?;
    execute(tx, "UPDATE note_head SET change = $2, at_ns = $3 WHERE graph = $1", &[&graph, &change, &at_ns]).await?;
    Ok(())
}

/// The limit of the graph that a write would exceed. Deleting is always allowed.
pub(super) async fn limit_reached(
    tx: &Transaction<'_>,
    graph: i64,
    files: &Files<'_>,
) -> Result<Option<String>, DatabaseError> {
    let (notes, bytes) = files.growth();
    if bytes.is_none() {
        return Ok(None);
    }
    limits::exceeded(tx, graph, notes, bytes).await
}

/// Moves rows to the versions; their bytes stay in the database.
async fn save_versions(
    tx: &Transaction<'_>,
    graph: i64,
    stamp: WriteStamp,
    files: &Files<'_>,
) -> Result<(), DatabaseError> {
    if files.taken.is_empty() {
        return Ok(());
    }
    let paths: Vec<_> = files.taken.iter().map(|taken| escape(taken.path.as_str())).collect();
    let reasons: Vec<&str> = files.taken.iter().map(|taken| word(taken.reason)).collect();
    let moved_to = files.taken.iter().map(|taken| taken.moved_to.as_ref().map(|path| escape(path.as_str())));
    let moved_to: Vec<_> = moved_to.collect();
    let sql = "WITH taken AS ( \
                   DELETE FROM note WHERE graph = $1 AND path = ANY ($3) RETURNING path, bytes, hash, modified_ns \
               ) INSERT INTO note_version \
               (graph, change, position, path, bytes, hash, modified_ns, reason, moved_to, at_ns) \
               SELECT $1, $2, why.position, path, bytes, hash, modified_ns, why.reason, why.moved_to, $6 FROM taken \
               JOIN unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY \
               AS why (path, reason, moved_to, position) USING (path)";
    execute(tx, sql, &[&graph, &stamp.change, &paths, &reasons, &moved_to, &stamp.at_ns]).await?;
    Ok(())
}

async fn save_notes(tx: &Transaction<'_>, graph: i64, files: &Files<'_>) -> Result<(), DatabaseError> {
    if files.written.is_empty() {
        return Ok(());
    }
    let paths: Vec<_> = files.written.keys().map(|path| escape(path.as_str())).collect();
    let keys: Vec<_> = files.written.keys().map(|path| escape(path.note_id().as_str()).into_owned()).collect();
    let bytes: Vec<&[u8]> = files.written.values().map(|(bytes, _)| *bytes).collect();
    let hashes: Vec<&[u8]> = files.written.values().map(|(_, version)| &version.hash.0[..]).collect();
    let times: Vec<i64> = files.written.values().map(|(_, version)| version.stat.modified_ns).collect();
    let chars: Vec<i64> = files.written.values().map(|(_, version)| version.chars.cast_signed()).collect();
    let sql = "INSERT INTO note (graph, path, path_key, bytes, hash, modified_ns, chars) SELECT $1, * FROM \
               unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[])";
    execute(tx, sql, &[&graph, &paths, &keys, &bytes, &hashes, &times, &chars]).await?;
    Ok(())
}

/// Deletes some versions that were made before a time, and their entries in the history; returns the number of versions. The
/// versions of a graph are pruned by one server at a time: another finds nothing to do.
pub(super) async fn prune(tx: &Transaction<'_>, graph: i64, before_ns: i64, limit: i64) -> Result<u64, DatabaseError> {
    let mine = "SELECT pg_try_advisory_xact_lock(hashtextextended('quipu prune ' || $1::bigint, 0))";
    if row::first(tx, mine, &[&graph], |row| get(row, 0)).await? != Some(true) {
        return Ok(0);
    }
    // As every writer of versions, which are counted in the row that it locks.
    lock(tx, graph).await?;
    let old = "SELECT change, position FROM note_version WHERE graph = $1 AND at_ns < $2 LIMIT $3";
    let delete = format!("DELETE FROM note_version WHERE graph = $1 AND (change, position) IN ({old})");
    let deleted = execute(tx, &delete, &[&graph, &before_ns, &limit]).await?;
    let old = "SELECT change FROM note_write WHERE graph = $1 AND at_ns < $2 LIMIT $3";
    let forget = format!("DELETE FROM note_write WHERE graph = $1 AND change IN ({old})");
    let forgotten = execute(tx, &forget, &[&graph, &before_ns, &limit]).await?;
    Ok(deleted.max(forgotten))
}

/// Records a request, and deletes expired ones.
pub(super) async fn remember(
    tx: &Transaction<'_>,
    graph: i64,
    request: RequestKey,
    path: &VaultPath,
    at_ns: i64,
) -> Result<(), DatabaseError> {
    let expired = at_ns.saturating_sub(RequestKey::REMEMBERED_NS);
    execute(tx, "DELETE FROM note_request WHERE graph = $1 AND at_ns < $2", &[&graph, &expired]).await?;
    let sql = "INSERT INTO note_request (graph, key, path, at_ns) VALUES ($1, $2, $3, $4)";
    execute(tx, sql, &[&graph, &request.to_string(), &escape(path.as_str()), &at_ns]).await?;
    Ok(())
}

/// Records that a request was refused, unless it was applied.
pub(super) async fn remember_refused(
    tx: &Transaction<'_>,
    graph: i64,
    request: RequestKey,
    at_ns: i64,
) -> Result<(), DatabaseError> {
    let sql = "INSERT INTO note_request (graph, key, path, at_ns) VALUES ($1, $2, $3, $4) ON CONFLICT (graph, key) DO NOTHING";
    execute(tx, sql, &[&graph, &request.to_string(), &REFUSED, &at_ns]).await?;
    Ok(())
}

fn word(reason: TrashReason) -> &'static str {
    match reason {
        TrashReason::Deleted => "deleted",
        TrashReason::Replaced => "replaced",
        TrashReason::Moved => "moved",
    }
}
