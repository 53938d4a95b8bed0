//! Which version of a note each client was last shown, by any server.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{ShownNotes, VaultError};
use quipu_core::{Extent, ShownVersion};
use tokio_postgres::Row;

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::graphs::Graph;
use crate::row::{BadRow, escape, execute, get, list, text};

/// How often a server deletes rows that are older than a month.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// What the clients of one graph were shown.
pub struct PostgresShownNotes {
    database: Arc<PostgresDatabase>,
    graph: i64,
    scope: Scope,
    pruned: Mutex<Option<Instant>>,
}

impl PostgresShownNotes {
    /// What the clients of a graph of a database were shown.
    pub fn new(database: Arc<PostgresDatabase>, graph: &Graph) -> Self {
        Self { database, graph: graph.id, scope: Scope::Graph(graph.id), pruned: Mutex::default() }
    }

    fn is_time_to_prune(&self) -> bool {
        let mut pruned = self.pruned.lock();
        let is_time = pruned.is_none_or(|at| at.elapsed() > PRUNE_INTERVAL);
        if is_time {
            *pruned = Some(Instant::now());
        }
        is_time
    }
}

impl ShownNotes for PostgresShownNotes {
    /// The last version of a note, if this client wrote it, counts as shown too: the server that wrote it may have ended before it
    /// could record that. How much of it the client knows is then unknown.
    fn shown(&self, client: &str, paths: &[&VaultPath]) -> Result<Vec<Option<ShownVersion>>, VaultError> {
        let sql = "SELECT wanted.path, shown.hash, shown.is_whole, shown.parts::text, \
                   CASE WHEN shown.hash IS DISTINCT FROM note.hash AND $4 = (SELECT client FROM note_write_file file \
                   JOIN note_write USING (graph, change) WHERE file.graph = $1 AND file.path_key = note.path_key \
                   ORDER BY file.change DESC LIMIT 1) THEN note.hash END \
                   FROM unnest($3::text[]) AS wanted (path) \
                   LEFT JOIN shown_note shown ON shown.graph = $1 AND shown.client = $2 AND shown.path = wanted.path \
                   LEFT JOIN note ON note.graph = $1 AND note.path = wanted.path";
        let (key, name) = (client_key(client), escape(client));
        let wanted: Vec<_> = paths.iter().map(|path| escape(path.as_str())).collect();
        let read = |row: &Row| Ok((text(row, 0)?, version(row)?));
        let found = self
            .database
            .read(self.scope, async |db| list(db, sql, &[&self.graph, &&key[..], &wanted, &name], read).await);
        let mut found: HashMap<String, _> = found.map_err(|error| failed(&error))?.into_iter().collect();
        Ok(paths.iter().map(|path| found.remove(path.as_str()).flatten()).collect())
    }

    /// Not waited for to be on disk: after a crash of the database, a client may have to read a note again.
    fn record(&self, client: &str, shown: &[(VaultPath, Option<ShownVersion>)]) -> Result<(), VaultError> {
        let client = client_key(client);
        let (mut forgotten, mut paths, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut is_whole, mut parts) = (Vec::new(), Vec::new());
        for (path, version) in shown {
            let path = escape(path.as_str());
            let Some(ShownVersion { hash, extent }) = version else {
                forgotten.push(path);
                continue;
            };
            paths.push(path);
            hashes.push(&hash.0[..]);
            is_whole.push(*extent == Extent::Whole);
            parts.push(written(extent));
        }
        let forget = "DELETE FROM shown_note WHERE graph = $1 AND client = $2 AND path = ANY ($3)";
        // Of one version, what several servers showed adds up.
        let put = "INSERT INTO shown_note AS old (graph, client, path, hash, is_whole, parts) \
                   SELECT $1, $2, path, hash, is_whole, parts::int8multirange \
                   FROM unnest($3::text[], $4::bytea[], $5::bool[], $6::text[]) AS new (path, hash, is_whole, parts) \
                   ON CONFLICT (graph, client, path) DO UPDATE SET hash = excluded.hash, at = excluded.at, \
                   is_whole = excluded.is_whole OR old.is_whole AND old.hash = excluded.hash, \
                   parts = CASE WHEN old.hash = excluded.hash THEN old.parts + excluded.parts ELSE excluded.parts END";
        let prune = "DELETE FROM shown_note WHERE graph = $1 AND at < now() - interval '30 days'";
        let is_time_to_prune = self.is_time_to_prune();
        let outcome = self.database.write_quietly(self.scope, async |tx| {
            if is_time_to_prune {
                execute(tx, prune, &[&self.graph]).await?;
            }
            if !forgotten.is_empty() {
                execute(tx, forget, &[&self.graph, &&client[..], &forgotten]).await?;
            }
            if !paths.is_empty() {
                execute(tx, put, &[&self.graph, &&client[..], &paths, &hashes, &is_whole, &parts]).await?;
            }
            Ok(())
        });
        outcome.map_err(|error| failed(&error))
    }
}

/// Names may be long, and belong to people.
fn client_key(client: &str) -> [u8; 16] {
    *blake3::hash(client.as_bytes()).as_bytes().first_chunk().expect("a hash has 32 bytes")
}

fn failed(error: &DatabaseError) -> VaultError {
    VaultError::Database { reason: error.reason() }
}

/// Parts as the database writes them.
fn written(extent: &Extent) -> String {
    let parts: Vec<String> = match extent {
        Extent::Whole => Vec::new(),
        Extent::Parts(parts) => parts.iter().map(|part| format!("[{},{})", part.start, part.end)).collect(),
    };
    format!("{{{}}}", parts.join(","))
}

fn version(row: &Row) -> Result<Option<ShownVersion>, BadRow> {
    let hash =
        |bytes: &[u8]| bytes.try_into().map(ContentHash).map_err(|_| BadRow("the hash of a shown note".to_owned()));
    if let Some(own) = get::<Option<&[u8]>>(row, 4)? {
        return Ok(Some(ShownVersion { hash: hash(own)?, extent: Extent::Parts(Vec::new()) }));
    }
    let Some(shown) = get::<Option<&[u8]>>(row, 1)? else { return Ok(None) };
    let extent = if get(row, 2)? { Extent::Whole } else { Extent::Parts(ranges(get(row, 3)?)?) };
    Ok(Some(ShownVersion { hash: hash(shown)?, extent }))
}

/// Reads `{[0,10),[20,30)}`.
fn ranges(text: &str) -> Result<Vec<Range<usize>>, BadRow> {
    let inner = text.trim_start_matches('{').trim_end_matches('}');
    let range = |part: &str| {
        let (start, end) = part.trim_matches(['[', ')', ',']).split_once(',')?;
        Some(start.parse().ok()?..end.parse().ok()?)
    };
    let parts = inner.split_inclusive(')').map(|part| range(part.trim_start_matches(',')));
    parts.collect::<Option<Vec<_>>>().ok_or_else(|| BadRow("the shown parts of a note".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_as_they_were_written() {
        for parts in [vec![], vec![0..10, 20..30], vec![0..10, 20..30, 40..41]] {
            assert_eq!(ranges(&written(&Extent::Parts(parts.clone()))).expect("written here"), parts);
        }
        assert!(ranges("{[1,x)}").is_err());
    }
}
