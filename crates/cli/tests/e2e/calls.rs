//! Tools as a client sees them: what is listed, and what an answer looks like in each generation.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::client::{Client, LEGACY, first_block, modern, vault, warnings};

const VAULT: &str = "\
//- a.md
---
tags: [x]
---
Links to [[b]] and [[nowhere]].
//- b.md
Alone.
";

#[test]
fn every_tool_has_a_schema_and_annotations() {
    let mut client = Client::connect(VAULT, LEGACY);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(client.request("tools/list", json!({}))["result"]["tools"], tools, "the list is stable");
    for tool in tools.as_array().unwrap() {
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let hints = &tool["annotations"];
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint"] {
            assert!(hints[hint].is_boolean(), "{tool}");
        }
        assert_eq!(hints["openWorldHint"], false);
    }
}

/// Every byte of the list is in the context of an agent that may never call most of it.
#[test]
fn the_list_of_tools_is_short() {
    let listed = |client: &mut Client| client.request("tools/list", json!({}))["result"]["tools"].clone();
    for version in [LEGACY, "2025-06-18"] {
        let bytes = listed(&mut Client::connect(VAULT, version)).to_string().len();
        assert!(bytes < 60_000, "{version}: {bytes} bytes");
    }
    let mut essential = listed(&mut Client::open_in(vault(VAULT), &["--toolsets", "essential"]));
    let tools = essential.as_array_mut().unwrap();
    tools.iter_mut().for_each(|tool| drop(tool.as_object_mut().unwrap().remove("outputSchema")));
    assert!(tools.len() <= 14, "{} tools", tools.len());
    let bytes = essential.to_string().len();
    assert!(bytes < 12 * 1024, "essential: {bytes} bytes");
}

#[test]
fn an_output_schema_is_promised_to_older_clients_only_for_objects() {
    let mut client = Client::connect(VAULT, LEGACY);
    let listed = |answer: Value| answer["result"]["tools"].as_array().unwrap().clone();
    for tool in listed(client.request("tools/list", modern(json!({})))) {
        assert!(tool["outputSchema"].is_object(), "{tool}");
    }
    for tool in listed(client.request("tools/list", json!({}))) {
        assert!(tool.get("outputSchema").is_none_or(|schema| schema["type"] == "object"), "{tool}");
    }
}

#[test]
fn an_object_is_structured_for_every_client() {
    let mut client = Client::connect(VAULT, "2024-11-05");
    let arguments = json!({ "ids": ["a.md", "c.md"] });
    let older = client.call("nodes_exist", arguments.clone());
    assert_eq!(older["structuredContent"], json!({ "a.md": true, "c.md": false }));
    assert_eq!(first_block(&older), older["structuredContent"]);
    let call = modern(json!({ "name": "nodes_exist", "arguments": arguments }));
    let newer = client.request("tools/call", call)["result"].clone();
    assert_eq!(newer["structuredContent"], older["structuredContent"]);
}

#[test]
fn a_list_or_null_is_structured_only_without_handshake() {
    let mut client = Client::connect(VAULT, LEGACY);
    let neighbors = json!({ "name": "get_neighbors", "arguments": { "id": "a.md" } });
    let nothing = json!({ "name": "get_node", "arguments": { "id": "none.md" } });
    for (call, kind) in [(neighbors, "array"), (nothing, "null")] {
        let older = client.request("tools/call", call.clone())["result"].clone();
        assert!(older.get("structuredContent").is_none(), "{kind}: {older}");
        let newer = client.request("tools/call", modern(call))["result"].clone();
        assert_eq!(newer.get("structuredContent"), Some(&first_block(&older)), "{kind}");
    }
}

#[test]
fn broken_links_of_other_notes_are_counted_and_those_of_the_note_listed() {
    let links: String = (0..12).map(|number| format!("[[nowhere {number}]] ")).collect();
    let mut client = Client::open(&format!("//- a.md\n{links}\n//- b.md\n[[missing]]\n"));
    let counted = "the vault has 12 broken links; `quipu doctor` lists them";
    assert_eq!(
        warnings(&client.call("get_node", json!({ "id": "b.md" }))),
        ["\"b.md\": broken link to \"missing\"", counted]
    );
    assert_eq!(warnings(&client.call("list_nodes", json!({}))), [""; 0]);
    let told = warnings(&client.call("get_node", json!({ "id": "a.md" })));
    assert_eq!((told.len(), told[0].as_str()), (11, "\"a.md\": broken link to \"nowhere 0\""), "{told:?}");
    assert_eq!(warnings(&client.call("get_node", json!({ "id": "a.md" }))), [""; 0]);
    let made = client.call("create_node", json!({ "id": "c.md", "content": "[[not there]]" }));
    assert_eq!(warnings(&made), ["\"c.md\": broken link to \"not there\""]);
}

#[test]
fn warnings_are_sent_once_in_their_own_block() {
    let mut client = Client::connect(VAULT, LEGACY);
    let first = client.call("list_nodes", json!({}));
    let block: Value = serde_json::from_str(first["content"][1]["text"].as_str().unwrap()).unwrap();
    assert!(block["_warnings"][0].as_str().unwrap().contains("nowhere"), "{block}");
    assert_eq!(first["_meta"]["quipu/warnings"], block["_warnings"]);
    assert_eq!(first_block(&first), first["structuredContent"], "the answer itself keeps its shape");
    let second = client.call("list_nodes", json!({}));
    assert_eq!(second["content"].as_array().unwrap().len(), 1);
    assert!(second.get("_meta").is_none());
}

#[test]
fn failed_call_is_a_result_with_is_error() {
    let mut client = Client::connect(VAULT, LEGACY);
    let result = client.call("get_document", json!({ "path": "none.md" }));
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "Error: Document not found: none.md");
    assert!(result.get("structuredContent").is_none());
}

#[test]
fn a_thousand_calls_written_before_the_first_answer_is_read_are_all_answered() {
    let mut client = Client::connect(VAULT, LEGACY);
    let call = json!({ "name": "nodes_exist", "arguments": { "ids": ["a.md"] } });
    let sent: HashSet<i64> = (0..1000).map(|_| client.send("tools/call", call.clone())).collect();
    let answered: HashSet<i64> = (0..1000).map(|_| client.receive()["id"].as_i64().unwrap()).collect();
    assert_eq!(answered, sent);
}
