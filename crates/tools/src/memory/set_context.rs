//! `set_context`: sets the current project.

use quipu_core::memory::EntityId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entity id of the project.
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
    const DESCRIPTION: &'static str = "Set the project you work in: it and entities that are part_of it rank first in \
        your searches, in later sessions too. clear_context clears it.";
    const ACCESS: Access = Access::Write;
    const IDEMPOTENT: bool = true;

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
