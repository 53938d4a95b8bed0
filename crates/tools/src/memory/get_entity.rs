//! `get_entity`: one entity with its observations, relations and linked notes.

use quipu_core::memory::{DetailPart, EntityDetail, EntityId, Observation, Relation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::room::{OBSERVATIONS, cost, newest_that_fit};
use super::wire::{EntityOutput, NamesById, names_of_ends, warn_of_contradictions};
use crate::answer_size::{LIST_ROOM, fitting, json_chars};
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{cut_name, truncate};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entity id.
    entity_id: i64,
    /// Maximum of each list: newest observations, oldest relations.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// Observations to skip.
    #[serde(default)]
    observations_offset: u64,
    /// Relations to skip, in each direction.
    #[serde(default)]
    relations_offset: u64,
}

const DEFAULT_LIMIT: usize = 100;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    entity: EntityOutput,
    /// Oldest first.
    observations: Vec<Seen>,
    /// Including those that are not shown.
    observations_total: u64,
    /// This entity is the source.
    relations_from: Vec<RelationFrom>,
    /// This entity is the target.
    relations_to: Vec<RelationTo>,
    /// Notes that the description and the shown observations link to; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<LinkedNote>,
}

#[derive(Serialize, JsonSchema)]
struct LinkedNote {
    id: String,
    title: String,
    /// The link as written, also after the note was renamed.
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
    to_entity_name: String,
    relation_type: String,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
struct RelationTo {
    relation_id: i64,
    from_entity_id: i64,
    from_entity_name: String,
    relation_type: String,
    created_at: String,
    updated_at: String,
}

pub(crate) struct GetEntity;

impl Tool for GetEntity {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_entity";
    const DESCRIPTION: &'static str =
        "Read one entity with its observations and relations. To find its id use search_entities.";
    const ACCESS: Access = Access::Read;
    const NEEDS_INDEX: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let memory = call.memory()?;
        let part = DetailPart {
            observations_offset: params.observations_offset,
            relations_offset: params.relations_offset,
            limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        };
        let mut detail = memory.entity_detail(EntityId(params.entity_id), part)?;
        let names = names_of_ends(memory, detail.relations_from.iter().chain(&detail.relations_to))?;
        let entity = EntityOutput::from(detail.entity.clone());
        let from = detail.relations_from.drain(..).map(|relation| RelationFrom::of(relation, &names));
        let mut relations_from: Vec<RelationFrom> = from.collect();
        let to = detail.relations_to.drain(..).map(|relation| RelationTo::of(relation, &names));
        let mut relations_to: Vec<RelationTo> = to.collect();
        let mut room = OBSERVATIONS;
        if params.limit.is_none() {
            // Observations matter most, so relations get at most a third of the space.
            let whole = LIST_ROOM.saturating_sub(json_chars(&entity));
            let count = relations_from.len() + relations_to.len();
            relations_from.truncate(fitting(&relations_from, whole / 6));
            relations_to.truncate(fitting(&relations_to, whole / 6));
            detail.has_more_relations |= relations_from.len() + relations_to.len() < count;
            room = whole.saturating_sub(json_chars(&relations_from) + json_chars(&relations_to));
        }
        let costs: Vec<usize> = detail.observations.iter().map(|seen| cost(&seen.text)).collect();
        let shown = newest_that_fit(&costs, room);
        detail.observations.drain(..detail.observations.len() - shown);
        let notes = linked_notes(call, &detail)?;
        warn_of_rest(call, &detail, &params, room);
        if detail.entity.observation_count == detail.observations.len() as u64 {
            warn_of_contradictions(call, &detail.observations, |_| true);
        } else {
            warn_of_contradictions(call, &memory.observations_of(detail.entity.id)?, |_| true);
        }
        if detail.has_more_relations {
            let (from, to) = (relations_from.len(), relations_to.len());
            call.warn(format!(
                "entity {} has more relations than the {from} from it and {to} to it that are shown; pass `limit` and \
                 `relations_offset` for the others",
                detail.entity.id
            ));
        }
        Ok(Output {
            notes,
            observations: detail.observations.iter().map(|observation| Seen::of(observation, room)).collect(),
            observations_total: detail.entity.observation_count,
            relations_from,
            relations_to,
            entity,
        })
    }
}

impl Seen {
    fn of(observation: &Observation, max_chars: usize) -> Self {
        Self {
            observation_id: observation.id.0,
            observation_content: truncate(&observation.text, max_chars),
            created_at: iso_utc(observation.created_ns),
            updated_at: iso_utc(observation.updated_ns),
        }
    }
}

impl RelationFrom {
    fn of(relation: Relation, names: &NamesById) -> Self {
        Self {
            relation_id: relation.id.0,
            to_entity_id: relation.to.0,
            to_entity_name: names.of(relation.to),
            relation_type: relation.relation_type,
            created_at: iso_utc(relation.created_ns),
            updated_at: iso_utc(relation.updated_ns),
        }
    }
}

impl RelationTo {
    fn of(relation: Relation, names: &NamesById) -> Self {
        Self {
            relation_id: relation.id.0,
            from_entity_id: relation.from.0,
            from_entity_name: names.of(relation.from),
            relation_type: relation.relation_type,
            created_at: iso_utc(relation.created_ns),
            updated_at: iso_utc(relation.updated_ns),
        }
    }
}

/// Warns of observations that are left out or cut, and says how to get them.
fn warn_of_rest(call: &Call<'_>, detail: &EntityDetail, params: &Params, max_chars: usize) {
    let EntityDetail { entity, observations, .. } = detail;
    let shown = observations.len() as u64;
    let older = entity.observation_count.saturating_sub(params.observations_offset).saturating_sub(shown);
    if older > 0 {
        let (count, next) = (entity.observation_count, params.observations_offset + shown);
        call.warn(format!(
            "entity {} has {count} observations, of which {shown} are shown; the {older} older ones follow at \
             `observations_offset` {next}",
            entity.id
        ));
    }
    // Only an observation longer than the whole space is cut, and then it is the only one.
    if let Some(cut) = observations.iter().find(|seen| seen.text.chars().nth(max_chars).is_some()) {
        let way = match params.limit {
            None => format!("`limit` 1 and `observations_offset` {} return all of it", params.observations_offset),
            Some(_) => "`quipu export` writes all of it".to_owned(),
        };
        call.warn(format!("observation {} is cut; {way}", cut.id));
    }
}

fn linked_notes(call: &Call<'_>, detail: &EntityDetail) -> Result<Vec<LinkedNote>, ToolError> {
    let Some(linked_notes) = call.knowledge.linked_notes(detail)? else { return Ok(Vec::new()) };
    let shown = |(key, link)| {
        let note = linked_notes.snapshot.note(key);
        LinkedNote { id: note.id.to_string(), title: cut_name(&note.title), link }
    };
    Ok(linked_notes.notes.into_iter().map(shown).collect())
}
