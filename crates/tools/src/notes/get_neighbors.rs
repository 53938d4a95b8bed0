//! `get_neighbors`: the notes that link to a note and the notes it links to.

use quipu_core::model::NoteKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::entities::{EntityName, linking_entities};
use crate::not_found::node_not_found;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::LISTED;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id.
    id: String,
    /// "in": notes that link to it; "out": notes it links to.
    #[serde(default)]
    direction: Direction,
    /// Maximum notes, and maximum entities.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// Add the first 500 characters of each note.
    #[serde(default)]
    include_content: bool,
    /// Add memory entities that link to it, after the notes.
    #[serde(default)]
    include_entities: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Neighbor {
    Node(Box<Node>),
    /// Only on request.
    Entity(EntityName),
}

#[derive(Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    In,
    Out,
    #[default]
    Both,
}

fn default_limit() -> usize {
    20
}

pub(crate) struct GetNeighbors;

impl Tool for GetNeighbors {
    type Params = Params;
    type Output = Vec<Neighbor>;

    const NAME: &'static str = "get_neighbors";
    const DESCRIPTION: &'static str =
        "List the notes that link to a note, then the notes it links to. For the path between two notes use find_path.";
    const ACCESS: Access = Access::Read;
    const HAS_VIEW: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Neighbor>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let Some(key) = call.find(&snapshot, &params.id) else {
            call.warn(node_not_found(&snapshot, &params.id));
            return Ok(Vec::new());
        };
        let mut keys = match params.direction {
            Direction::Out => Vec::new(),
            Direction::In | Direction::Both => snapshot.incoming(key, params.limit),
        };
        if params.direction != Direction::In {
            let outgoing = snapshot.graph().out(key).iter().filter(|target| !keys.contains(target));
            let room = params.limit - keys.len();
            let outgoing: Vec<NoteKey> = outgoing.take(room).copied().collect();
            keys.extend(outgoing);
        }
        // Entities link to notes, never the other way.
        let has_entities = params.include_entities && params.direction != Direction::Out;
        let entities = if has_entities { linking_entities(call, &snapshot, key, params.limit)? } else { Vec::new() };
        let nodes = Node::list(call, &snapshot, &keys, params.include_content.then_some(LISTED));
        let nodes = nodes.into_iter().map(Box::new).map(Neighbor::Node);
        Ok(nodes.chain(entities.into_iter().map(Neighbor::Entity)).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Harness;

    /// `mid` links to z, both and a; b, both and c link to `mid`.
    const CROSS: &str = "\
//- mid.md
[[z]] [[both]] [[a]] [[mid]] [[z]]
//- c.md
[[mid]]
//- b.md
[[mid]] twice [[mid]]
//- both.md
---
tags: [t]
---
[[mid]]
//- z.md
//- a.md
";

    fn ids(arguments: Value) -> Vec<String> {
        let answer = Harness::new(CROSS).call("get_neighbors", arguments);
        answer.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn incoming_by_id_then_outgoing_by_appearance_each_once() {
        assert_eq!(ids(json!({"id": "mid.md"})), ["b.md", "both.md", "c.md", "z.md", "a.md"]);
        assert_eq!(ids(json!({"id": "MID.md", "direction": "in"})), ["b.md", "both.md", "c.md"]);
        assert_eq!(ids(json!({"id": "mid.md", "direction": "out"})), ["z.md", "both.md", "a.md"]);
    }

    #[test]
    fn the_limit_covers_both_directions() {
        assert_eq!(ids(json!({"id": "mid.md", "limit": 4})), ["b.md", "both.md", "c.md", "z.md"]);
        assert_eq!(ids(json!({"id": "mid.md", "limit": "2"})), ["b.md", "both.md"]);
        assert_eq!(ids(json!({"id": "mid.md", "direction": "out", "limit": 1.0})), ["z.md"]);
    }

    #[test]
    fn a_note_without_links_has_no_neighbours() {
        assert!(ids(json!({"id": "missing.md"})).is_empty());
        assert!(ids(json!({"id": "a.md", "direction": "out"})).is_empty());
    }

    #[test]
    fn content_is_added_on_request() {
        let harness = Harness::new(CROSS);
        let without = json!([{
            "id": "both.md", "title": "Both", "tags": ["t"], "links": [{"id": "mid.md", "title": "Mid"}], "properties": {}
        }]);
        let mut arguments = json!({"id": "z.md", "direction": "out"});
        assert_eq!(harness.call("get_neighbors", arguments.clone()), json!([]));
        arguments = json!({"id": "mid.md", "direction": "in", "limit": 2});
        assert_eq!(harness.call("get_neighbors", arguments.clone())[1], without[0]);
        arguments["include_content"] = json!(true);
        assert_eq!(harness.call("get_neighbors", arguments)[1]["content"], "[[mid]]\n");
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let harness = Harness::new(CROSS);
        for (arguments, message) in [
            (json!({}), "`id` is missing; it must be a string"),
            (json!({"id": "mid.md", "limit": 51}), "`limit` is 51; it must be a whole number from 1 to 50"),
            (json!({"id": "mid.md", "limit": 0}), "`limit` is 0; it must be a whole number from 1 to 50"),
            (
                json!({"id": "mid.md", "direction": "up"}),
                "`direction` is \"up\"; it must be one of \"in\", \"out\", \"both\"",
            ),
            (
                json!({"id": "mid.md", "includeContent": true}),
                "`includeContent` is not an argument of this tool; did you mean `include_content`? \
                 (allowed: `id`, `direction`, `limit`, `include_content`, `include_entities`)",
            ),
        ] {
            assert_eq!(harness.fails("get_neighbors", arguments), ("INVALID_PARAMS".to_owned(), message.to_owned()));
        }
    }
}
