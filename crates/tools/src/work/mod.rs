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

use quipu_core::model::ContentHash;

use crate::not_found::node_not_found;
use crate::tool::Call;
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::{ONE_NOTE, echoed, kept, truncate};

/// The diff of a write. Where it is cut, a warning says how to read the rest.
fn shown_diff(call: &Call<'_>, diff: &str, (from, to): (ContentHash, ContentHash)) -> String {
    let shown = truncate(diff, ONE_NOTE);
    if shown != diff {
        let (total, next) = (diff.chars().count(), kept(diff, ONE_NOTE).chars().count());
        // A dry run has no second version, and a deleted note no first one.
        let rest = if from == to {
            String::new()
        } else {
            format!("; diff_node with from \"{from}\", to \"{to}\" and `offset` {next} returns the rest")
        };
        call.warn(format!("the diff has {total} characters and is cut{rest}"));
    }
    shown
}

/// The error for an id that no note has, with near names.
fn no_such_note(call: &Call<'_>, id: &str) -> ToolError {
    ToolError::new(ToolErrorKind::NotFound, node_not_found(&call.knowledge.snapshot(), &echoed(id)))
}
