//! Search by words, meaning and links through `Registry::call`, without a wire: the engine's time and the query's embedding
//! apart, and both together. Run by `cargo xtask bench`; prints one JSON line for each kind of call, in milliseconds of CPU
//! over all threads.
//!
//! To embed 100,000 passages takes an hour, and how fast that goes is measured elsewhere (docs/embedding.md). Here a passage
//! gets the mean of what the builtin model makes of its words, the commonest ones, in the model's own space: as many
//! vectors, spread as the model spreads them, and found by true queries. Nothing is claimed of how good the hits are.
#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]

#[path = "common/open.rs"]
mod open;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use parking_lot::Mutex;
use quipu_core::model::NoteKey;
use quipu_core::parse::decode;
use quipu_core::ports::{EmbedError, Embedder, Grade, Role, VaultFiles, VectorStore};
use quipu_core::search::{Meaning, passages};
use quipu_core::{Knowledge, Session};
use quipu_embed::Builtin;
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::generate::{Random, word};
use quipu_testkit::workload::percentiles;
use quipu_tools::{Registry, RegistryOptions, Reply};
use quipu_vault::{FolderVault, VaultOptions};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// Words that are embedded for the passages' sake: most of what a text by Zipf's law consists of.
const WORDS: usize = 1500;
/// Vectors put at a time.
const BATCH: usize = 2000;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let vault = PathBuf::from(arguments.next().context("usage: search VAULT CALLS")?);
    let calls: usize = arguments.next().context("usage: search VAULT CALLS")?.parse()?;

    let embedder = Arc::new(Prepared::default());
    let (knowledge, store) = open(&vault, embedder.clone())?;
    fill(&vault, &knowledge, &store, &embedder.model)?;
    let coverage = knowledge.coverage().context("there is an embedder")??;
    ensure!(coverage.embedded == coverage.passages, "{coverage:?}");
    println!("{}", json!({ "passages": coverage.passages }));

    let registry = Registry::new(Arc::new(knowledge), RegistryOptions::default());
    let session = Session::default();
    for (kind, queries) in kinds(calls) {
        let embedding = timed(&queries, |query| {
            let vector = embedder.model.embed(Role::Query, &[query])?.pop().context("a vector")?;
            embedder.known().insert(query.to_owned(), vector);
            Ok(())
        })?;
        told(&format!("query embedding, {kind}"), embedding);
        for name in ["search", "ubp_search"] {
            let tool = registry.find(name).map_err(|reply| anyhow!("{reply:?}"))?;
            for (is_prepared, what) in [(true, "without query embedding"), (false, "with query embedding")] {
                embedder.is_prepared.store(is_prepared, Ordering::Relaxed);
                let times = timed(&queries, |query| {
                    let response = registry.call(tool, json!({ "query": query }), &session, None);
                    ensure!(matches!(response.reply, Reply::Answer(_)), "{name} failed: {:?}", response.reply);
                    Ok(())
                })?;
                told(&format!("{name} {what}, {kind}"), times);
            }
        }
    }
    Ok(())
}

/// The builtin model, which can replay the vectors that it made before.
#[derive(Default)]
struct Prepared {
    model: Builtin,
    known: Mutex<HashMap<String, Vec<f32>>>,
    is_prepared: AtomicBool,
}

impl Prepared {
    fn known(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Vec<f32>>> {
        self.known.lock()
    }
}

impl Embedder for Prepared {
    fn space(&self) -> &str {
        self.model.space()
    }

    fn worth_beyond_english(&self) -> f32 {
        self.model.worth_beyond_english()
    }

    fn unrelated(&self) -> f32 {
        self.model.unrelated()
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.is_prepared.load(Ordering::Relaxed) {
            let known = self.known();
            return Ok(texts.iter().map(|text| known[*text].clone()).collect());
        }
        self.model.embed(role, texts)
    }
}

fn open(vault: &Path, embedder: Arc<Prepared>) -> anyhow::Result<(Knowledge, Arc<EmbeddedStore>)> {
    let (knowledge, store) = open::open(vault, "index")?;
    let knowledge = knowledge.with_meaning(Meaning::new(embedder, store.clone()));
    knowledge.start(&|_| {})?;
    Ok((knowledge, store))
}

/// Gives every passage a vector made of its words.
fn fill(vault: &Path, knowledge: &Knowledge, store: &EmbeddedStore, model: &Builtin) -> anyhow::Result<()> {
    let words: Vec<String> = (0..WORDS).map(word).collect();
    let vectors = model.embed(Role::Passage, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    let known: HashMap<&str, &Vec<f32>> = words.iter().map(String::as_str).zip(&vectors).collect();
    let files = FolderVault::open(vault, VaultOptions::default())?;
    let snapshot = knowledge.snapshot();
    let space = model.space();
    loop {
        let missing = store.missing(space, Grade::FULL, None, BATCH)?;
        if missing.is_empty() {
            return Ok(());
        }
        let mut texts: HashMap<NoteKey, Vec<String>> = HashMap::new();
        let mut made = Vec::with_capacity(missing.len());
        for wanted in missing {
            let texts = texts.entry(wanted.key).or_insert_with(|| {
                let note = snapshot.note(wanted.key);
                let content = files.read(&note.path).ok().flatten();
                let text = content.map(|content| decode(content.bytes)).unwrap_or_default();
                passages(note, &text).into_iter().map(|passage| passage.text).collect()
            });
            let text = texts.get(wanted.passage).context("the vault changed meanwhile")?;
            made.push((wanted.hash, mean(text, &known, &vectors)));
        }
        store.put_vectors(space, Grade::FULL, &made)?;
    }
}

/// The mean of the vectors of a text's words. One that has none of them gets a vector picked by its length.
fn mean(text: &str, known: &HashMap<&str, &Vec<f32>>, all: &[Vec<f32>]) -> Vec<f32> {
    let mut sum = all[text.len() % all.len()].clone();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if let Some(vector) = known.get(word.to_lowercase().as_str()) {
            sum.iter_mut().zip(vector.iter()).for_each(|(sum, number)| *sum += number);
        }
    }
    let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
    sum.iter().map(|number| number / length).collect()
}

/// What people type: a word that nearly every note has, and some words of every sort.
fn kinds(calls: usize) -> [(&'static str, Vec<String>); 2] {
    let mut random = Random(23);
    let mut queries = |make: &dyn Fn(&mut Random) -> String| (0..calls).map(|_| make(&mut random)).collect();
    let common = |random: &mut Random| word(random.below(10));
    let some = |random: &mut Random| word(100 + random.below(2000));
    [
        ("common words", queries(&|random| format!("{} {}", common(random), common(random)))),
        (
            "several words",
            queries(&|random| format!("{} {} {} {}", some(random), common(random), some(random), word(30))),
        ),
    ]
}

/// The CPU time of each, in milliseconds.
fn timed(queries: &[String], mut ask: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(queries.len());
    for query in queries {
        let started = cpu_time();
        ask(query)?;
        times.push((cpu_time() - started).as_secs_f64() * 1e3);
    }
    Ok(times)
}

fn told(label: &str, times: Vec<f64>) {
    let (p50, p95) = percentiles(times);
    println!("{}", json!({ "label": label, "p50": p50, "p95": p95 }));
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("CPU time is not negative")
}
