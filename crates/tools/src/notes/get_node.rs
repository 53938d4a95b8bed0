//! One note by its id, alone or with the notes around it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};
use crate::truncate::NEIGHBOUR;

/// Neighbours given in each direction; the counts are of all.
const MAX_NEIGHBORS: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path of the note from the vault root, in any case, such as "notes/ideas.md".
    id: String,
    /// 1 adds linking and linked notes (at most 20 each way) and their counts.
    #[serde(default)]
    #[schemars(range(max = 1))]
    depth: u8,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    node: Node,
    #[serde(flatten)]
    context: Option<Context>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Context {
    /// Nodes that link here.
    incoming_neighbors: Vec<Node>,
    /// Nodes this one links to.
    outgoing_neighbors: Vec<Node>,
    incoming_count: usize,
    outgoing_count: usize,
}

pub(crate) struct GetNode;

impl Tool for GetNode {
    type Params = Params;
    type Output = Option<Output>;

    const NAME: &'static str = "get_node";
    const DESCRIPTION: &'static str = "Read one note: text (cut at 10,000 characters), tags, links, properties. \
        null if there is none. Use it once you have an id; to turn a name into an id call resolve_nodes.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Output>, Fault> {
        let Some(read) = call.knowledge.read(call.session, &params.id)? else { return Ok(None) };
        let context = (params.depth == 1).then(|| {
            let snapshot = &read.snapshot;
            let (incoming, outgoing) = (snapshot.incoming(read.key), snapshot.graph().out(read.key));
            let neighbors = |keys| Node::list(call, snapshot, first(keys), Some(NEIGHBOUR));
            Context {
                incoming_neighbors: neighbors(&incoming),
                outgoing_neighbors: neighbors(outgoing),
                incoming_count: incoming.len(),
                outgoing_count: outgoing.len(),
            }
        });
        Ok(Some(Output { node: Node::single(call, &read), context }))
    }
}

fn first<T>(items: &[T]) -> &[T] {
    &items[..items.len().min(MAX_NEIGHBORS)]
}
