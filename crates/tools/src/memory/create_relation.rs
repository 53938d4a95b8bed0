//! `create_relation`: relates two entities.

use quipu_core::memory::{EntityId, limits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::wire::RelationOutput;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Source entity.
    from_entity_id: i64,
    /// Target entity.
    to_entity_id: i64,
    /// Such as part_of, depends_on, implements.
    #[schemars(length(min = 1, max = limits::TYPE))]
    relation_type: String,
}

pub(crate) struct CreateRelation;

impl Tool for CreateRelation {
    type Params = Params;
    type Output = RelationOutput;

    const NAME: &'static str = "create_relation";
    const DESCRIPTION: &'static str = "Relate two entities; part_of adds an entity to a project.";
    const ACCESS: Access = Access::Write;

    fn call(call: &Call<'_>, params: Params) -> Result<RelationOutput, ToolError> {
        let (from, to) = (EntityId(params.from_entity_id), EntityId(params.to_entity_id));
        let author = call.author(Self::NAME)?;
        let relation = call.memory()?.create_relation(from, to, &params.relation_type, &author)?;
        RelationOutput::named(call.memory()?, relation)
    }
}
