//! Which of many ids there are.

use std::collections::BTreeMap;

use quipu_core::model::NoteId;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Ids to look up, in any case.
    #[schemars(length(max = 1000))]
    ids: Vec<String>,
}

pub(crate) struct NodesExist;

impl Tool for NodesExist {
    type Params = Params;
    type Output = BTreeMap<String, bool>;

    const NAME: &'static str = "nodes_exist";
    const DESCRIPTION: &'static str = "Check many ids at once: an object with each id, lowercased, and whether there is \
        such a note. Use it before linking; it matches whole ids only, for names call resolve_nodes.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Self::Output, Fault> {
        let snapshot = call.knowledge.snapshot();
        let ids = params.ids.iter().map(|id| NoteId::new(id));
        Ok(ids.map(|id| (id.to_string(), snapshot.find(&id).is_some())).collect())
    }
}
