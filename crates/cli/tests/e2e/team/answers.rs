//! A graph in a database answers as the same notes in a folder do.

#![expect(clippy::disallowed_methods, reason = "a test that copies its data")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use quipu_core::ports::VaultFiles;
use quipu_testkit::generate::Random;
use quipu_testkit::{postgres, real_data};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TeamServer, create_graph, notes, push};
use crate::http::Server;

/// Calls compared for each vault. `QUIPU_TEST_STEPS` sets another number, as `cargo xtask team --answers` does.
const CALLS: usize = 800;

/// The Markdown files below a folder, with their paths from it.
fn markdown(folder: &Path, root: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "node_modules" || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            markdown(&path, root, files);
        } else if name.ends_with(".md") {
            let at = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.push((at, fs::read(&path).unwrap()));
        }
    }
}

/// A real vault in a folder and in a database, with the same times.
fn both(url: &str, source: &Path) -> TempDir {
    let mut files = Vec::new();
    markdown(source, source, &mut files);
    assert!(files.len() > 50, "only {} notes in {}", files.len(), source.display());
    push(url, &files);
    let folder = TempDir::new().unwrap();
    for (path, bytes) in &files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    for listed in notes(url).list().unwrap().files {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(listed.stat.modified_ns.unsigned_abs());
        let file = fs::File::options().write(true).open(folder.path().join(listed.path.as_str())).unwrap();
        file.set_modified(modified).unwrap();
    }
    folder
}

/// Notes in two languages with links in prose.
#[test]
fn graph_of_obsidian_help_answers_as_its_folder() {
    compare("vault-obsidian-help-en-ja", 5);
}

/// Tasks, tags and properties.
#[test]
fn graph_of_a_task_vault_answers_as_its_folder() {
    compare("vault-tasks", 6);
}

/// Documentation of a site, with links by path.
#[test]
fn graph_of_quartz_docs_answers_as_its_folder() {
    compare("vault-quartz-docs", 7);
}

/// Odd names, embeds and broken links.
#[test]
fn graph_of_a_vault_of_edge_cases_answers_as_its_folder() {
    compare("vault-edge-obsidian-export", 8);
}

/// Makes the same random calls to a graph and to a folder with the same notes.
fn compare(vault: &str, seed: u64) {
    let (Some(url), Some(data)) = (postgres::database(), real_data()) else { return };
    create_graph(&url);
    let folder = both(&url, &data.join(vault));
    let team = TeamServer::start(&url);
    let one = Server::prepare(folder).start_with(&[], &[("QUIPU_EMBEDDING_PROVIDER", "none")]);
    let ids = ids(&team);
    let calls = std::env::var("QUIPU_TEST_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(CALLS);
    let mut random = Random(seed);
    for number in 0..calls {
        let (tool, arguments) = if random.below(3) == 0 {
            some_call_of_memory(&mut random, number)
        } else {
            some_call(&mut random, &ids, number)
        };
        let expected = one.call("raw", tool, arguments.clone());
        let found = team.try_call(tool, arguments.clone(), None).unwrap();
        let plain = |result: &Value| (result["isError"].clone(), timeless(&result["structuredContent"]));
        assert_eq!(plain(&found), plain(&expected), "{tool} {arguments}");
        if expected["isError"] == json!(true) {
            assert_eq!(found["content"], expected["content"], "{tool} {arguments}");
        }
    }
}

/// Of answers, the times, which differ between the two.
const TIMES: [&str; 8] =
    ["modified", "lastModified", "last_modified", "created_at", "updated_at", "createdAt", "updatedAt", "at"];

/// An answer without the times of writes, which differ between the two.
fn timeless(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            let lasting = fields.iter().filter(|(name, _)| !TIMES.contains(&name.as_str()));
            lasting.map(|(name, value)| (name.clone(), timeless(value))).collect()
        }
        Value::Array(items) => items.iter().map(timeless).collect(),
        other => other.clone(),
    }
}

fn ids(server: &TeamServer) -> Vec<String> {
    let mut ids = BTreeSet::new();
    loop {
        let page = server.call("list_nodes", json!({ "limit": 1000, "offset": ids.len() }));
        let nodes = page["nodes"].as_array().unwrap();
        if nodes.is_empty() {
            return ids.into_iter().collect();
        }
        ids.extend(nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()));
    }
}

