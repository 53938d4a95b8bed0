//! `create_node`: creates a note; it is on disk when the call returns.

use quipu_core::notes::NewNote;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::hints::{warn_of_duplicates, warn_of_mentions, warn_of_planned};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root, ending in ".md"; the file name is lowercased.
    id: String,
    /// The text, in Markdown; [[Name]] links to a note.
    #[allow(rustdoc::broken_intra_doc_links, reason = "the text of the schema, not of a page")]
    content: String,
    /// Display title, if not the file name.
    #[schemars(length(min = 1))]
    title: Option<String>,
    /// Frontmatter tags.
    #[serde(default)]
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    tags: Vec<String>,
    /// Only return warnings.
    #[serde(default)]
    dry_run: bool,
}

pub(crate) struct CreateNode;

impl Tool for CreateNode {
    type Params = Params;
    type Output = Node;

    const NAME: &'static str = "create_node";
    const DESCRIPTION: &'static str = "Create a note and return it; NODE_EXISTS if the id exists in any case. Check \
        for an existing note with resolve_nodes first. To change parts of a note use edit_node; to replace its text \
        use update_node.";
    const ACCESS: Access = Access::Write;

    fn call(call: &Call<'_>, params: Params) -> Result<Node, ToolError> {
        let Params { id, content, title, tags, dry_run } = &params;
        let new = NewNote { id, content, title: title.as_deref(), tags };
        if *dry_run {
            let planned = call.knowledge.plan_note(&new)?;
            warn_of_planned(call, &planned);
            return Ok(Node::planned(&planned));
        }
        let read = call.knowledge.create_note(call.session, call.request, &new)?;
        warn_of_duplicates(call, &read);
        warn_of_mentions(call, &read.note().path, read.body(), "");
        Node::single(call, &read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn create_node_returns_what_get_node_returns() {
        let harness = Harness::new("");
        let answer = harness.call(
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
            "version": "7eeefc45d48673a2",
            "content": "# Meeting Notes\n\nDiscussed project timeline...",
            "tags": ["meeting", "project-x"],
            "links": [],
            "properties": {}
        });
        assert_eq!(answer, expected);
        assert_eq!(harness.call("get_node", json!({"id": "meetings/meeting-notes-2024-01-15.md"})), expected);
    }

    #[test]
    fn a_dry_run_warns_and_writes_nothing() {
        let harness = Harness::new("//- notes/Graph Core.md\nx\n//- Ada Lovelace.md\n");
        let arguments = |id: &str, content: &str, dry_run: bool| json!({"id": id, "content": content, "tags": ["t"], "dry_run": dry_run});
        let content = "[[Ada Lovelace]] on Graph Core.\n";
        let planned = harness.called("create_node", arguments("New/Graph Core.md", content, true));
        let crate::Reply::Answer(answer) = &planned.reply else { panic!("{planned:?}") };
        let links = json!([{"id": "ada lovelace.md", "title": "Ada Lovelace"}]);
        assert_eq!(
            answer,
            &json!({"id": "new/graph core.md", "title": "Graph Core", "tags": ["t"], "links": links, "properties": {}})
        );
        let expected = [
            "\"New/graph core.md\": may duplicate \"notes/graph core.md\" (same title); if so, add to that note instead",
            "\"New/graph core.md\": names notes without a link: \"Graph Core\" (notes/graph core.md); link one as \
             \"[[Graph Core]]\"",
        ];
        assert_eq!(planned.warnings, expected);
        assert_eq!(harness.vault.paths(), ["Ada Lovelace.md", "notes/Graph Core.md"]);
        assert_eq!(harness.call("recent_changes", json!({}))["changes"], json!([]));
        // It fails as the write would.
        for id in ["NOTES/graph core.md", "a.txt"] {
            let (planned, written) = (arguments(id, "x", true), arguments(id, "x", false));
            assert_eq!(harness.fails("create_node", planned), harness.fails("create_node", written));
        }
        assert_eq!(harness.call("create_node", arguments("New/Graph Core.md", content, false))["id"], answer["id"]);
    }

    #[test]
    fn the_file_name_is_lowercased_and_folders_keep_their_case() {
        let harness = Harness::new("//- Old/a.md\n//- x/b.md\n//- X/c.md\n");
        let create = |id: &str| harness.call("create_node", json!({"id": id, "content": ""}))["id"].clone();
        assert_eq!(create("Notes/My Note, v1.2 (ÄÖ).md"), "notes/my note, v1.2 (äö).md");
        assert_eq!(create("OLD/New/B.md"), "old/new/b.md");
        assert_eq!(create("X/D.md"), "x/d.md");
        let expected = ["Notes/my note, v1.2 (äö).md", "Old/New/b.md", "Old/a.md", "X/c.md", "X/d.md", "x/b.md"];
        assert_eq!(harness.vault.paths(), expected);
        let harness = Harness::new("//- Ab/a.md\n//- aB/a.md\n");
        let (code, message) = harness.fails("create_node", json!({"id": "ab/b.md", "content": ""}));
        let expected = "cannot write ab/b.md: it matches Ab, aB; give one of these paths exactly";
        assert_eq!((code.as_str(), message.as_str()), ("INVALID_PARAMS", expected));
    }

    #[test]
    fn a_title_goes_into_the_frontmatter() {
        let harness = Harness::new("");
        let answer = harness.call("create_node", json!({"id": "a.md", "title": "Yes: really", "content": "Text\n"}));
        assert_eq!((&answer["title"], &answer["content"]), (&json!("Yes: really"), &json!("Text\n")));
        assert!(harness.vault.text("a.md").unwrap().starts_with("---\ntitle: "));
    }

    #[test]
    fn text_without_title_and_tags_is_written_byte_for_byte() {
        let harness = Harness::new("");
        let text = "\n\n  no frontmatter \r\n\ttabs";
        let answer = harness.call("create_node", json!({"id": "a.md", "content": text, "tags": []}));
        assert_eq!(harness.vault.text("a.md").unwrap(), text);
        assert_eq!(answer["content"], text);
    }

    #[test]
    fn broken_links_to_a_new_note_become_edges() {
        let harness = Harness::new("//- a.md\n[[Later]]\n");
        assert_eq!(harness.call("get_hubs", json!({"limit": 1}))[0]["score"], 0);
        harness.call("create_node", json!({"id": "deep/later.md", "content": "[[a]]"}));
        assert_eq!(harness.call("get_neighbors", json!({"id": "deep/later.md", "direction": "in"}))[0]["id"], "a.md");
        assert_eq!(harness.call("get_neighbors", json!({"id": "a.md", "direction": "in"}))[0]["id"], "deep/later.md");
    }

    #[test]
    fn an_existing_note_in_any_case_is_not_overwritten() {
        let harness = Harness::new("//- Notes/Here.md\nmine\n//- Notes/pic.png\n");
        let create = |id: &str| harness.fails("create_node", json!({"id": id, "content": "x"}));
        let (code, message) = create("notes/here.md");
        assert_eq!(code, "NODE_EXISTS");
        assert_eq!(message, "Notes/Here.md already exists; choose another name or update that note");
        assert_eq!(create("NOTES/HERE.MD").0, "NODE_EXISTS");
        harness.vault.put("made elsewhere.md", "theirs");
        assert_eq!(create("Made Elsewhere.md").0, "NODE_EXISTS");
        assert_eq!(harness.vault.text("Notes/Here.md").unwrap(), "mine\n");
        assert_eq!(harness.vault.text("made elsewhere.md").unwrap(), "theirs");
    }

    #[test]
    fn the_id_of_a_deleted_file_is_free() {
        let harness = Harness::new("//- a.md\nold\n");
        harness.vault.remove("a.md");
        assert_eq!(harness.call("create_node", json!({"id": "a.md", "content": "new"}))["content"], "new");
    }

    #[test]
    fn invalid_paths_are_refused() {
        let harness = Harness::new("");
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
            let (code, message) = harness.fails("create_node", json!({"id": id, "content": "x"}));
            assert_eq!(code, "INVALID_PARAMS", "{id:?}: {message}");
        }
        assert_eq!(harness.fails("create_node", json!({"id": "a.md"})).1, "`content` is missing; it must be a string");
        let (code, message) = harness.fails("create_node", json!({"id": "a.md", "content": "", "title": ""}));
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("INVALID_PARAMS", "`title` is empty; it must be a string that is not empty",)
        );
        assert!(harness.vault.paths().is_empty());
    }

    #[test]
    fn a_failed_write_is_reported() {
        let harness = Harness::new("");
        harness.vault.refuse_writes();
        let (code, message) = harness.fails("create_node", json!({"id": "a.md", "content": "x"}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(message, "cannot write a.md: Permission denied (os error 13)");
    }
}
