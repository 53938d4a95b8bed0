//! The toolset `work`: daily work on notes, in small steps: edit a part, move, query, see what changed and go back.

pub(crate) mod diff_node;
pub(crate) mod edit_node;
pub(crate) mod extract_entities;
pub(crate) mod move_node;
pub(crate) mod node_history;
pub(crate) mod query_nodes;
pub(crate) mod recent_changes;
pub(crate) mod revert_node;
pub(crate) mod suggest_tags;
pub(crate) mod summarize_node;

use crate::missing::missing_node;
use crate::tool::Call;
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::echoed;

/// The error for an id that no note has, with near names.
fn no_such_note(call: &Call<'_>, id: &str) -> ToolError {
    ToolError::new(ToolErrorKind::NotFound, missing_node(&call.knowledge.snapshot(), &echoed(id)))
}
