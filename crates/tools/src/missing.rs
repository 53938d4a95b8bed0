//! The message for a name that no note has, with similar names.

use quipu_core::index::{Snapshot, near_names};
use quipu_core::model::Note;
use quipu_core::quoted;

/// Similar names in a message.
const MAX_NEAR: usize = 3;

/// The sentence, the given name and up to three similar ones; `name` is how the toolset identifies a note.
pub(crate) fn missing(snapshot: &Snapshot, sentence: &str, given: &str, name: impl Fn(&Note) -> &str) -> String {
    format!("{sentence} {}{}", quoted(given), near_hint(snapshot, given, name))
}

/// The end of such a message: up to three similar names, or nothing.
pub(crate) fn near_hint(snapshot: &Snapshot, given: &str, name: impl Fn(&Note) -> &str) -> String {
    let near = near_names(snapshot, given, MAX_NEAR).into_iter().map(|key| quoted(name(snapshot.note(key))));
    let near: Vec<String> = near.collect();
    if near.is_empty() { String::new() } else { format!("; near names: {}", near.join(", ")) }
}

/// The same for an id.
pub(crate) fn missing_node(snapshot: &Snapshot, id: &str) -> String {
    missing(snapshot, "no note has the id", id, |note| note.id.as_str())
}
