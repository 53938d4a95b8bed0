//! Queries.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, FileStat, VaultPath};
use quipu_core::ports::{FileContent, ListedFile, LogHeads, NoteAction, NoteChanges, TrashReason, TrashedFile};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::files::{Files, StoredVersion, keys_above};
use crate::failure::DatabaseError;
use crate::row::{self, BadRow, escape, get, list, text};

/// The columns of [`file_content`].
const CONTENT: &str = "bytes, hash, modified_ns";

/// The columns of [`listed`].
const LISTED: &str = "path, octet_length(bytes), modified_ns";

/// The characters of a note; its bytes where they were not counted.
const CHARS: &str = "coalesce(chars, octet_length(bytes)::bigint)";

pub(super) async fn all(db: &impl GenericClient, graph: i64) -> Result<Vec<ListedFile>, DatabaseError> {
    let sql = format!("SELECT {LISTED} FROM note WHERE graph = $1 ORDER BY path");
    list(db, &sql, &[&graph], listed).await
}

pub(super) async fn all_versions(
    db: &impl GenericClient,
    graph: i64,
) -> Result<Vec<(VaultPath, ContentHash)>, DatabaseError> {
    let sql = "SELECT path, hash FROM note WHERE graph = $1 ORDER BY path";
    list(db, sql, &[&graph], |row| Ok((path(row, 0)?, hash(row, 1)?))).await
}

pub(super) async fn below(
    db: &impl GenericClient,
    graph: i64,
    at: &VaultPath,
) -> Result<Vec<ListedFile>, DatabaseError> {
    // `0` is the character after `/`.
    let sql = format!(
        "SELECT {LISTED} FROM note WHERE graph = $1 AND (path = $2 OR path >= $2 || '/' AND path < $2 || '0') ORDER BY path"
    );
    list(db, &sql, &[&graph, &escape(at.as_str())], listed).await
}

pub(super) async fn content(
    db: &impl GenericClient,
    graph: i64,
    at: &VaultPath,
) -> Result<Option<FileContent>, DatabaseError> {
    let sql = format!("SELECT {CONTENT} FROM note WHERE graph = $1 AND path = $2");
    row::first(db, &sql, &[&graph, &escape(at.as_str())], file_content).await
}

/// The notes at some paths, by path.
pub(super) async fn contents(
    db: &impl GenericClient,
    graph: i64,
    paths: &[&VaultPath],
) -> Result<HashMap<String, FileContent>, DatabaseError> {
    let sql = format!("SELECT {CONTENT}, path FROM note WHERE graph = $1 AND path = ANY ($2)");
    let paths: Vec<_> = paths.iter().map(|path| escape(path.as_str())).collect();
    let notes = list(db, &sql, &[&graph, &paths], |row| Ok((text(row, 3)?, file_content(row)?))).await?;
    Ok(notes.into_iter().collect())
}

/// The notes at, above and below some paths, in any case.
pub(super) async fn around<'c>(
    db: &impl GenericClient,
    graph: i64,
    paths: impl Iterator<Item = &VaultPath> + Clone,
) -> Result<Files<'c>, DatabaseError> {
    let at: Vec<String> = paths.clone().map(|path| escape(path.note_id().as_str()).into_owned()).collect();
    let above: Vec<String> = paths.flat_map(keys_above).map(|key| escape(&key).into_owned()).collect();
    // `OFFSET 0` keeps the planner from making a join of it, which reads every note of the graph for a few paths.
    let sql = format!(
        "SELECT {LISTED}, hash, {CHARS} FROM note WHERE graph = $1 AND path_key = ANY ($2) UNION ALL \
         SELECT below.* FROM unnest($3::text[]) AS wanted (key) CROSS JOIN LATERAL ( \
             SELECT {LISTED}, hash, {CHARS} FROM note WHERE graph = $1 \
             AND path_key >= (key COLLATE \"C\" || '/') AND path_key < (key COLLATE \"C\" || '0') OFFSET 0 \
         ) AS below"
    );
    let read = |row: &Row| {
        let ListedFile { path, stat } = listed(row)?;
        Ok((path, StoredVersion { hash: hash(row, 3)?, stat, chars: get::<i64>(row, 4)?.unsigned_abs() }))
    };
    let notes = list(db, &sql, &[&graph, &above, &at], read).await?;
    Ok(Files { notes: notes.into_iter().collect(), ..Files::default() })
}

/// The notes at some paths, in any case.
pub(super) async fn in_any_case(
    db: &impl GenericClient,
    graph: i64,
    paths: &[&VaultPath],
) -> Result<Vec<VaultPath>, DatabaseError> {
    let keys: Vec<String> = paths.iter().map(|path| escape(path.note_id().as_str()).into_owned()).collect();
    let sql = "SELECT path FROM note WHERE graph = $1 AND path_key = ANY ($2)";
    list(db, sql, &[&graph, &keys], |row| path(row, 0)).await
}

pub(super) async fn versions(db: &impl GenericClient, graph: i64) -> Result<Vec<TrashedFile>, DatabaseError> {
    let sql = "SELECT change, position, path, at_ns, reason, octet_length(bytes) FROM note_version WHERE graph = $1 \
               ORDER BY change DESC, position DESC";
    let read = |row: &Row| {
        Ok(TrashedFile {
            version: version_name(get(row, 0)?, get(row, 1)?),
            path: path(row, 2)?,
            at_ns: get(row, 3)?,
            reason: reason(get(row, 4)?),
            size: get::<i32>(row, 5)?.unsigned_abs().into(),
        })
    };
    list(db, sql, &[&graph], read).await
}

