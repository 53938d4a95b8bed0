//! `quipu merge`: makes one entity of two.

use clap::Args;
use quipu_core::Session;
use quipu_core::memory::{Entity, EntityId, Memory, MemoryError, name_key};
use serde_json::{Value, json};

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{CLIENT, Failure, Outcome, Shared};
use crate::compose::OpenMode;

/// Merge two entities that are the same thing.
///
/// The first becomes part of the second: its name and aliases become aliases, its description is kept where there was none and
/// becomes an observation where there is another, its observations and relations move. Relations that would say nothing new
/// go. Clients whose context it was have the second for it. One change in the log, which `quipu undo` takes back.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu merge 118 12                          entity 118 becomes part of entity 12
  quipu merge \"Auth svc\" \"Auth service\"      the same by their names
  quipu merge 118 12 --dry-run                only say what would happen

JSON fields:
  {dry_run, change, from: {entity_id, name, entity_type}, into: {entity_id, name, entity_type, aliases, description},
   observations, relations, relations_dropped, description_observed}; change is null for a dry run, and
   description_observed is the description that becomes an observation, or null

`quipu call suggest_merges` lists pairs that may be the same.")]
pub(crate) struct Merge {
    /// Number or name of the entity to merge, which is deleted.
    from: String,
    /// Number or name of the entity that stays.
    into: String,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Merge {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = VaultLocation::find(None, shared)?.memory(OpenMode::Existing)?;
        let memory = &open.memory;
        let (from, into) = (find(memory, &self.from)?, find(memory, &self.into)?);
        let plan = memory.plan_merge(from, into).map_err(failure)?;
        let change = if self.dry_run {
            None
        } else {
            let author = memory.author(&Session::named(CLIENT), "merge", None);
            Some(memory.merge_entities(from, into, &author).map_err(failure)?.1)
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
                "relations": plan.relations,
                "relations_dropped": plan.relations_dropped,
                "description_observed": into.observing_of(from),
            }))?;
            return Ok(Outcome::Fine);
        }
        let verb = if self.dry_run { "would become" } else { "is now" };
        let line = format!("entity {} ({}) {verb} part of entity {} ({})", from.id, from.name, into.id, into.name);
        output.line(&Line::new().plain(line))?;
        output.line(&Line::new().plain(format!("    aliases: {}", into.aliases.join(", "))))?;
        let (observations, relations) = (plan.observations, plan.relations);
        let mut moved = format!("    {observations} observations and {relations} relations with it");
        if plan.relations_dropped > 0 {
            moved.push_str(&format!("; {} more go, which say nothing new", plan.relations_dropped));
        }
        output.line(&Line::new().plain(moved))?;
        if let Some(description) = into.observing_of(from) {
            let verb = if self.dry_run { "would become" } else { "is now" };
            output.line(&Line::new().plain(format!("    its description {verb} an observation: {description}")))?;
        }
        if let Some(change) = change {
            output.aside(&Line::new().dim(format!("`quipu undo {}` takes it back", change.0)));
        }
        Ok(Outcome::Fine)
    }
}

/// The entity of a number, or of a name in any case.
fn find(memory: &Memory, given: &str) -> Result<EntityId, Failure> {
    if let Ok(number) = given.parse()
        && memory.store().entities(&[EntityId(number)])?.pop().flatten().is_some()
    {
        return Ok(EntityId(number));
    }
    let key = name_key(given);
    let called = memory.store().entities_called(std::slice::from_ref(&key))?.pop().unwrap_or_default();
    let entities = memory.store().entities(&called)?;
    let found = entities.into_iter().flatten().find(|entity| name_key(&entity.name) == key);
    let missing = || {
        let hint = "`quipu call search_entities '{\"query\": \"…\"}'` finds its number";
        Failure::failed(format!("there is no entity {given:?}")).hint(hint)
    };
    found.map(|entity| entity.id).ok_or_else(missing)
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
