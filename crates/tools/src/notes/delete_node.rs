//! A note put into the vault's trash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

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

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let deleted = call.knowledge.delete_note(call.session, call.request, &params.id)?;
        Ok(Output { deleted })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Desk;

    #[test]
    fn a_note_goes_to_the_trash() {
        let desk = Desk::new("//- notes/Old-Draft.md\n[[b]]\n//- b.md\n[[old-draft]]\n");
        assert_eq!(desk.call("delete_node", json!({"id": "notes/old-draft.md"})), json!({"deleted": true}));
        assert_eq!(desk.call("delete_node", json!({"id": "notes/old-draft.md"})), json!({"deleted": false}));
        assert_eq!(desk.vault.paths(), ["b.md"]);
        assert_eq!(desk.call("get_neighbors", json!({"id": "b.md"})), json!([]));
        let links = &desk.call("get_node", json!({"id": "b.md"}))["links"];
        assert_eq!(*links, json!([{"id": "old-draft", "title": "old-draft"}]));

        let kept = desk.knowledge.kept().unwrap();
        desk.knowledge.restore(&kept[0]).unwrap();
        assert_eq!(desk.call("get_neighbors", json!({"id": "b.md"}))[0]["id"], "notes/old-draft.md");
    }

    #[test]
    fn what_is_no_note_is_not_deleted() {
        let desk = Desk::new("//- pic.png\n//- .git/a.md\n");
        for id in ["missing.md", "pic.png", ".git/a.md", "../a.md", ""] {
            assert_eq!(desk.call("delete_node", json!({"id": id})), json!({"deleted": false}), "{id:?}");
        }
        assert_eq!(desk.vault.paths(), [".git/a.md", "pic.png"]);
    }

    #[test]
    fn an_edit_made_elsewhere_is_not_thrown_away() {
        let desk = Desk::new("//- a.md\nold\n");
        desk.call("get_node", json!({"id": "a.md"}));
        desk.vault.put("a.md", "precious\n");
        assert_eq!(desk.fails("delete_node", json!({"id": "a.md"})).0, "PROVIDER_ERROR");
        assert_eq!(desk.vault.text("a.md").unwrap(), "precious\n");
    }
}
