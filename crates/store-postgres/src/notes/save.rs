//! Writes what a list of changes did to the notes.

use deadpool_postgres::Transaction;
use quipu_core::RequestKey;
use quipu_core::model::VaultPath;
use quipu_core::ports::TrashReason;

use super::files::Files;
use super::read::REFUSED;
use crate::failure::DatabaseError;
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

/// The limit of the graph that a write would exceed, with its unit. One that makes the graph no larger is always allowed.
pub(super) async fn limit_reached(
    tx: &Transaction<'_>,
    graph: i64,
    (notes, bytes): (i64, i64),
) -> Result<Option<String>, DatabaseError> {
    if notes <= 0 && bytes <= 0 {
        return Ok(None);
    }
    let sql = "SELECT CASE WHEN $2::bigint > 0 AND head.notes + $2 > max_notes THEN max_notes END, \
               CASE WHEN $3::bigint > 0 AND head.bytes + $3 > max_bytes THEN max_bytes END \
               FROM graph JOIN note_head head ON head.graph = graph.id WHERE graph.id = $1";
    let read = |row: &_| Ok((get::<Option<i64>>(row, 0)?, get::<Option<i64>>(row, 1)?));
    Ok(match row::first(tx, sql, &[&graph, &notes, &bytes], read).await? {
        Some((Some(limit), _)) => Some(format!("{} notes", grouped(limit))),
        Some((_, Some(limit))) => Some(format!("{} bytes", grouped(limit))),
        _ => None,
    })
}

/// A number that is not negative, with commas between its thousands.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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

/// Deletes versions that were made before a time, and their entries in the history; returns the number of versions.
pub(super) async fn prune(tx: &Transaction<'_>, graph: i64, before_ns: i64) -> Result<u64, DatabaseError> {
    execute(tx, "DELETE FROM note_write WHERE graph = $1 AND at_ns < $2", &[&graph, &before_ns]).await?;
    execute(tx, "DELETE FROM note_version WHERE graph = $1 AND at_ns < $2", &[&graph, &before_ns]).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let shown = [0, 999, 1_000, 50_000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "50,000", "1,234,567"]);
    }
}
