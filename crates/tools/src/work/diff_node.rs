//! `diff_node`: what differs between two versions of a note.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::no_such_note;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{ONE_NOTE, truncate};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id.
    #[schemars(length(min = 1))]
    id: String,
    /// Version, as node_history lists it.
    #[schemars(length(min = 1))]
    from: String,
    /// Version to compare with.
    #[serde(default = "default_to")]
    #[schemars(length(min = 1))]
    to: String,
}

fn default_to() -> String {
    "current".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    from: String,
    to: String,
    diff: String,
}

pub(crate) struct DiffNode;

impl Tool for DiffNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "diff_node";
    const DESCRIPTION: &'static str = "Show what changed between two versions of a note, as a unified diff.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let Params { id, from, to } = params;
        let found = call.knowledge.diff_versions(call.session, &id, (&from, &to))?;
        let (note, diff) = found.ok_or_else(|| no_such_note(call, &id))?;
        // Warns if other notes match too.
        call.find(&call.knowledge.snapshot(), &id);
        Ok(Output { id: note.to_string(), from, to, diff: truncate(&diff, ONE_NOTE) })
    }
}
