//! Writes a draft: its log entry, then the last version of every item, in an order that keeps all references valid.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, name_key};
use quipu_core::ports::{Author, ChangeNumber};

use super::draft::Draft;
use super::item;
use super::ties;
use crate::failure::DatabaseError;
use crate::row::{escape, execute};

pub(super) async fn save(
    tx: &Transaction<'_>,
    graph: i64,
    change: ChangeNumber,
    author: &Author,
    undoes: Option<ChangeNumber>,
    draft: &Draft,
) -> Result<(), DatabaseError> {
    let insert = "INSERT INTO change (graph, number, at_ns, client, tool, undoes) VALUES ($1, $2, $3, $4, $5, $6)";
    let (client, tool, undoes) = (escape(&author.client), escape(&author.tool), undoes.map(|undone| undone.0));
    execute(tx, insert, &[&graph, &change.0, &author.at_ns, &client, &tool, &undoes]).await?;
    save_steps(tx, graph, change, draft).await?;
    let touched = Touched::of(draft);
    save_entities(tx, graph, &touched.entities(draft)).await?;
    save_observations(tx, graph, &touched.observations(draft)).await?;
    save_relations(tx, graph, &touched.relations(draft)).await?;
    // Before entities are deleted, which deletes their contexts.
    save_contexts(tx, graph, change, draft).await?;
    for (kind, ids) in touched.deleted(draft) {
        if !ids.is_empty() {
            let sql = format!("DELETE FROM {kind} WHERE graph = $1 AND id = ANY ($2)");
            execute(tx, &sql, &[&graph, &ids]).await?;
        }
    }
    ties::put(tx, graph, draft.new_ties.iter().map(|((owner, target), path)| (*owner, target.as_str(), path))).await?;
    let head = "UPDATE memory_head SET change = $2, entity = $3, observation = $4, relation = $5 WHERE graph = $1";
    let last = draft.last;
    execute(tx, head, &[&graph, &change.0, &last.entity, &last.observation, &last.relation]).await?;
    Ok(())
}

/// The ids of all items of the steps.
#[derive(Default)]
struct Touched {
    entities: BTreeSet<EntityId>,
    observations: BTreeSet<ObservationId>,
    relations: BTreeSet<RelationId>,
}

impl Touched {
    fn of(draft: &Draft) -> Self {
        use quipu_core::ports::MemoryItem::{Entity, Observation, Relation};
        let mut touched = Self::default();
        for item in draft.steps.iter().filter_map(|(before, after)| after.as_ref().or(before.as_ref())) {
            match item {
                Entity(entity) => drop(touched.entities.insert(entity.id)),
                Observation(seen) => drop(touched.observations.insert(seen.id)),
                Relation(relation) => drop(touched.relations.insert(relation.id)),
            }
        }
        touched
    }

    fn entities<'d>(&self, draft: &'d Draft) -> Vec<&'d Entity> {
        self.entities.iter().filter_map(|id| draft.entities.get(id)).collect()
    }

    fn observations<'d>(&self, draft: &'d Draft) -> Vec<&'d Observation> {
        self.observations.iter().filter_map(|id| draft.observations.get(id)).collect()
    }

    fn relations<'d>(&self, draft: &'d Draft) -> Vec<&'d Relation> {
        self.relations.iter().filter_map(|id| draft.relations.get(id)).collect()
    }

    /// The ids of rows that the draft no longer has, references first.
    fn deleted(&self, draft: &Draft) -> [(&'static str, Vec<i64>); 3] {
        let relations = self.relations.iter().filter(|id| !draft.relations.contains_key(id));
        let observations = self.observations.iter().filter(|id| !draft.observations.contains_key(id));
        let entities = self.entities.iter().filter(|id| !draft.entities.contains_key(id));
        [
            ("relation", relations.map(|id| id.0).collect()),
            ("observation", observations.map(|id| id.0).collect()),
            ("entity", entities.map(|id| id.0).collect()),
        ]
    }
}

async fn save_steps(
    tx: &Transaction<'_>,
    graph: i64,
    change: ChangeNumber,
    draft: &Draft,
) -> Result<(), DatabaseError> {
    let keys = draft.steps.iter().filter_map(|(before, after)| after.as_ref().or(before.as_ref())).map(item::key);
    let (kinds, ids): (Vec<&str>, Vec<i64>) = keys.unzip();
    let before: Vec<_> = draft.steps.iter().map(|(before, _)| before.as_ref().map(item::to_json)).collect();
    let after: Vec<_> = draft.steps.iter().map(|(_, after)| after.as_ref().map(item::to_json)).collect();
    let sql = "INSERT INTO change_step (graph, change, position, kind, id, before, after) \
               SELECT $1, $2, step.position, step.kind, step.id, step.before, step.after \
               FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[]) \
               WITH ORDINALITY AS step (kind, id, before, after, position)";
    execute(tx, sql, &[&graph, &change.0, &kinds, &ids, &before, &after]).await?;
    Ok(())
}

