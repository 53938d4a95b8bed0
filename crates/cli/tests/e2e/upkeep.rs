//! Repairs of memory over the real wire: correct, merge, undo.

use serde_json::{Value, json};

use crate::client::Client;

/// Two spellings of one person, and her project.
fn planted() -> Client {
    let mut client = Client::open("");
    client.answer(
        "bulk_update",
        json!({
            "entities": [
                {"name": "Clare Hughes", "entity_type": "Author", "observations": ["lives in Leeds"]},
                {"name": "Claire Hughes", "entity_type": "Author", "observations": ["plays the cello"]},
                {"name": "Harbour Survey", "entity_type": "Project"},
            ],
            "relations": [{"from_entity_id": "Clare Hughes", "to_entity_id": "Harbour Survey", "relation_type": "leads"}],
        }),
    );
    client
}

fn texts(client: &mut Client, entity: i64) -> Vec<Value> {
    let shown = client.answer("get_entity", json!({ "entity_id": entity }));
    shown["observations"].as_array().unwrap().iter().map(|seen| seen["observation_content"].clone()).collect()
}

#[test]
fn the_tools_are_marked_as_destructive() {
    let mut client = Client::open("");
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for name in ["merge_entities", "update_observation", "undo_change"] {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        assert_eq!(tool.unwrap()["annotations"]["destructiveHint"], true, "{name}");
    }
    let mut reader = client.join(&["--read-only"]);
    let refused = reader.request("tools/call", json!({ "name": "undo_change", "arguments": { "change": 1 } }));
    assert_eq!(refused["error"]["message"], "undo_change is not offered: this server is read-only");
}

#[test]
fn what_one_agent_did_another_undoes() {
    let mut client = planted();
    let merge = json!({ "entity_id": 1, "into_entity_id": 2 });
    let merged = client.answer("merge_entities", merge);
    let moved = json!({ "observations": 1, "relations": 1, "aliases": 1 });
    assert_eq!(merged, json!({ "entity_id": 2, "moved": moved, "change": 2 }));
    assert_eq!(texts(&mut client, 2), ["lives in Leeds", "plays the cello"]);
    let mut other = client.join(&[]);
    assert_eq!(other.answer("undo_change", json!({ "change": 2 }))["undone_by"], 3);
    assert_eq!(texts(&mut client, 1), ["lives in Leeds"]);
    assert_eq!(texts(&mut client, 2), ["plays the cello"]);
    let update = json!({ "observation_id": 1, "text_content": "lives in York" });
    assert_eq!(other.answer("update_observation", update)["observation_content"], "lives in York");
    assert_eq!(texts(&mut client, 1), ["lives in York"]);
    assert_eq!(client.answer("search_entities", json!({ "query": "York" }))[0]["entity_id"], 1);
    let log = client.run_command(&["audit", "--json"]);
    let log: Value = serde_json::from_str(&log).unwrap();
    let tools: Vec<&Value> = log.as_array().unwrap().iter().map(|entry| &entry["tool"]).collect();
    assert_eq!(tools, ["update_observation", "undo_change", "merge_entities", "bulk_update"]);
}
