//! `revert_node`: an earlier version of a note again.

use quipu_core::notes::NoteError;
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{no_such_note, shown_diff};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of a note, even a deleted one.
    #[schemars(length(min = 1))]
    id: String,
    /// Version, as node_history lists it.
    #[schemars(length(min = 1))]
    version: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    version: String,
    diff: String,
}

pub(crate) struct RevertNode;

impl Tool for RevertNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "revert_node";
    const DESCRIPTION: &'static str = "Give a note the text of an earlier version, or restore a deleted note. The \
        replaced text is kept as a version. To undo a whole move use undo_change.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let reverted = call.knowledge.revert_note(call.session, call.request, &params.id, &params.version);
        let reverted = reverted.map_err(|error| match error {
            NoteError::NotFound { .. } => no_such_note(call, &params.id),
            other => other.into(),
        })?;
        if reverted.diff.is_none() {
            let path = quoted(reverted.path.as_str());
            call.warn(format!("{path}: an earlier attempt of this call reverted it; its diff is no longer known"));
        }
        let versions = (reverted.before.unwrap_or(reverted.version), reverted.version);
        let diff = shown_diff(call, &reverted.diff.unwrap_or_default(), versions);
        Ok(Output { id: reverted.id.to_string(), version: reverted.version.to_string(), diff })
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::Session;
    use serde_json::{Value, json};

    use crate::Reply;
    use crate::testing::Harness;

    fn append(harness: &Harness, session: &Session, id: &str, text: &str) {
        let edits = json!([{"op": "append", "text": text}]);
        let reply = harness.called_by(session, "edit_node", json!({"id": id, "edits": edits})).reply;
        assert!(matches!(reply, Reply::Answer(_)), "{reply:?}");
    }

    fn versions(harness: &Harness, id: &str) -> Vec<Value> {
        harness.call("node_history", json!({"id": id}))["versions"].as_array().unwrap().clone()
    }

    /// Who did what.
    fn listed(versions: &[Value]) -> Vec<String> {
        let text = |version: &Value, name: &str| version[name].as_str().unwrap().to_owned();
        versions.iter().map(|it| format!("{} {}", text(it, "by"), text(it, "action"))).collect()
    }

    #[test]
    fn changes_by_another_agent_are_listed_compared_and_reverted() {
        let harness = Harness::new("//- Plan.md\none\n");
        let other = Session::named("other");
        append(&harness, &harness.session, "plan.md", "two");
        append(&harness, &other, "plan.md", "three");
        let all = versions(&harness, "plan.md");
        assert_eq!(listed(&all), ["other edit", "harness edit", "outside edit"]);
        assert_eq!([&all[0]["chars"], &all[1]["chars"], &all[2]["chars"]], [14, 8, 4]);
        let current = harness.call("get_node", json!({"id": "plan.md"}))["version"].clone();
        assert_eq!(all[0]["version"], current);
        let diff = harness.call("diff_node", json!({"id": "plan.md", "from": all[2]["version"]}));
        assert_eq!(diff["diff"], "@@ -1 +1,3 @@\n one\n+two\n+three\n");
        let between = json!({"id": "plan.md", "from": all[1]["version"], "to": all[2]["version"]});
        assert_eq!(harness.call("diff_node", between)["diff"], "@@ -1,2 +1 @@\n one\n-two\n");
        let reverted = harness.call("revert_node", json!({"id": "plan.md", "version": all[1]["version"]}));
        let expected = json!({"id": "plan.md", "version": all[1]["version"], "diff": "@@ -2,2 +2 @@\n two\n-three\n"});
        assert_eq!(reverted, expected);
        assert_eq!(harness.vault.text("Plan.md").unwrap(), "one\ntwo\n");
        // The revert can be reverted.
        harness.call("revert_node", json!({"id": "plan.md", "version": all[0]["version"]}));
        assert_eq!(harness.vault.text("Plan.md").unwrap(), "one\ntwo\nthree\n");
        assert_eq!(listed(&versions(&harness, "plan.md"))[..2], ["harness revert", "harness revert"]);
    }

    #[test]
    fn a_change_that_the_client_did_not_see_refuses_the_revert() {
        let harness = Harness::new("//- a.md\none\n");
        append(&harness, &harness.session, "a.md", "two");
        let all = versions(&harness, "a.md");
        append(&harness, &Session::named("other"), "a.md", "three");
        let revert = json!({"id": "a.md", "version": all[1]["version"]});
        let (code, message) = harness.fails("revert_node", revert.clone());
        assert_eq!((code.as_str(), message.contains("changed elsewhere")), ("PROVIDER_ERROR", true), "{message}");
        versions(&harness, "a.md");
        assert_eq!(harness.call("revert_node", revert)["diff"], "@@ -1,3 +1 @@\n one\n-two\n-three\n");
    }

    #[test]
    fn moved_note_keeps_its_history_and_a_deleted_one_is_restored() {
        let harness = Harness::new("//- a.md\none\n//- b.md\n[[a]]\n");
        append(&harness, &harness.session, "a.md", "two");
        harness.call("move_node", json!({"id": "a.md", "to": "Deep/c.md"}));
        let all = versions(&harness, "deep/c.md");
        assert_eq!(listed(&all), ["harness move", "harness edit", "outside edit"]);
        assert_eq!(harness.call("node_history", json!({"id": "a.md"}))["id"], "deep/c.md", "the old id leads to it");
        // Another note at the old path has a history of its own.
        harness.call("create_node", json!({"id": "a.md", "content": "other"}));
        assert_eq!(listed(&versions(&harness, "a.md")), ["harness create"]);
        harness.call("revert_node", json!({"id": "deep/c.md", "version": all[2]["version"]}));
        assert_eq!(harness.vault.text("Deep/c.md").unwrap(), "one\n");
        harness.call("delete_node", json!({"id": "deep/c.md"}));
        let gone = harness.call("node_history", json!({"id": "DEEP/c.md"}));
        assert_eq!((&gone["deleted"], &gone["versions"][0]["action"]), (&json!(true), &json!("delete")));
        let back = json!({"id": "deep/c.md", "version": gone["versions"][0]["version"]});
        assert_eq!(harness.call("revert_node", back)["diff"], "@@ -0,0 +1 @@\n+one\n");
        assert_eq!(harness.vault.text("Deep/c.md").unwrap(), "one\n");
    }

    #[test]
    fn edits_by_other_programs_are_listed_without_their_text() {
        let harness = Harness::new("//- a.md\none\n");
        append(&harness, &harness.session, "a.md", "two");
        harness.clock.advance(10_000_000_000);
        harness.vault.put("a.md", "edited by hand\n");
        let all = versions(&harness, "a.md");
        assert_eq!(listed(&all), ["outside edit", "harness edit", "outside edit"]);
        assert_eq!((&all[0]["kept"], &all[1]["kept"], &all[2]["kept"]), (&json!(null), &json!(false), &json!(null)));
        let lost = json!({"id": "a.md", "version": all[1]["version"]});
        let (code, message) = harness.fails("revert_node", lost);
        assert_eq!(
            (code.as_str(), message.contains("Quipu has no copy of its text")),
            ("INVALID_PARAMS", true),
            "{message}"
        );
        let (code, message) = harness.fails("revert_node", json!({"id": "a.md", "version": "0123456789abcdef"}));
        assert_eq!((code.as_str(), message.contains("no such version")), ("INVALID_PARAMS", true), "{message}");
        let (code, _) = harness.fails("node_history", json!({"id": "nowhere.md"}));
        assert_eq!(code, "NODE_NOT_FOUND");
    }
}
