//! The project worked in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// context_active or no_context.
    status: &'static str,
    #[serde(flatten)]
    project: Option<Project>,
}

#[derive(Serialize, JsonSchema)]
struct Project {
    project_id: i64,
    project_name: String,
    project_type: String,
    description: Option<String>,
}

pub(crate) struct GetContext;

impl Tool for GetContext {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_context";
    const DESCRIPTION: &'static str = "The project you work in, as set by set_context, or that there is none.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, _params: Params) -> Result<Output, Fault> {
        let context = call.memory().context(call.session)?;
        let project = context.map(|project| Project {
            project_id: project.id.0,
            project_name: project.name,
            project_type: project.entity_type,
            description: project.description,
        });
        Ok(Output { status: if project.is_some() { "context_active" } else { "no_context" }, project })
    }
}
