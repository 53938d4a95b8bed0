//! Names that meet: two files for one id, one name in two normal forms, letters whose capitals are longer.

use serde_json::json;

use crate::client::{Client, first_block, ids, skip, warnings};

/// Whether this disk tells capitals apart. Where it does not, two files can never meet.
fn tells_capitals_apart(client: &Client) -> bool {
    !client.root().join("A.MD").exists()
}

#[test]
fn two_files_that_differ_in_capitals_are_both_safe() {
    let mut client = Client::open("//- A.md\nupper\n//- a.md\nlower\n//- b.md\n[[a]]\n");
    if !tells_capitals_apart(&client) {
        return skip("this disk does not tell capitals apart");
    }
    let listed = client.call("list_nodes", json!({}));
    assert_eq!(ids(&first_block(&listed)["nodes"]), ["a.md", "b.md"], "the first in byte order owns the id");
    let told = warnings(&listed);
    assert!(told.iter().any(|line| line.starts_with("\"a.md\": ") && line.contains("capitals")), "{told:?}");
    assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "upper\n");
    assert_eq!(client.answer("list_documents", json!({}))["total"], 3, "both are documents");
    assert_eq!(client.answer("get_document", json!({ "path": "a.md" }))["content"], "lower\n");
    assert_eq!(client.answer("get_document", json!({ "path": "A.md" }))["content"], "upper\n");

    assert_eq!(client.error("create_node", json!({ "id": "a.md", "content": "x" })).0, "NODE_EXISTS");
    client.answer("update_node", json!({ "id": "a.md", "content": "new upper\n" }));
    assert_eq!((client.read("A.md").as_str(), client.read("a.md").as_str()), ("new upper\n", "lower\n"));
    assert_eq!(client.error("update_node", json!({ "id": "b.md", "title": "a" })).0, "NODE_EXISTS");

    // With its owner gone the id belongs to the other.
    assert_eq!(client.answer("delete_node", json!({ "id": "a.md" })), json!({ "deleted": true }));
    assert_eq!(client.read("a.md"), "lower\n");
    assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "lower\n");
}

#[test]
fn a_name_in_another_normal_form_is_the_same_name() {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    let mut client = Client::open(&format!("//- {decomposed}.md\ntext\n//- a.md\n[[{composed}]] [x]({composed}.md)\n"));
    let id = format!("{decomposed}.md");
    assert_eq!(ids(&client.answer("get_neighbors", json!({ "id": "a.md" }))), [id.as_str()]);
    assert_eq!(client.answer("resolve_nodes", json!({ "names": [composed], "strategy": "exact" }))[0]["match"], id);
    let (code, _) = client.error("create_node", json!({ "id": format!("{composed}.md"), "content": "x" }));
    assert_eq!(code, "NODE_EXISTS");
    assert_eq!(client.read(&id), "text\n");
}

#[test]
fn a_letter_whose_small_form_is_longer_is_found_again() {
    let mut client = Client::open("//- \u{130}stanbul.md\ntext\n");
    let id = "\u{130}stanbul.md".to_lowercase();
    assert_eq!(client.answer("nodes_exist", json!({ "ids": ["\u{130}stanbul.md"] })), json!({ &id: true }));
    assert_eq!(client.answer("get_node", json!({ "id": id }))["content"], "text\n");
    client.answer("update_node", json!({ "id": id, "content": "new\n" }));
    assert_eq!(client.read("\u{130}stanbul.md"), "new\n");
    client.answer("create_node", json!({ "id": "\u{1e9e}.md", "content": "x" }));
    assert_eq!(client.read("\u{df}.md"), "x");
}

#[test]
fn what_would_not_be_seen_is_not_made() {
    let mut client = Client::open("//- .gitignore\ndrafts/\n*.tmp.md\n//- a.md\na\n");
    for id in ["drafts/new.md", "x.tmp.md"] {
        let (code, message) = client.error("create_node", json!({ "id": id, "content": "x" }));
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains(".gitignore"), "{message}");
        assert!(!client.root().join(id).exists());
    }
    let (code, _) = client.error("update_node", json!({ "id": "a.md", "title": "x.tmp" }));
    assert_eq!(code, "INVALID_PARAMS");
    assert_eq!(client.read("a.md"), "a\n");
}
