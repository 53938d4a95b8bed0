//! `undo_change`: undoes one change to memory or to notes.

use quipu_core::memory::change_line;
use quipu_core::notes::UndoneWrite;
use quipu_core::ports::{ChangeNumber, LoggedFile, WriteNumber};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number_or_text::NumberOrText;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

/// Steps of an undo that are listed.
const MAX_LISTED: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// As recent_changes lists it: 12 for memory, "n12" for notes.
    change: NumberOrText,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    change: NumberOrText,
    undone: bool,
    /// What the undo did.
    steps: Vec<String>,
    /// The undo's own change: undo it to redo the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_by: Option<NumberOrText>,
}

pub(crate) struct UndoChange;

impl Tool for UndoChange {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "undo_change";
    const DESCRIPTION: &'static str = "Undo one change to notes or memory; a move with all its files and links. \
        Refused if later changes depend on it. For an older version of a note use revert_node.";
    const ACCESS: Access = Access::Destroy;
    const NEEDS_INDEX: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let (undone_by, steps) = match parse(&params.change)? {
            Change::Memory(number) => {
                let author = call.author(Self::NAME)?;
                let undo = call.memory()?.undo_change(number, &author)?;
                (Some(NumberOrText::Number(undo.number.0)), undo.steps.iter().map(change_line).collect())
            }
            Change::Notes(number) => {
                let UndoneWrite { by, steps } = call.knowledge.undo_write(call.session, call.request, number)?;
                let by = by.map(|by| NumberOrText::Text(format!("n{}", by.0)));
                (by, steps.iter().map(file_line).collect::<Vec<_>>())
            }
        };
        let more = steps.len().saturating_sub(MAX_LISTED);
        let listed = steps.into_iter().take(MAX_LISTED);
        let steps = listed.chain((more > 0).then(|| format!("… and {more} more"))).collect();
        Ok(Output { change: params.change, undone: true, steps, undone_by })
    }
}

enum Change {
    Memory(ChangeNumber),
    Notes(WriteNumber),
}

fn parse(name: &NumberOrText) -> Result<Change, ToolError> {
    let wrong = || ToolError::invalid("`change` must be a number above 0, or n and a number for notes");
    let (is_note, number) = match name {
        NumberOrText::Number(number) => (false, Some(*number)),
        NumberOrText::Text(text) => match text.trim().strip_prefix('n') {
            Some(number) => (true, number.parse().ok()),
            None => (false, text.trim().parse().ok()),
        },
    };
    match number.filter(|number| *number > 0) {
        Some(number) if is_note => Ok(Change::Notes(WriteNumber(number))),
        Some(number) => Ok(Change::Memory(ChangeNumber(number))),
        None => Err(wrong()),
    }
}

fn file_line(file: &LoggedFile) -> String {
    match (&file.from, file.before.is_some(), file.after.is_some()) {
        (Some(from), ..) => format!("{from} moved to {}", file.path),
        (None, true, true) => format!("~ {}", file.path),
        (None, false, _) => format!("+ {}", file.path),
        (None, true, false) => format!("- {}", file.path),
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
            json!({"change": 2, "undone": true, "steps": ["~ observation 1 of entity 1: \"rows\" to \"sails\""], "undone_by": 3})
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
        assert_eq!(
            unknown,
            ("ResourceNotFound".into(), "there is no change 9; recent_changes lists the changes".into())
        );
    }

    #[test]
    fn a_long_undo_is_cut() {
        let harness = Harness::new("");
        let observations: Vec<String> = (0..40).map(|number| format!("fact {number}")).collect();
        harness.call("create_entity", json!({"name": "Ada", "entity_type": "Author", "observations": observations}));
        let undone = harness.call("undo_change", json!({"change": 1}))["steps"].clone();
        assert_eq!((undone.as_array().map(Vec::len), &undone[20]), (Some(21), &json!("… and 21 more")));
    }

    #[test]
    fn a_folder_move_is_undone_whole_or_not_at_all() {
        let fixture = "//- old/a.md\n[b](b.md) [[x]]\n//- old/b.md\n[up](../x.md)\n//- x.md\n[[old/a]]\n";
        let harness = Harness::new(fixture);
        harness.call("move_node", json!({"id": "old/", "to": "new/deep/"}));
        let change = harness.call("recent_changes", json!({}))["changes"][0]["change"].clone();
        let undone = harness.call("undo_change", json!({"change": change}));
        assert_eq!((&undone["undone"], undone["steps"].as_array().unwrap().len()), (&json!(true), 3), "{undone}");
        for (path, text) in quipu_testkit::fixture::files(fixture) {
            assert_eq!(harness.vault.text(&path).as_deref(), Some(text.as_str()), "{path}");
        }
        // The undo is a change too.
        harness.call("undo_change", json!({"change": undone["undone_by"]}));
        assert_eq!(harness.vault.paths(), ["new/deep/a.md", "new/deep/b.md", "x.md"]);
        harness.call("edit_node", json!({"id": "x.md", "edits": [{"op": "append", "text": "later"}]}));
        let (code, message) = harness.fails("undo_change", json!({"change": change}));
        assert_eq!(
            (code.as_str(), message.contains("x.md has changed since")),
            ("InvalidArguments", true),
            "{message}"
        );
        assert_eq!(harness.vault.paths(), ["new/deep/a.md", "new/deep/b.md", "x.md"]);
        let (code, message) = harness.fails("undo_change", json!({"change": "n99"}));
        assert_eq!((code.as_str(), message.contains("no change n99")), ("ResourceNotFound", true), "{message}");
        assert_eq!(harness.fails("undo_change", json!({"change": "x"})).0, "InvalidArguments");
    }
}
