//! A new note, on disk when the call returns.

use quipu_core::notes::NewNote;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root, ending in ".md". The file name is lowercased; existing folders are used in any case, new
    /// ones are made as spelled.
    id: String,
    /// The whole text, in Markdown. [[Name]] links to a note.
    content: String,
    /// Display title, if the file name will not do.
    #[schemars(length(min = 1))]
    title: Option<String>,
    /// Tags for the frontmatter, added to those in the text's own.
    #[serde(default)]
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    tags: Vec<String>,
}

pub(crate) struct CreateNode;

impl Tool for CreateNode {
    type Params = Params;
    type Output = Node;

    const NAME: &'static str = "create_node";
    const DESCRIPTION: &'static str = "Write a new note and return it. Fails with NODE_EXISTS if there is one, in any \
        case; then use update_node. Check with resolve_nodes first, so that nothing is written twice.";
    const ACCESS: Access = Access::Write;
    const IDEMPOTENT: bool = false;

    fn call(call: &Call<'_>, params: Params) -> Result<Node, ToolError> {
        let Params { id, content, title, tags } = &params;
        let new = NewNote { id, content, title: title.as_deref(), tags };
        let read = call.knowledge.create_note(call.session, call.request, &new)?;
        Ok(Node::single(call, &read))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Desk;

    #[test]
    fn a_note_is_written_and_answered_as_get_node_would() {
        let desk = Desk::new("");
        let answer = desk.call(
            "create_node",
            json!({
                "id": "meetings/meeting-notes-2024-01-15.md",
                "content": "# Meeting Notes\n\nDiscussed project timeline...",
                "tags": ["meeting", "project-x"]
            }),
        );
        let expected = json!({
            "id": "meetings/meeting-notes-2024-01-15.md",
            "title": "Meeting Notes 2024 01 15",
            "content": "# Meeting Notes\n\nDiscussed project timeline...",
            "tags": ["meeting", "project-x"],
            "links": [],
            "properties": {}
        });
        assert_eq!(answer, expected);
        assert_eq!(desk.call("get_node", json!({"id": "meetings/meeting-notes-2024-01-15.md"})), expected);
    }

    #[test]
    fn the_file_name_is_lowercased_and_folders_keep_their_case() {
        let desk = Desk::new("//- Old/a.md\n//- x/b.md\n//- X/c.md\n");
        let create = |id: &str| desk.call("create_node", json!({"id": id, "content": ""}))["id"].clone();
        assert_eq!(create("Notes/My Note, v1.2 (ÄÖ).md"), "notes/my note, v1.2 (äö).md");
        assert_eq!(create("OLD/New/B.md"), "old/new/b.md");
        assert_eq!(create("X/D.md"), "x/d.md");
        let expected = ["Notes/my note, v1.2 (äö).md", "Old/New/b.md", "Old/a.md", "X/c.md", "X/d.md", "x/b.md"];
        assert_eq!(desk.vault.paths(), expected);
        let desk = Desk::new("//- Ab/a.md\n//- aB/a.md\n");
        let (code, message) = desk.fails("create_node", json!({"id": "ab/b.md", "content": ""}));
        let expected = "cannot write ab/b.md: it matches Ab, aB; give one of these paths exactly";
        assert_eq!((code.as_str(), message.as_str()), ("INVALID_PARAMS", expected));
    }

    #[test]
    fn a_title_goes_into_the_frontmatter() {
        let desk = Desk::new("");
        let answer = desk.call("create_node", json!({"id": "a.md", "title": "Yes: really", "content": "Text\n"}));
        assert_eq!((&answer["title"], &answer["content"]), (&json!("Yes: really"), &json!("Text\n")));
        assert!(desk.vault.text("a.md").unwrap().starts_with("---\ntitle: "));
    }

    #[test]
    fn text_without_title_and_tags_is_written_byte_for_byte() {
        let desk = Desk::new("");
        let text = "\n\n  no frontmatter \r\n\ttabs";
        let answer = desk.call("create_node", json!({"id": "a.md", "content": text, "tags": []}));
        assert_eq!(desk.vault.text("a.md").unwrap(), text);
        assert_eq!(answer["content"], text);
    }

    #[test]
    fn links_that_waited_for_it_become_edges() {
        let desk = Desk::new("//- a.md\n[[Later]]\n");
        assert_eq!(desk.call("get_hubs", json!({"limit": 1}))[0]["score"], 0);
        desk.call("create_node", json!({"id": "deep/later.md", "content": "[[a]]"}));
        assert_eq!(desk.call("get_neighbors", json!({"id": "deep/later.md", "direction": "in"}))[0]["id"], "a.md");
        assert_eq!(desk.call("get_neighbors", json!({"id": "a.md", "direction": "in"}))[0]["id"], "deep/later.md");
    }

    #[test]
    fn what_is_there_in_any_case_is_not_written_over() {
        let desk = Desk::new("//- Notes/Here.md\nmine\n//- Notes/pic.png\n");
        let create = |id: &str| desk.fails("create_node", json!({"id": id, "content": "x"}));
        let (code, message) = create("notes/here.md");
        assert_eq!(code, "NODE_EXISTS");
        assert_eq!(message, "Notes/Here.md already exists; choose another name or update that note");
        assert_eq!(create("NOTES/HERE.MD").0, "NODE_EXISTS");
        desk.vault.put("made elsewhere.md", "theirs");
        assert_eq!(create("Made Elsewhere.md").0, "NODE_EXISTS");
        assert_eq!(desk.vault.text("Notes/Here.md").unwrap(), "mine\n");
        assert_eq!(desk.vault.text("made elsewhere.md").unwrap(), "theirs");
    }

    #[test]
    fn a_note_deleted_elsewhere_makes_room() {
        let desk = Desk::new("//- a.md\nold\n");
        desk.vault.remove("a.md");
        assert_eq!(desk.call("create_node", json!({"id": "a.md", "content": "new"}))["content"], "new");
    }

    #[test]
    fn what_cannot_be_a_note_is_refused() {
        let desk = Desk::new("");
        for id in [
            "",
            "a",
            "a.txt",
            "a.markdown",
            ".md",
            "../a.md",
            "a/../../b.md",
            "/etc/a.md",
            "~/a.md",
            "c:/a.md",
            "a\\b.md",
            "a\u{0}.md",
            "a\n.md",
            ".hidden/a.md",
            ".quipu/a.md",
            "a/.b.md",
            "a//b.md",
            "node_modules/a.md",
            "why?.md",
            "a: b/c.md",
            "nul.md",
            "ends./a.md",
        ] {
            let (code, message) = desk.fails("create_node", json!({"id": id, "content": "x"}));
            assert_eq!(code, "INVALID_PARAMS", "{id:?}: {message}");
        }
        assert_eq!(desk.fails("create_node", json!({"id": "a.md"})).1, "`content` is missing; it must be a string");
        let (code, message) = desk.fails("create_node", json!({"id": "a.md", "content": "", "title": ""}));
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("INVALID_PARAMS", "`title` is empty; it must be a string that is not empty",)
        );
        assert!(desk.vault.paths().is_empty());
    }

    #[test]
    fn a_full_disk_is_told() {
        let desk = Desk::new("");
        desk.vault.refuse_writes();
        let (code, message) = desk.fails("create_node", json!({"id": "a.md", "content": "x"}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(message, "cannot write a.md: Permission denied (os error 13)");
    }
}
