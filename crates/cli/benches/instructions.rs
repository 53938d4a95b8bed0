//! The hot paths, one after the other, for `cargo xtask instructions`, which runs this under callgrind and counts the instructions
//! of each. Prints the name of each path.
//!
//! Counts must repeat: the vault is generated, the clock stands still, and the caller allows one core, so that rayon and tantivy
//! use one thread each.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "reads a generated vault")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use quipu_core::index::FileBatch;
use quipu_core::memory::{DuplicateRule, EntityTypes, Memory, MemoryParts};
use quipu_core::model::VaultPath;
use quipu_core::parse::parse;
use quipu_core::ports::{Embedder, Grade, Role, TextQuery, VectorQuery, VectorStore};
use quipu_core::search::Meaning;
use quipu_core::{Knowledge, Parts, Session};
use quipu_embed::Builtin;
use quipu_store_embedded::{EmbeddedStore, MemoryDatabase};
use quipu_testkit::FixedClock;
use quipu_testkit::generate::{Random, word};
use quipu_tools::{Registry, RegistryOptions, Reply};
use quipu_vault::{FolderSources, FolderVault, VaultOptions};
use serde_json::{Value, json};

/// Numbers in a vector.
const DIMENSIONS: usize = 384;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [vault] = arguments.as_slice() else { anyhow::bail!("usage: instructions VAULT") };
    parse_notes(vault)?;
    let model = Arc::new(Builtin::new());
    let open = HotVault::open(vault, &model)?;
    open.index()?;
    open.scan_vectors(model.space())?;
    encode(&model)?;
    open.call_tools()?;
    // As a server does at its end.
    open.knowledge.store_links()?;
    open.knowledge.store_lines()?;
    drop(open);
    HotVault::open(vault, &model)?.start_again(vault)
}

/// Counts the instructions of some work, on all threads. The names of the two functions are options of callgrind.
fn count<T>(path: &str, work: impl FnOnce() -> T) -> T {
    println!("{path}");
    counting_starts();
    let result = black_box(work());
    counting_ends();
    result
}

#[inline(never)]
fn counting_starts() {
    black_box(());
}

#[inline(never)]
fn counting_ends() {
    black_box(());
}

fn parse_notes(vault: &Path) -> anyhow::Result<()> {
    let folder = std::fs::read_dir(vault.join("area0/folder0"))?;
    let mut files = folder.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    files.sort();
    let texts = files.iter().map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    ensure!(!texts.is_empty(), "the vault has no notes");
    count("parse the notes of a folder", || texts.iter().for_each(|text| drop(black_box(parse(text)))));
    Ok(())
}

/// One text of about a hundred tokens.
fn encode(model: &Builtin) -> anyhow::Result<()> {
    let text: String = (0..60).map(|rank| word(rank * 17) + " ").collect();
    // Reads the weights.
    model.embed(Role::Passage, &["a"])?;
    count("encode a text with the model", || model.embed(Role::Passage, &[&text]))?;
    let mut encoder = model.coarse_encoder().context("the builtin model has a coarse encoder")?;
    count("encode a text coarsely", || encoder.encode(&text));
    Ok(())
}

/// A vault as the program opens it, apart from the clock.
struct HotVault {
    knowledge: Arc<Knowledge>,
    store: Arc<EmbeddedStore>,
    registry: Registry,
}

impl HotVault {
    fn open(folder: &Path, model: &Arc<Builtin>) -> anyhow::Result<Self> {
        let clock = Arc::new(FixedClock::default());
        let store = Arc::new(EmbeddedStore::open(&folder.join(".quipu/index"))?);
        let knowledge = Knowledge::new(Parts {
            vault: Arc::new(FolderVault::open(folder, VaultOptions::default())?),
            store: store.clone(),
            clock: clock.clone(),
            sources: Arc::new(FolderSources::new(folder, clock.clone())),
            title_rule: Default::default(),
            stale_after: Knowledge::STALE_AFTER,
        });
        let knowledge = Arc::new(knowledge.with_meaning(Meaning::new(model.clone(), store.clone())));
        let memory = Arc::new(Memory::new(MemoryParts {
            store: Arc::new(MemoryDatabase::in_memory()?),
            embedder: None,
            clock,
            types: EntityTypes::default(),
            rule: DuplicateRule::default(),
        }));
        let registry = Registry::with_memory(knowledge.clone(), memory, RegistryOptions::default());
        Ok(Self { knowledge, store, registry })
    }

    /// Counts the first pass until its words can be found.
    fn index(&self) -> anyhow::Result<()> {
        let query = |text| TextQuery { text, limit: 10, ..TextQuery::default() };
        let (report, found) = count("index the vault", || {
            let report = self.knowledge.start(&|_| {});
            (report, self.knowledge.search_text(&query(word(3))))
        });
        ensure!(report?.unsaved == 0 && !found?.hits.is_empty(), "the vault was not indexed");
        let text = format!("{} {}", word(120), word(7));
        ensure!(!count("query words", || self.knowledge.search_text(&query(text)))?.hits.is_empty(), "nothing found");
        Ok(())
    }

