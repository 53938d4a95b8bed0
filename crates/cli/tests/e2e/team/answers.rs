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

/// Calls compared; more by hand.
const CALLS: usize = 300;

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
fn both(url: &str, data: &Path) -> TempDir {
    let source = data.join("vault-obsidian-help-en-ja");
    let mut files = Vec::new();
    markdown(&source, &source, &mut files);
    assert!(files.len() > 100, "only {} notes in {}", files.len(), source.display());
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

#[test]
fn database_and_folder_give_equal_answers() {
    let (Some(url), Some(data)) = (postgres::database(), real_data()) else { return };
    create_graph(&url);
    let folder = both(&url, &data);
    let team = TeamServer::start(&url);
    let one = Server::prepare(folder).start_with(&[], &[("QUIPU_EMBEDDING_PROVIDER", "none")]);
    let ids = ids(&team);
    let calls = std::env::var("QUIPU_TEST_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(CALLS);
    let mut random = Random(5);
    for number in 0..calls {
        let (tool, arguments) = some_call(&mut random, &ids, number);
        let expected = one.call("raw", tool, arguments.clone());
        let found = team.try_call(tool, arguments.clone(), None).unwrap();
        let plain = |result: &Value| (result["isError"].clone(), timeless(&result["structuredContent"]));
        assert_eq!(plain(&found), plain(&expected), "{tool} {arguments}");
    }
}

/// An answer without the times of writes, which differ between the two.
fn timeless(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            let lasting = fields
                .iter()
                .filter(|(name, _)| !["modified", "lastModified", "last_modified"].contains(&name.as_str()));
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
