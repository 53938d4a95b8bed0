//! Edits made elsewhere are never written over by a client that does not know them.

#![expect(clippy::disallowed_methods, reason = "another program's edits are made here")]

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, LEGACY, files_below, serve_command, vault};

const VAULT: &str = "//- a.md\n#t first\n//- b.md\n[[a]]\n";

/// Every write to a note, none of which may happen.
fn writes(id: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("update_node", json!({ "id": id, "content": "mine" })),
        ("update_node", json!({ "id": id, "tags": ["mine"] })),
        ("update_node", json!({ "id": id, "title": "Mine", "update_links": true })),
        ("delete_node", json!({ "id": id })),
        ("edit_node", json!({ "id": id, "edits": [{ "op": "append", "text": "mine" }] })),
    ]
}

#[track_caller]
fn refused(client: &mut Client, id: &str) {
    let before = files_below(client.root());
    for (tool, arguments) in writes(id) {
        let (code, message) = client.error(tool, arguments.clone());
        assert_eq!(code, "PROVIDER_ERROR", "{tool} {arguments}: {message}");
        assert!(message.contains("changed elsewhere") && message.contains("Read it again"), "{message}");
    }
    assert_eq!(files_below(client.root()), before);
}

#[test]
fn a_client_that_was_shown_another_version_is_refused_until_it_reads_again() {
    for (tool, arguments) in [
        ("get_node", json!({ "id": "a.md" })),
        ("get_document", json!({ "path": "a.md" })),
        ("random_node", json!({ "tags": ["t"] })),
        ("update_node", json!({ "id": "a.md", "content": "#t second" })),
    ] {
        let mut client = Client::open(VAULT);
        client.answer(tool, arguments);
        client.write("a.md", "---\ntitle: Edited\n---\nmade in an editor\n");
        refused(&mut client, "a.md");
        // That the server has seen it by now changes nothing: it is this client that must.
        let known = json!([{ "query": "Edited", "match": "a.md", "score": 1.0 }]);
        client.wait_for("resolve_nodes", json!({ "names": ["Edited"], "strategy": "exact" }), &known);
        refused(&mut client, "a.md");

        assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "made in an editor\n");
        client.answer("update_node", json!({ "id": "a.md", "content": "mine" }));
        assert_eq!(client.read("a.md"), "---\ntitle: Edited\n---\nmine", "{tool}");
    }
}

#[test]
fn own_new_note_edited_elsewhere_is_not_overwritten() {
    let mut client = Client::open("");
    client.answer("create_node", json!({ "id": "new.md", "content": "mine" }));
    client.write("new.md", "somebody's\n");
    refused(&mut client, "new.md");
}

#[test]
fn client_that_read_nothing_may_not_overwrite_unindexed_changes() {
    let mut client = Client::open_in(vault(VAULT), &["--no-watch"]);
    client.answer("list_nodes", json!({}));
    client.write("a.md", "#t made in an editor\n");
    refused(&mut client, "a.md");
    // The beginning of a text among others is not the note.
    assert_eq!(client.answer("search_by_tags", json!({ "tags": ["t"] }))[0]["content"], "#t made in an editor\n");
    refused(&mut client, "a.md");
    client.answer("get_node", json!({ "id": "a.md" }));
    client.answer("update_node", json!({ "id": "a.md", "content": "mine" }));
    assert_eq!(client.read("a.md"), "mine");
}

#[test]
fn client_that_read_nothing_may_write_indexed_versions() {
    let mut client = Client::open(VAULT);
    client.write("a.md", "---\ntitle: Edited\n---\n");
    let found = json!([{ "query": "Edited", "match": "a.md", "score": 1.0 }]);
    client.wait_for("resolve_nodes", json!({ "names": ["Edited"], "strategy": "exact" }), &found);
    client.answer("update_node", json!({ "id": "a.md", "content": "mine" }));
    assert_eq!(client.read("a.md"), "---\ntitle: Edited\n---\nmine");
}

#[test]
fn rename_is_refused_if_a_linking_note_was_edited_elsewhere() {
    let mut client = Client::open_in(vault(VAULT), &["--no-watch"]);
    client.answer("get_node", json!({ "id": "a.md" }));
    client.write("b.md", "[[a]] and more\n");
    let before = files_below(client.root());
    let rename = json!({ "id": "a.md", "title": "New", "update_links": true });
    let (code, message) = client.error("update_node", rename.clone());
    assert_eq!(code, "PROVIDER_ERROR");
    assert!(message.contains("b.md"), "{message}");
    assert_eq!(files_below(client.root()), before);
    client.answer("get_node", json!({ "id": "b.md" }));
    client.answer("update_node", rename);
    assert_eq!(client.read("b.md"), "[[New]] and more\n");
}