/// The bytes of a version, and why it is one.
pub(super) async fn version(
    db: &impl GenericClient,
    graph: i64,
    version: &TrashedFile,
) -> Result<Option<(Vec<u8>, TrashReason)>, DatabaseError> {
    // The version comes from a client: only one that this module would write is looked up.
    let Some((change, position)) = version.version.split_once('-') else { return Ok(None) };
    let (Ok(change), Ok(position)) = (change.parse::<i64>(), position.parse::<i32>()) else { return Ok(None) };
    let sql = "SELECT bytes, reason FROM note_version WHERE graph = $1 AND change = $2 AND position = $3 AND path = $4";
    let path = escape(version.path.as_str());
    let read = |row: &Row| Ok((get(row, 0)?, reason(get(row, 1)?)));
    row::first(db, sql, &[&graph, &change, &position, &path], read).await
}

/// Stands in the place of the path for a request that was refused.
pub(super) const REFUSED: &str = "";

/// The recorded outcome of a request.
pub(super) enum Recorded {
    /// Its first path, and when it was applied.
    Applied(VaultPath, i64),
    Refused,
}

pub(super) async fn request(
    db: &impl GenericClient,
    graph: i64,
    request: RequestKey,
) -> Result<Option<Recorded>, DatabaseError> {
    let sql = "SELECT path, at_ns FROM note_request WHERE graph = $1 AND key = $2";
    let read = |row: &Row| match get::<&str>(row, 0)? {
        REFUSED => Ok(Recorded::Refused),
        _ => Ok(Recorded::Applied(path(row, 0)?, get(row, 1)?)),
    };
    row::first(db, sql, &[&graph, &request.to_string()], read).await
}

/// The first path of a request that was applied.
pub(super) async fn applied_request(
    db: &impl GenericClient,
    graph: i64,
    key: RequestKey,
) -> Result<Option<VaultPath>, DatabaseError> {
    Ok(match request(db, graph, key).await? {
        Some(Recorded::Applied(path, _)) => Some(path),
        Some(Recorded::Refused) | None => None,
    })
}

pub(super) async fn head(db: &impl GenericClient, graph: i64) -> Result<i64, DatabaseError> {
    let head = row::first(db, "SELECT change FROM note_head WHERE graph = $1", &[&graph], |row| get(row, 0)).await?;
    head.ok_or_else(|| BadRow("the graph was deleted".to_owned()).into())
}

pub(super) async fn changes_since(
    db: &impl GenericClient,
    graph: i64,
    change: i64,
) -> Result<NoteChanges, DatabaseError> {
    // Before the paths: a change in between is found the next time.
    let mut changes = NoteChanges { head: head(db, graph).await?, paths: Vec::new() };
    if changes.head > change {
        let sql = "SELECT DISTINCT path FROM note_change WHERE graph = $1 AND change > $2 ORDER BY path";
        changes.paths = list(db, sql, &[&graph, &change], |row| path(row, 0)).await?;
    }
    Ok(changes)
}

/// In one statement, so that both heads are of one moment.
pub(super) async fn redacted_since(
    db: &impl GenericClient,
    graph: i64,
    known: LogHeads,
) -> Result<(LogHeads, bool), DatabaseError> {
    let sql = "SELECT notes.change, memory.change, \
               EXISTS (SELECT 1 FROM note_write_file WHERE graph = $1 AND change > $2 AND action = $4) OR \
               EXISTS (SELECT 1 FROM change WHERE graph = $1 AND number > $3 AND tool = 'redact') \
               FROM note_head notes JOIN memory_head memory USING (graph) WHERE graph = $1";
    let read = |row: &Row| Ok((LogHeads { notes: get(row, 0)?, memory: get(row, 1)? }, get(row, 2)?));
    let values: [&(dyn ToSql + Sync); 4] = [&graph, &known.notes, &known.memory, &NoteAction::Redact.name()];
    let found = row::first(db, sql, &values, read).await?;
    found.ok_or_else(|| BadRow("the graph was deleted".to_owned()).into())
}

fn reason(word: &str) -> TrashReason {
    match word {
        "deleted" => TrashReason::Deleted,
        "moved" => TrashReason::Moved,
        _ => TrashReason::Replaced,
    }
}

/// The name of a version; sorts by time.
pub(super) fn version_name(change: i64, position: i32) -> String {
    format!("{change:019}-{position:06}")
}

fn file_content(row: &Row) -> Result<FileContent, BadRow> {
    let bytes: Vec<u8> = get(row, 0)?;
    let stat = FileStat { modified_ns: get(row, 2)?, size: bytes.len() as u64 };
    Ok(FileContent { hash: hash(row, 1)?, stat, bytes })
}

fn listed(row: &Row) -> Result<ListedFile, BadRow> {
    let size = get::<i32>(row, 1)?.unsigned_abs().into();
    Ok(ListedFile { path: path(row, 0)?, stat: FileStat { modified_ns: get(row, 2)?, size } })
}

pub(super) fn path(row: &Row, column: usize) -> Result<VaultPath, BadRow> {
    VaultPath::parse(&text(row, column)?).map_err(|error| BadRow(format!("the path of a note: {error}")))
}

fn hash(row: &Row, column: usize) -> Result<ContentHash, BadRow> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map(ContentHash).map_err(|_| BadRow("the hash of a note is not 32 bytes".to_owned()))
}
