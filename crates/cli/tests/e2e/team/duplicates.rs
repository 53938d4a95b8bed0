//! What counts as a duplicate is stored once, whichever servers are asked for it at the same time.

use std::thread;

use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{TeamServer, create_graph};

/// Calls of each kind at the same time.
const CLIENTS: usize = 12;

const PERSONS: [[&str; 4]; 5] = [
    ["Ada Lovelace", "ada lovelace", "Ada  Lovelace", "ADA LOVELACE"],
    ["Grace Hopper", "grace hopper", "Grace-Hopper", "GRACE HOPPER"],
    ["Katherine Johnson", "katherine johnson", "Katherine Jonhson", "KATHERINE JOHNSON"],
    ["Barbara Liskov", "barbara liskov", "Barbara_Liskov", "BARBARA LISKOV"],
    ["Frances Allen", "frances allen", "Frances  Allen", "FRANCES ALLEN"],
];

/// Calls a tool with each of the arguments at once, at the servers in turn.
fn at_once(servers: &[TeamServer], tool: &'static str, arguments: impl Fn(usize) -> Value) -> Vec<Value> {
    thread::scope(|scope| {
        let call = |number: usize| {
            let (server, arguments) = (&servers[number % servers.len()], arguments(number));
            scope.spawn(move || server.call(tool, arguments))
        };
        let calls: Vec<_> = (0..CLIENTS).map(call).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

#[test]
fn concurrent_servers_store_a_duplicate_once() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers: Vec<TeamServer> = (0..3).map(|_| TeamServer::start(&url)).collect();
    for spellings in PERSONS {
        let draft = |number: usize| json!({ "entity_type": "Person", "name": spellings[number % spellings.len()] });
        at_once(&servers, "create_entity", draft);
        let others = |number: usize| {
            json!({ "entities": [{ "entity_type": "Tool", "name": format!("{} {number}", spellings[0]) }],
                    "observations": [{ "entity_id": 1, "text_content": format!("knows {}", spellings[0]) }] })
        };
        at_once(&servers, "bulk_update", others);
    }
    let all = servers[0].call("list_entities", json!({ "per_page": 100 }));
    let persons = all["entities"].as_array().unwrap().iter().filter(|entity| entity["entity_type"] != "Tool").count();
    assert_eq!(persons, PERSONS.len(), "{all}");

    for round in 0..10 {
        let observation = json!({ "entity_id": 1, "text_content": format!("wrote program {round}") });
        at_once(&servers, "create_observation", |_| observation.clone());
    }
    let known = servers[1].call("get_entity", json!({ "entity_id": 1 }));
    let mut texts: Vec<_> =
        known["observations"].as_array().unwrap().iter().map(|it| it["observation_content"].clone()).collect();
    let stored = texts.len();
    texts.sort_by_key(ToString::to_string);
    texts.dedup();
    assert_eq!((texts.len(), stored), (10 + PERSONS.len(), 10 + PERSONS.len()), "{texts:?}");
}
