//! What is said of a name that no note has: that it is missing, and which notes have a name like it.

use quipu_core::index::{Snapshot, near_names};
use quipu_core::model::Note;
use quipu_core::quoted;

/// Near names that are given.
const MAX_NEAR: usize = 3;

/// That nothing is called so, with up to three near names: `name` says how a note is asked for.
pub(crate) fn missing(snapshot: &Snapshot, sentence: &str, given: &str, name: impl Fn(&Note) -> &str) -> String {
    let near = near_names(snapshot, given, MAX_NEAR).into_iter().map(|key| quoted(name(snapshot.note(key))));
    let near: Vec<String> = near.collect();
    let hint = if near.is_empty() { String::new() } else { format!("; near names: {}", near.join(", ")) };
    format!("{sentence} {}{hint}", quoted(given))
}

/// The same for a note that is asked for by its id.
pub(crate) fn missing_node(snapshot: &Snapshot, id: &str) -> String {
    missing(snapshot, "no note has the id", id, |note| note.id.as_str())
}
