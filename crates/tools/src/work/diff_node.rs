//! `diff_node`: what differs between two versions of a note.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::no_such_note;
use crate::parts::{Truncated, cut};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id.
    #[schemars(length(min = 1))]
    id: String,
    /// Version, as node_history lists it.
    #[schemars(length(min = 1))]
    from: String,
    /// Version to compare with.
    #[serde(default = "default_to")]
    #[schemars(length(min = 1))]
    to: String,
    /// First character.
    offset: Option<usize>,
    /// Maximum characters.
    #[schemars(range(min = 1, max = 50_000))]
    max_chars: Option<usize>,
}

fn default_to() -> String {
    "current".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    from: String,
    to: String,
    diff: String,
    /// Present when diff is a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
}

pub(crate) struct DiffNode;

impl Tool for DiffNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "diff_node";
    const DESCRIPTION: &'static str = "Show what changed between two versions of a note, as a unified diff.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let Params { id, from, to, offset, max_chars } = params;
        let found = call.knowledge.diff_versions(call.session, &id, (&from, &to))?;
        let (note, diff) = found.ok_or_else(|| no_such_note(call, &id))?;
        // Warns if other notes match too.
        call.find(&call.knowledge.snapshot(), &id);
        let part = cut(call, &diff, offset, max_chars);
        Ok(Output { id: note.to_string(), from, to, truncated: part.truncated(), diff: part.text })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn a_long_diff_is_read_in_parts() {
        let harness = Harness::new("//- a.md\none\n");
        let text = |name: &str| (0..2_000).map(|number| format!("{name} {number}\n")).collect::<String>();
        let before = harness.call("get_node", json!({"id": "a.md"}))["version"].clone();
        let edits = json!([{"op": "append", "text": text("line")}]);
        let edited = harness.called("edit_node", json!({"id": "a.md", "edits": edits}));
        let crate::Reply::Answer(answer) = &edited.reply else { panic!("{edited:?}") };
        let now = answer["version"].clone();
        let whole = format!("@@ -1 +1,2001 @@\n one\n{}", text("+line"));
        let total = whole.len();
        let shown = answer["diff"].as_str().unwrap().strip_suffix("... [truncated]").unwrap().to_owned();
        let told = format!(
            "the diff has {total} characters and is cut; diff_node with from {before}, to {now} and `offset` {} returns the rest",
            shown.len()
        );
        assert!(edited.warnings.contains(&told), "{:?}", edited.warnings);
        let part = |offset: usize, max_chars: usize| {
            let arguments = json!({"id": "a.md", "from": before, "to": now, "offset": offset, "max_chars": max_chars});
            harness.call("diff_node", arguments)
        };
        let rest = part(shown.len(), 50_000);
        assert_eq!(shown + rest["diff"].as_str().unwrap(), whole);
        let middle = part(10, 100);
        assert_eq!(middle["truncated"], json!({"offset": 10, "next_offset": 110, "total_chars": total}));
        assert_eq!(middle["diff"], whole[10..110]);
        let first = harness.call("diff_node", json!({"id": "a.md", "from": before}));
        assert_eq!(first["truncated"]["total_chars"], total);
        let reverted = harness.called("revert_node", json!({"id": "a.md", "version": before}));
        assert!(reverted.warnings[0].contains(&format!("diff_node with from {now}, to {before}")), "{reverted:?}");
        let short = harness.call("diff_node", json!({"id": "a.md", "from": before}));
        assert_eq!((&short["diff"], short.get("truncated")), (&json!(""), None));
    }
}
