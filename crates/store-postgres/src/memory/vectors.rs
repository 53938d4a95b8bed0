//! Vectors of texts, in a table for entities and one of the same shape for observations.

use std::collections::BTreeMap;

use deadpool_postgres::{GenericClient, Transaction};
use quipu_core::ports::{StoredVector, TextOwner};
use tokio_postgres::Row;

use super::item;
use crate::failure::DatabaseError;
use crate::row::{BadRow, bounded, execute, get, list};
use crate::vectors::CLAIM;

/// Vectors of a space after those of an owner: those of entities first, in the order of their ids.
pub(super) async fn after(
    db: &impl GenericClient,
    graph: i64,
    space: &str,
    after: Option<TextOwner>,
    limit: usize,
) -> Result<Vec<(TextOwner, StoredVector)>, DatabaseError> {
    let mut found = Vec::new();
    for kind in ["entity", "observation"] {
        let from = match after.map(item::owner_key) {
            Some((of_kind, id)) if of_kind == kind => id,
            Some(("observation", _)) => continue,
            _ => 0,
        };
        let sql = format!(
            "SELECT {kind}, text_hash, scale, codes FROM {kind}_vector WHERE graph = $1 AND space = $2 AND {kind} > $3 \
             ORDER BY {kind} LIMIT $4"
        );
        let limit = bounded(limit - found.len());
        found.extend(list(db, &sql, &[&graph, &space, &from, &limit], |row| vector(row, kind)).await?);
    }
    Ok(found)
}

/// The vectors of some owners.
pub(super) async fn of(
    db: &impl GenericClient,
    graph: i64,
    space: &str,
    owners: &[TextOwner],
) -> Result<Vec<(TextOwner, StoredVector)>, DatabaseError> {
    let mut found = Vec::new();
    for kind in ["entity", "observation"] {
        let of_kind = owners.iter().map(|owner| item::owner_key(*owner)).filter(|(of_kind, _)| *of_kind == kind);
        let ids: Vec<i64> = of_kind.map(|(_, id)| id).collect();
        if ids.is_empty() {
            continue;
        }
        let sql = format!(
            "SELECT {kind}, text_hash, scale, codes FROM {kind}_vector WHERE graph = $1 AND space = $2 AND {kind} = ANY ($3)"
        );
        found.extend(list(db, &sql, &[&graph, &space, &ids], |row| vector(row, kind)).await?);
    }
    Ok(found)
}

/// Claims some of the texts that no other server holds; returns the hashes of those that this one has now.
pub(super) async fn claim(
    tx: &Transaction<'_>,
    graph: i64,
    space: &str,
    hashes: &[i64],
    holder: &str,
    limit: i64,
) -> Result<Vec<i64>, DatabaseError> {
    // In one order, so that two servers do not wait for each other. Of two that claim a text at once, the first has it.
    let sql = "INSERT INTO text_claim (graph, space, text_hash, holder, until) \
               SELECT $1, $2, hash, $4, now() + make_interval(secs => $6) FROM ( \
                   SELECT hash FROM unnest($3::bigint[]) WITH ORDINALITY AS wanted (hash, place) WHERE NOT EXISTS ( \
                       SELECT FROM text_claim held WHERE held.graph = $1 AND held.space = $2 AND held.text_hash = hash \
                       AND held.holder <> $4 AND held.until >= now() \
                   ) GROUP BY hash ORDER BY min(place) LIMIT $5 \
               ) AS free ORDER BY hash \
               ON CONFLICT (graph, space, text_hash) DO UPDATE SET holder = excluded.holder, until = excluded.until \
               WHERE text_claim.holder = excluded.holder OR text_claim.until < now() RETURNING text_hash";
    let seconds = CLAIM.as_secs_f64();
    list(tx, sql, &[&graph, &space, &hashes, &holder, &limit, &seconds], |row| get(row, 0)).await
}

/// Ends the claims on texts whose vectors are stored, and forgets those of servers that died long ago.
async fn release(tx: &Transaction<'_>, graph: i64, space: &str, hashes: &[i64]) -> Result<(), DatabaseError> {
    let sql = "DELETE FROM text_claim WHERE graph = $1 AND space = $2 \
               AND (text_hash = ANY ($3) OR until < now() - interval '1 hour')";
    execute(tx, sql, &[&graph, &space, &hashes]).await?;
    Ok(())
}

/// Stores vectors. The rows of the owners are locked, so that none is deleted in between.
pub(super) async fn put(
    tx: &Transaction<'_>,
    graph: i64,
    space: &str,
    vectors: &[(TextOwner, StoredVector)],
) -> Result<(), DatabaseError> {
    for kind in ["entity", "observation"] {
        // Of two vectors of one owner, the later.
        let of_kind = vectors.iter().filter(|(owner, _)| item::owner_key(*owner).0 == kind);
        let latest: BTreeMap<i64, &StoredVector> =
            of_kind.map(|(owner, vector)| (item::owner_key(*owner).1, vector)).collect();
        if latest.is_empty() {
            continue;
        }
        let bytes =
            |vector: &&StoredVector| -> Vec<u8> { vector.codes.iter().map(|code| code.cast_unsigned()).collect() };
        let ids: Vec<i64> = latest.keys().copied().collect();
        let hashes: Vec<i64> = latest.values().map(|vector| vector.text_hash).collect();
        let scales: Vec<f32> = latest.values().map(|vector| vector.scale).collect();
        let codes: Vec<Vec<u8>> = latest.values().map(bytes).collect();
        let sql = format!(
            "INSERT INTO {kind}_vector (graph, space, {kind}, text_hash, scale, codes) \
             SELECT $1, $2, owner.id, new.text_hash, new.scale, new.codes \
             FROM unnest($3::bigint[], $4::bigint[], $5::real[], $6::bytea[]) AS new (id, text_hash, scale, codes) \
             JOIN {kind} owner ON owner.graph = $1 AND owner.id = new.id ORDER BY owner.id FOR KEY SHARE OF owner \
             ON CONFLICT (graph, space, {kind}) DO UPDATE SET (text_hash, scale, codes) = \
             ROW (excluded.text_hash, excluded.scale, excluded.codes)"
        );
        execute(tx, &sql, &[&graph, &space, &ids, &hashes, &scales, &codes]).await?;
    }
    let hashes: Vec<i64> = vectors.iter().map(|(_, vector)| vector.text_hash).collect();
    release(tx, graph, space, &hashes).await
}

fn vector(row: &Row, kind: &str) -> Result<(TextOwner, StoredVector), BadRow> {
    let codes: Vec<u8> = get(row, 3)?;
    let codes = codes.into_iter().map(u8::cast_signed).collect();
    Ok((item::owner(kind, get(row, 0)?), StoredVector { text_hash: get(row, 1)?, scale: get(row, 2)?, codes }))
}
