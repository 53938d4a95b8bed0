//! What one server acknowledged, the next call on any server sees.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quipu_testkit::generate::Random;
use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{HeldLock, TeamServer, create_graph, push, wait_for};

/// Calls of the random test; more by hand.
const STEPS: usize = 400;

/// What clients were shown: the text of each note, and the observations of each entity.
#[derive(Default)]
struct Acknowledged {
    notes: BTreeMap<String, String>,
    entities: BTreeMap<i64, Vec<String>>,
}

/// Random writes on random servers, each followed by reads on another: none is older than what was acknowledged.
#[test]
fn no_answer_is_older_than_what_any_server_acknowledged() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers: Vec<TeamServer> = (0..3).map(|_| TeamServer::start(&url)).collect();
    let steps = std::env::var("QUIPU_TEST_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS);
    let (mut random, mut known) = (Random(7), Acknowledged::default());
    for step in 0..steps {
        let at = random.below(servers.len());
        write(&servers[at], &mut random, &mut known, step);
        let other = &servers[(at + 1 + random.below(servers.len() - 1)) % servers.len()];
        check(other, &mut random, &known);
    }
    for server in &servers {
        assert_eq!(ids(server), known.notes.keys().cloned().collect::<Vec<_>>());
    }
}

fn write(server: &TeamServer, random: &mut Random, known: &mut Acknowledged, step: usize) {
    let some_note = known.notes.keys().nth(random.below(known.notes.len().max(1))).cloned();
    let some_entity = known.entities.keys().nth(random.below(known.entities.len().max(1))).copied();
    match (random.below(6), some_note, some_entity) {
        (0 | 1, Some(id), _) => {
            let line = format!("line{step}");
            let edits = json!([{ "op": "append", "text": line }]);
            server.call("edit_node", json!({ "id": id, "edits": edits }));
            known.notes.entry(id).and_modify(|text| *text = format!("{text}\n{line}"));
        }
        (2, Some(id), _) if known.notes.len() > 3 => {
            server.call("delete_node", json!({ "id": id }));
            known.notes.remove(&id);
        }
        (3, _, Some(entity)) => {
            let text = format!("observation{step}");
            server.call("create_observation", json!({ "entity_id": entity, "text_content": text }));
            known.entities.entry(entity).or_default().push(text);
        }
        (4, ..) => {
            let name = format!("Thing number{step} {}", random.below(1_000_000));
            let arguments = json!({ "name": name, "entity_type": "Concept", "force": true });
            let made = server.call("create_entity", arguments);
            known.entities.insert(made["entity_id"].as_i64().unwrap(), Vec::new());
        }
        _ => {
            let (id, text) = (format!("folder{}/note{step}.md", step % 5), format!("word{step}"));
            server.call("create_node", json!({ "id": id, "content": text }));
            known.notes.insert(id, text);
        }
    }
}

fn check(server: &TeamServer, random: &mut Random, known: &Acknowledged) {
    if let Some((id, text)) = known.notes.iter().nth(random.below(known.notes.len().max(1))) {
        let node = server.call("get_node", json!({ "id": id }));
        assert_eq!(node["content"].as_str().unwrap().trim(), text, "{id}");
        // Found by its words too, which only the index of the server knows.
        let word = text.lines().last().unwrap();
        let found = server.call("search_docs", json!({ "query": word }));
        assert!(found["results"].to_string().contains(id.as_str()), "{word} of {id}: {found}");
    }
    assert_eq!(ids(server), known.notes.keys().cloned().collect::<Vec<_>>());
    if let Some((entity, texts)) = known.entities.iter().nth(random.below(known.entities.len().max(1))) {
        let found = server.call("get_entity", json!({ "entity_id": entity }));
        let observations = found["observations"].as_array().unwrap().iter();
        let mut found: Vec<&str> = observations.map(|seen| seen["observation_content"].as_str().unwrap()).collect();
        found.sort_unstable();
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        texts.sort_unstable();
        assert_eq!(found, texts);
    }
}

fn ids(server: &TeamServer) -> Vec<String> {
    let listed = server.call("list_nodes", json!({ "limit": 1000 }));
    let mut ids: Vec<String> = listed["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node: &Value| node["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// Without a call, which would read the feed, and sooner than the interval at which the feed is read.
#[test]
fn notification_makes_other_servers_read_a_change_at_once() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let [one, two] = [TeamServer::start(&url), TeamServer::start(&url)];
    let mut waits = Vec::new();
    for number in 1..=10 {
        one.call("create_node", json!({ "id": format!("note{number}.md"), "content": "x" }));
        let written = Instant::now();
        wait_for("the other server has the change", || two.metric("quipu_feed_position") >= f64::from(number));
        waits.push(written.elapsed());
    }
    waits.sort();
    assert!(waits[waits.len() / 2] < Duration::from_millis(250), "{waits:?}");
}

/// The feed cannot be read for a while, although the database answers: an answer that may lack a change says so.
#[test]
fn answer_without_changes_that_are_not_yet_applied_says_so() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let server = TeamServer::start(&url);
    server.call("create_node", json!({ "id": "a.md", "content": "x" }));
    let list = || {
        let result = server.try_call("list_nodes", json!({}), None).unwrap();
        (result["structuredContent"]["total"].clone(), result["_meta"]["quipu/warnings"].to_string())
    };
    let is_current = |total: u64| matches!(list(), (listed, warnings) if listed == json!(total) && !warnings.contains("out of date"));
    assert!(is_current(1));
    // While it does not run, a note is written elsewhere, and the feed is locked before it can read of that.
    server.signal("STOP");
    push(&url, &[("b.md".to_owned(), b"y".to_vec())]);
    let held = HeldLock::take(&url, "LOCK TABLE quipu.note_change IN ACCESS EXCLUSIVE MODE");
    server.signal("CONT");
    let asked = Instant::now();
    let (total, warnings) = list();
    assert_eq!(total, json!(1));
    assert!(warnings.contains("this server has not yet applied the latest changes by other servers"), "{warnings}");
    assert!(asked.elapsed() > Duration::from_millis(1900), "it waits for them first, and waited {:?}", asked.elapsed());
    drop(held);
    wait_for("the change is applied", || is_current(2));
}
