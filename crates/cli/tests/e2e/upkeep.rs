//! Repairs of memory over the real wire: correct, merge, undo.

use serde_json::{Value, json};

use std::path::{Path, PathBuf};

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
    for name in ["merge_entities", "update_observation", "undo_change", "redact"] {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        assert_eq!(tool.unwrap()["annotations"]["destructiveHint"], true, "{name}");
    }
    let mut reader = client.join(&["--read-only"]);
    let refused = reader.request("tools/call", json!({ "name": "undo_change", "arguments": { "change": 1 } }));
    assert_eq!(refused["error"]["message"], "undo_change is not offered: this server is read-only");
}

#[test]
fn changes_by_another_agent_can_be_undone() {
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

#[test]
fn merge_keeps_an_observation_of_both_entities_once() {
    let mut client = planted();
    client.answer("create_observation", json!({ "entity_id": 2, "text_content": "lives in Leeds" }));
    let merge = |dry_run: bool| json!({ "entity_id": 1, "into_entity_id": 2, "dry_run": dry_run });
    let moved = json!({ "observations": 0, "relations": 1, "aliases": 1 });
    assert_eq!(client.answer("merge_entities", merge(true))["moved"], moved);
    let before = [1, 2].map(|entity| client.answer("get_entity", json!({ "entity_id": entity })));
    let merged = client.answer("merge_entities", merge(false));
    assert_eq!(merged["moved"], moved);
    assert_eq!(texts(&mut client, 2), ["plays the cello", "lives in Leeds"]);
    client.answer("undo_change", json!({ "change": merged["change"] }));
    assert_eq!([1, 2].map(|entity| client.answer("get_entity", json!({ "entity_id": entity }))), before);
}

/// Files below a folder whose bytes have one of these words, in any case.
#[expect(clippy::disallowed_methods, reason = "looks at the bytes on disk")]
pub(crate) fn files_with(folder: &Path, words: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, words));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default().to_ascii_lowercase();
            let has = |word: &&str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
            found.extend(words.iter().any(has).then_some(path));
        }
    }
    found
}

/// Plain words, which no compression of a few texts hides.
pub(crate) const SECRETS: [&str; 4] = ["zyxomorph", "quandrifex", "blorptangle", "wimblesnark"];

#[test]
fn a_redacted_observation_is_in_no_file() {
    let mut client = planted();
    for number in 0..40 {
        client.answer("create_observation", json!({ "entity_id": 3, "text_content": format!("plain fact {number}") }));
    }
    client
        .answer("create_observation", json!({ "entity_id": 1, "text_content": "the key is zyxomorph [[quandrifex]]" }));
    client.answer("update_observation", json!({ "observation_id": 43, "text_content": "the key is blorptangle" }));
    client.answer("search_entities", json!({ "query": "blorptangle" }));
    assert!(!files_with(client.root(), &SECRETS).is_empty(), "it is on disk before");
    let redact = json!({ "kind": "observation", "id": 43, "reason": "a key" });
    let redacted = client.answer("redact", redact.clone());
    assert_eq!(redacted, json!({ "redacted": true, "places": ["memory: 1 item", "change log: 3 entries"] }));
    assert_eq!(files_with(client.root(), &SECRETS), [""; 0].map(PathBuf::from));
    assert_eq!(client.answer("search_entities", json!({ "query": "blorptangle" })), json!([]));
    assert_eq!(texts(&mut client, 1), ["lives in Leeds"]);
    let log = client.run_command(&["audit"]);
    assert!(log.contains("redact") && log.contains("[redacted: a key]"), "{log}");
    client.run_command(&["verify"]);
    let backup = tempfile::tempdir().unwrap();
    client.run_command(&["backup", backup.path().join("memory.db").to_str().unwrap()]);
    assert!(!files_with(backup.path(), &["lives in leeds"]).is_empty(), "the backup has the other observations");
    assert_eq!(files_with(backup.path(), &SECRETS), [""; 0].map(PathBuf::from));
    // It goes on, also in another process.
    client.answer("create_observation", json!({ "entity_id": 1, "text_content": "moved to York" }));
    client.signal("KILL");
    client.wait();
    let mut next = client.join(&[]);
    assert_eq!(texts(&mut next, 1), ["lives in Leeds", "moved to York"]);
    next.answer("redact", redact);
    assert_eq!(files_with(next.root(), &SECRETS), [""; 0].map(PathBuf::from));
}

#[test]
fn a_redacted_note_is_in_no_file() {
    let notes = "//- keep.md\nA plain note about rain.\n//- Zone/secret.md\n---\ntags: [wimblesnark]\n---\n# Quandrifex\n\nzyxomorph rain\n";
    let mut client = Client::open(notes);
    client.answer("get_node", json!({ "id": "zone/secret.md" }));
    client.answer("update_node", json!({ "id": "zone/secret.md", "content": "# Quandrifex\n\nblorptangle rain\n" }));
    client.run_command(&["index", "--wait"]);
    client.answer("ubp_search", json!({ "query": "blorptangle" }));
    assert!(files_with(client.root(), &SECRETS).len() > 2, "the file, its version and the index");
    let redact = json!({ "kind": "note", "id": "zone/secret.md", "reason": "a leak" });
    let redacted = client.answer("redact", redact);
    assert_eq!(redacted, json!({ "redacted": true, "places": ["file", "kept versions: 2", "index"] }));
    assert_eq!(files_with(client.root(), &SECRETS), [""; 0].map(PathBuf::from));
    let found = client.answer("ubp_search", json!({ "query": "rain" }));
    assert!(found.to_string().contains("keep.md") && !found.to_string().contains("secret.md"), "{found}");
    let kept = client.run_command(&["restore", "--json"]);
    assert!(kept.contains("secret.md"), "one line says that something was redacted: {kept}");
    client.run_command(&["doctor"]);
}
