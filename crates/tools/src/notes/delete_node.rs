//! `delete_node`: moves a note to the vault's trash.

use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::not_found::not_found;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id.
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
    const DESCRIPTION: &'static str = "Move a note to the trash; revert_node restores it. Links to it break: check \
        get_neighbors first.";
    const ACCESS: Access = Access::Destroy;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let Some(dangling) = call.knowledge.delete_note(call.session, call.request, &params.id)? else {
            let snapshot = call.knowledge.snapshot();
            call.warn(not_found(&snapshot, "no note has the id", &params.id, |note| note.path.as_str()));
            return Ok(Output { deleted: false });
        };
        for link in &dangling {
            let link = quoted(link.as_str());
            call.warn(format!(
                "{link}: this symbolic link led to the deleted file and now leads nowhere; remove it, or restore the note"
            ));
        }
        Ok(Output { deleted: true })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn a_note_goes_to_the_trash() {
        let harness = Harness::new("//- notes/Old-Draft.md\n[[b]]\n//- b.md\n[[old-draft]]\n");
        assert_eq!(harness.call("delete_node", json!({"id": "notes/old-draft.md"})), json!({"deleted": true}));
        assert_eq!(harness.call("delete_node", json!({"id": "notes/old-draft.md"})), json!({"deleted": false}));
        assert_eq!(harness.vault.paths(), ["b.md"]);
        assert_eq!(harness.call("get_neighbors", json!({"id": "b.md"})), json!([]));
        let links = &harness.call("get_node", json!({"id": "b.md"}))["links"];
        assert_eq!(*links, json!([{"id": "old-draft", "title": "old-draft"}]));

        let kept = harness.knowledge.trashed().unwrap();
        harness.knowledge.restore(&kept[0]).unwrap();
        assert_eq!(harness.call("get_neighbors", json!({"id": "b.md"}))[0]["id"], "notes/old-draft.md");
    }

    #[test]
    fn a_mistyped_id_gets_near_names() {
        let called = Harness::new("//- notes/Plan.md\n").called("delete_node", json!({"id": "notes/plam.md"}));
        assert_eq!(called.warnings, ["no note has the id \"notes/plam.md\"; near names: \"notes/Plan.md\""]);
    }

    #[test]
    fn only_notes_are_deleted() {
        let harness = Harness::new("//- pic.png\n//- .git/a.md\n");
        for id in ["missing.md", "pic.png", ".git/a.md", "../a.md", ""] {
            assert_eq!(harness.call("delete_node", json!({"id": id})), json!({"deleted": false}), "{id:?}");
        }
        assert_eq!(harness.vault.paths(), [".git/a.md", "pic.png"]);
    }

    #[test]
    fn a_note_with_an_outside_edit_is_not_deleted() {
        let harness = Harness::new("//- a.md\nold\n");
        harness.call("get_node", json!({"id": "a.md"}));
        harness.vault.put("a.md", "precious\n");
        assert_eq!(harness.fails("delete_node", json!({"id": "a.md"})).0, "PROVIDER_ERROR");
        assert_eq!(harness.vault.text("a.md").unwrap(), "precious\n");
    }
}
