//! The notes that link to a note and the notes it links to.

use quipu_core::model::{NoteId, NoteKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};
use crate::truncate::LISTED;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note in the middle.
    id: String,
    /// "in": notes linking to it; "out": notes it links to.
    #[serde(default)]
    direction: Direction,
    /// At most this many.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// Add the first 500 characters of each note.
    #[serde(default)]
    include_content: bool,
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
    type Output = Vec<Node>;

    const NAME: &'static str = "get_neighbors";
    const DESCRIPTION: &'static str = "List the notes one link away from a note, linking ones first. Use it to explore \
        around a note; for the note itself call get_node, for how two notes are connected find_path.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Node>, Fault> {
        let snapshot = call.knowledge.snapshot();
        let Some(key) = snapshot.find(&NoteId::new(&params.id)) else { return Ok(Vec::new()) };
        let mut keys = match params.direction {
            Direction::Out => Vec::new(),
            Direction::In | Direction::Both => snapshot.incoming(key),
        };
        keys.truncate(params.limit);
        if params.direction != Direction::In {
            let outgoing = snapshot.graph().out(key).iter().filter(|target| !keys.contains(target));
            let room = params.limit - keys.len();
            let outgoing: Vec<NoteKey> = outgoing.take(room).copied().collect();
            keys.extend(outgoing);
        }
        Ok(Node::list(call, &snapshot, &keys, params.include_content.then_some(LISTED)))
    }
}
