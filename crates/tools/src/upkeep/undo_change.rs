//! `undo_change`: undoes one change of memory.

use quipu_core::memory::change_line;
use quipu_core::ports::ChangeNumber;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

/// Steps of an undo that are listed.
const MAX_LISTED: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Number of the change.
    #[schemars(range(min = 1))]
    change: i64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    change: i64,
    undone: bool,
    /// What the undo did.
    steps: Vec<String>,
    /// The undo's own number: undo it to redo the change.
    undone_by: i64,
}

pub(crate) struct UndoChange;

impl Tool for UndoChange {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "undo_change";
    const DESCRIPTION: &'static str = "Undo one change of memory by its number. recent_changes lists the \
        numbers. Refused if later changes depend on it. For notes use revert_node.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let author = call.author(Self::NAME)?;
        let undo = call.memory()?.undo_change(ChangeNumber(params.change), &author)?;
        let more = undo.steps.len().saturating_sub(MAX_LISTED);
        let listed = undo.steps.iter().take(MAX_LISTED).map(change_line);
        let steps = listed.chain((more > 0).then(|| format!("… and {more} more"))).collect();
        Ok(Output { change: params.change, undone: true, steps, undone_by: undo.number.0 })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn a_change_is_undone_and_redone() {
        let harness = Harness::new("");
        let entity = json!({"name": "Ada", "entity_type": "Author", "observations": ["sails"]});
        harness.call("create_entity", entity);
        harness.call("update_observation", json!({"observation_id": 1, "text_content": "rows"}));
        let text =
            || harness.call("get_entity", json!({"entity_id": 1}))["observations"][0]["observation_content"].clone();
        let undone = harness.call("undo_change", json!({"change": 2}));
        assert_eq!(
            undone,
            json!({"change": 2, "undone": true, "steps": ["~ observation 1 of entity 1: sails"], "undone_by": 3})
        );
        assert_eq!(text(), "sails");
        let twice = harness.fails("undo_change", json!({"change": 2}));
        assert_eq!(twice.0, "InvalidArguments");
        assert!(twice.1.contains("already undone by change 3"), "{}", twice.1);
        harness.call("undo_change", json!({"change": 3}));
        assert_eq!(text(), "rows");
        let depended = harness.fails("undo_change", json!({"change": 1}));
        assert!(depended.0 == "InvalidArguments" && depended.1.starts_with("cannot undo change 1: "), "{depended:?}");
        let unknown = harness.fails("undo_change", json!({"change": 9}));
        assert_eq!(unknown, ("ResourceNotFound".into(), "there is no change 9".into()));
    }

    #[test]
    fn a_long_undo_is_cut() {
        let harness = Harness::new("");
        let observations: Vec<String> = (0..40).map(|number| format!("fact {number}")).collect();
        harness.call("create_entity", json!({"name": "Ada", "entity_type": "Author", "observations": observations}));
        let undone = harness.call("undo_change", json!({"change": 1}))["steps"].clone();
        assert_eq!((undone.as_array().map(Vec::len), &undone[20]), (Some(21), &json!("… and 21 more")));
    }
}
