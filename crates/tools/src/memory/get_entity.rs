//! One entity with all that is known of it.

use quipu_core::memory::{EntityId, Memory, Observation, Relation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::EntityOutput;
use crate::fault::Fault;
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Number of the entity.
    entity_id: i64,
    /// Leave out this many of each list first, when there are more than 1000.
    #[serde(default)]
    offset: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    entity: EntityOutput,
    observations: Vec<Seen>,
    /// This entity is the source.
    relations_from: Vec<RelationFrom>,
    /// This entity is the target.
    relations_to: Vec<RelationTo>,
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
        let memory = call.memory();
        let detail = memory.entity_detail(EntityId(params.entity_id), params.offset)?;
        let full = |length: usize| length == Memory::MAX_DETAIL;
        if full(detail.observations.len()) || full(detail.relations_from.len()) || full(detail.relations_to.len()) {
            let next = params.offset + Memory::MAX_DETAIL as u64;
            call.warn(format!("lists end at {}; the rest comes with offset {next}", Memory::MAX_DETAIL));
        }
        let seen = |observation: Observation| Seen {
            observation_id: observation.id.0,
            observation_content: observation.text,
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
        Ok(Output {
            observations: detail.observations.into_iter().map(seen).collect(),
            relations_from: detail.relations_from.into_iter().map(from).collect(),
            relations_to: detail.relations_to.into_iter().map(to).collect(),
            entity: detail.entity.into(),
        })
    }
}
