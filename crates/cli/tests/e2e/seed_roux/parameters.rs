//! The tables of parameters: what each tool takes, with its defaults and limits, and that they are kept to.

use serde_json::{Value, json};

use super::ROUX;
use crate::client::{Client, vault};

/// The documents' input schemas without their descriptions.
fn seed_schemas() -> Vec<(&'static str, Value, Value)> {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let limit =
        |default: u32, maximum: u32| json!({ "type": "integer", "minimum": 1, "maximum": maximum, "default": default });
    let choice = |values: &[&str], default: &str| json!({ "type": "string", "enum": values, "default": default });
    let depth = json!({ "type": "integer", "minimum": 0, "maximum": 1, "default": 0 });
    let offset = json!({ "type": "integer", "minimum": 0, "default": 0 });
    let no = json!({ "type": "boolean", "default": false });
    let share = json!({ "type": "number", "minimum": 0, "maximum": 1, "default": 0.7 });
    let some_texts = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    let optional_texts = json!({ "type": "array", "items": { "type": "string" }, "default": [] });
    vec![
        ("get_node", json!({ "id": text, "depth": depth }), json!(["id"])),
        (
            "get_neighbors",
            json!({ "id": text, "direction": choice(&["in", "out", "both"], "both"), "limit": limit(20, 50), "include_content": no }),
            json!(["id"]),
        ),
        ("find_path", json!({ "source": text, "target": text }), json!(["source", "target"])),
        (
            "get_hubs",
            json!({ "metric": choice(&["in_degree", "out_degree"], "in_degree"), "limit": limit(10, 50) }),
            Value::Null,
        ),
        (
            "search_by_tags",
            json!({ "tags": some_texts, "mode": choice(&["any", "all"], "any"), "limit": limit(20, 100) }),
            json!(["tags"]),
        ),
        ("random_node", json!({ "tags": texts }), Value::Null),
        ("list_nodes", json!({ "tag": text, "path": text, "limit": limit(100, 1000), "offset": offset }), Value::Null),
        (
            "resolve_nodes",
            json!({ "names": texts, "strategy": choice(&["exact", "fuzzy", "semantic"], "fuzzy"), "threshold": share, "tag": text, "path": text }),
            json!(["names"]),
        ),
        ("nodes_exist", json!({ "ids": texts }), json!(["ids"])),
        (
            "create_node",
            json!({ "id": text, "content": text, "title": text, "tags": optional_texts }),
            json!(["id", "content"]),
        ),
        ("update_node", json!({ "id": text, "title": text, "content": text, "tags": texts }), json!(["id"])),
        ("delete_node", json!({ "id": text }), json!(["id"])),
    ]
}

/// Whether everything that one schema says is said by another, which may say more.
fn is_said_by(seed: &Value, ours: &Value) -> bool {
    match (seed, ours) {
        (Value::Object(seed), Value::Object(ours)) => {
            seed.iter().all(|(key, value)| ours.get(key).is_some_and(|said| is_said_by(value, said)))
        }
        (Value::Array(seed), Value::Array(ours)) => seed.iter().all(|value| ours.contains(value)),
        _ => seed == ours,
    }
}

#[test]
fn tools_have_the_documented_parameters() {
    let mut client = Client::open(ROUX);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for (name, properties, required) in seed_schemas() {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        let schema = &tool.unwrap_or_else(|| panic!("there is no {name}"))["inputSchema"];
        assert!(is_said_by(&properties, &schema["properties"]), "{name}: {properties} against {schema}");
        assert_eq!(schema["required"], required, "{name}");
    }
}

