//! Questions whose answers together say what an index holds: every note, every link, ranks, tags and words.

use anyhow::Context;
use quipu_testkit::client::Client;
use serde_json::{Value, json};

/// Asks them all; each answer stands beside its question.
pub(super) fn ask(server: &mut Client) -> anyhow::Result<Vec<(String, Value)>> {
    let listed = server.call("list_nodes", &json!({ "limit": 1000 }))?.value().context("list_nodes failed")?;
    let ids = listed["nodes"].as_array().context("list_nodes has no nodes")?;
    let mut questions: Vec<(&str, Value)> =
        ids.iter().map(|node| ("get_node", json!({ "id": node["id"], "depth": 1 }))).collect();
    for metric in ["in_degree", "out_degree", "pagerank"] {
        questions.push(("get_hubs", json!({ "metric": metric, "limit": 50 })));
    }
    for tag in 0..6 {
        questions.push(("search_by_tags", json!({ "tags": [format!("tag{tag}")], "limit": 100 })));
    }
    for words in ["storm", "anchor knot", "嵐", "夜"] {
        questions.push(("search_docs", json!({ "query": words, "maxResults": 50 })));
    }
    questions.push(("list_documents", json!({})));
    let mut answers = vec![("list_nodes".to_owned(), listed.clone())];
    for (tool, arguments) in questions {
        let answer = server.call(tool, &arguments)?;
        let value = answer.value().with_context(|| format!("{tool} {arguments}: {}", answer.message))?;
        answers.push((format!("{tool} {arguments}"), value));
    }
    Ok(answers)
}
