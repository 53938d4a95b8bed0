//! The notes of the vault, page by page.

use quipu_core::model::{NoteId, Tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only notes with this tag or one nested below it; other frontmatter fields are not looked at.
    tag: Option<String>,
    /// Only ids that start so, in any case, such as "projects/".
    #[serde(default)]
    path: String,
    /// At most this many.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Leave out this many first, for the next page.
    #[serde(default)]
    offset: usize,
}

fn default_limit() -> usize {
    100
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    nodes: Vec<NodeSummary>,
    /// All that match, beyond the limit too.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct NodeSummary {
    id: String,
    title: String,
}

pub(crate) struct ListNodes;

impl Tool for ListNodes {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "list_nodes";
    const DESCRIPTION: &'static str = "List ids and titles of notes in order of id, with the total. Use it to browse a \
        folder or count what has a tag; it does not look into the text.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        let snapshot = call.knowledge.snapshot();
        let tag = params.tag.map(|tag| Tag::new(&tag).folded);
        let found = snapshot
            .with_id_prefix(&NoteId::new(&params.path))
            .map(|key| snapshot.note(key))
            .filter(|note| tag.as_ref().is_none_or(|tag| note.has_tag(tag)));
        let mut output = Output { nodes: Vec::new(), total: 0 };
        for (number, note) in found.enumerate() {
            output.total += 1;
            if number >= params.offset && output.nodes.len() < params.limit {
                output.nodes.push(NodeSummary { id: note.id.to_string(), title: note.title.clone() });
            }
        }
        Ok(output)
    }
}
