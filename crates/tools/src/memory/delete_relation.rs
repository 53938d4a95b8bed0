//! `delete_relation`: deletes one relation.

use quipu_core::memory::RelationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::RelationOutput;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Relation id.
    relation_id: i64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    relation: RelationOutput,
    message: String,
}

pub(crate) struct DeleteRelation;

impl Tool for DeleteRelation {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "delete_relation";
    const DESCRIPTION: &'static str = "Delete one relation; its entities stay.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let author = call.author(Self::NAME)?;
        let relation = call.memory()?.delete_relation(RelationId(params.relation_id), &author)?;
        let message = format!("Deleted relation {}.", relation.id);
        Ok(Output { relation: RelationOutput::named(call.memory()?, relation)?, message })
    }
}
