//! `get_subgraph_by_ids`: entities by id and the relations among them.

use quipu_core::memory::EntityId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{GraphEntity, RelationOutput, listed, show_subgraph};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entity ids.
    #[schemars(length(min = 1, max = 100))]
    entity_ids: Vec<i64>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    entities: Vec<GraphEntity>,
    /// Among these entities.
    relations: Vec<RelationOutput>,
}

pub(crate) struct GetSubgraphByIds;

impl Tool for GetSubgraphByIds {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_subgraph_by_ids";
    const DESCRIPTION: &'static str =
        "Read entities by id with their observations and the relations among them. Unknown ids are left out.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let ids: Vec<EntityId> = params.entity_ids.into_iter().map(EntityId).collect();
        let (subgraph, missing) = call.memory()?.subgraph(&ids)?;
        if !missing.is_empty() {
            call.warn(format!("unknown entity ids: {}", listed(&missing)));
        }
        let (entities, relations) = show_subgraph(call, subgraph, &[])?;
        Ok(Output { entities, relations })
    }
}
