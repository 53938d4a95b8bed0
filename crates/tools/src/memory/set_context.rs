//! The project to work in.

use quipu_core::memory::EntityId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Number of the project entity.
    project_id: i64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// context_set.
    status: &'static str,
    project_id: i64,
    project_name: String,
    project_type: String,
}

pub(crate) struct SetContext;

impl Tool for SetContext {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "set_context";
    const DESCRIPTION: &'static str = "Work in a project: it and whatever is part_of it, directly or not, rank first in your searches. It ends with clear_context. \
        It is remembered for your next session.";
    const ACCESS: Access = Access::Write;
    const IDEMPOTENT: bool = true;
    const SHOWS_NOTES: bool = false;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let project = call.memory()?.set_context(call.session, EntityId(params.project_id))?;
        Ok(Output {
            status: "context_set",
            project_id: project.id.0,
            project_name: project.name,
            project_type: project.entity_type,
        })
    }
}
