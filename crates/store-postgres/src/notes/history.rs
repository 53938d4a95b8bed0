//! The history of notes in the database.

use std::collections::BTreeMap;

use deadpool_postgres::{GenericClient, Transaction};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    FileChange, LoggedFile, LoggedVersion, LoggedWrite, NamePeriod, NoteAction, WriteFilter, WriteNumber, WriteOrigin,
};
use tokio_postgres::Row;

use super::files::Files;
use super::read::{self, version_name};
use super::save::WriteStamp;
use crate::failure::DatabaseError;
use crate::row::{BadRow, escape, execute, get, list, text};

/// What a change did, given the notes before it; `None` if it did nothing.
pub(super) fn logged(
    files: &Files<'_>,
    change: &FileChange,
    (before, taken): (Option<LoggedVersion>, usize),
    action: NoteAction,
    stamp: WriteStamp,
) -> Option<LoggedFile> {
    let (path, old_path) = (change.path(), change.old_path());
    let is_taken = files.taken.len() > taken;
    if !is_taken && before.is_some() {
        return None;
    }
    let position = i32::try_from(files.taken.len()).unwrap_or(i32::MAX);
    Some(LoggedFile {
        action,
        path: path.clone(),
        from: (path != old_path).then(|| old_path.clone()),
        before,
        after: files.logged_version(path),
        kept: is_taken.then(|| version_name(stamp.change, position)),
    })
}

/// Records a write, in the transaction of the write.
pub(super) async fn record(
    tx: &Transaction<'_>,
    graph: i64,
    stamp: WriteStamp,
    origin: &WriteOrigin<'_>,
    files: &[LoggedFile],
) -> Result<(), DatabaseError> {
    if files.is_empty() {
        return Ok(());
    }
    let WriteStamp { change, at_ns } = stamp;
    let sql = "INSERT INTO note_write (graph, change, at_ns, client) VALUES ($1, $2, $3, $4)";
    execute(tx, sql, &[&graph, &change, &at_ns, &escape(origin.by)]).await?;
    let key = |path: &VaultPath| escape(path.note_id().as_str()).into_owned();
    let own = |path: &VaultPath| escape(path.as_str()).into_owned();
    let actions: Vec<&str> = files.iter().map(|file| file.action.name()).collect();
    let paths: Vec<String> = files.iter().map(|file| own(&file.path)).collect();
    let keys: Vec<String> = files.iter().map(|file| key(&file.path)).collect();
    let from: Vec<Option<String>> = files.iter().map(|file| file.from.as_ref().map(own)).collect();
    let from_keys: Vec<Option<String>> = files.iter().map(|file| file.from.as_ref().map(key)).collect();
    let hash = |version: Option<LoggedVersion>| version.map(|version| version.hash.0.to_vec());
    let chars = |version: Option<LoggedVersion>| version.map(|version| version.chars.cast_signed());
    let old: Vec<Option<Vec<u8>>> = files.iter().map(|file| hash(file.before)).collect();
    let new: Vec<Option<Vec<u8>>> = files.iter().map(|file| hash(file.after)).collect();
    let old_chars: Vec<Option<i64>> = files.iter().map(|file| chars(file.before)).collect();
    let new_chars: Vec<Option<i64>> = files.iter().map(|file| chars(file.after)).collect();
    let old_ns: Vec<Option<i64>> = files.iter().map(|file| file.before.map(|before| before.modified_ns)).collect();
    let kept: Vec<Option<i32>> = files.iter().map(|file| file.kept.as_deref().and_then(position)).collect();
    let sql = "INSERT INTO note_write_file (graph, change, position, action, path, path_key, from_path, from_key, \
               old_hash, old_chars, old_ns, new_hash, new_chars, kept) \
               SELECT $1, $2, position, action, path, path_key, from_path, from_key, old_hash, old_chars, old_ns, \
               new_hash, new_chars, kept FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], \
               $8::bytea[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bigint[], $13::integer[]) WITH ORDINALITY \
               AS file (action, path, path_key, from_path, from_key, old_hash, old_chars, old_ns, new_hash, new_chars, \
               kept, position)";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 13] = [
        &graph, &change, &actions, &paths, &keys, &from, &from_keys, &old, &old_chars, &old_ns, &new, &new_chars, &kept,
    ];
    execute(tx, sql, &values).await?;
    Ok(())
}

/// The position in the name of a version.
fn position(version: &str) -> Option<i32> {
    version.split_once('-')?.1.parse().ok()
}

/// The writes that match, newest first.
pub(super) async fn writes(
    db: &impl GenericClient,
    graph: i64,
    filter: &WriteFilter,
) -> Result<Vec<LoggedWrite>, DatabaseError> {
    let id = filter.id.as_ref().map(|id| escape(id.as_str()).into_owned());
    let action = filter.action.map(NoteAction::name);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let sql = "SELECT change, at_ns, client, unlisted FROM note_write w WHERE graph = $1 AND change > $2 AND change < $3 \
               AND at_ns >= $4 AND EXISTS (SELECT 1 FROM note_write_file f WHERE f.graph = w.graph AND \
               f.change = w.change AND ($5::text IS NULL OR f.path_key = $5 OR f.from_key = $5) \
               AND ($6::text IS NULL OR f.action = $6)) ORDER BY change DESC LIMIT $7";
    let read = |row: &Row| {
        Ok(LoggedWrite {
            number: WriteNumber(get(row, 0)?),
            at_ns: get(row, 1)?,
            by: text(row, 2)?,
            files: Vec::new(),
            unlisted: get::<i32>(row, 3)?.unsigned_abs() as usize,
        })
    };
    let mut writes =
        list(db, sql, &[&graph, &filter.after.0, &filter.before.0, &filter.since_ns, &id, &action, &limit], read)
            .await?;
    let numbers: Vec<i64> = writes.iter().map(|write| write.number.0).collect();
    let times: BTreeMap<i64, i64> = writes.iter().map(|write| (write.number.0, write.at_ns)).collect();
    let sql = "SELECT change, action, path, from_path, old_hash, old_chars, old_ns, new_hash, new_chars, kept \
               FROM note_write_file WHERE graph = $1 AND change = ANY ($2) ORDER BY change, position";
    let mut files: BTreeMap<i64, Vec<LoggedFile>> = BTreeMap::new();
    for (change, file) in list(db, sql, &[&graph, &numbers], |row| file(row, &times)).await? {
        files.entry(change).or_default().push(file);
    }
    for write in &mut writes {
        write.files = files.remove(&write.number.0).unwrap_or_default();
    }
    // A redaction may have removed the files of a write between the two statements.
    writes.retain(|write| !write.files.is_empty());
    Ok(writes)
}

