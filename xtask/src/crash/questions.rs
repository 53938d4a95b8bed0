//! Questions whose answers together say what an index holds: every note, every link, ranks, tags, words
//! and their scores.
//!
//! The order matters: reading a note indexes what its file says now, and would repair a stale index before it is asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use quipu_testkit::client::{Client, Wire};
use serde_json::{Value, json};

const WORDS: [&str; 4] = ["storm", "anchor knot", "嵐", "夜"];

/// The tags of the generated notes.
const TAGS: [&str; 6] = ["tag0", "tag1", "tag2", "tag3", "tag4", "tag5"];

/// An answer beside its question.
pub(crate) type Answered = (String, Value);

/// Asks a server everything its tools can tell, then leaves it.
pub(super) fn ask(server: Client) -> anyhow::Result<Vec<Answered>> {
    let (mut child, mut wire) = server.into_parts();
    let mut answers = ask_index(&mut wire, &TAGS)?;
    let ids = ids(&answers)?;
    answers.extend(ask_text(&mut wire, &WORDS, &ids)?);
    drop(wire);
    let status = child.wait()?;
    ensure!(status.success(), "it ended badly: {status}");
    Ok(answers)
}

/// Answers of the index that need no file. The first one lists the notes.
pub(crate) fn ask_index(wire: &mut Wire, tags: &[&str]) -> anyhow::Result<Vec<Answered>> {
    let mut answers = ask_together(wire, vec![("list_nodes", json!({ "limit": 1000 }))])?;
    let mut questions = vec![
        ("list_documents", json!({ "limit": 1000 })),
        ("ubp_list_pages", json!({ "limit": 1000 })),
        ("ubp_get_graph", json!({ "max_nodes": 1000 })),
    ];
    for metric in ["in_degree", "out_degree", "pagerank"] {
        questions.push(("get_hubs", json!({ "metric": metric, "limit": 50 })));
    }
    for tag in tags {
        questions.push(("search_by_tags", json!({ "tags": [tag], "limit": 100 })));
    }
    let neighbors = ids(&answers)?.into_iter().map(|id| ("get_neighbors", json!({ "id": id, "limit": 50 })));
    answers.extend(ask_together(wire, questions.into_iter().chain(neighbors).collect())?);
    Ok(answers)
}

/// The results of searches, ranks included, and the notes as read from the files.
pub(crate) fn ask_text(wire: &mut Wire, words: &[&str], ids: &[Value]) -> anyhow::Result<Vec<Answered>> {
    let mut questions = Vec::new();
    for words in words {
        questions.push(("ubp_fulltext_search", json!({ "query": words, "limit": 50 })));
        questions.push(("ubp_search", json!({ "query": words, "limit": 20 })));
        questions.push(("search_docs", json!({ "query": words, "maxResults": 50 })));
    }
    questions.extend(ids.iter().map(|id| ("get_node", json!({ "id": id, "depth": 1 }))));
    ask_together(wire, questions)
}

/// The notes that [`ask_index`] lists.
pub(crate) fn ids(answers: &[Answered]) -> anyhow::Result<Vec<Value>> {
    let nodes = answers[0].1["nodes"].as_array().context("list_nodes has no nodes")?;
    Ok(nodes.iter().map(|node| node["id"].clone()).collect())
}

/// Sends all questions before it waits for the first answer; there are far fewer than a server lets wait.
fn ask_together(wire: &mut Wire, questions: Vec<(&str, Value)>) -> anyhow::Result<Vec<Answered>> {
    let mut sent = BTreeMap::new();
    for (tool, arguments) in questions {
        sent.insert(wire.send_call(tool, &arguments)?, (format!("{tool} {arguments}"), Value::Null));
    }
    for _ in 0..sent.len() {
        let answer = wire.receive()?;
        let (question, value) = sent.get_mut(&answer.id).context("an answer to nothing that was asked")?;
        *value = answer.value().with_context(|| format!("{question}: {}", answer.message))?;
    }
    Ok(sent.into_values().collect())
}

/// Asks the command line for what no tool tells: the index of words, and whether the index is damaged. No server may have
/// the vault open, or the index would be one in memory.
pub(super) fn ask_command_line(binary: &Path, vault: &Path) -> anyhow::Result<Vec<Answered>> {
    let mut answers = Vec::new();
    for words in WORDS {
        let found = run(binary, vault, &["search", "--words", words, "--limit", "1000", "--json"])?;
        answers.push((format!("search --words {words}"), found));
    }
    let mut examined = run(binary, vault, &["doctor", "--json"])?;
    let groups = examined["groups"].as_array_mut().context("doctor answers with groups")?;
    // The copy has neither a past nor a crash behind it.
    groups.retain(|group| group["kind"] != "trash" && group["kind"] != "leftovers");
    let damage = groups.iter().find(|group| group["kind"] == "damaged_index");
    ensure!(damage.is_none(), "the index is damaged: {damage:?}");
    answers.push(("doctor".to_owned(), Value::Array(std::mem::take(groups))));
    Ok(answers)
}

fn run(binary: &Path, vault: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
    let mut command = Command::new(binary);
    command.args(arguments).arg("--vault").arg(vault).env_remove("QUIPU_VAULT").stderr(Stdio::null());
    let output = command.output().context("the program did not start")?;
    // 1 is "nothing found".
    ensure!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?} ended with {}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("the answer to {arguments:?} is no JSON"))
}
