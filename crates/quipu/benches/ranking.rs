//! How well searches rank: one judged set against its vault, by words, by meaning and by everything. Run by
//! `cargo xtask eval`, which lays the vault out; prints one JSON line.
#![expect(clippy::print_stdout, reason = "a measurement tells its figures")]
#![expect(clippy::disallowed_methods, reason = "reads a judged set")]

#[path = "common/open.rs"]
mod open;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use quipu_core::Knowledge;
use quipu_core::search::{By, Effort, Meaning, Round, Search};
use quipu_embed::Builtin;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::json;

/// How deep a ranking is looked at.
const DEPTH: usize = 100;

#[derive(Deserialize)]
struct Query {
    id: String,
    text: String,
    /// Pages that link with these very words, and would be found for that.
    #[serde(default)]
    exclude: HashSet<String>,
}

type Judged = HashMap<String, HashMap<String, f64>>;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut next = || arguments.next().context("usage: ranking VAULT QUERIES QRELS");
    let (vault, queries, judged) = (PathBuf::from(next()?), PathBuf::from(next()?), PathBuf::from(next()?));
    let most: usize = arguments.next().map_or(Ok(usize::MAX), |most| most.parse())?;

    let queries: Vec<Query> = std::fs::read_to_string(queries)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("a query is not as expected")?;
    let judged = read_judged(&judged)?;
    let mut asked: Vec<&Query> = queries.iter().filter(|query| judged.contains_key(&query.id)).collect();
    // Every so-many-th where there are too many, so that all kinds are among them.
    let step = asked.len().div_ceil(most.max(1)).max(1);
    asked = asked.into_iter().step_by(step).collect();

    let knowledge = open(&vault)?;
    let mut arms = serde_json::Map::new();
    for (name, by) in [("words", By::Words), ("meaning", By::Meaning), ("both", By::Everything)] {
        let scores: Vec<[f64; 3]> =
            asked.par_iter().map(|query| score(&knowledge, query, &judged[&query.id], by)).collect::<Result<_, _>>()?;
        let mean = |place: usize| scores.iter().map(|score| score[place]).sum::<f64>() / scores.len().max(1) as f64;
        arms.insert(name.into(), json!({"ndcg": mean(0), "mrr": mean(1), "recall": mean(2)}));
    }
    println!("{}", json!({"queries": asked.len(), "notes": knowledge.snapshot().files().len(), "arms": arms}));
    Ok(())
}

fn open(vault: &Path) -> anyhow::Result<Knowledge> {
    let (knowledge, store) = open::open(vault)?;
    let knowledge = knowledge.with_meaning(Meaning::new(Arc::new(Builtin::new()), store));
    knowledge.start(&|_| {})?;
    while knowledge.embed_some(256, Effort::EveryCore)? != Round::Idle {}
    Ok(knowledge)
}

fn read_judged(file: &Path) -> anyhow::Result<Judged> {
    let mut judged = Judged::new();
    for line in std::fs::read_to_string(file)?.lines().skip(1) {
        let mut columns = line.split('\t');
        let (Some(query), Some(document), Some(score)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        judged.entry(query.to_owned()).or_default().insert(document.to_owned(), score.trim().parse()?);
    }
    Ok(judged)
}

/// nDCG and reciprocal rank at 10, recall at 100.
fn score(knowledge: &Knowledge, query: &Query, judged: &HashMap<String, f64>, by: By) -> anyhow::Result<[f64; 3]> {
    let limit = DEPTH + query.exclude.len();
    let findings = knowledge.search(&Search { by, ..Search::new(&query.text, limit) })?;
    let ranked: Vec<f64> = findings
        .found
        .iter()
        .map(|found| document(findings.snapshot.note(found.key).path.as_str()))
        .filter(|document| !query.exclude.contains(document))
        .take(DEPTH)
        .map(|document| judged.get(&document).copied().unwrap_or(0.0))
        .collect();
    let gain = |(place, score): (usize, &f64)| (score.exp2() - 1.0) / (place as f64 + 2.0).log2();
    let mut ideal: Vec<f64> = judged.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best: f64 = ideal.iter().take(10).enumerate().map(gain).sum();
    let ndcg = if best > 0.0 { ranked.iter().take(10).enumerate().map(gain).sum::<f64>() / best } else { 0.0 };
    let first = ranked.iter().take(10).position(|score| *score > 0.0);
    let relevant = judged.values().filter(|score| **score > 0.0).count().max(1);
    let found = ranked.iter().filter(|score| **score > 0.0).count();
    Ok([ndcg, first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0)), found as f64 / relevant as f64])
}

/// A set's own id of a document: the path in a real vault, the percent-decoded stem in one that was laid out.
fn document(path: &str) -> String {
    match path.strip_prefix("documents/") {
        Some(name) => name.strip_suffix(".md").unwrap_or(name).replace("%2f", "/").replace("%25", "%"),
        None => path.to_owned(),
    }
}
