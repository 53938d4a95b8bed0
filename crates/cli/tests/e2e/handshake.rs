//! How a conversation begins: with a handshake in one of four versions, without one, or with none at all.

use serde_json::json;

use crate::client::{Client, LEGACY, MODERN, modern};

const VAULT: &str = "//- a.md\n# A\n";

#[test]
fn every_version_with_a_handshake_is_accepted() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let mut client = Client::start(VAULT);
        let result = client.initialize(version);
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "quipu");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            result["capabilities"],
            json!({ "completions": {}, "prompts": {}, "resources": { "subscribe": true, "listChanged": true }, "tools": { "listChanged": true } })
        );
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.contains("get_node") && instructions.len() <= 1500, "{instructions}");
        assert!(result.get("resultType").is_none());
    }
}

#[test]
fn a_handshake_for_another_version_is_answered_with_the_newest_that_has_one() {
    for version in [MODERN, "1999-01-01", "2099-01-01"] {
        let mut client = Client::start(VAULT);
        assert_eq!(client.initialize(version)["protocolVersion"], LEGACY);
        // And that is what is spoken from now on.
        assert!(client.request("tools/list", json!({}))["result"].get("resultType").is_none());
    }
}

#[test]
fn client_without_handshake_discovers_and_calls() {
    let mut client = Client::start(VAULT);
    let discovered = client.request("server/discover", modern(json!({})))["result"].clone();
    let versions = discovered["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!("2024-11-05")), "{versions:?}");
    assert_eq!(discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "quipu");
    assert_eq!(discovered["resultType"], "complete");
    assert!(discovered["instructions"].is_string());

    let listed = client.request("tools/list", modern(json!({})))["result"].clone();
    assert_eq!(listed["resultType"], "complete");
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "caching hints are required");
    let called = client.request("tools/call", modern(json!({ "name": "list_nodes", "arguments": {} })));
    assert_eq!(called["result"]["resultType"], "complete");
}

#[test]
fn calls_before_the_handshake_are_answered_in_the_older_format() {
    let mut client = Client::start(VAULT);
    let tools = client.request("tools/list", json!({}))["result"].clone();
    assert!(tools["tools"].as_array().unwrap().len() > 10);
    assert!(tools.get("resultType").is_none());
    let called = client.call("list_documents", json!({}));
    assert_eq!(called["structuredContent"]["total"], 1);
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert_eq!(client.initialize(LEGACY)["protocolVersion"], LEGACY);
}

#[test]
fn both_protocol_generations_work_on_one_connection() {
    let mut client = Client::connect(VAULT, "2025-06-18");
    let hubs = json!({ "name": "get_hubs", "arguments": {} });
    let older = client.request("tools/call", hubs.clone())["result"].clone();
    let newer = client.request("tools/call", modern(hubs.clone()))["result"].clone();
    assert!(older.get("structuredContent").is_none());
    assert!(newer["structuredContent"].is_array());
    assert!(client.request("tools/call", hubs)["result"].get("resultType").is_none());
}

#[test]
fn a_call_written_right_behind_the_handshake_is_answered_after_it() {
    for _ in 0..20 {
        let mut client = Client::start(VAULT);
        let info = json!({ "name": "raw", "version": "1" });
        let hello = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info });
        let (first, second) = (client.send("initialize", hello), client.send("tools/list", json!({})));
        assert_eq!(client.receive()["id"], first);
        assert_eq!(client.receive()["id"], second);
    }
}

#[test]
fn unknown_protocol_version_is_refused_per_request() {
    let mut client = Client::start(VAULT);
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let error = client.request("tools/list", params)["error"].clone();
    assert!(error["data"]["supported"].as_array().unwrap().contains(&json!(MODERN)), "{error}");
}

#[test]
fn discovery_without_its_metadata_is_refused() {
    let mut client = Client::start(VAULT);
    assert_eq!(client.request("server/discover", json!({}))["error"]["code"], -32602);
}
