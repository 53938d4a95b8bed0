//! `random_node`: a random note.

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
    const DESCRIPTION: &'static str = "Read a random note, for inspiration or review; null if there is none.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Node>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let keys: Vec<NoteKey> = match params.tags.unwrap_or_default().as_slice() {
            [] => snapshot.files().collect(),
            tags => snapshot.tagged(tags, TagMode::Any),
        };
        let Some(key) = pick(&keys) else { return Ok(None) };
        // `None` only if the file was deleted a moment ago.
        let read = call.knowledge.read(call.session, snapshot.note(*key).path.as_str())?;
        read.map(|read| Node::single(call, &read)).transpose()
    }
}

/// A random item, each equally likely. Every `RandomState` has a new seed, so no crate for random numbers is needed.
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
    use crate::testing::{Harness, check};

    #[test]
    fn every_note_is_equally_likely() {
        let mut counts = BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(*pick(&[1, 2, 3]).unwrap()).or_insert(0) += 1;
        }
        // Six standard deviations: 2000 ± 219.
        assert!(counts.values().all(|count| (1780..2220).contains(count)), "{counts:?}");
        assert_eq!(pick::<u8>(&[]), None);
    }

    #[test]
    fn tags_limit_the_choice() {
        let vault = "//- a.md\n#idea Fly.\n//- b.md\nNo idea.\n";
        let node = json!({
            "id": "a.md", "title": "A", "version": "c211bf00967f6110", "content": "#idea Fly.\n", "tags": ["idea"], "links": [],
            "properties": {}
        });
        check(vault, "random_node", json!({"tags": ["idea"]}), node);
    }

    #[test]
    fn without_candidates_the_answer_is_null() {
        check("", "random_node", json!({}), json!(null));
        check("//- a.md\n", "random_node", json!({"tags": ["idea"]}), json!(null));
        assert_eq!(Harness::new("//- a.md\n").call("random_node", json!({"tags": []}))["id"], "a.md");
    }
}