#[test]
fn search_does_not_exist_without_an_embedder() {
    if crate::team_wire::is_wanted() {
        return quipu_testkit::skip("the settings of a folder do not count for a database");
    }
    let fixture = format!("{ROUX}\n//- .quipu/config.toml\n[embedding]\nprovider = \"none\"\n");
    let mut client = Client::open_in(vault(&fixture), &["--toolsets", "notes"]);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, seed_schemas().into_iter().map(|(name, ..)| name).collect::<Vec<_>>());
    let answer = client.request("tools/call", json!({ "name": "search", "arguments": { "query": "x" } }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn documented_defaults_apply() {
    // 120 notes that link to the hub, carry a tag, and are linked by the hub.
    let mut fixture = String::from("//- hub.md\n");
    (0..120).for_each(|n| fixture.push_str(&format!("[[n{n:03}]] ")));
    (0..120).for_each(|n| fixture.push_str(&format!("\n//- n{n:03}.md\n#t [[hub]]")));
    let mut client = Client::open(&fixture);
    let mut count = |tool: &str, arguments: Value| {
        let answer = client.answer(tool, arguments);
        answer.get("nodes").unwrap_or(&answer).as_array().unwrap().len()
    };
    assert_eq!(count("get_neighbors", json!({ "id": "hub.md" })), 20);
    assert_eq!(count("get_neighbors", json!({ "id": "hub.md", "limit": 50 })), 50);
    assert_eq!(count("get_hubs", json!({})), 10);
    assert_eq!(count("get_hubs", json!({ "limit": 50 })), 50);
    assert_eq!(count("search_by_tags", json!({ "tags": ["t"] })), 20);
    assert_eq!(count("search_by_tags", json!({ "tags": ["t"], "limit": 100 })), 100);
    assert_eq!(count("list_nodes", json!({})), 100);
    assert_eq!(count("list_nodes", json!({ "limit": 1000 })), 121);
}

#[test]
fn values_outside_limits_are_refused_and_not_clamped() {
    let mut client = Client::open(ROUX);
    for (tool, arguments, argument) in [
        ("get_node", json!({ "id": "a.md", "depth": 2 }), "depth"),
        ("get_node", json!({ "id": "a.md", "depth": -1 }), "depth"),
        ("get_node", json!({ "id": "a.md", "depth": 0.5 }), "depth"),
        ("get_neighbors", json!({ "id": "a.md", "limit": 0 }), "limit"),
        ("get_neighbors", json!({ "id": "a.md", "limit": 51 }), "limit"),
        ("get_neighbors", json!({ "id": "a.md", "direction": "up" }), "direction"),
        ("get_neighbors", json!({ "id": "a.md", "include_content": "yes" }), "include_content"),
        ("get_hubs", json!({ "limit": 51 }), "limit"),
        ("get_hubs", json!({ "metric": "beauty" }), "metric"),
        ("search_by_tags", json!({ "tags": [] }), "tags"),
        ("search_by_tags", json!({ "tags": "t" }), "tags"),
        ("search_by_tags", json!({ "tags": ["t"], "limit": 101 }), "limit"),
        ("search_by_tags", json!({ "tags": ["t"], "mode": "none" }), "mode"),
        ("random_node", json!({ "tags": [1] }), "tags"),
        ("list_nodes", json!({ "limit": 1001 }), "limit"),
        ("list_nodes", json!({ "limit": "many" }), "limit"),
        ("list_nodes", json!({ "offset": -1 }), "offset"),
        ("resolve_nodes", json!({ "names": ["a"], "threshold": 1.1 }), "threshold"),
        ("resolve_nodes", json!({ "names": ["a"], "strategy": "psychic" }), "strategy"),
        ("nodes_exist", json!({ "ids": [null] }), "ids"),
        ("list_nodes", json!({ "tags": ["t"] }), "tags"),
    ] {
        let (code, message) = client.error(tool, arguments.clone());
        assert_eq!(code, "INVALID_PARAMS", "{tool} {arguments}");
        assert!(message.contains(&format!("`{argument}")), "{tool} {arguments}: {message}");
    }
}

#[test]
fn numeric_strings_are_accepted() {
    let mut client = Client::open(ROUX);
    assert_eq!(
        client.answer("list_nodes", json!({ "limit": "1", "offset": "1" }))["nodes"].as_array().unwrap().len(),
        1
    );
    assert!(client.answer("get_node", json!({ "id": "notes/node.md", "depth": "1" }))["incomingCount"].is_number());
}
