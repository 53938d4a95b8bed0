//! The message for a name that no note has, with similar names.

use quipu_core::index::{Snapshot, near_names};
use quipu_core::model::Note;
use quipu_core::notes::NoteError;
use quipu_core::quoted;

use crate::tool::Call;
use crate::tool_error::ToolError;

/// Similar names in a message.
const MAX_NEAR: usize = 3;

/// The sentence, the given name and up to three similar ones; `name` is how the toolset identifies a note.
pub(crate) fn not_found(snapshot: &Snapshot, sentence: &str, given: &str, name: impl Fn(&Note) -> &str) -> String {
    format!("{sentence} {}{}", quoted(given), near_hint(snapshot, given, name))
}

/// The end of such a message: up to three similar names, or nothing.
pub(crate) fn near_hint(snapshot: &Snapshot, given: &str, name: impl Fn(&Note) -> &str) -> String {
    let near = near_names(snapshot, given, MAX_NEAR).into_iter().map(|key| quoted(name(snapshot.note(key))));
    let near: Vec<String> = near.collect();
    if near.is_empty() { String::new() } else { format!("; near names: {}", near.join(", ")) }
}

/// The message that no note has this id, with near names.
pub(crate) fn node_not_found(snapshot: &Snapshot, id: &str) -> String {
    not_found(snapshot, "no note has the id", id, |note| note.id.as_str())
}

/// The error of a write; of one whose note does not exist, with near names.
pub(crate) fn write_error(call: &Call<'_>, id: &str, error: NoteError) -> ToolError {
    let is_missing = matches!(error, NoteError::NotFound { .. });
    let mut error = ToolError::from(error);
    if is_missing {
        error.message += &near_hint(&call.knowledge.snapshot(), id, |note| note.path.as_str());
    }
    error
}
