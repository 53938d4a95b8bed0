//! Writes are checked against what any server showed to their client.

use std::collections::HashMap;

use quipu_testkit::generate::Random;
use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{CHANGED, TeamServer, create_graph};

const STEPS: usize = 300;

/// Characters of a note that `get_node` shows in several parts.
const LONG: usize = 25_000;

fn update(server: &TeamServer, client: &str, id: &str, text: &str) -> Value {
    server.call_as(client, "update_node", json!({ "id": id, "content": text }))
}

fn text(server: &TeamServer, client: &str, id: &str) -> String {
    let read = server.call_as(client, "get_node", json!({ "id": id }));
    read["structuredContent"]["content"].as_str().unwrap().trim().to_owned()
}

/// Random reads and writes of two clients at three servers: a write is refused if and only if its client was shown another
/// version than the present one, whichever servers showed and changed it.
#[test]
fn write_is_refused_when_its_client_was_shown_another_version() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers: Vec<TeamServer> = (0..3).map(|_| TeamServer::start(&url)).collect();
    let ids = ["a.md", "b.md"];
    let mut present: HashMap<&str, String> = HashMap::new();
    for id in ids {
        servers[0].call_as("eve", "create_node", json!({ "id": id, "content": "start" }));
        present.insert(id, "start".to_owned());
    }
    let (mut random, mut seen, mut refusals) = (Random(11), HashMap::<(&str, &str), String>::new(), 0);
    for step in 0..STEPS {
        let (client, id) = (["ada", "bob"][random.below(2)], ids[random.below(ids.len())]);
        let server = &servers[random.below(servers.len())];
        if random.below(2) == 0 {
            assert_eq!(text(server, client, id), present[id], "step {step}");
            seen.insert((client, id), present[id].clone());
            continue;
        }
        let new = format!("step {step} by {client}");
        let answer = update(server, client, id, &new);
        let known = seen.get(&(client, id));
        if known.is_none_or(|known| *known == present[id]) {
            assert_eq!(answer["isError"], json!(false), "step {step}: {answer}");
            present.insert(id, new.clone());
            seen.insert((client, id), new);
        } else {
            assert!(answer["isError"] == json!(true) && answer.to_string().contains(CHANGED), "step {step}: {answer}");
            refusals += 1;
        }
    }
    assert!(refusals > STEPS / 10, "{refusals} refusals: this tested nothing");
}

#[test]
fn parts_that_two_servers_showed_make_a_whole() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers = [TeamServer::start(&url), TeamServer::start(&url)];
    let long: String = (0..).flat_map(|line| format!("line {line}\n").chars().collect::<Vec<_>>()).take(LONG).collect();
    servers[0].call_as("eve", "create_node", json!({ "id": "long.md", "content": long }));
    let (mut offset, mut parts) = (0, 0);
    loop {
        let arguments = json!({ "id": "long.md", "offset": offset });
        let read = servers[parts % 2].call_as("ada", "get_node", arguments);
        parts += 1;
        let refused = update(&servers[parts % 2], "ada", "long.md", "short");
        let Some(next) = read["structuredContent"]["truncated"]["next_offset"].as_u64() else {
            assert_eq!(refused["isError"], json!(false), "all of it was shown: {refused}");
            break;
        };
        assert_eq!(refused["isError"], json!(true), "{offset}: the rest was not shown: {refused}");
        offset = next;
    }
    assert!(parts > 2, "{parts} parts");
}

#[test]
fn note_that_its_client_moved_or_deleted_elsewhere_is_known_as_such() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let [one, two] = [TeamServer::start(&url), TeamServer::start(&url)];
    one.call_as("ada", "create_node", json!({ "id": "a.md", "content": "first" }));
    two.call_as("ada", "move_node", json!({ "id": "a.md", "to": "b.md" }));
    assert_eq!(text(&one, "bob", "b.md"), "first");
    assert_eq!(update(&one, "bob", "b.md", "bob's")["isError"], json!(false));
    let refused = update(&one, "ada", "b.md", "ada's");
    assert!(refused.to_string().contains(CHANGED), "she knows it under its new path: {refused}");
    assert_eq!(text(&two, "ada", "b.md"), "bob's");
    assert_eq!(one.call_as("ada", "delete_node", json!({ "id": "b.md" }))["isError"], json!(false));
    assert_eq!(two.call_as("ada", "create_node", json!({ "id": "b.md", "content": "new" }))["isError"], json!(false));
    assert_eq!(update(&one, "ada", "b.md", "newer")["isError"], json!(false), "she wrote it herself");
}
