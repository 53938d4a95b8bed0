//! The shortest way from one note to another along links.

use quipu_core::model::NoteId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note to start from.
    source: String,
    /// Id of the note to reach.
    target: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Ids from source to target, both included.
    path: Vec<String>,
    /// Links followed.
    length: usize,
}

pub(crate) struct FindPath;

impl Tool for FindPath {
    type Params = Params;
    type Output = Option<Output>;

    const NAME: &'static str = "find_path";
    const DESCRIPTION: &'static str = "Find the fewest links that lead from one note to another, followed in the \
        direction they point. null if none do; then try it the other way round.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Output>, Fault> {
        let snapshot = call.knowledge.snapshot();
        let find = |id: &str| snapshot.find(&NoteId::new(id));
        let (Some(source), Some(target)) = (find(&params.source), find(&params.target)) else { return Ok(None) };
        let path = snapshot.shortest_path(source, target);
        Ok(path.map(|path| Output {
            length: path.len() - 1,
            path: path.into_iter().map(|key| snapshot.note(key).id.to_string()).collect(),
        }))
    }
}
