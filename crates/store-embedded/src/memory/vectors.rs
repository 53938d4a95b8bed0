//! Vectors, in a table for entities and one of the same shape for observations.

use quipu_core::ports::{StoredVector, TextOwner};
use rusqlite::{Connection, Row, Transaction};

use super::read::{BATCH_BYTES, batch, bounded};
use super::rows;

/// Vectors of a space after those of an owner: those of entities first, in the order of their ids.
pub(super) fn after(
    db: &Connection,
    space: &str,
    after: Option<TextOwner>,
    limit: usize,
) -> rusqlite::Result<Vec<(TextOwner, StoredVector)>> {
    let mut found = Vec::new();
    for kind in ["entity", "observation"] {
        let from = match after.map(rows::owner_key) {
            Some((of_kind, id)) if of_kind == kind => id,
            Some(("observation", _)) => continue,
            _ => 0,
        };
        let sql = format!(
            "SELECT {kind}, text_hash, scale, codes FROM {kind}_vector WHERE space = ?1 AND {kind} > ?2 \
             ORDER BY {kind} LIMIT ?3"
        );
        let read = |row: &Row<'_>| vector(row, kind);
        let bytes = |(_, vector): &(TextOwner, StoredVector)| vector.codes.len();
        found.extend(batch(db, &sql, (space, from, bounded(limit - found.len())), read, bytes)?);
        if found.iter().map(bytes).sum::<usize>() >= BATCH_BYTES {
            break;
        }
    }
    Ok(found)
}

pub(super) fn put(tx: &Transaction<'_>, space: &str, vectors: &[(TextOwner, StoredVector)]) -> rusqlite::Result<()> {
    for (owner, vector) in vectors {
        let (kind, id) = rows::owner_key(*owner);
        let sql = format!(
            "INSERT OR REPLACE INTO {kind}_vector (space, {kind}, text_hash, scale, codes) \
             SELECT ?1, id, ?3, ?4, ?5 FROM {kind} WHERE id = ?2"
        );
        let codes: Vec<u8> = vector.codes.iter().map(|code| code.cast_unsigned()).collect();
        tx.prepare_cached(&sql)?.execute((space, id, vector.text_hash, f64::from(vector.scale), codes))?;
    }
    Ok(())
}

fn vector(row: &Row<'_>, kind: &str) -> rusqlite::Result<(TextOwner, StoredVector)> {
    let codes: Vec<u8> = row.get(3)?;
    #[expect(clippy::cast_possible_truncation, reason = "it was written from an f32")]
    let scale = row.get::<_, f64>(2)? as f32;
    let codes = codes.into_iter().map(u8::cast_signed).collect();
    Ok((rows::owner(kind, row.get(0)?), StoredVector { text_hash: row.get(1)?, scale, codes }))
}
