//! Search by meaning over real stdio, with the model inside the program: `search`, `ubp_search`, and what status says.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

const GARDEN: &str = "\
//- vegetables/tomatoes.md
---
tags: [summer]
---
# Tomatoes

## Watering
Give the seedlings water every morning, never on the leaves. See [[tools/hose|depends_on]].
## Pests
Snails and aphids love young plants.
//- tools/hose.md
A long hose reaches every bed.
//- office/invoices.md
Send the bill to the customer before the end of the month.
//- 日本語/天気.md
明日の東京は雨が降るでしょう。
";

/// Asks until the background has embedded everything: then the answer comes without a word about that.
fn when_embedded(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let blocks = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let is_partial = blocks.iter().any(|block| block["text"].as_str().unwrap().contains("embedded so far"));
        if !is_partial {
            return serde_json::from_str(blocks[0]["text"].as_str().unwrap()).unwrap();
        }
        assert!(Instant::now() < until, "{answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn search_finds_notes_by_meaning() {
    let mut client = Client::open(GARDEN);
    let query = json!({"query": "asking clients for payment", "limit": 3});
    let answer = when_embedded(&mut client, "search", &query);
    let hits = answer.as_array().unwrap();
    assert_eq!(hits[0]["id"], "office/invoices.md", "{answer}");
    assert!(hits.len() <= 3 && hits[0].get("content").is_none(), "{answer}");
    let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| (0.0..=1.0).contains(score)), "{answer}");

    let answer = when_embedded(&mut client, "search", &json!({"query": "雨"}));
    assert_eq!(answer[0]["id"], "日本語/天気.md", "one character is enough: {answer}");
    let (code, _) = client.error("search", json!({"query": "x", "limit": 51}));
    assert_eq!(code, "INVALID_PARAMS");
}

#[test]
fn page_results_have_a_relevance_reason() {
    let mut client = Client::open(GARDEN);
    let arguments =
        json!({"query": "how often do I irrigate seedlings?", "include_linked": true, "depth": 1, "limit": 2});
    let answer = when_embedded(&mut client, "ubp_search", &arguments);
    assert_eq!(answer["search_type"], "hybrid");
    let page = &answer["results"][0];
    assert_eq!((&page["filepath"], &page["title"]), (&json!("vegetables/tomatoes.md"), &json!("Tomatoes")), "{answer}");
    assert_eq!(page["staleness"], "untracked");
    let section = &page["sections"][0];
    assert_eq!(section["heading"], "Watering", "{page}");
    assert_eq!(section["section_id"], format!("{}#1", page["doc_id"].as_str().unwrap()));
    assert_eq!(page["linked_pages"][0]["link_type"], "depends_on");
    assert!(page["linked_pages"][0]["summary"].as_str().unwrap().contains("long hose"), "{page}");
    let parts = page["score_breakdown"].as_object().unwrap();
    let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
    assert!((sum - page["score"].as_f64().unwrap()).abs() < 1e-6, "{page}");
    assert!(page["relevance_reason"].as_str().unwrap().contains("Watering"), "{page}");

    let bad = client.request("tools/call", json!({"name": "ubp_search", "arguments": {"query": "x", "limit": 21}}));
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
}

#[test]
fn a_saved_note_is_found_by_meaning_once_it_is_embedded() {
    let mut client = Client::open(GARDEN);
    client.write("office/party.md", "Balloons, a cake, and music for the anniversary.\n");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = client.answer("search", json!({"query": "birthday celebration", "limit": 1}));
        if answer[0]["id"] == "office/party.md" {
            break;
        }
        assert!(Instant::now() < until, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The JSON that a command prints.
fn said(client: &Client, arguments: &[&str]) -> Value {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"));
    let ran = command.args(arguments).arg(client.root()).env_remove("QUIPU_VAULT").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn embedding_resumes_after_a_kill() {
    if crate::team_wire::is_wanted() {
        return quipu_testkit::skip("it reads the index of the folder");
    }
    let notes = (0..400).map(|n| format!("//- n{n:03}.md\nNote number {n} is about subject {}.\n", n * 7919));
    let mut client = Client::open(&notes.collect::<String>());
    // Until some passages are embedded by the model, and surely not all. Coarse vectors came before.
    let until = Instant::now() + Duration::from_secs(60);
    let embedded_before = loop {
        let embedding = said(&client, &["status", "--json"])["embedding"].clone();
        match embedding["full"].as_u64() {
            Some(count) if count > 0 => {
                assert_eq!(embedding["embedded"], 400, "{embedding}");
                break count;
            }
            _ => assert!(Instant::now() < until, "{embedding}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    client.signal("KILL");
    client.wait();

    let kept = said(&client, &["status", "--json"])["embedding"]["full"].as_u64().unwrap();
    assert!((embedded_before..400).contains(&kept), "{embedded_before} were embedded, and {kept} are kept");
    let rest = said(&client, &["index", "--wait", "--json"])["embedded"].as_u64().unwrap();
    assert_eq!(kept + rest, 400, "nothing is embedded twice");
    assert_eq!(
        said(&client, &["index", "--rebuild", "--wait", "--json"])["embedded"],
        0,
        "a rebuild needs no vector anew"
    );
}
