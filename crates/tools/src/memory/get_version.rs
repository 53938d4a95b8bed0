//! `get_version`: the version of the server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    version: &'static str,
}

pub(crate) struct GetVersion;

impl Tool for GetVersion {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_version";
    const DESCRIPTION: &'static str = "Get the version of this server.";
    const ACCESS: Access = Access::Read;

    fn call(_call: &Call<'_>, _params: Params) -> Result<Output, ToolError> {
        Ok(Output { version: env!("CARGO_PKG_VERSION") })
    }
}
