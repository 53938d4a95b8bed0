//! `nodes_exist`: which of many ids exist.

use std::collections::BTreeMap;

use quipu_core::model::NoteId;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Ids, in any case.
    #[schemars(length(max = 1000))]
    ids: Vec<String>,
}

pub(crate) struct NodesExist;

impl Tool for NodesExist {
    type Params = Params;
    type Output = BTreeMap<String, bool>;

    const NAME: &'static str = "nodes_exist";
    const DESCRIPTION: &'static str = "Check which ids exist: each lowercased id is mapped to true or false. For \
        names use resolve_nodes.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Self::Output, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let exists = |spelled: &String| {
            let found = snapshot.lookup(spelled);
            // The id of a file that differs from another only in case may have upper-case letters.
            let is_id = matches!(found[..], [key] if snapshot.note(key).id.as_str() == spelled);
            let id = if is_id { spelled.clone() } else { NoteId::new(spelled).to_string() };
            (id, !found.is_empty())
        };
        Ok(params.ids.iter().map(exists).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Harness, check};

    #[test]
    fn answers_have_each_id_once_in_lower_case() {
        let vault = "//- recipes/Bulgogi.md\n";
        let arguments =
            json!({"ids": ["recipes/BULGOGI.md", "recipes/bulgogi.md", "recipes/nonexistent.md", "recipes"]});
        let expected = json!({"recipes/bulgogi.md": true, "recipes/nonexistent.md": false, "recipes": false});
        check(vault, "nodes_exist", arguments, expected);
        check(vault, "nodes_exist", json!({"ids": []}), json!({}));
    }

    #[test]
    fn too_many_ids_are_refused() {
        let harness = Harness::new("");
        let ids = vec!["x"; 1001];
        let message = "`ids` has 1001 items; it must be a list of at most 1000 strings";
        assert_eq!(harness.fails("nodes_exist", json!({"ids": ids})), ("INVALID_PARAMS".into(), message.into()));
    }
}