pub(super) async fn save_entities(tx: &Transaction<'_>, graph: i64, entities: &[&Entity]) -> Result<(), DatabaseError> {
    if entities.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = entities.iter().map(|entity| entity.id.0).collect();
    let names: Vec<_> = entities.iter().map(|entity| escape(&entity.name)).collect();
    let keys: Vec<_> = entities.iter().map(|entity| escape(&name_key(&entity.name)).into_owned()).collect();
    let types: Vec<_> = entities.iter().map(|entity| escape(&entity.entity_type)).collect();
    let descriptions: Vec<_> = entities.iter().map(|entity| entity.description.as_deref().map(escape)).collect();
    let created: Vec<i64> = entities.iter().map(|entity| entity.created_ns).collect();
    let updated: Vec<i64> = entities.iter().map(|entity| entity.updated_ns).collect();
    let sql = "INSERT INTO entity (graph, id, name, name_key, type, description, created_ns, updated_ns) \
               SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], \
               $8::bigint[]) ON CONFLICT (graph, id) DO UPDATE SET (name, name_key, type, description, created_ns, \
               updated_ns) = ROW (excluded.name, excluded.name_key, excluded.type, excluded.description, \
               excluded.created_ns, excluded.updated_ns)";
    execute(tx, sql, &[&graph, &ids, &names, &keys, &types, &descriptions, &created, &updated]).await?;
    execute(tx, "DELETE FROM alias WHERE graph = $1 AND entity = ANY ($2)", &[&graph, &ids]).await?;
    save_aliases(tx, graph, entities).await
}

async fn save_aliases(tx: &Transaction<'_>, graph: i64, entities: &[&Entity]) -> Result<(), DatabaseError> {
    let (mut ids, mut positions, mut aliases, mut keys) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entity in entities {
        for (position, alias) in (0_i32..).zip(&entity.aliases) {
            ids.push(entity.id.0);
            positions.push(position);
            aliases.push(escape(alias));
            keys.push(escape(&name_key(alias)).into_owned());
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO alias (graph, entity, position, alias, alias_key) \
               SELECT $1, * FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[])";
    execute(tx, sql, &[&graph, &ids, &positions, &aliases, &keys]).await?;
    Ok(())
}

pub(super) async fn save_observations(
    tx: &Transaction<'_>,
    graph: i64,
    observations: &[&Observation],
) -> Result<(), DatabaseError> {
    if observations.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = observations.iter().map(|seen| seen.id.0).collect();
    let entities: Vec<i64> = observations.iter().map(|seen| seen.entity.0).collect();
    let texts: Vec<_> = observations.iter().map(|seen| escape(&seen.text)).collect();
    let created: Vec<i64> = observations.iter().map(|seen| seen.created_ns).collect();
    let updated: Vec<i64> = observations.iter().map(|seen| seen.updated_ns).collect();
    let sql = "INSERT INTO observation (graph, id, entity, text, created_ns, updated_ns) \
               SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[]) \
               ON CONFLICT (graph, id) DO UPDATE SET (entity, text, created_ns, updated_ns) = \
               ROW (excluded.entity, excluded.text, excluded.created_ns, excluded.updated_ns)";
    execute(tx, sql, &[&graph, &ids, &entities, &texts, &created, &updated]).await?;
    Ok(())
}

pub(super) async fn save_relations(
    tx: &Transaction<'_>,
    graph: i64,
    relations: &[&Relation],
) -> Result<(), DatabaseError> {
    if relations.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = relations.iter().map(|relation| relation.id.0).collect();
    let sources: Vec<i64> = relations.iter().map(|relation| relation.from.0).collect();
    let targets: Vec<i64> = relations.iter().map(|relation| relation.to.0).collect();
    let types: Vec<_> = relations.iter().map(|relation| escape(&relation.relation_type)).collect();
    let created: Vec<i64> = relations.iter().map(|relation| relation.created_ns).collect();
    let updated: Vec<i64> = relations.iter().map(|relation| relation.updated_ns).collect();
    let sql = "INSERT INTO relation (graph, id, source, target, type, created_ns, updated_ns) SELECT $1, * FROM \
               unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[]) \
               ON CONFLICT (graph, id) DO UPDATE SET (source, target, type, created_ns, updated_ns) = \
               ROW (excluded.source, excluded.target, excluded.type, excluded.created_ns, excluded.updated_ns)";
    execute(tx, sql, &[&graph, &ids, &sources, &targets, &types, &created, &updated]).await?;
    Ok(())
}

async fn save_contexts(
    tx: &Transaction<'_>,
    graph: i64,
    change: ChangeNumber,
    draft: &Draft,
) -> Result<(), DatabaseError> {
    for (client, replaced) in &draft.replaced_contexts {
        let client = escape(client);
        let (before, after) = (replaced.before.map(|id| id.0), replaced.after.map(|id| id.0));
        let record = "INSERT INTO change_context (graph, change, client, before, after, set_ns) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        execute(tx, record, &[&graph, &change.0, &client, &before, &after, &replaced.set_ns]).await?;
        super::contexts::put(tx, graph, &client, after, replaced.set_ns).await?;
    }
    Ok(())
}
