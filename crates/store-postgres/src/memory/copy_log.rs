//! Copying the log of another memory into an empty one.

use deadpool_postgres::Transaction;
use quipu_core::memory::WholeLog;
use quipu_core::ports::{ChangeNumber, CopyLogError, LoggedChange, MemoryItem, NoteTie};

use super::{item, load, log, save, ties};
use crate::failure::DatabaseError;
use crate::row::{escape, execute};

/// Rows written by one statement.
const AT_ONCE: usize = 5000;

pub(super) async fn copy(
    tx: &Transaction<'_>,
    graph: i64,
    whole: &WholeLog,
    made: &[NoteTie],
) -> Result<Result<(), CopyLogError>, DatabaseError> {
    let (head, _) = load::lock(tx, graph).await?;
    let Some(last) = whole.entries().last() else { return Ok(Ok(())) };
    if head != ChangeNumber(0) {
        // A commit whose acknowledgement was lost is tried again.
        let same = |it: LoggedChange| it.author == last.author && it.steps == last.steps;
        let is_copied = head == last.number && log::one(tx, graph, head).await?.is_some_and(same);
        return Ok(if is_copied { Ok(()) } else { Err(CopyLogError::NotEmpty) });
    }
    for entries in whole.entries().chunks(AT_ONCE) {
        copy_entries(tx, graph, entries).await?;
    }
    let steps: Vec<_> = whole.entries().iter().flat_map(steps_of).collect();
    for steps in steps.chunks(AT_ONCE) {
        copy_steps(tx, graph, steps).await?;
    }
    for entities in whole.entities.values().collect::<Vec<_>>().chunks(AT_ONCE) {
        save::save_entities(tx, graph, entities).await?;
    }
    for observations in whole.observations.values().collect::<Vec<_>>().chunks(AT_ONCE) {
        save::save_observations(tx, graph, observations).await?;
    }
    for relations in whole.relations.values().collect::<Vec<_>>().chunks(AT_ONCE) {
        save::save_relations(tx, graph, relations).await?;
    }
    ties::put(tx, graph, made.iter().map(|tie| (tie.owner, tie.target.as_str(), &tie.path))).await?;
    let head = "UPDATE memory_head SET change = $2, entity = $3, observation = $4, relation = $5 WHERE graph = $1";
    let (entity, observation, relation) = whole.greatest;
    execute(tx, head, &[&graph, &last.number.0, &entity, &observation, &relation]).await?;
    Ok(Ok(()))
}

async fn copy_entries(tx: &Transaction<'_>, graph: i64, entries: &[LoggedChange]) -> Result<(), DatabaseError> {
    let numbers: Vec<i64> = entries.iter().map(|entry| entry.number.0).collect();
    let at: Vec<i64> = entries.iter().map(|entry| entry.author.at_ns).collect();
    let clients: Vec<_> = entries.iter().map(|entry| escape(&entry.author.client)).collect();
    let tools: Vec<_> = entries.iter().map(|entry| escape(&entry.author.tool)).collect();
    let undoes: Vec<Option<i64>> = entries.iter().map(|entry| entry.undoes.map(|undone| undone.0)).collect();
    let sql = "INSERT INTO change (graph, number, at_ns, client, tool, undoes) \
               SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])";
    execute(tx, sql, &[&graph, &numbers, &at, &clients, &tools, &undoes]).await?;
    Ok(())
}

/// A step with the number of its entry and its position there.
type NumberedStep<'l> = (i64, i32, Option<&'l MemoryItem>, Option<&'l MemoryItem>);

fn steps_of(entry: &LoggedChange) -> impl Iterator<Item = NumberedStep<'_>> {
    let steps = (1..).zip(&entry.steps);
    steps.map(|(position, (before, after))| (entry.number.0, position, before.as_ref(), after.as_ref()))
}

async fn copy_steps(tx: &Transaction<'_>, graph: i64, steps: &[NumberedStep<'_>]) -> Result<(), DatabaseError> {
    let (changes, positions): (Vec<i64>, Vec<i32>) = steps.iter().map(|step| (step.0, step.1)).unzip();
    let keys = steps.iter().filter_map(|(.., before, after)| after.or(*before)).map(item::key);
    let (kinds, ids): (Vec<&str>, Vec<i64>) = keys.unzip();
    let before: Vec<_> = steps.iter().map(|(_, _, before, _)| before.map(item::to_json)).collect();
    let after: Vec<_> = steps.iter().map(|(.., after)| after.map(item::to_json)).collect();
    let sql = "INSERT INTO change_step (graph, change, position, kind, id, before, after) SELECT $1, * FROM \
               unnest($2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::text[], $7::text[])";
    execute(tx, sql, &[&graph, &changes, &positions, &kinds, &ids, &before, &after]).await?;
    Ok(())
}
