//! `clear_context`: ends the project context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// context_cleared.
    status: &'static str,
}

pub(crate) struct ClearContext;

impl Tool for ClearContext {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "clear_context";
    const DESCRIPTION: &'static str = "Clear the project context; searches no longer rank its members first.";
    const ACCESS: Access = Access::Write;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, _params: Params) -> Result<Output, ToolError> {
        call.memory()?.clear_context(call.session)?;
        Ok(Output { status: "context_cleared" })
    }
}