const WORDS: [&str; 10] =
    ["plugin", "vault", "link", "graph view", "template", "ノート", "theme", "sync", "markdown file", "設定"];

/// Reads of every toolset; sometimes a write, which both must do alike.
fn some_call(random: &mut Random, ids: &[String], number: usize) -> (&'static str, Value) {
    let id = ids[random.below(ids.len())].clone();
    let other = ids[random.below(ids.len())].clone();
    let word = WORDS[random.below(WORDS.len())];
    match random.below(18) {
        0 => ("get_node", json!({ "id": id, "depth": 1 })),
        1 => ("get_neighbors", json!({ "id": id, "include_content": true })),
        2 => ("find_path", json!({ "source": id, "target": other })),
        3 => ("get_hubs", json!({ "limit": 5 + random.below(20) })),
        4 => ("list_nodes", json!({ "offset": random.below(ids.len()), "limit": 20 })),
        5 => ("resolve_nodes", json!({ "names": [word, other] })),
        6 => ("nodes_exist", json!({ "ids": [id, "no/such.md"] })),
        7 => ("list_documents", json!({ "limit": 20, "offset": random.below(ids.len()) })),
        8 => ("get_document", json!({ "path": id })),
        9 => ("search_docs", json!({ "query": word })),
        10 => ("ubp_fulltext_search", json!({ "query": word })),
        11 => ("ubp_get_page", json!({ "filepath": id })),
        12 => ("ubp_get_context", json!({ "filepath": id })),
        13 => ("query_nodes", json!({ "where": [{ "field": "links_in", "op": "gt", "value": random.below(9) }] })),
        14 => ("summarize_node", json!({ "id": id })),
        15 => ("edit_node", json!({ "id": id, "edits": [{ "op": "append", "text": format!("added{number}") }] })),
        16 => ("create_node", json!({ "id": format!("new/note{number}.md"), "content": format!("See [[{other}]].") })),
        _ => ("search_by_tags", json!({ "tags": [word] })),
    }
}

const NAMES: [&str; 8] = [
    "Ada Lovelace",
    "Ada Lovelacce",
    "Grace Hopper",
    "Rain gauge",
    "雨量計",
    "Sync plugin",
    "the sync plugin",
    "Graph 1.2",
];
const TYPES: [&str; 4] = ["Person", "Project", "component", "Concept"];

/// Reads and writes of every tool of memory. Ids are small, so that many exist and some do not.
fn some_call_of_memory(random: &mut Random, number: usize) -> (&'static str, Value) {
    let (id, other) = (1 + random.below(40), 1 + random.below(40));
    let (name, entity_type) = (NAMES[random.below(NAMES.len())], TYPES[random.below(TYPES.len())]);
    let text = format!("{} {}", WORDS[random.below(WORDS.len())], random.below(20));
    match random.below(20) {
        0..3 => {
            ("create_entity", json!({ "name": format!("{name} {}", random.below(30)), "entity_type": entity_type }))
        }
        3 => ("create_entity", json!({ "name": name, "entity_type": entity_type, "force": random.below(2) == 0 })),
        4..7 => ("create_observation", json!({ "entity_id": id, "text_content": text })),
        7 => ("create_relation", json!({ "from_entity_id": id, "to_entity_id": other, "relation_type": "part_of" })),
        8 => (
            "update_entity",
            json!({ "entity_id": id, "description": format!("{text} [[{number}]]"), "aliases": name }),
        ),
        9 => ("delete_entity", json!({ "entity_id": id })),
        10 => ("delete_observation", json!({ "observation_id": id })),
        11 => ("merge_entities", json!({ "entity_id": id, "into_entity_id": other })),
        12 => ("undo_change", json!({ "change": 1 + random.below(number + 1) })),
        13 => ("update_observation", json!({ "observation_id": id, "text_content": text })),
        14 => {
            let entity = json!({ "name": format!("{name} of {number}"), "entity_type": entity_type });
            let observation = json!({ "entity_id": id, "text_content": text });
            ("bulk_update", json!({ "entities": [entity], "observations": [observation] }))
        }
        15 => ("get_entity", json!({ "entity_id": id })),
        16 => ("search_entities", json!({ "query": name })),
        17 => ("find_relations", json!({ "from_entity_id": id })),
        18 => ("search_subgraph", json!({ "query": text })),
        _ => ("list_entities", json!({ "per_page": 10 })),
    }
}
