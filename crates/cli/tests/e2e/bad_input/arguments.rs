//! Hostile arguments: null bytes, ten megabytes, deeply nested JSON, invalid UTF-8.

use serde_json::{Value, json};

use super::{still_answers, tells_no_tales, unharmed};
use crate::client::Client;

const VAULT: &str = "//- a.md\n#t [[b]]\n# H\n//- b.md\nb\n";

/// Every tool with every string it takes, as a call that has `text` there.
fn every_string(text: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("get_node", json!({ "id": text })),
        ("get_neighbors", json!({ "id": text })),
        ("get_neighbors", json!({ "id": "a.md", "direction": text })),
        ("find_path", json!({ "source": text, "target": "b.md" })),
        ("find_path", json!({ "source": "a.md", "target": text })),
        ("get_hubs", json!({ "metric": text })),
        ("search_by_tags", json!({ "tags": [text] })),
        ("search_by_tags", json!({ "tags": ["t"], "mode": text })),
        ("random_node", json!({ "tags": [text] })),
        ("list_nodes", json!({ "tag": text })),
        ("list_nodes", json!({ "path": text })),
        ("list_nodes", json!({ "limit": text })),
        ("resolve_nodes", json!({ "names": [text] })),
        ("resolve_nodes", json!({ "names": ["a"], "strategy": text })),
        ("resolve_nodes", json!({ "names": ["a"], "tag": text })),
        ("resolve_nodes", json!({ "names": ["a"], "path": text })),
        ("nodes_exist", json!({ "ids": [text] })),
        ("create_node", json!({ "id": text, "content": "x" })),
        ("update_node", json!({ "id": text, "content": "x" })),
        ("update_node", json!({ "id": "a.md", "title": text })),
        ("delete_node", json!({ "id": text })),
        ("list_documents", json!({ "section": text })),
        ("get_document", json!({ "path": text })),
        ("search_docs", json!({ "query": text })),
        ("get_node", json!({ "id": "a.md", text: 1 })),
        ("get_node", json!({ "id": "a.md", "section": text })),
        ("edit_node", json!({ "id": text, "edits": [{ "op": "append", "text": "x" }] })),
        ("edit_node", edit(&json!({ "op": text, "text": "x" }))),
        ("edit_node", edit(&json!({ "op": "append", "text": text }))),
        ("edit_node", edit(&json!({ "op": "delete_section", "heading": text }))),
        ("edit_node", edit(&json!({ "op": "replace", "old": text, "new": "x" }))),
        ("edit_node", edit(&json!({ "op": "replace", "old": "#t", "new": text }))),
        ("edit_node", edit(&json!({ "op": "set_property", "key": text, "value": "x" }))),
        ("edit_node", edit(&json!({ "op": "set_property", "key": "x", "value": text }))),
        ("edit_node", edit(&json!({ "op": "add_tags", "tags": [text] }))),
        ("edit_node", edit(&json!({ "op": "set_task", "text": text, "done": true }))),
        ("edit_node", edit(&json!({ "op": "prepend", "text": text }))),
        ("edit_node", edit(&json!({ "op": "insert", "heading": text, "position": "end", "text": "x" }))),
        ("edit_node", edit(&json!({ "op": "insert", "heading": "H", "position": text, "text": "x" }))),
        ("edit_node", edit(&json!({ "op": "insert", "heading": "H", "position": "end", "text": text }))),
        ("edit_node", edit(&json!({ "op": "replace_section", "heading": text, "text": "x" }))),
        ("edit_node", edit(&json!({ "op": "replace_section", "heading": "H", "text": text }))),
        ("edit_node", edit(&json!({ "op": "remove_property", "key": text }))),
        ("edit_node", edit(&json!({ "op": "remove_tags", "tags": [text] }))),
        ("edit_node", json!({ "id": "a.md", "edits": [{ "op": "append", "text": "x" }], "expected_version": text })),
        ("move_node", json!({ "id": text, "to": "c.md" })),
        ("move_node", json!({ "id": format!("{text}/"), "to": "c/" })),
        ("move_node", json!({ "id": "a.md", "to": text })),
        ("move_node", json!({ "id": "none/", "to": format!("{text}/") })),
        ("query_nodes", json!({ "where": [{ "field": text, "op": "eq", "value": 1 }] })),
        ("query_nodes", json!({ "where": [{ "field": "title", "op": text, "value": 1 }] })),
        ("query_nodes", json!({ "where": [{ "field": "title", "op": "contains", "value": text }] })),
        ("query_nodes", json!({ "where": [{ "field": "modified", "op": "within", "value": text }] })),
        ("query_nodes", json!({ "sort": [{ "field": text }] })),
        ("query_nodes", json!({ "fields": [text] })),
        ("query_nodes", json!({ "group_by": text })),
        ("recent_changes", json!({ "since": text })),
        ("recent_changes", json!({ "cursor": text })),
        ("recent_changes", json!({ "by": text })),
        ("node_history", json!({ "id": text })),
        ("diff_node", json!({ "id": text, "from": "current" })),
        ("diff_node", json!({ "id": "a.md", "from": text })),
        ("revert_node", json!({ "id": "a.md", "version": text })),
        ("summarize_node", json!({ "id": text })),
        ("suggest_tags", json!({ "id": text })),
        ("extract_entities", json!({ "id": text })),
        ("extract_entities", json!({ "text": text })),
        ("undo_change", json!({ "change": text })),
        ("redact", json!({ "kind": text, "id": 1, "reason": "x" })),
        ("redact", json!({ "kind": "note", "id": text, "reason": "x" })),
        ("redact", json!({ "kind": "note", "id": "none.md", "reason": text })),
        ("update_observation", json!({ "observation_id": 99, "text_content": text })),
        ("create_node", json!({ "id": "new.md", "content": text, "dry_run": true })),
    ]
}