fn file(row: &Row, times: &BTreeMap<i64, i64>) -> Result<(i64, LoggedFile), BadRow> {
    let change: i64 = get(row, 0)?;
    let at_ns = times.get(&change).copied().unwrap_or_default();
    let action = text(row, 1)?;
    let version = |hash: usize, modified_ns: i64| -> Result<Option<LoggedVersion>, BadRow> {
        let Some(bytes) = get::<Option<&[u8]>>(row, hash)? else { return Ok(None) };
        let hash_of = bytes.try_into().map(quipu_core::model::ContentHash);
        let chars = get::<Option<i64>>(row, hash + 1)?.unwrap_or_default().cast_unsigned();
        let hash = hash_of.map_err(|_| BadRow("the hash of a note is not 32 bytes".to_owned()))?;
        Ok(Some(LoggedVersion { hash, chars, modified_ns }))
    };
    let old_ns = get::<Option<i64>>(row, 6)?.unwrap_or_default();
    let from = get::<Option<&str>>(row, 3)?.is_some().then(|| read::path(row, 3)).transpose()?;
    let file = LoggedFile {
        action: NoteAction::from_name(&action).ok_or_else(|| BadRow(format!("the action {action}")))?,
        path: read::path(row, 2)?,
        from,
        before: version(4, old_ns)?,
        after: version(7, at_ns)?,
        kept: get::<Option<i32>>(row, 9)?.map(|position| version_name(change, position)),
    };
    Ok((change, file))
}

/// The bytes of a version.
pub(super) async fn kept_bytes(
    db: &impl GenericClient,
    graph: i64,
    kept: &str,
) -> Result<Option<Vec<u8>>, DatabaseError> {
    let Some((change, position)) = kept.split_once('-') else { return Ok(None) };
    let (Ok(change), Ok(position)) = (change.parse::<i64>(), position.parse::<i32>()) else { return Ok(None) };
    let sql = "SELECT bytes FROM note_version WHERE graph = $1 AND change = $2 AND position = $3";
    crate::row::first(db, sql, &[&graph, &change, &position], |row| get(row, 0)).await
}

/// Deletes the versions, the entries and the recorded requests of a note that had these names, and of the write that is
/// `unfinished` only the version before it; returns the number of versions. The paths stay in the feed, by which servers know
/// what to read again.
pub(super) async fn forget(
    tx: &Transaction<'_>,
    graph: i64,
    names: &[NamePeriod],
    unfinished: WriteNumber,
) -> Result<u64, DatabaseError> {
    let mut count = 0;
    for NamePeriod { path, since_ns, until_ns } in names {
        let path = escape(path.as_str());
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&graph, &path, since_ns, until_ns, &unfinished.0];
        let sql = "DELETE FROM note_version WHERE graph = $1 AND path = $2 AND at_ns > $3 AND at_ns <= $4";
        count += execute(tx, sql, &values[..4]).await?;
        let of_note = "f.graph = $1 AND w.graph = $1 AND w.change = f.change AND (coalesce(f.from_path, f.path) = $2 AND \
                       w.at_ns > $3 AND w.at_ns <= $4 OR f.from_path IS NOT NULL AND f.path = $2 AND w.at_ns = $3)";
        let sql = format!(
            "UPDATE note_write_file f SET old_hash = NULL, old_chars = NULL, old_ns = NULL, kept = NULL \
             FROM note_write w WHERE {of_note} AND f.change = $5"
        );
        execute(tx, &sql, &values).await?;
        let sql = format!(
            "WITH gone AS (DELETE FROM note_write_file f USING note_write w WHERE {of_note} AND f.change <> $5 \
             RETURNING f.change) {COUNT_GONE}"
        );
        execute(tx, &sql, &values).await?;
        // A path may contain the text that is redacted.
        execute(tx, "DELETE FROM note_request WHERE graph = $1 AND path = $2", &[&graph, &path]).await?;
    }
    Ok(count)
}

/// Deletes the entries of a write.
pub(super) async fn forget_write(tx: &Transaction<'_>, graph: i64, number: WriteNumber) -> Result<(), DatabaseError> {
    let sql = format!(
        "WITH gone AS (DELETE FROM note_write_file WHERE graph = $1 AND change = $2 RETURNING change) {COUNT_GONE}"
    );
    execute(tx, &sql, &[&graph, &number.0]).await?;
    Ok(())
}

/// The end of a statement whose `gone` are deleted entries of a graph: their writes count them from then on.
const COUNT_GONE: &str = "UPDATE note_write SET unlisted = unlisted + n FROM \
                          (SELECT change, count(*) AS n FROM gone GROUP BY change) AS counted \
                          WHERE note_write.graph = $1 AND note_write.change = counted.change";