#[test]
fn update_does_not_recreate_a_note_deleted_elsewhere() {
    let mut client = Client::open(VAULT);
    client.answer("get_node", json!({ "id": "a.md" }));
    std::fs::remove_file(client.root().join("a.md")).unwrap();
    let (code, _) = client.error("update_node", json!({ "id": "a.md", "content": "mine" }));
    assert_eq!(code, "NODE_NOT_FOUND");
    assert!(!client.root().join("a.md").exists());
    client.answer("create_node", json!({ "id": "a.md", "content": "new" }));
    assert_eq!(client.read("a.md"), "new");
}

#[test]
fn create_does_not_overwrite_a_file_created_elsewhere() {
    let mut client = Client::open_in(vault(VAULT), &["--no-watch"]);
    client.answer("list_nodes", json!({}));
    client.write("New.md", "somebody's\n");
    let (code, _) = client.error("create_node", json!({ "id": "new.md", "content": "mine" }));
    assert_eq!(code, "NODE_EXISTS");
    assert_eq!(client.read("New.md"), "somebody's\n");
}

#[test]
fn two_servers_on_one_vault_do_not_overwrite_each_other() {
    let mut one = Client::open(VAULT);
    let command = serve_command(one.root(), &[]);
    let mut other = Client::start_with(TempDir::new().unwrap(), command).shake_hands(LEGACY);
    one.answer("get_node", json!({ "id": "a.md" }));
    other.answer("get_node", json!({ "id": "a.md" }));
    one.answer("update_node", json!({ "id": "a.md", "content": "by one" }));
    let (code, _) = other.error("update_node", json!({ "id": "a.md", "content": "by the other" }));
    assert_eq!((code.as_str(), one.read("a.md").as_str()), ("PROVIDER_ERROR", "by one"));
    assert_eq!(other.answer("get_node", json!({ "id": "a.md" }))["content"], "by one");
    other.answer("update_node", json!({ "id": "a.md", "content": "by the other" }));
    let (code, _) = one.error("delete_node", json!({ "id": "a.md" }));
    assert_eq!((code.as_str(), one.read("a.md").as_str()), ("PROVIDER_ERROR", "by the other"));
}

/// The client read the notes that its rename rewrites, and goes on with them.
#[test]
fn own_write_counts_as_read_by_its_client_only() {
    let vault = vault("//- old.md\ntext\n//- linking.md\n[[old]]\n//- real/also.md\n[[old]]\n//- edited.md\n[[old]]\n");
    std::os::unix::fs::symlink("real", vault.path().join("linked")).unwrap();
    let mut client = Client::open_in(vault, &[]);
    let mut other = client.join(&[]);
    for id in ["old.md", "linking.md", "real/also.md", "linked/also.md"] {
        client.answer("get_node", json!({ "id": id }));
        other.answer("get_node", json!({ "id": id }));
    }
    client.answer("update_node", json!({ "id": "old.md", "title": "New", "update_links": true }));
    assert_eq!(client.read("linking.md"), "[[New]]\n");
    // Three writes in a row, the last two over what the one before left.
    for (id, content) in [("linking.md", "one"), ("linking.md", "two"), ("new.md", "three"), ("linked/also.md", "four")]
    {
        let answer = client.answer("update_node", json!({ "id": id, "content": content }));
        assert_eq!(answer["content"], content, "{id}");
    }
    // The same file by another path.
    client.answer("update_node", json!({ "id": "real/also.md", "content": "five" }));
    assert_eq!(client.read("real/also.md"), "five");
    refused(&mut other, "linking.md");
    refused(&mut other, "real/also.md");
}

#[test]
fn edit_that_a_client_did_not_read_is_not_hidden_by_its_own_rename() {
    let mut client = Client::open("//- old.md\ntext\n//- linking.md\n[[old]]\n");
    client.answer("get_node", json!({ "id": "linking.md" }));
    client.write("linking.md", "---\ntitle: Edited\n---\n[[old]] and more\n");
    let known = json!([{ "query": "Edited", "match": "linking.md", "score": 1.0 }]);
    client.wait_for("resolve_nodes", json!({ "names": ["Edited"], "strategy": "exact" }), &known);
    client.answer("update_node", json!({ "id": "old.md", "title": "New", "update_links": true }));
    refused(&mut client, "linking.md");
}
