//! The document that the memory toolset comes from: every tool, every field, every error, over the real wire.

use serde_json::{Value, json};

use crate::client::{Client, first_block, vault, warnings};

/// Starts with a project, two parts of it and something else.
fn planted() -> Client {
    let mut client = Client::open("");
    let bulk = json!({
        "entities": [
            {"name": "Quipu", "entity_type": "repo", "aliases": "khipu|knots", "description": "Memory for agents"},
            {"name": "Storage layer", "entity_type": "component", "observations": ["Uses SQLite", "Keeps a log"]},
            {"name": "Write ahead log", "entity_type": "Concept"},
            {"name": "Lunch place", "entity_type": "Place", "observations": ["The log cabin has good soup"]},
        ],
        "relations": [
            {"from_entity_id": "Storage layer", "to_entity_id": "quipu", "relation_type": "part_of"},
            {"from_entity_id": "Write ahead log", "to_entity_id": "Storage layer", "relation_type": "part_of"},
        ],
    });
    client.answer("bulk_update", bulk);
    client
}

/// Takes the times out of an answer, everywhere, after a look at their form.
fn timeless(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(object) => {
                for name in ["created_at", "updated_at"] {
                    if let Some(time) = object.remove(name) {
                        let form: String =
                            time.as_str().unwrap().chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
                        assert_eq!(form, "0000-00-00T00:00:00.000Z");
                    }
                }
                object.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

fn error(client: &mut Client, tool: &str, arguments: Value) -> (String, String) {
    client.error(tool, arguments)
}

fn ids(found: &Value) -> Vec<i64> {
    found.as_array().unwrap().iter().map(|hit| hit["entity_id"].as_i64().unwrap()).collect()
}

fn not_found(kind: &str, id: i64) -> (String, String) {
    let next_step = match kind {
        "entity" => "search_entities finds entities and their ids".to_owned(),
        _ => format!("get_entity lists the {kind}s of an entity with their ids"),
    };
    ("ResourceNotFound".into(), format!("there is no {kind} {id}; {next_step}"))
}

fn invalid(message: &str) -> (String, String) {
    ("InvalidArguments".into(), message.into())
}

#[test]
fn all_twenty_tools_are_listed() {
    let mut client = Client::open("");
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in [
        "get_version",
        "get_current_time",
        "create_entity",
        "get_entity",
        "update_entity",
        "delete_entity",
        "create_observation",
        "delete_observation",
        "create_relation",
        "delete_relation",
        "find_relations",
        "search_entities",
        "list_entities",
        "search_subgraph",
        "get_subgraph_by_ids",
        "set_context",
        "get_context",
        "clear_context",
        "bulk_update",
        "suggest_merges",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let mut without = Client::open_in(vault(""), &["--toolsets", "notes,docs"]);
    let tools = without.request("tools/list", json!({}))["result"]["tools"].to_string();
    assert!(!tools.contains("create_entity"));
}

#[test]
fn get_version_and_get_current_time_answer() {
    let mut client = Client::open("");
    assert_eq!(client.answer("get_version", json!({})), json!({"version": env!("CARGO_PKG_VERSION")}));
    let time = client.answer("get_current_time", json!({}));
    let text = time["timestamp"].as_str().unwrap();
    assert!(text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T', "{text}");
    let (code, message) = error(&mut client, "get_version", json!({"verbose": true}));
    assert_eq!((code.as_str(), message.contains("verbose")), ("InvalidArguments", true), "{message}");
}

#[test]
fn entity_is_created_updated_and_deleted() {
    let mut client = Client::open("");
    let arguments = json!({
        "name": " Quipu ", "entity_type": "workspace", "aliases": "khipu| knots |", "description": "Memory",
        "observations": ["Written in Rust", "One binary"],
    });
    let made = timeless(client.answer("create_entity", arguments));
    assert_eq!(
        made,
        json!({"entity_id": 1, "name": "Quipu", "entity_type": "Project", "description": "Memory",
            "aliases": "khipu|knots", "memory_observations_count": 2})
    );
    let entity = timeless(client.answer("get_entity", json!({"entity_id": "1"})));
    assert_eq!(
        entity,
        json!({"entity_id": 1, "name": "Quipu", "entity_type": "Project", "description": "Memory",
            "aliases": "khipu|knots", "memory_observations_count": 2,
            "observations": [
                {"observation_id": 1, "observation_content": "Written in Rust"},
                {"observation_id": 2, "observation_content": "One binary"},
            ],
            "observations_total": 2,
            "relations_from": [], "relations_to": []})
    );
    let update = json!({"entity_id": 1, "entity_type": "bug", "aliases": "", "description": ""});
    let updated = timeless(client.answer("update_entity", update));
    assert_eq!(
        updated,
        json!({"entity_id": 1, "name": "Quipu", "entity_type": "Issue", "description": null, "aliases": null,
            "memory_observations_count": 2})
    );
    let gone = timeless(client.answer("delete_entity", json!({"entity_id": 1})));
    assert_eq!((&gone["entity_id"], &gone["name"]), (&json!(1), &json!("Quipu")));
    assert_eq!(gone["message"], "Deleted entity 1, 2 observations and 0 relations.");
    assert_eq!(error(&mut client, "get_entity", json!({"entity_id": 1})), not_found("entity", 1));
    let again = client.answer("create_entity", json!({"name": "Quipu", "entity_type": "Project"}));
    assert_eq!(again["entity_id"], 2, "an id is not given twice");
}

#[test]
fn entity_tools_return_every_documented_error() {
    let mut client = planted();
    for tool in ["get_entity", "delete_entity"] {
        assert_eq!(error(&mut client, tool, json!({"entity_id": 99})), not_found("entity", 99));
        let (code, message) = error(&mut client, tool, json!({"entity_id": "one"}));
        assert_eq!((code.as_str(), message.starts_with("`entity_id`")), ("InvalidArguments", true), "{message}");
        assert_eq!(error(&mut client, tool, json!({})).0, "InvalidArguments");
    }
    for (arguments, message) in [
        (json!({"name": "  ", "entity_type": "x"}), "`name` is blank; give a text"),
        (json!({"name": "x", "entity_type": " "}), "`entity_type` is blank; give a text"),
        (
            json!({"name": "x", "entity_type": "y", "observations": ["ok", " "]}),
            "`observations[1]` is blank; give a text",
        ),
        (json!({"name": "", "entity_type": "y"}), "`name` is empty; it must be a string of 1 to 500 characters"),
        (json!({"entity_type": "y"}), "`name` is missing; it must be a string of 1 to 500 characters"),
    ] {
        assert_eq!(error(&mut client, "create_entity", arguments), invalid(message));
    }
    let nothing = "nothing to change: give `name`, `entity_type`, `aliases` or `description`";
    assert_eq!(error(&mut client, "update_entity", json!({"entity_id": 1})), invalid(nothing));
    let missing = json!({"entity_id": 99, "name": "x"});
    assert_eq!(error(&mut client, "update_entity", missing), not_found("entity", 99));
    let taken = error(&mut client, "update_entity", json!({"entity_id": 4, "name": "QUIPU"}));
    let message = "the name \"QUIPU\" is taken by entity 1; add to that one, or choose another name";
    assert_eq!(taken, invalid(message));
}

#[test]
fn duplicate_entity_is_not_created_and_a_different_one_is() {
    let mut client = planted();
    let mut warned = |arguments: Value| {
        let answer = client.answer("create_entity", arguments.clone());
        (answer["warning"].is_string(), answer["existing_entity"]["entity_id"].as_i64(), answer)
    };
    let (_, _, answer) = warned(json!({"name": "QUIPU", "entity_type": "Person"}));
    let existing = json!({"entity_id": 1, "name": "Quipu", "entity_type": "Project",
        "description": "Memory for agents", "aliases": "khipu|knots", "similarity_distance": 0.0});
    assert_eq!(answer["existing_entity"], existing);
    let (is_warned, id, _) = warned(json!({"name": "Khipu", "entity_type": "Project"}));
    assert_eq!((is_warned, id), (true, Some(1)), "an alias");
    let (is_warned, id, _) = warned(json!({"name": "storage-layer", "entity_type": "Component"}));
    assert_eq!((is_warned, id), (true, Some(2)), "another spelling");
    let (is_warned, id, _) = warned(json!({"name": "Quipu", "entity_type": "Project", "force": true}));
    assert_eq!((is_warned, id), (true, Some(1)), "the name itself is taken, force or not");
    let (is_warned, _, made) = warned(json!({"name": "storage-layer", "entity_type": "Component", "force": true}));
    assert_eq!((is_warned, &made["entity_id"]), (false, &json!(5)));
    for name in [
        "Fix login",
        "Fix logout",
        "Release 1.2",
        "Release 1.3",
        "Server A",
        "Server B",
        "Report 2024-05-01",
        "Report 2024-05-02",
    ] {
        let (is_warned, _, answer) = warned(json!({"name": name, "entity_type": "Task"}));
        assert!(!is_warned, "{name}: {answer}");
    }
}

#[test]
fn observations_are_created_and_deleted() {
    let mut client = planted();
    let made = timeless(client.answer("create_observation", json!({"entity_id": 1, "text_content": "It is fast"})));
    assert_eq!(made, json!({"observation_id": 4, "memory_entity_id": 1, "observation_content": "It is fast"}));
    let found = client.answer("search_entities", json!({"query": "fast"}));
    assert_eq!((ids(&found), &found[0]["matched_fields"]), (vec![1], &json!(["observations"])));
    let gone = timeless(client.answer("delete_observation", json!({"observation_id": 4})));
    assert_eq!(
        gone,
        json!({"observation_id": 4, "memory_entity_id": 1, "observation_content": "It is fast",
            "message": "Deleted observation 4 of entity 1."})
    );
    assert_eq!(client.answer("search_entities", json!({"query": "fast"})), json!([]));
    let gone = error(&mut client, "delete_observation", json!({"observation_id": 4}));
    assert_eq!(gone, not_found("observation", 4));
    let nobody = json!({"entity_id": 99, "text_content": "x"});
    assert_eq!(error(&mut client, "create_observation", nobody), not_found("entity", 99));
    let blank = json!({"entity_id": 1, "text_content": " "});
    assert_eq!(error(&mut client, "create_observation", blank), invalid("`text_content` is blank; give a text"));
}

#[test]
fn an_equal_observation_is_not_stored_twice() {
    let mut client = planted();
    let again = client.call("create_observation", json!({"entity_id": 2, "text_content": " Uses SQLite "}));
    assert_eq!(first_block(&again)["observation_id"], 1, "the one that is there");
    let told = "nothing was added: entity 2 already has this observation, as observation 1";
    assert_eq!(warnings(&again), [told]);
    let bulk = json!({"observations": [
        {"entity_id": 2, "text_content": "Is new"},
        {"entity_id": 2, "text_content": "Keeps a log"},
        {"entity_id": "2", "text_content": "Is new"},
        {"entity_id": 1, "text_content": "Keeps a log"},
    ]});
    let made = client.call("bulk_update", bulk);
    let answer = first_block(&made);
    let ids: Vec<&Value> =
        answer["created_observations"].as_array().unwrap().iter().map(|made| &made["observation_id"]).collect();
    assert_eq!(ids, [&json!(4), &json!(2), &json!(4), &json!(5)]);
    assert_eq!(answer["summary"]["observations_created"], 2);
    let told = |place: usize, id: usize| {
        format!("observations[{place}] was not added: the entity already has it as observation {id}")
    };
    assert_eq!(warnings(&made), [told(1, 2), told(2, 4)]);
    let only = client.answer("bulk_update", json!({"observations": [{"entity_id": 2, "text_content": "Is new"}]}));
    assert_eq!(only["summary"]["observations_created"], 0);
    let twice = json!({"name": "Twice", "entity_type": "x", "observations": ["same", "same ", "other"]});
    let made = client.call("create_entity", twice);
    assert_eq!(first_block(&made)["memory_observations_count"], 2);
    assert!(
        warnings(&made).contains(&"2 of 3 observations were stored: equal ones are stored once".to_owned()),
        "{made}"
    );
    assert_eq!(client.answer("get_entity", json!({"entity_id": 2}))["observations_total"], 3);
}

#[test]
fn relations_are_created_and_deleted() {
    let mut client = planted();
    let relate = json!({"from_entity_id": 1, "to_entity_id": 4, "relation_type": "depends_on"});
    let made = timeless(client.answer("create_relation", relate.clone()));
    let expected = json!({"relation_id": 3, "from_entity_id": 1, "from_entity_name": "Quipu", "to_entity_id": 4,
        "to_entity_name": "Lunch place", "relation_type": "depends_on"});
    assert_eq!(made, expected);
    assert_eq!(error(&mut client, "create_relation", relate), invalid("relation 3 already exists"));
    let nobody = json!({"from_entity_id": 1, "to_entity_id": 98, "relation_type": "x"});
    assert_eq!(error(&mut client, "create_relation", nobody), not_found("entity", 98));
    let blank = json!({"from_entity_id": 1, "to_entity_id": 4, "relation_type": "  "});
    assert_eq!(error(&mut client, "create_relation", blank), invalid("`relation_type` is blank; give a text"));
    let mut found = |arguments: Value| {
        let found = client.answer("find_relations", arguments);
        found.as_array().unwrap().iter().map(|relation| relation["relation_id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(json!({})), [1, 2, 3]);
    assert_eq!(found(json!({"from_entity_id": 2})), [1]);
    assert_eq!(found(json!({"to_entity_id": 4})), [3]);
    assert_eq!(found(json!({"relation_type": "part_of"})), [1, 2]);
    assert_eq!(found(json!({"relation_type": "part_of", "to_entity_id": 4})), [0_i64; 0]);
    let cut = client.call("find_relations", json!({"limit": 2}));
    assert_eq!(first_block(&cut).as_array().unwrap().len(), 2);
    assert_eq!(warnings(&cut), ["more than 2 relations match; continue with `offset` 2"]);
    let entity = timeless(client.answer("get_entity", json!({"entity_id": 2})));
    let from = json!([{"relation_id": 1, "to_entity_id": 1, "to_entity_name": "Quipu", "relation_type": "part_of"}]);
    let to = json!([{"relation_id": 2, "from_entity_id": 3, "from_entity_name": "Write ahead log",
        "relation_type": "part_of"}]);
    assert_eq!((&entity["relations_from"], &entity["relations_to"]), (&from, &to));
    let gone = timeless(client.answer("delete_relation", json!({"relation_id": 3})));
    assert_eq!((&gone["relation_id"], &gone["message"]), (&json!(3), &json!("Deleted relation 3.")));
    let gone = error(&mut client, "delete_relation", json!({"relation_id": 3}));
    assert_eq!(gone, not_found("relation", 3));
}

#[test]
fn search_covers_all_fields_and_names_the_matched_ones() {
    let mut client = planted();
    let found = client.answer("search_entities", json!({"query": "log"}));
    assert_eq!(ids(&found), [3, 2, 4], "{found}");
    let fields = |place: usize| found[place]["matched_fields"].clone();
    assert_eq!((fields(0), fields(1)), (json!(["name"]), json!(["observations"])));
    assert_eq!(found[0]["relevance_score"], 1.0);
    let first = json!({"entity_id": 1, "name": "Quipu", "entity_type": "Project", "description": "Memory for agents",
        "aliases": "khipu|knots", "memory_observations_count": 0, "relevance_score": 1.0, "matched_fields": ["aliases"]});
    assert_eq!(client.answer("search_entities", json!({"query": "KNOTS"})), json!([first]));
    for (query, expected, field) in [
        ("agents", 1, "description"),
        ("project", 1, "entity_type"),
        ("sqlite", 2, "observations"),
        ("quip", 1, "name"),
    ] {
        let found = client.answer("search_entities", json!({"query": query}));
        assert_eq!(ids(&found), [expected], "{query}");
        assert_eq!(found[0]["matched_fields"], json!([field]), "{query}");
    }
    assert_eq!(client.answer("search_entities", json!({"query": "zebra"})), json!([]));
    assert_eq!(error(&mut client, "search_entities", json!({"query": " "})), invalid("`query` is blank; give a text"));
    let nobody = json!({"query": "log", "project_id": 99});
    assert_eq!(error(&mut client, "search_entities", nobody), not_found("entity", 99));
    assert_eq!(ids(&client.answer("search_entities", json!({"query": "log", "limit": 1}))), [3]);
}

#[test]
fn list_entities_is_paginated() {
    let mut client = planted();
    let page = client.answer("list_entities", json!({"page": 2, "per_page": 3}));
    assert_eq!(
        page,
        json!({"entities": [{"entity_id": 4, "name": "Lunch place", "entity_type": "Place"}],
            "pagination": {"total_entities": 4, "per_page": 3, "current_page": 2, "total_pages": 2}})
    );
    assert_eq!(client.answer("list_entities", json!({}))["pagination"]["per_page"], 20);
    assert_eq!(client.answer("list_entities", json!({"page": 9}))["entities"], json!([]));
    for arguments in [json!({"per_page": 101}), json!({"per_page": 0}), json!({"page": 0})] {
        assert_eq!(error(&mut client, "list_entities", arguments).0, "InvalidArguments");
    }
}

#[test]
fn subgraph_has_the_entities_and_their_relations() {
    let mut client = planted();
    let found = timeless(client.answer("search_subgraph", json!({"query": "storage log"})));
    let names: Vec<_> = found["entities"].as_array().unwrap().iter().map(|entity| entity["name"].clone()).collect();
    assert_eq!(names, [json!("Storage layer"), json!("Write ahead log"), json!("Lunch place")]);
    assert_eq!(
        found["entities"][0],
        json!({"entity_id": 2, "name": "Storage layer", "entity_type": "Component", "description": null, "aliases": null,
            "memory_observations_count": 2,
            "observations": [{"observation_id": 2, "content": "Keeps a log"}, {"observation_id": 1, "content": "Uses SQLite"}]}),
        "what fits comes first"
    );
    let relation = json!({"relation_id": 2, "from_entity_id": 3, "from_entity_name": "Write ahead log",
        "to_entity_id": 2, "to_entity_name": "Storage layer", "relation_type": "part_of"});
    assert_eq!(found["relations"], json!([relation]));
    let pagination = json!({"total_entities": 3, "per_page": 20, "current_page": 1, "total_pages": 1});
    assert_eq!(found["pagination"], pagination);
    let only = json!({"query": "log", "search_in_observations": false, "per_page": 1});
    let found = client.answer("search_subgraph", only);
    assert_eq!(found["pagination"]["total_entities"], 1);
    let none = json!({"query": "log", "search_in_name": false, "search_in_type": false, "search_in_aliases": false,
        "search_in_observations": false});
    assert_eq!(error(&mut client, "search_subgraph", none).0, "InvalidArguments");
    assert_eq!(error(&mut client, "search_subgraph", json!({"query": "\t"})), invalid("`query` is blank; give a text"));
    let nobody = json!({"query": "log", "project_id": 99});
    assert_eq!(error(&mut client, "search_subgraph", nobody), not_found("entity", 99));

    let result = client.call("get_subgraph_by_ids", json!({"entity_ids": [3, 99, 2, 3]}));
    let found = first_block(&result);
    assert_eq!(ids(&found["entities"]), [3, 2]);
    assert_eq!((timeless(found["relations"].clone()), found.get("pagination")), (json!([relation]), None));
    assert_eq!(warnings(&result), ["unknown entity ids: 99"]);
    assert_eq!(error(&mut client, "get_subgraph_by_ids", json!({"entity_ids": []})).0, "InvalidArguments");
}

#[test]
fn context_members_rank_first() {
    let mut client = planted();
    assert_eq!(client.answer("get_context", json!({})), json!({"status": "no_context"}));
    let lunch = client.answer(
        "bulk_update",
        json!({
            "entities": [{"name": "Food", "entity_type": "project"}],
            "relations": [{"from_entity_id": 4, "to_entity_id": "Food", "relation_type": "part_of"}],
        }),
    );
    assert_eq!(lunch["created_entities"][0]["entity_id"], 5);
    let set = client.answer("set_context", json!({"project_id": 5}));
    assert_eq!(
        set,
        json!({"status": "context_set", "project_id": 5, "project_name": "Food", "project_type": "Project"})
    );
    let context = client.answer("get_context", json!({}));
    let expected =
        json!({"status": "context_active", "project_id": 5, "project_name": "Food", "project_type": "Project"});
    assert_eq!(context, expected);
    assert_eq!(ids(&client.answer("search_entities", json!({"query": "log"}))), [4, 3, 2], "others still appear");
    let asked = json!({"query": "log", "project_id": 1});
    assert_eq!(ids(&client.answer("search_entities", asked)), [3, 2, 4], "what is asked for wins");
    let exact = json!({"entities": [{"name": "Log", "entity_type": "Thing"}]});
    client.answer("bulk_update", exact);
    let found = client.answer("search_entities", json!({"query": "log"}));
    assert_eq!(ids(&found), [4, 6, 3, 2], "however well an outsider fits");
    let scores: Vec<f64> = (0..4).map(|place| found[place]["relevance_score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a > b) && scores[0] < 1.0 && scores[0] > 0.5 && scores[1] == 0.5, "{scores:?}");
    client.answer("create_relation", json!({"from_entity_id": 6, "to_entity_id": 5, "relation_type": "Part_Of"}));
    assert_eq!(ids(&client.answer("search_entities", json!({"query": "log"}))), [6, 4, 3, 2], "in any case");
    client.answer("delete_entity", json!({"entity_id": 6}));
    assert_eq!(error(&mut client, "set_context", json!({"project_id": 99})), not_found("entity", 99));
    assert_eq!(client.answer("clear_context", json!({})), json!({"status": "context_cleared"}));
    assert_eq!(client.answer("clear_context", json!({})), json!({"status": "context_cleared"}));
    assert_eq!(client.answer("get_context", json!({})), json!({"status": "no_context"}));
    assert_eq!(ids(&client.answer("search_entities", json!({"query": "log"}))), [3, 2, 4]);
}

#[test]
fn delete_counts_observations_and_relations() {
    let mut client = planted();
    let gone = client.answer("delete_entity", json!({"entity_id": 2}));
    assert_eq!(gone["message"], "Deleted entity 2, 2 observations and 2 relations.");
}

#[test]
fn bulk_warns_of_likely_duplicates() {
    let mut client = planted();
    let bulk = json!({"entities": [
        {"name": "storage-layer", "entity_type": "component"},
        {"name": "Storage layer rewrite", "entity_type": "Task"},
    ]});
    let result = client.call("bulk_update", bulk);
    assert_eq!(first_block(&result)["summary"]["entities_created"], 2);
    assert_eq!(
        warnings(&result),
        [
            "entities[0] was created as entity 5, though entity 2, \"Storage layer\", is likely the same; if it is, delete \
            the new one and add to that"
        ]
    );
    let bulk = json!({"entities": [
        {"name": "Fix login", "entity_type": "Task"},
        {"name": "Fix logout", "entity_type": "Task"},
        {"name": "Fix login!", "entity_type": "Task"},
        {"name": "Sign-in trouble", "entity_type": "Issue", "aliases": "fix LOGIN"},
    ]});
    let result = client.call("bulk_update", bulk);
    let told = |place: usize, id: usize| {
        format!(
            "entities[{place}] was created as entity {id}, though entity 7, \"Fix login\", is likely the same; if it is, \
             delete the new one and add to that"
        )
    };
    assert_eq!(warnings(&result), [told(2, 9), told(3, 10)], "of the same call too");
}

#[test]
fn bulk_update_is_atomic() {
    let mut client = planted();
    let bulk = json!({
        "entities": [{"name": "Rust", "entity_type": "lib", "observations": ["Fast"]}],
        "observations": [{"entity_id": "rust", "text_content": "Safe"}, {"entity_id": 1, "text_content": "Uses Rust"}],
        "relations": [{"from_entity_id": "1", "to_entity_id": "Rust", "relation_type": "depends_on"}],
    });
    let made = timeless(client.answer("bulk_update", bulk));
    assert_eq!(
        made["created_entities"],
        json!([{"entity_id": 5, "name": "Rust", "entity_type": "Framework", "description": null, "aliases": null,
            "memory_observations_count": 2}])
    );
    assert_eq!(
        made["created_observations"][1],
        json!({"observation_id": 5, "memory_entity_id": 5, "observation_content": "Safe"})
    );
    assert_eq!(
        made["created_relations"],
        json!([{"relation_id": 3, "from_entity_id": 1, "from_entity_name": "Quipu", "to_entity_id": 5,
            "to_entity_name": "Rust", "relation_type": "depends_on"}])
    );
    let summary = json!({"entities_created": 1, "observations_created": 3, "relations_created": 1});
    assert_eq!(made["summary"], summary);

    let good = json!({"name": "New", "entity_type": "x"});
    for (bulk, code, message) in [
        (json!({}), "InvalidArguments", "a bulk update has 1 to 50 operations, and this one has 0; give at least one"),
        (
            json!({"observations": vec![json!({"entity_id": 1, "text_content": "x"}); 51]}),
            "InvalidArguments",
            "a bulk update has 1 to 50 operations, and this one has 51; split it",
        ),
        (
            json!({"entities": [good, {"name": "QUIPU", "entity_type": "x"}]}),
            "InvalidArguments",
            "entities[1]: the name \"QUIPU\" is taken by entity 1; add to that one, or choose another name",
        ),
        (
            json!({"entities": [good], "observations": [{"entity_id": 99, "text_content": "x"}]}),
            "ResourceNotFound",
            "observations[0]: there is no entity 99; search_entities finds entities and their ids",
        ),
        (
            json!({"entities": [good], "relations": [{"from_entity_id": "New", "to_entity_id": "Nobody", "relation_type": "x"}]}),
            "InvalidArguments",
            "relations[0]: no entity of this call has the name \"Nobody\"; give the id of an existing entity",
        ),
        (
            json!({"entities": [good], "relations": [{"from_entity_id": 2, "to_entity_id": 1, "relation_type": "part_of"}]}),
            "InvalidArguments",
            "relations[0]: relation 1 already exists",
        ),
        (
            json!({"entities": [good, {"name": "new", "entity_type": "x"}]}),
            "InvalidArguments",
            "entities[1]: duplicates entities[0] in this call; remove one",
        ),
        (
            json!({"relations": [{"from_entity_id": 3, "to_entity_id": 1, "relation_type": "x"},
                {"from_entity_id": "3", "to_entity_id": 1, "relation_type": "x"}]}),
            "InvalidArguments",
            "relations[1]: duplicates relations[0] in this call; remove one",
        ),
    ] {
        assert_eq!(error(&mut client, "bulk_update", bulk), (code.to_owned(), message.to_owned()));
    }
    assert_eq!(client.answer("list_entities", json!({}))["pagination"]["total_entities"], 5, "nothing was kept");
    let typo = json!({"entities": [{"name": "a", "type": "x", "entity_type": "y"}]});
    assert_eq!(error(&mut client, "bulk_update", typo).0, "InvalidArguments");
}

#[test]
fn suggest_merges_lists_likely_pairs() {
    let mut client = planted();
    client.answer("create_entity", json!({"name": "Storage layers", "entity_type": "component", "force": true}));
    client.answer("create_entity", json!({"name": "storage_layer", "entity_type": "Thing", "force": true}));
    let pairs = client.answer("suggest_merges", json!({}));
    let first = &pairs[0];
    assert_eq!(first["entity_a"], json!({"entity_id": 2, "name": "Storage layer", "entity_type": "Component"}));
    assert_eq!(first["entity_b"]["entity_id"], 6);
    assert_eq!((&first["cosine_distance"], &first["recommendation"]), (&json!(0.0), &json!("high_confidence_merge")));
    assert_eq!(pairs.as_array().unwrap().len(), 3, "{pairs}");
    let of_type = client.answer("suggest_merges", json!({"entity_type": "widget"}));
    assert_eq!(of_type.as_array().unwrap().len(), 1);
    assert_eq!(client.answer("suggest_merges", json!({"limit": 1})).as_array().unwrap().len(), 1);
    assert_eq!(client.answer("suggest_merges", json!({"threshold": 0.0})), json!([]));
    for arguments in [json!({"threshold": 1.5}), json!({"limit": 0})] {
        assert_eq!(error(&mut client, "suggest_merges", arguments).0, "InvalidArguments");
    }
}
