//! A new note, on disk when the call returns.

use quipu_core::notes::NewNote;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root, ending in ".md"; lowercased, nothing else changed. Folders are made as needed.
    id: String,
    /// The whole text, in Markdown. [[Name]] links to a note.
    content: String,
    /// Display title, if the file name will not do.
    #[schemars(length(min = 1))]
    title: Option<String>,
    /// Tags for the frontmatter.
    #[serde(default)]
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    tags: Vec<String>,
}

pub(crate) struct CreateNode;

impl Tool for CreateNode {
    type Params = Params;
    type Output = Node;

    const NAME: &'static str = "create_node";
    const DESCRIPTION: &'static str = "Write a new note and return it. Fails with NODE_EXISTS if there is one, in any \
        case: then use update_node. Check with resolve_nodes first, so that nothing is written twice.";
    const ACCESS: Access = Access::Write;
    const IDEMPOTENT: bool = false;

    fn call(call: &Call<'_>, params: Params) -> Result<Node, Fault> {
        let Params { id, content, title, tags } = &params;
        let new = NewNote { id, content, title: title.as_deref(), tags };
        let read = call.knowledge.create_note(call.session, &new)?;
        Ok(Node::single(call, &read))
    }
}
