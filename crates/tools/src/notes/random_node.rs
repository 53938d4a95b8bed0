//! Any note, for the pleasure of finding it.

use std::hash::{BuildHasher, RandomState};

use quipu_core::index::TagMode;
use quipu_core::model::NoteKey;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only notes with one of these tags.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    tags: Vec<String>,
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

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Node>, Fault> {
        let snapshot = call.knowledge.snapshot();
        let keys: Vec<NoteKey> = match params.tags.as_slice() {
            [] => snapshot.notes().collect(),
            tags => snapshot.tagged(tags, TagMode::Any),
        };
        let Some(key) = pick(&keys) else { return Ok(None) };
        // A file that vanished a moment ago is the only way to find none.
        let read = call.knowledge.read(call.session, snapshot.note(*key).id.as_str())?;
        Ok(read.map(|read| Node::single(call, &read)))
    }
}

/// Each item with the same chance. The standard library seeds every hasher anew: all the chance we need, and no crate.
fn pick<T>(items: &[T]) -> Option<&T> {
    let random = u128::from(RandomState::new().hash_one(()));
    let place = (random * items.len() as u128) >> 64;
    items.get(usize::try_from(place).ok()?)
}
