//! `node_history`: the versions of a note.

use quipu_core::notes::NoteVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::no_such_note;
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of a note, even a deleted one.
    #[schemars(length(min = 1))]
    id: String,
    /// Maximum versions.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
}

fn default_limit() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    versions: Vec<Version>,
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

#[derive(Serialize, JsonSchema)]
struct Version {
    version: String,
    at: String,
    by: String,
    action: &'static str,
    chars: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// False when the text is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<bool>,
}

impl From<NoteVersion> for Version {
    fn from(version: NoteVersion) -> Self {
        Self {
            version: version.hash.to_string(),
            at: iso_utc(version.at_ns),
            by: version.by,
            action: version.action.name(),
            chars: version.chars,
            change: version.change.map(|number| format!("n{}", number.0)),
            kept: (!version.is_kept).then_some(false),
        }
    }
}

pub(crate) struct NodeHistory;

impl Tool for NodeHistory {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "node_history";
    const DESCRIPTION: &'static str = "List the versions of a note, newest first: who made each, when and how. \
        \"outside\" is another program, such as git. diff_node compares versions; revert_node goes back.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let found = call.knowledge.note_versions(call.session, &params.id)?;
        let found = found.ok_or_else(|| no_such_note(call, &params.id))?;
        // Warns if other notes match too.
        call.find(&call.knowledge.snapshot(), &params.id);
        let total = Some(found.versions.len()).filter(|total| *total > params.limit);
        let versions = found.versions.into_iter().take(params.limit).map(Version::from).collect();
        Ok(Output { id: found.id.to_string(), versions, total, deleted: !found.exists })
    }
}
