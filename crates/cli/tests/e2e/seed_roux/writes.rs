//! `create_node`, `update_node` and `delete_node`: what each answers, and what is on disk then.

use serde_json::{Value, json};

use super::ROUX;
use crate::client::Client;

#[test]
fn create_node_writes_the_file() {
    let mut client = Client::open("");
    let created = client.answer(
        "create_node",
        json!({
            "id": "meetings/meeting-notes-2024-01-15.md",
            "content": "# Meeting Notes\n\nDiscussed project timeline...",
            "tags": ["meeting", "project-x"],
        }),
    );
    let node = json!({
        "id": "meetings/meeting-notes-2024-01-15.md",
        "title": "Meeting Notes 2024 01 15",
        "version": "7eeefc45d48673a2",
        "content": "# Meeting Notes\n\nDiscussed project timeline...",
        "tags": ["meeting", "project-x"],
        "links": [],
        "properties": {},
    });
    assert_eq!(created, node);
    assert_eq!(client.answer("get_node", json!({ "id": "meetings/meeting-notes-2024-01-15.md" })), node);
    assert_eq!(
        client.read("meetings/meeting-notes-2024-01-15.md"),
        "---\ntags:\n  - meeting\n  - project-x\n---\n# Meeting Notes\n\nDiscussed project timeline..."
    );
}

#[test]
fn a_new_id_is_lowercased_and_otherwise_as_given() {
    let mut client = Client::open("");
    let created = client.answer("create_node", json!({ "id": "Notes/My Note (v2) Ünïcode.md", "content": "x" }));
    assert_eq!(created["id"], "notes/my note (v2) ünïcode.md");
    assert_eq!(client.read("Notes/my note (v2) ünïcode.md"), "x", "the folder keeps its case");
}

#[test]
fn title_is_the_argument_or_the_file_name() {
    let mut client = Client::open("");
    let mut title = |arguments: Value| client.answer("create_node", arguments)["title"].clone();
    assert_eq!(title(json!({ "id": "a-b.md", "content": "" })), "A B");
    assert_eq!(title(json!({ "id": "c.md", "content": "", "title": "See: #1" })), "See: #1");
    assert!(client.read("c.md").starts_with("---\ntitle: "));
}

#[test]
fn create_node_creates_folders_and_overwrites_no_note_in_any_case() {
    let mut client = Client::open("//- Old/Note.md\nold\n");
    client.answer("create_node", json!({ "id": "very/deep/down/a.md", "content": "new" }));
    assert_eq!(client.read("very/deep/down/a.md"), "new");
    for id in ["old/note.md", "OLD/NOTE.MD", "Old/Note.md", "very/deep/down/a.md"] {
        let (code, _) = client.error("create_node", json!({ "id": id, "content": "other" }));
        assert_eq!(code, "NODE_EXISTS", "{id}");
    }
    assert_eq!(client.read("Old/Note.md"), "old\n");
    assert_eq!(client.read("very/deep/down/a.md"), "new");
}

#[test]
fn update_changes_only_the_named_fields() {
    let mut client =
        Client::open("//- notes/a.md\n---\ntags: [x]\nstatus: draft\n---\nold text [[b]]\n//- notes/b.md\n[[a]]\n");
    let updated = client.answer("update_node", json!({ "id": "Notes/A.md", "content": "new text\n" }));
    let node = json!({
        "id": "notes/a.md", "title": "A", "version": "42ca2f0e15fd005c", "content": "new text\n", "tags": ["x"], "links": [],
        "properties": { "status": "draft" },
    });
    assert_eq!(updated, node);
    let updated = client.answer("update_node", json!({ "id": "notes/a.md", "tags": ["y", "z"] }));
    assert_eq!((&updated["tags"], &updated["content"]), (&json!(["y", "z"]), &json!("new text\n")));
    assert_eq!(client.answer("get_node", json!({ "id": "notes/a.md" })), updated);
    assert_eq!(client.answer("update_node", json!({ "id": "notes/a.md", "tags": [] }))["tags"], json!([]));
    assert!(client.read("notes/a.md").ends_with("status: draft\n---\nnew text\n"));
}

#[test]
fn a_new_title_renames_the_file() {
    let mut client = Client::open("//- notes/draft.md\ntext\n");
    let updated = client.answer("update_node", json!({ "id": "notes/draft.md", "title": "The Final Word" }));
    assert_eq!((&updated["id"], &updated["title"]), (&json!("notes/the final word.md"), &json!("The Final Word")));
    assert_eq!(client.read("notes/The Final Word.md"), "---\ntitle: The Final Word\n---\ntext\n");
    let exist = json!({ "ids": ["notes/draft.md", "notes/the final word.md"] });
    let now = json!({ "notes/draft.md": false, "notes/the final word.md": true });
    assert_eq!(client.answer("nodes_exist", exist), now);
    assert!(!client.has("notes/draft.md"));
}

#[test]
fn linked_node_is_renamed_only_with_update_links() {
    let mut client = Client::open(ROUX);
    let before = client.read("notes/GraphCore.md");
    let (code, message) =
        client.error("update_node", json!({ "id": "notes/graphcore.md", "title": "Core", "content": "new" }));
    assert_eq!(code, "LINK_INTEGRITY");
    assert!(message.contains("update_links"), "{message}");
    assert_eq!(client.read("notes/GraphCore.md"), before, "nothing is written by half");

    client.answer("update_node", json!({ "id": "notes/graphcore.md", "content": "new" }));
    client.answer("update_node", json!({ "id": "notes/graphcore.md", "tags": ["hub"] }));

    let renamed =
        client.answer("update_node", json!({ "id": "notes/graphcore.md", "title": "Core", "update_links": true }));
    assert_eq!(renamed["id"], "notes/core.md");
    assert!(client.read("notes/architecture.md").ends_with("Roux is built around the [[Core]].\n"));
    let linking = client.answer("get_neighbors", json!({ "id": "notes/core.md", "direction": "in" }));
    assert_eq!(linking[0]["id"], "notes/architecture.md");
}

#[test]
fn rename_does_not_overwrite_another_note() {
    let mut client = Client::open("//- a.md\na\n//- B.md\nb\n");
    let (code, _) = client.error("update_node", json!({ "id": "a.md", "title": "b" }));
    assert_eq!(code, "NODE_EXISTS");
    assert_eq!((client.read("a.md"), client.read("B.md")), ("a\n".to_owned(), "b\n".to_owned()));
}

#[test]
fn a_node_is_deleted_once() {
    let mut client = Client::open("//- notes/Old-Draft.md\ntext\n");
    assert_eq!(client.answer("delete_node", json!({ "id": "notes/old-draft.md" })), json!({ "deleted": true }));
    assert!(!client.has("notes/Old-Draft.md"));
    assert_eq!(client.answer("delete_node", json!({ "id": "notes/old-draft.md" })), json!({ "deleted": false }));
}
