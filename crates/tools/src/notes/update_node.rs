//! A note with new text, tags or title. Never over an edit that this client has not seen.

use quipu_core::notes::NoteUpdate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note.
    id: String,
    /// New title; the file is renamed to it in its folder, so the id changes.
    #[schemars(length(min = 1))]
    title: Option<String>,
    /// New text, replacing all of the old; the frontmatter stays.
    content: Option<String>,
    /// New tags, replacing those in the frontmatter.
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    tags: Option<Vec<String>>,
    /// With a title: rewrite the links of other notes too. Otherwise a note that others link to is not renamed.
    #[serde(default)]
    update_links: bool,
}

pub(crate) struct UpdateNode;

impl Tool for UpdateNode {
    type Params = Params;
    type Output = Node;

    const NAME: &'static str = "update_node";
    const DESCRIPTION: &'static str = "Change a note's title, text or tags (at least one) and return it. Read it with \
        get_node first: if it changed since, nothing is written. What is replaced is kept and can be restored.";
    const ACCESS: Access = Access::Destroy;
    const IDEMPOTENT: bool = false;

    fn call(call: &Call<'_>, params: Params) -> Result<Node, Fault> {
        let update = NoteUpdate {
            id: &params.id,
            title: params.title.as_deref(),
            content: params.content.as_deref(),
            tags: params.tags.as_deref(),
            update_links: params.update_links,
        };
        let read = call.knowledge.update_note(call.session, &update)?;
        Ok(Node::single(call, &read))
    }
}
