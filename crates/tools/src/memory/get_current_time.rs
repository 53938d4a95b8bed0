//! `get_current_time`: the current time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// ISO 8601, UTC.
    timestamp: String,
}

pub(crate) struct GetCurrentTime;

impl Tool for GetCurrentTime {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_current_time";
    const DESCRIPTION: &'static str = "Get the current time, to date what you record.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = false;

    fn call(call: &Call<'_>, _params: Params) -> Result<Output, ToolError> {
        Ok(Output { timestamp: iso_utc(call.knowledge.now_ns()) })
    }
}
