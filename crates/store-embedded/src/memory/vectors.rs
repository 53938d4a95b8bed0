//! Vectors, in two tables of one shape.

use quipu_core::memory::{EntityId, ObservationId};
use quipu_core::ports::{StoredVector, TextOwner};
use rusqlite::{Connection, Row, Transaction};

use super::read::{bounded, list};

pub(super) fn after(
    db: &Connection,
    space: &str,
    after: Option<TextOwner>,
    limit: usize,
) -> rusqlite::Result<Vec<(TextOwner, StoredVector)>> {
    let mut found = Vec::new();
    if !matches!(after, Some(TextOwner::Observation(_))) {
        let from = after.map_or(0, |owner| key(owner).2);
        let sql = "SELECT entity, text_hash, scale, codes FROM entity_vector WHERE space = ?1 AND entity > ?2 \
            ORDER BY entity LIMIT ?3";
        found = list(db, sql, (space, from, bounded(limit)), |row| vector(row, |id| TextOwner::Entity(EntityId(id))))?;
    }
    if found.len() < limit {
        let from = match after {
            Some(TextOwner::Observation(id)) => id.0,
            _ => 0,
        };
        let sql = "SELECT observation, text_hash, scale, codes FROM observation_vector WHERE space = ?1 \
            AND observation > ?2 ORDER BY observation LIMIT ?3";
        let rest = bounded(limit - found.len());
        let owner = |id| TextOwner::Observation(ObservationId(id));
        found.extend(list(db, sql, (space, from, rest), |row| vector(row, owner))?);
    }
    Ok(found)
}

pub(super) fn put(tx: &Transaction<'_>, space: &str, vectors: &[(TextOwner, StoredVector)]) -> rusqlite::Result<()> {
    for (owner, vector) in vectors {
        let (table, column, id) = key(*owner);
        let sql = format!(
            "INSERT OR REPLACE INTO {column}_vector (space, {column}, text_hash, scale, codes) \
             SELECT ?1, id, ?3, ?4, ?5 FROM {table} WHERE id = ?2"
        );
        let codes: Vec<u8> = vector.codes.iter().map(|code| code.cast_unsigned()).collect();
        tx.prepare_cached(&sql)?.execute((space, id, vector.text_hash, f64::from(vector.scale), codes))?;
    }
    Ok(())
}

fn key(owner: TextOwner) -> (&'static str, &'static str, i64) {
    match owner {
        TextOwner::Entity(id) => ("entity", "entity", id.0),
        TextOwner::Observation(id) => ("observation", "observation", id.0),
    }
}

fn vector(row: &Row<'_>, owner: impl Fn(i64) -> TextOwner) -> rusqlite::Result<(TextOwner, StoredVector)> {
    let codes: Vec<u8> = row.get(3)?;
    #[expect(clippy::cast_possible_truncation, reason = "it was written from an f32")]
    let scale = row.get::<_, f64>(2)? as f32;
    let codes = codes.into_iter().map(u8::cast_signed).collect();
    Ok((owner(row.get(0)?), StoredVector { text_hash: row.get(1)?, scale, codes }))
}
