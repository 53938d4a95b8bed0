//! A graph in a database answers as the same notes in a folder do.

#![expect(clippy::disallowed_methods, reason = "a test that copies its data")]

mod draw;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use quipu_core::ports::VaultFiles;
use quipu_testkit::{postgres, real_data};
use quipu_vault::{FolderVault, VaultOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{GRAPH, TeamServer, create, create_graph, notes, push, wait_for};
use crate::http::{Post, Server};
use draw::Draw;

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

/// A real vault in a folder and in a database, with the same history and times.
fn both(url: &str, source: &Path) -> TempDir {
    let mut files = Vec::new();
    markdown(source, source, &mut files);
    assert!(files.len() > 50, "only {} notes in {}", files.len(), source.display());
    push(url, &files);
    let folder = TempDir::new().unwrap();
    create(&FolderVault::open(folder.path(), VaultOptions::default()).unwrap(), &files);
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

/// Odd names, embeds and broken links, with vectors of the builtin model.
#[test]
fn graph_answers_by_meaning_as_its_folder() {
    compare_with("vault-edge-obsidian-export", 9, "builtin", 200);
}

/// Makes the same random calls to a graph and to a folder with the same notes.
fn compare(vault: &str, seed: u64) {
    compare_with(vault, seed, "none", CALLS);
}

fn compare_with(vault: &str, seed: u64, embedding: &str, calls: usize) {
    let (Some(url), Some(data)) = (postgres::database(), real_data()) else { return };
    create_graph(&url);
    let folder = both(&url, &data.join(vault));
    let variables = [("QUIPU_EMBEDDING_PROVIDER", embedding)];
    let team = TeamServer::launch_in(&url, &["--graph", GRAPH], &variables);
    team.await_ready();
    let one = Server::prepare(folder).start_with(&[], &variables);
    let tools = offered(&team);
    assert_eq!(tools, offered_at(one.address));
    let ids = ids(&team);
    // A note can be written before its new passages have vectors: what is found by meaning is compared before the first write.
    let by_meaning = ["search", "ubp_search", "suggest_tags", "resolve_nodes"].map(str::to_owned);
    if embedding != "none" {
        await_vectors(&url, &team, &one);
        compare_calls(&team, &one, Draw::new(seed, ids.clone()), &by_meaning, calls);
    }
    let is_lasting = |tool: &String| embedding == "none" || !tool.contains("search") && !by_meaning.contains(tool);
    let tools: Vec<String> = tools.into_iter().filter(is_lasting).collect();
    let calls = std::env::var("QUIPU_TEST_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(calls);
    compare_calls(&team, &one, Draw::new(seed, ids), &tools, calls);
}

fn compare_calls(team: &TeamServer, one: &Server, mut draw: Draw, tools: &[String], calls: usize) {
    let mut differences = Vec::new();
    for _ in 0..calls {
        let (tool, arguments) = draw.call(tools);
        // A client is warned about a problem of a note once, so a random note changes its later warnings.
        let client = if tool == "random_node" { OTHER_CLIENT } else { CLIENT };
        let expected = one.call(client, &tool, arguments.clone());
        let found = team.call_as(client, &tool, arguments.clone());
        let both = (plain(&tool, &found), plain(&tool, &expected));
        if both.0 != both.1 {
            differences.push(format!("{tool} {arguments}\n  graph:  {}\n  folder: {}", both.0, both.1));
        }
        draw.learn(&tool, &expected["structuredContent"]);
    }
    // What differs after a difference may follow from it.
    let first: Vec<&str> = differences.iter().take(SHOWN).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} of {calls} answers differ\n{}", differences.len(), first.join("\n"));
}

/// Differences that a failed test shows.
const SHOWN: usize = 12;

/// The client whose answers are compared, and another.
const CLIENT: &str = "raw";
const OTHER_CLIENT: &str = "other";

/// The start of a warning of a redaction, which is of a database alone.
const OF_DATABASE: &str = "PostgreSQL deletes the old rows from its files";

/// The part of a warning that comes when the links of a written note are resolved: for a folder, this may be after the answer.
const OF_LINKS: &str = ": broken link to ";

/// The start of the part of a warning that names a command for a folder.
const OF_COMMANDS: &str = "; in a shell, ";

/// What must be equal: the answer or the error, and the warnings.
fn plain(tool: &str, result: &Value) -> Value {
    // They are another every time.
    if let "random_node" | "get_current_time" = tool {
        return result["isError"].clone();
    }
    let error = if result["isError"] == json!(true) { &result["content"] } else { &Value::Null };
    let warnings = result["_meta"]["quipu/warnings"].as_array().into_iter().flatten();
    let may_differ = |text: &str| text.starts_with(OF_DATABASE) || text.contains(OF_LINKS);
    let warnings = warnings.filter_map(Value::as_str).filter(|text| !may_differ(text));
    let warnings = warnings.map(|text| text.split_once(OF_COMMANDS).map_or(text, |it| it.0));
    let answer = timeless(&result["structuredContent"]);
    json!({ "isError": result["isError"], "answer": answer, "error": error, "warnings": warnings.collect::<Vec<_>>() })
}

/// The names of the tools that a server offers.
fn offered(server: &TeamServer) -> Vec<String> {
    offered_at(server.address)
}

fn offered_at(address: SocketAddr) -> Vec<String> {
    let listed = Post::list().send(address).unwrap().message().unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until both have the vectors of the full model of all passages.
fn await_vectors(url: &str, team: &TeamServer, one: &Server) {
    let embedding = || -> Value {
        let status: Value = serde_json::from_str(&one.quipu(&["status", "--json"])).unwrap();
        status["embedding"].clone()
    };
    wait_for("the folder's server has every vector", || {
        let embedding = embedding();
        embedding["full"].as_u64() > Some(0) && embedding["full"] == embedding["passages"]
    });
    let passages = embedding()["passages"].as_f64().unwrap();
    wait_for("the team's server has every vector", || {
        team.metric("quipu_passages_embedded_total") >= passages
            && postgres::sql(url, "SELECT count(*) FROM quipu.passage_claim") == "0"
    });
}

/// Fields of answers with times, which differ between the two, and with values made of times.
const TIMES: [&str; 9] =
    ["modified", "lastModified", "last_modified", "created_at", "updated_at", "createdAt", "updatedAt", "at", "cursor"];

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
        let page = server.call_as(OTHER_CLIENT, "list_nodes", json!({ "limit": 1000, "offset": ids.len() }));
        let nodes = page["structuredContent"]["nodes"].as_array().unwrap();
        if nodes.is_empty() {
            return ids.into_iter().collect();
        }
        ids.extend(nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()));
    }
}