/// An edit that is not written.
fn edit(edit: &Value) -> Value {
    json!({ "id": "a.md", "edits": [edit], "dry_run": true })
}

/// The text of an answer or a failure; no call may end in an error of the protocol.
#[track_caller]
fn said(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {result}")).to_owned()
}

#[test]
fn null_byte_in_any_string_does_no_harm() {
    let mut client = Client::open(VAULT);
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for text in ["\0", "a.md\0", "a\0.md", "\0.md"] {
            for (tool, arguments) in every_string(text) {
                let text = said(client, tool, arguments);
                tells_no_tales(&text);
            }
        }
    });
    let answer = client.request("tools/call", json!({ "name": "get_node\0", "arguments": { "id": "a.md" } }));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn a_null_byte_in_a_notes_text_is_kept() {
    let mut client = Client::open(VAULT);
    client.answer("create_node", json!({ "id": "null.md", "content": "a\0b\n" }));
    assert_eq!(client.read("null.md"), "a\0b\n");
    assert_eq!(client.answer("get_document", json!({ "path": "null.md" }))["content"], "a\0b\n");
    // In frontmatter YAML forbids it as it is; whatever is written must be read again as the same.
    for (tool, arguments) in [
        ("create_node", json!({ "id": "tag.md", "content": "x", "tags": ["a\0b"] })),
        ("create_node", json!({ "id": "title.md", "content": "x", "title": "a\0b" })),
    ] {
        let result = client.call(tool, arguments.clone());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true || text.contains(r"a\u0000b"), "{arguments}: {text}");
        tells_no_tales(text);
    }
    still_answers(&mut client);
}

#[test]
fn ten_megabytes_in_any_string_are_answered() {
    let mut client = Client::open(VAULT);
    let root = client.root().to_owned();
    let big = "x".repeat(10_000_000);
    unharmed(&mut client, &root, |client| {
        for (tool, arguments) in every_string(&big) {
            let text = said(client, tool, arguments.clone());
            // These say back what was asked, as their shape wants it; the last in a diff, which is cut.
            let says_back = ["nodes_exist", "list_documents", "edit_node"].contains(&tool);
            assert!(says_back || text.len() < 5_000, "{tool} says {} bytes", text.len());
        }
        let many: Vec<String> = (0..300_000).map(|n| format!("note number {n:018}")).collect();
        for (tool, name) in
            [("nodes_exist", "ids"), ("resolve_nodes", "names"), ("search_by_tags", "tags"), ("random_node", "tags")]
        {
            let (code, message) = client.error(tool, json!({ name: many }));
            assert_eq!(code, "INVALID_PARAMS", "{tool}: {message}");
        }
    });
}

#[test]
fn note_of_ten_megabytes_is_accepted() {
    let mut client = Client::open(VAULT);
    let big = "word ".repeat(2_000_000);
    let created = client.answer("create_node", json!({ "id": "big.md", "content": big }));
    assert_eq!(created["content"].as_str().unwrap().chars().count(), 10_000);
    assert_eq!(client.read("big.md"), big);
    assert_eq!(client.answer("get_document", json!({ "path": "big.md" }))["size"], big.len());
    let bigger = big.replace("word", "term");
    client.answer("update_node", json!({ "id": "big.md", "content": bigger }));
    assert_eq!(client.read("big.md"), bigger);
    still_answers(&mut client);
}

#[test]
fn deep_json_is_refused_and_the_next_line_is_read() {
    let mut client = Client::open(VAULT);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let object = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    for value in [&deep, &object] {
        for params in [
            format!(r#"{{"name":"get_node","arguments":{{"id":{value}}}}}"#),
            format!(r#"{{"name":"get_node","arguments":{{"id":"a.md","x":{value}}}}}"#),
            format!(r#"{{"name":"get_node","arguments":{value}}}"#),
            value.clone(),
        ] {
            client.send_line(
                format!(r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{params}}}"#).as_bytes(),
            );
            let answer = client.receive();
            let is_told = answer["error"]["code"].is_i64() || answer["result"]["isError"] == true;
            assert!(is_told, "{answer}");
        }
        still_answers(&mut client);
    }
}

#[test]
fn json_that_is_deep_but_readable_is_a_wrong_argument() {
    let mut client = Client::open(VAULT);
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    let (code, message) = client.error("get_node", json!({ "id": deep }));
    assert_eq!(code, "INVALID_PARAMS");
    assert!(message.contains("`id`") && message.len() < 500, "{message}");
}

#[test]
fn invalid_utf8_anywhere_is_a_parse_error() {
    let mut client = Client::open(VAULT);
    let root = client.root().to_owned();
    let around = |bytes: &[u8]| {
        let before = br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"create_node","arguments":{"id":"x.md","content":""#;
        [before.as_slice(), bytes, br#""}}}"#].concat()
    };
    unharmed(&mut client, &root, |client| {
        // A lone byte, a cut sequence, an overlong slash, half a surrogate pair, beyond Unicode; last in an escape.
        for bytes in [&b"\xff"[..], b"\xe2\x82", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", br"\ud800"] {
            client.send_line(&around(bytes));
            assert_eq!(client.receive()["error"]["code"], -32700, "{bytes:?}");
        }
    });
    client.send_line(&around("é".as_bytes()));
    assert_eq!(client.receive()["id"], 5, "and the same line with good bytes is a call");
    assert_eq!(client.read("x.md"), "é");
}
