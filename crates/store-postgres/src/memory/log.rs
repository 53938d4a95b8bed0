//! Reading the log of changes.

use deadpool_postgres::GenericClient;
use quipu_core::memory::{EntityId, ObservationId, RelationId};
use quipu_core::ports::{Author, ChangeNumber, ChangedIds, LoggedChange, MemoryItem, TextOwner};
use tokio_postgres::Row;

use super::item;
use crate::failure::DatabaseError;
use crate::row::{self, BadRow, bounded, get, list, text};

/// The columns of a change. The last is the change that undid it, which may have been undone in turn, and so on: every second
/// of them redoes the change.
const CHANGE: &str = "number, at_ns, client, tool, undoes, (
    WITH RECURSIVE later (number) AS (
        SELECT by.number FROM change by WHERE by.graph = c.graph AND by.undoes = c.number
        UNION ALL SELECT by.number FROM later
        JOIN change by ON by.graph = c.graph AND by.undoes = later.number AND by.number > later.number
    ) SELECT CASE WHEN count(*) % 2 = 1 THEN min(later.number) END FROM later)";

pub(super) async fn head(db: &impl GenericClient, graph: i64) -> Result<ChangeNumber, DatabaseError> {
    let sql = "SELECT change FROM memory_head WHERE graph = $1";
    Ok(row::first(db, sql, &[&graph], |row| get(row, 0).map(ChangeNumber)).await?.unwrap_or_default())
}

pub(super) async fn changed_since(
    db: &impl GenericClient,
    graph: i64,
    change: ChangeNumber,
) -> Result<ChangedIds, DatabaseError> {
    // Before the steps: a change in between is found the next time.
    let mut changed = ChangedIds { head: head(db, graph).await?, ..ChangedIds::default() };
    if changed.head <= change {
        return Ok(changed);
    }
    let sql = "SELECT DISTINCT kind, id FROM change_step WHERE graph = $1 AND change > $2 ORDER BY kind, id";
    let ids = list(db, sql, &[&graph, &change.0], |row| Ok((get::<String>(row, 0)?, get(row, 1)?))).await?;
    for (kind, id) in ids {
        match kind.as_str() {
            "entity" => changed.entities.push(EntityId(id)),
            "observation" => changed.observations.push(ObservationId(id)),
            _ => changed.relations.push(RelationId(id)),
        }
    }
    Ok(changed)
}

pub(super) async fn before(
    db: &impl GenericClient,
    graph: i64,
    before: ChangeNumber,
    limit: usize,
) -> Result<Vec<LoggedChange>, DatabaseError> {
    let sql = format!("SELECT {CHANGE} FROM change c WHERE graph = $1 AND number < $2 ORDER BY number DESC LIMIT $3");
    let changes = list(db, &sql, &[&graph, &before.0, &bounded(limit)], change).await?;
    with_steps(db, graph, changes).await
}

pub(super) async fn one(
    db: &impl GenericClient,
    graph: i64,
    number: ChangeNumber,
) -> Result<Option<LoggedChange>, DatabaseError> {
    let sql = format!("SELECT {CHANGE} FROM change c WHERE graph = $1 AND number = $2");
    let changes = list(db, &sql, &[&graph, &number.0], change).await?;
    Ok(with_steps(db, graph, changes).await?.into_iter().next())
}

/// The last change with the same effect: itself, or the last redo of it.
pub(super) async fn latest_doing(
    db: &impl GenericClient,
    graph: i64,
    standing: ChangeNumber,
) -> Result<ChangeNumber, DatabaseError> {
    let sql = "WITH RECURSIVE later (number) AS (
            SELECT $2::bigint UNION ALL SELECT by.number FROM later
            JOIN change by ON by.graph = $1 AND by.undoes = later.number AND by.number > later.number
        ) SELECT max(number) FROM later";
    let found = row::first(db, sql, &[&graph, &standing.0], |row| get(row, 0).map(ChangeNumber)).await?;
    Ok(found.unwrap_or(standing))
}

/// Fast for any length of the log: these steps have an index of their own.
pub(super) async fn linking_texts_gone(
    db: &impl GenericClient,
    graph: i64,
) -> Result<Vec<(TextOwner, String)>, DatabaseError> {
    let sql = "SELECT kind, id, before FROM change_step WHERE graph = $1 AND strpos(before, '[[') > 0 \
               ORDER BY change, position";
    let items = list(db, sql, &[&graph], |row| item::from_json(get(row, 0)?, get(row, 1)?, get(row, 2)?)).await?;
    let text = |item: MemoryItem| match item {
        MemoryItem::Entity(entity) => entity.description.map(|text| (TextOwner::Entity(entity.id), text)),
        MemoryItem::Observation(seen) => Some((TextOwner::Observation(seen.id), seen.text)),
        MemoryItem::Relation(_) => None,
    };
    Ok(items.into_iter().filter_map(text).filter(|(_, text)| text.contains("[[")).collect())
}

fn change(row: &Row) -> Result<LoggedChange, BadRow> {
    Ok(LoggedChange {
        number: ChangeNumber(get(row, 0)?),
        author: Author { at_ns: get(row, 1)?, client: text(row, 2)?, tool: text(row, 3)?, request: None },
        undoes: get::<Option<i64>>(row, 4)?.map(ChangeNumber),
        undone_by: get::<Option<i64>>(row, 5)?.map(ChangeNumber),
        steps: Vec::new(),
    })
}

async fn with_steps(
    db: &impl GenericClient,
    graph: i64,
    mut changes: Vec<LoggedChange>,
) -> Result<Vec<LoggedChange>, DatabaseError> {
    let numbers: Vec<i64> = changes.iter().map(|change| change.number.0).collect();
    let sql = "SELECT change, kind, id, before, after FROM change_step WHERE graph = $1 AND change = ANY ($2) \
               ORDER BY change DESC, position";
    let read = |row: &Row| {
        let (kind, id): (&str, i64) = (get(row, 1)?, get(row, 2)?);
        let item = |json: Option<&str>| json.map(|json| item::from_json(kind, id, json)).transpose();
        Ok((get::<i64>(row, 0)?, (item(get(row, 3)?)?, item(get(row, 4)?)?)))
    };
    let mut steps = list(db, sql, &[&graph, &numbers], read).await?.into_iter().peekable();
    changes.sort_by_key(|change| std::cmp::Reverse(change.number));
    for change in &mut changes {
        while let Some((_, step)) = steps.next_if(|(number, _)| *number == change.number.0) {
            change.steps.push(step);
        }
    }
    Ok(changes)
}
