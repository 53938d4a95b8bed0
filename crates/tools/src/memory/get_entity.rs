//! One entity with all that is known of it.

use std::time::Duration;

use quipu_core::memory::{EntityDetail, EntityId, Observation, Relation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::room::{OBSERVATIONS, ONE_OBSERVATION, cost, newest_that_fit};
use super::wire::EntityOutput;
use crate::fault::Fault;
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::truncate::truncate;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Number of the entity.
    entity_id: i64,
    /// At most this many of each list: the newest observations, the oldest relations.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Leave out this many of each list first; a warning says which comes next.
    #[serde(default)]
    offset: u64,
}

/// Of short observations about as many as there is room for.
fn default_limit() -> usize {
    400
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    entity: EntityOutput,
    /// Oldest first.
    observations: Vec<Seen>,
    /// This entity is the source.
    relations_from: Vec<RelationFrom>,
    /// This entity is the target.
    relations_to: Vec<RelationTo>,
    /// Notes that the description and the observations shown link to; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<LinkedNote>,
}

#[derive(Serialize, JsonSchema)]
struct LinkedNote {
    id: String,
    title: String,
    /// As written between the brackets; a renamed note keeps it.
    link: String,
}

#[derive(Serialize, JsonSchema)]
struct Seen {
    observation_id: i64,
    observation_content: String,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
struct RelationFrom {
    relation_id: i64,
    to_entity_id: i64,
    relation_type: String,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
struct RelationTo {
    relation_id: i64,
    from_entity_id: i64,
    relation_type: String,
    created_at: String,
    updated_at: String,
}

pub(crate) struct GetEntity;

impl Tool for GetEntity {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_entity";
    const DESCRIPTION: &'static str = "One entity by its number, with its observations and its relations in both directions. To find the number use \
        search_entities.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        let memory = call.memory()?;
        let mut detail = memory.entity_detail(EntityId(params.entity_id), params.offset, params.limit)?;
        let costs: Vec<usize> = detail.observations.iter().map(|seen| cost(&seen.text)).collect();
        let shown = newest_that_fit(&costs, OBSERVATIONS);
        detail.observations.drain(..detail.observations.len() - shown);
        tell_rest(call, &detail, &params);
        let seen = |observation: Observation| Seen {
            observation_id: observation.id.0,
            observation_content: truncate(&observation.text, ONE_OBSERVATION),
            created_at: iso_utc(observation.created_ns),
            updated_at: iso_utc(observation.updated_ns),
        };
        let from = |relation: Relation| RelationFrom {
            relation_id: relation.id.0,
            to_entity_id: relation.to.0,
            relation_type: relation.relation_type,
            created_at: iso_utc(relation.created_ns),
            updated_at: iso_utc(relation.updated_ns),
        };
        let to = |relation: Relation| RelationTo {
            relation_id: relation.id.0,
            from_entity_id: relation.from.0,
            relation_type: relation.relation_type,
            created_at: iso_utc(relation.created_ns),
            updated_at: iso_utc(relation.updated_ns),
        };
        let notes = linked_notes(call, &detail)?;
        Ok(Output {
            notes,
            observations: detail.observations.into_iter().map(seen).collect(),
            relations_from: detail.relations_from.into_iter().map(from).collect(),
            relations_to: detail.relations_to.into_iter().map(to).collect(),
            entity: detail.entity.into(),
        })
    }
}

/// Says what is not shown, and how to have it.
fn tell_rest(call: &Call<'_>, detail: &EntityDetail, params: &Params) {
    let EntityDetail { entity, observations, .. } = detail;
    let shown = observations.len() as u64;
    let older = entity.observation_count.saturating_sub(params.offset).saturating_sub(shown);
    if older > 0 {
        let (count, next) = (entity.observation_count, params.offset + shown);
        call.warn(format!(
            "entity {} has {count} observations, of which {shown} are shown; the {older} older ones follow with offset \
             {next}, and search_subgraph finds those on a subject",
            entity.id
        ));
    }
    let is_cut = |seen: &&Observation| seen.text.chars().nth(ONE_OBSERVATION).is_some();
    let cut: Vec<String> = observations.iter().filter(is_cut).map(|seen| seen.id.0.to_string()).collect();
    if !cut.is_empty() {
        let cut = cut.join(", ");
        call.warn(format!("observation {cut} is cut at {ONE_OBSERVATION} characters; `quipu export` has all of it"));
    }
    if detail.has_more_relations {
        call.warn(format!(
            "entity {} has more than {} relations one way; find_relations lists them all in parts",
            entity.id, params.limit
        ));
    }
}

fn linked_notes(call: &Call<'_>, detail: &EntityDetail) -> Result<Vec<LinkedNote>, Fault> {
    let Some(spoken_of) = call.knowledge.spoken_of(detail)? else { return Ok(Vec::new()) };
    if !call.knowledge.wait_ready(Duration::ZERO) {
        call.warn("the vault is still being indexed: `notes` may miss some; ask again later".to_owned());
    }
    let shown = |(key, link)| {
        let note = spoken_of.snapshot.note(key);
        LinkedNote { id: note.id.to_string(), title: note.title.clone(), link }
    };
    Ok(spoken_of.notes.into_iter().map(shown).collect())
}
