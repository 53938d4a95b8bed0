//! `get_context`: the current project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// context_active or no_context.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_type: Option<String>,
    /// Absent if the project has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(crate) struct GetContext;

impl Tool for GetContext {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_context";
    const DESCRIPTION: &'static str = "Get the project you work in, if any. It is set with set_context.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, _params: Params) -> Result<Output, ToolError> {
        Ok(match call.memory()?.context(call.session)? {
            Some(project) => Output {
                status: "context_active",
                project_id: Some(project.id.0),
                project_name: Some(project.name),
                project_type: Some(project.entity_type),
                description: project.description,
            },
            None => Output {
                status: "no_context",
                project_id: None,
                project_name: None,
                project_type: None,
                description: None,
            },
        })
    }
}
