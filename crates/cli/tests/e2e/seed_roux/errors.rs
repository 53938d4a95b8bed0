//! The tables of errors, of what is no error, and warnings.

use serde_json::{Value, json};

use super::ROUX;
use crate::client::{Client, first_block, warnings};

#[test]
fn every_error_code_is_returned() {
    let mut client = Client::open(ROUX);
    // An edit made elsewhere after this client read the note stands for whatever a write may meet.
    client.answer("get_node", json!({ "id": "notes/architecture.md" }));
    client.write("notes/architecture.md", "made in an editor");
    for (code, tool, arguments) in [
        ("INVALID_PARAMS", "get_node", json!({})),
        ("INVALID_PARAMS", "create_node", json!({ "id": "a.md" })),
        ("INVALID_PARAMS", "create_node", json!({ "id": "a.txt", "content": "" })),
        ("INVALID_PARAMS", "update_node", json!({ "id": "notes/node.md" })),
        ("NODE_EXISTS", "create_node", json!({ "id": "notes/node.md", "content": "" })),
        ("NODE_NOT_FOUND", "update_node", json!({ "id": "none.md", "content": "" })),
        ("LINK_INTEGRITY", "update_node", json!({ "id": "notes/node.md", "title": "N" })),
        ("PROVIDER_ERROR", "update_node", json!({ "id": "notes/architecture.md", "content": "" })),
    ] {
        let text = client.failure(tool, arguments.clone());
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"]["code"], code, "{tool} {arguments}: {text}");
        assert!(error["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
        assert_eq!(error.as_object().unwrap().len(), 1, "the shape is {{error: {{code, message}}}}: {text}");
        assert_eq!(error["error"].as_object().unwrap().len(), 2, "{text}");
    }
}

#[test]
fn missing_notes_are_no_error() {
    let mut client = Client::open(ROUX);
    for (tool, arguments, answer) in [
        ("get_node", json!({ "id": "none.md" }), Value::Null),
        ("get_node", json!({ "id": "none.md", "depth": 1 }), Value::Null),
        ("delete_node", json!({ "id": "none.md" }), json!({ "deleted": false })),
        ("find_path", json!({ "source": "notes/node.md", "target": "notes/graphcore.md" }), Value::Null),
        ("get_neighbors", json!({ "id": "notes/node.md", "direction": "out" }), json!([])),
        ("get_neighbors", json!({ "id": "none.md" }), json!([])),
        ("search_by_tags", json!({ "tags": ["none"] }), json!([])),
        ("random_node", json!({ "tags": ["none"] }), Value::Null),
        ("list_nodes", json!({ "path": "none/" }), json!({ "nodes": [], "total": 0 })),
    ] {
        assert_eq!(client.answer(tool, arguments.clone()), answer, "{tool} {arguments}");
    }
}

#[test]
fn warning_is_sent_once_with_the_next_answer() {
    let mut client = Client::open("//- a.md\n[[missing]]\n//- b.md\n---\nx: [\n---\n");
    let first = client.call("nodes_exist", json!({ "ids": ["a.md"] }));
    assert_eq!(first_block(&first), json!({ "a.md": true }), "the answer keeps its shape");
    let told = warnings(&first);
    assert!(told.iter().any(|line| line.starts_with("\"a.md\": ") && line.contains("missing")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("\"b.md\": ") && line.contains("frontmatter")), "{told:?}");
    assert_eq!(warnings(&client.call("nodes_exist", json!({ "ids": ["a.md"] }))), [""; 0]);

    // Reading a note that was changed meanwhile takes the change in, and with it what is odd about it.
    client.write("a.md", "[[missing too]]\n");
    let mut told = warnings(&client.call("get_node", json!({ "id": "a.md" })));
    told.retain(|line| line.contains("missing too"));
    assert_eq!(told.len(), 1);
}
