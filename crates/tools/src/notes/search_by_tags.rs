//! The notes that carry given tags.

use quipu_core::index::TagMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};
use crate::truncate::LISTED;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Tags, with or without "#", in any case; "a" also finds "a/b".
    #[schemars(length(min = 1, max = 1000))]
    tags: Vec<String>,
    /// Whether one of the tags is enough.
    #[serde(default)]
    mode: Mode,
    /// At most this many.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Any,
    All,
}

fn default_limit() -> usize {
    20
}

pub(crate) struct SearchByTags;

impl Tool for SearchByTags {
    type Params = Params;
    type Output = Vec<Node>;

    const NAME: &'static str = "search_by_tags";
    const DESCRIPTION: &'static str = "Find notes by tag, each with its first 500 characters, in order of id. Use it \
        when you know the tags; for only the ids and a total call list_nodes.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Node>, Fault> {
        let snapshot = call.knowledge.snapshot();
        let mode = match params.mode {
            Mode::Any => TagMode::Any,
            Mode::All => TagMode::All,
        };
        let mut keys = snapshot.tagged(&params.tags, mode);
        keys.truncate(params.limit);
        Ok(Node::list(call, &snapshot, &keys, Some(LISTED)))
    }
}
