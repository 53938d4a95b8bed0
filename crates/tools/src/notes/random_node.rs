//! Any note, for the pleasure of finding it.

use std::hash::{BuildHasher, RandomState};

use quipu_core::index::TagMode;
use quipu_core::model::NoteKey;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only notes with one of these tags.
    #[schemars(length(max = 1000))]
    tags: Option<Vec<String>>,
}

pub(crate) struct RandomNode;

impl Tool for RandomNode {
    type Params = Params;
    type Output = Option<Node>;

    const NAME: &'static str = "random_node";
    const DESCRIPTION: &'static str = "Read a note picked at random, every one as likely; null if there is none. Use it \
        for inspiration or spaced review, not to answer a question.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Node>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let keys: Vec<NoteKey> = match params.tags.unwrap_or_default().as_slice() {
            [] => snapshot.files().collect(),
            tags => snapshot.tagged(tags, TagMode::Any),
        };
        let Some(key) = pick(&keys) else { return Ok(None) };
        // A file that vanished a moment ago is the only way to find none.
        let read = call.knowledge.read(call.session, snapshot.note(*key).path.as_str())?;
        Ok(read.map(|read| Node::single(call, &read)))
    }
}

/// Each item with the same chance. The standard library seeds every hasher anew: all the chance we need, and no crate.
fn pick<T>(items: &[T]) -> Option<&T> {
    let random = u128::from(RandomState::new().hash_one(()));
    let place = (random * items.len() as u128) >> 64;
    items.get(usize::try_from(place).ok()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::testing::{Desk, check};

    #[test]
    fn every_note_as_often_as_any_other() {
        let mut counts = BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(*pick(&[1, 2, 3]).unwrap()).or_insert(0) += 1;
        }
        // Six standard deviations: 2000 ± 219.
        assert!(counts.values().all(|count| (1780..2220).contains(count)), "{counts:?}");
        assert_eq!(pick::<u8>(&[]), None);
    }

    #[test]
    fn a_whole_node_among_those_with_a_tag() {
        let vault = "//- a.md\n#idea Fly.\n//- b.md\nNo idea.\n";
        let node = json!({
            "id": "a.md", "title": "A", "content": "#idea Fly.\n", "tags": ["idea"], "links": [], "properties": {}
        });
        check(vault, "random_node", json!({"tags": ["idea"]}), node);
    }

    #[test]
    fn nothing_to_pick_from_is_null() {
        check("", "random_node", json!({}), json!(null));
        check("//- a.md\n", "random_node", json!({"tags": ["idea"]}), json!(null));
        assert_eq!(Desk::new("//- a.md\n").call("random_node", json!({"tags": []}))["id"], "a.md");
    }
}
