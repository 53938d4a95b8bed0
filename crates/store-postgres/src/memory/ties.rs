//! Ties: the paths of the notes that links in memory mean.

use deadpool_postgres::{GenericClient, Transaction};
use quipu_core::model::VaultPath;
use quipu_core::ports::{NoteTie, TextOwner};
use tokio_postgres::Row;

use super::item;
use crate::failure::DatabaseError;
use crate::row::{BadRow, escape, execute, get, list, text};

const TIE: &str = "kind, owner, target, path";

/// The ties of each owner, in order of target.
pub(super) async fn of(
    db: &impl GenericClient,
    graph: i64,
    owners: &[TextOwner],
) -> Result<Vec<Vec<NoteTie>>, DatabaseError> {
    let (kinds, ids): (Vec<&str>, Vec<i64>) = owners.iter().copied().map(item::owner_key).unzip();
    let sql = format!(
        "SELECT {TIE} FROM note_tie JOIN (SELECT DISTINCT * FROM unnest($2::text[], $3::bigint[])) AS wanted (kind, owner) \
         USING (kind, owner) WHERE graph = $1 ORDER BY target"
    );
    let found = list(db, &sql, &[&graph, &kinds, &ids], tie).await?;
    let of = |owner: &TextOwner| found.iter().filter(|tie| tie.owner == *owner).cloned().collect();
    Ok(owners.iter().map(of).collect())
}

pub(super) async fn of_entities(
    db: &impl GenericClient,
    graph: i64,
    entities: &Vec<i64>,
) -> Result<Vec<NoteTie>, DatabaseError> {
    if entities.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT {TIE} FROM note_tie WHERE graph = $1 AND kind = 'entity' AND owner = ANY ($2)");
    list(db, &sql, &[&graph, entities], tie).await
}

/// The ties to a path, in order of owner and target.
pub(super) async fn to(db: &impl GenericClient, graph: i64, path: &VaultPath) -> Result<Vec<NoteTie>, DatabaseError> {
    let sql = format!(
        "SELECT {TIE} FROM note_tie WHERE graph = $1 AND path_hash = hashtextextended($2, 0) \
         AND path = $2 ORDER BY kind, owner, target"
    );
    list(db, &sql, &[&graph, &escape(path.as_str())], tie).await
}

/// Adds ties; each replaces the one of the same owner and target. The caller holds the lock of the graph.
pub(super) async fn put(
    tx: &Transaction<'_>,
    graph: i64,
    ties: impl Iterator<Item = (TextOwner, &str, &VaultPath)>,
) -> Result<(), DatabaseError> {
    for (owner, target, path) in ties {
        remove(tx, graph, owner, target).await?;
        let (kind, id) = item::owner_key(owner);
        let sql = "INSERT INTO note_tie (graph, kind, owner, target, path) VALUES ($1, $2, $3, $4, $5)";
        execute(tx, sql, &[&graph, &kind, &id, &escape(target), &escape(path.as_str())]).await?;
    }
    Ok(())
}

pub(super) async fn remove(
    tx: &Transaction<'_>,
    graph: i64,
    owner: TextOwner,
    target: &str,
) -> Result<(), DatabaseError> {
    let (kind, id) = item::owner_key(owner);
    let sql = "DELETE FROM note_tie WHERE graph = $1 AND kind = $2 AND owner = $3 AND target = $4";
    execute(tx, sql, &[&graph, &kind, &id, &escape(target)]).await?;
    Ok(())
}

/// Removes the ties of an owner.
pub(super) async fn remove_all(tx: &Transaction<'_>, graph: i64, owner: TextOwner) -> Result<(), DatabaseError> {
    let (kind, id) = item::owner_key(owner);
    execute(tx, "DELETE FROM note_tie WHERE graph = $1 AND kind = $2 AND owner = $3", &[&graph, &kind, &id]).await?;
    Ok(())
}

fn tie(row: &Row) -> Result<NoteTie, BadRow> {
    let owner = item::owner(get(row, 0)?, get(row, 1)?);
    let path = VaultPath::parse(&text(row, 3)?).map_err(|error| BadRow(format!("the path of a tie: {error}")))?;
    Ok(NoteTie { owner, target: text(row, 2)?, path })
}
