//! A note put into the vault's trash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note.
    id: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// False when there was no such note.
    deleted: bool,
}

pub(crate) struct DeleteNode;

impl Tool for DeleteNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "delete_node";
    const DESCRIPTION: &'static str = "Delete a note. deleted is false if there was none. It goes to the vault's trash, \
        from where the user can bring it back; links to it break, so look at get_neighbors first.";
    const ACCESS: Access = Access::Destroy;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        let deleted = call.knowledge.delete_note(call.session, &params.id)?;
        Ok(Output { deleted })
    }
}