    fn scan_vectors(&self, space: &str) -> anyhow::Result<()> {
        let mut random = Random(5);
        let mut vector = || {
            let numbers: Vec<f32> = (0..DIMENSIONS).map(|_| random.below(2001) as f32 - 1000.0).collect();
            let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
            numbers.into_iter().map(|number| number / length).collect::<Vec<f32>>()
        };
        let missing = self.store.missing(space, Grade::FULL, None, usize::MAX)?;
        let vectors: Vec<_> = missing.into_iter().map(|missing| (missing.hash, vector())).collect();
        self.store.put_vectors(space, Grade::FULL, &vectors)?;
        let wanted = vector();
        let nearest = || self.store.nearest(&VectorQuery::new(space, &wanted, 10));
        // Loads the vectors.
        nearest()?;
        ensure!(count("scan vectors", nearest)?.len() == 10, "nothing is near");
        Ok(())
    }

    fn call_tools(&self) -> anyhow::Result<()> {
        let snapshot = self.knowledge.snapshot();
        let ids: Vec<&str> = snapshot.files().map(|key| snapshot.note(key).id.as_str()).collect();
        let (first, last) = (ids[0], ids[ids.len() - 1]);
        let (stem, common) = (first.rsplit('/').next().unwrap_or(first).trim_end_matches(".md"), word(30));
        for ranks in [0..50, 50..100, 100..150, 150..200] {
            let entity = |rank| {
                let name = format!("{} {}", word(rank), word(rank * 3));
                json!({ "name": name, "entity_type": "Concept", "observations": [word(rank * 5)] })
            };
            self.call(None, "bulk_update", json!({ "entities": ranks.map(entity).collect::<Vec<_>>() }))?;
        }
        self.call(Some("search_docs, first call"), "search_docs", json!({ "query": common }))?;
        self.call(Some("search_docs"), "search_docs", json!({ "query": word(200) }))?;
        self.call(
            Some("resolve_nodes, first exact call"),
            "resolve_nodes",
            json!({ "names": [stem], "strategy": "exact" }),
        )?;
        self.call(Some("resolve_nodes, first fuzzy call"), "resolve_nodes", json!({ "names": [&stem[1..]] }))?;
        self.call(Some("resolve_nodes, fuzzy"), "resolve_nodes", json!({ "names": [&stem[2..]] }))?;
        self.call(Some("search by words and meaning"), "search", json!({ "query": format!("{common} {}", word(90)) }))?;
        self.call(Some("find_path"), "find_path", json!({ "source": first, "target": last }))?;
        self.call(Some("get_hubs, first PageRank"), "get_hubs", json!({ "metric": "pagerank" }))?;
        let query = json!({ "where": [{ "field": "chars", "op": "gt", "value": 500 }], "sort": [{ "field": "modified", "order": "desc" }] });
        self.call(Some("query_nodes"), "query_nodes", query)?;
        self.call(Some("search_entities"), "search_entities", json!({ "query": format!("{} {}", word(7), word(40)) }))?;
        self.call(None, "get_node", json!({ "id": first }))?;
        // With the search, which commits the text: the timer that commits it otherwise may fall into any path on a busy machine.
        for (path, text) in
            [("edit_node, first call, and a search", "One more line."), ("edit_node and a search", "And another.")]
        {
            let edit = json!({ "id": first, "edits": [{ "op": "append", "text": text }] });
            count(path, || {
                self.call(None, "edit_node", edit)?;
                self.call(None, "ubp_fulltext_search", json!({ "query": text }))
            })?;
        }
        Ok(())
    }

    /// Counts a start on the index that an earlier process left, and what a user does first.
    fn start_again(&self, folder: &Path) -> anyhow::Result<()> {
        let report = count("start on a saved index", || self.knowledge.start(&|_| {}))?;
        ensure!(report.total > 0 && report.added == 0, "the saved index was not used");
        self.call(Some("search_docs, first call after a start"), "search_docs", json!({ "query": word(30) }))?;
        self.knowledge.prepare_for_changes();
        std::fs::write(folder.join("saved.md"), format!("Saved, with {}.\n", word(40)))?;
        let batch = FileBatch::Paths(vec![VaultPath::parse("saved.md")?]);
        let report = count("index a saved file", || self.knowledge.apply(&batch, &|_| {}))?;
        ensure!(report.added == 1, "the file was not indexed");
        Ok(())
    }

    /// Calls a tool; counts the call if it has a path's name.
    fn call(&self, path: Option<&str>, name: &str, arguments: Value) -> anyhow::Result<()> {
        let tool = self.registry.find(name).map_err(|reply| anyhow!("{reply:?}"))?;
        let session = Session::default();
        let call = || self.registry.call(tool, arguments, &session, None).reply;
        let reply = match path {
            Some(path) => count(path, call),
            None => call(),
        };
        ensure!(matches!(reply, Reply::Answer(_)), "{name} failed: {reply:?}");
        Ok(())
    }
}
