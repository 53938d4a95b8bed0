//! `quipu merge`: merges one entity into another.

use clap::Args;
use quipu_core::Session;
use quipu_core::memory::{Entity, EntityId, Memory, MemoryError, name_key};
use serde_json::{Value, json};

use super::database::GraphOption;
use super::output::{Line, Output, counted};
use super::{CLIENT, Failure, Outcome, Shared};
use crate::compose::OpenMode;

/// Merge a duplicate entity into another.
///
/// Deletes the first entity and moves its observations and relations to the second; duplicates are deleted. Its
/// name and aliases become aliases of the second. Its description is used if the second has none, and otherwise becomes an
/// observation. Clients that have the first as their context get the second. The merge is one change in the log, which
/// `quipu undo` reverts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu merge 118 12                          merge entity 118 into entity 12
  quipu merge \"Auth svc\" \"Auth service\"      merge entities by name
  quipu merge 118 12 --dry-run                show what would change

JSON fields:
  {dry_run, change, from: {entity_id, name, entity_type},
   into: {entity_id, name, entity_type, aliases, description},
   observations, observations_dropped, relations, relations_dropped, description_observed}
  change is null for a dry run; description_observed is the description that becomes an
  observation, or null

`quipu call suggest_merges` lists pairs of entities that may be duplicates.")]
pub(crate) struct Merge {
    /// Id or name of the entity to merge, which is deleted.
    from: String,
    /// Id or name of the entity that stays.
    into: String,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Merge {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = self.graph.memory(shared, OpenMode::Existing)?;
        let memory = &open.memory;
        let (from, into) = (find(memory, &self.from)?, find(memory, &self.into)?);
        let plan = memory.plan_merge(from, into).map_err(failure)?;
        let change = if self.dry_run {
            None
        } else {
            let author = memory.author(&Session::named(CLIENT), "merge", None);
            Some(memory.merge_entities(from, into, &author).map_err(failure)?.change)
        };
        let (from, into) = (&plan.from, &plan.into);
        if self.json {
            output.json(&json!({
                "dry_run": self.dry_run,
                "change": change.map(|change| change.0),
                "from": named(from),
                "into": {
                    "entity_id": into.id.0, "name": into.name, "entity_type": into.entity_type,
                    "aliases": into.aliases, "description": into.description,
                },
                "observations": plan.observations,
                "observations_dropped": plan.observations_dropped,
                "relations": plan.relations,
                "relations_dropped": plan.relations_dropped,
                "description_observed": plan.description_observed,
            }))?;
            return Ok(Outcome::Fine);
        }
        let (merged, moved) = if self.dry_run { ("would merge", "would move") } else { ("merged", "moved") };
        let line = format!("{merged} entity {} ({}) into entity {} ({})", from.id, from.name, into.id, into.name);
        output.line(&Line::new().plain(line))?;
        output.line(&Line::new().plain(format!("    aliases: {}", into.aliases.join(", "))))?;
        let observations = counted(plan.observations, "observation", "observations");
        let relations = counted(plan.relations, "relation", "relations");
        let mut moved = format!("    {moved} {observations} and {relations}");
        let dropped = [
            (plan.observations_dropped, "duplicate observation", "duplicate observations"),
            (plan.relations_dropped, "duplicate relation", "duplicate relations"),
        ];
        let dropped = dropped.into_iter().filter(|(count, ..)| *count > 0);
        let dropped: Vec<String> = dropped.map(|(count, one, many)| counted(count, one, many)).collect();
        if !dropped.is_empty() {
            moved.push_str(&format!(", without {}", dropped.join(" and ")));
        }
        output.line(&Line::new().plain(moved))?;
        if let Some(description) = &plan.description_observed {
            let verb = if self.dry_run { "would become" } else { "became" };
            output.line(&Line::new().plain(format!("    its description {verb} an observation: {description}")))?;
        }
        if let Some(change) = change {
            output.aside(&Line::new().dim(format!("`quipu undo {}` reverts it", change.0)));
        }
        Ok(Outcome::Fine)
    }
}

fn find(memory: &Memory, given: &str) -> Result<EntityId, Failure> {
    find_entity(memory, given)?.ok_or_else(|| {
        let hint = "`quipu call search_entities '{\"query\": \"…\"}'` finds its id";
        Failure::failed(format!("unknown entity {given:?}")).hint(hint)
    })
}

/// The entity with an id, or with a name in any case.
pub(super) fn find_entity(memory: &Memory, given: &str) -> Result<Option<EntityId>, Failure> {
    if let Ok(number) = given.parse()
        && memory.store().entities(&[EntityId(number)])?.pop().flatten().is_some()
    {
        return Ok(Some(EntityId(number)));
    }
    let key = name_key(given);
    let called = memory.store().entities_called(std::slice::from_ref(&key))?.pop().unwrap_or_default();
    let entities = memory.store().entities(&called)?;
    let found = entities.into_iter().flatten().find(|entity| name_key(&entity.name) == key);
    Ok(found.map(|entity| entity.id))
}

fn named(entity: &Entity) -> Value {
    json!({ "entity_id": entity.id.0, "name": entity.name, "entity_type": entity.entity_type })
}

fn failure(error: MemoryError) -> Failure {
    match error {
        MemoryError::Failed(failure) => failure.into(),
        error => Failure::failed(error.to_string()),
    }
}
