//! After any sequence of edits a running server answers like one that has just started.

use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::index::FileBatch;
use quipu_core::model::VaultPath;
use quipu_core::parse::TitleRule;
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};
use quipu_tools::{Registry, RegistryOptions, Reply};
use serde_json::{Value, json};

/// Names that differ in case, folder, dashes, and nothing.
const PATHS: [&str; 9] =
    ["a.md", "A.md", "b.md", "d/a.md", "D/a.md", "d/b.md", "c c.md", "d/c-c.md", "e/deep/a.markdown"];
const TARGETS: [&str; 9] = ["a", "d/a", "b", "c c", "c-c", "nick", "Given Title", "deep/a", "nowhere"];

/// Frontmatter lines that change names, tags and section.
const PROPERTIES: [&str; 4] = ["aliases: [nick]", "title: Given Title", "tags: [kept/low]", "section: Elsewhere"];

#[derive(Debug, Clone)]
enum Edit {
    Put { path: &'static str, properties: Vec<&'static str>, links: Vec<&'static str> },
    Remove { path: &'static str },
}

fn edit() -> impl Strategy<Value = Edit> {
    let links = prop::collection::vec(prop::sample::select(&TARGETS[..]), 0..4);
    let path = || prop::sample::select(&PATHS[..]);
    prop_oneof![
        3 => (path(), prop::sample::subsequence(&PROPERTIES[..], 0..=PROPERTIES.len()), links)
            .prop_map(|(path, properties, links)| Edit::Put { path, properties, links }),
        1 => path().prop_map(|path| Edit::Remove { path }),
    ]
}

fn make(vault: &MemVault, edit: &Edit) -> Option<VaultPath> {
    match edit {
        Edit::Put { path, properties, links } => {
            let properties: String = properties.iter().map(|property| format!("{property}\n")).collect();
            let links: String = links.iter().map(|target| format!("[[{target}]] [x]({target}.md)\n")).collect();
            vault.put(path, format!("---\nn: 1\n{properties}---\n{links}"));
            VaultPath::parse(path).ok()
        }
        Edit::Remove { path } => {
            vault.text(path)?;
            vault.remove(path);
            VaultPath::parse(path).ok()
        }
    }
}

fn start(vault: &Arc<MemVault>, storage: &MemNoteStorage) -> (Arc<Knowledge>, Registry) {
    let knowledge = Arc::new(Knowledge::new(Parts {
        vault: vault.clone(),
        store: Arc::new(storage.open()),
        clock: Arc::new(FixedClock::default()),
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    }));
    knowledge.start(&|_| {}).expect("a vault in memory can be read");
    let registry = Registry::new(knowledge.clone(), RegistryOptions::default());
    (knowledge, registry)
}

/// Everything that depends on names, links and their order.
fn answers(registry: &Registry) -> Vec<Value> {
    let session = Session::default();
    let call = |name: &str, arguments: Value| {
        let tool = registry.find(name).expect("the registry has every tool");
        match registry.call(tool, arguments, &session, None).reply {
            Reply::Answer(answer) => answer,
            other => panic!("{name}: {other:?}"),
        }
    };
    let mut answers = vec![
        call("list_nodes", json!({})),
        call("list_documents", json!({})),
        call("list_documents", json!({"section": "elsewhere"})),
        call("search_by_tags", json!({"tags": ["kept"]})),
        call("get_hubs", json!({"limit": 50})),
        call("get_hubs", json!({"metric": "pagerank", "limit": 50})),
        call("resolve_nodes", json!({"names": TARGETS, "strategy": "exact"})),
        call("resolve_nodes", json!({"names": TARGETS})),
        call("search_docs", json!({"query": "given title"})),
        call("search_docs", json!({"query": "nowhere.md"})),
    ];
    for path in PATHS {
        answers.push(call("get_node", json!({"id": path, "depth": 1})));
        answers.push(call("find_path", json!({"source": "hub0.md", "target": path})));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn edits_one_by_one_give_what_a_fresh_start_gives(edits in prop::collection::vec(edit(), 1..25)) {
        let vault = Arc::new(MemVault::new(Arc::default()));
        // Enough other notes that one edit does not resolve all links again.
        for number in 0..12 {
            let targets: String = TARGETS.iter().skip(number % 5).map(|target| format!("[[{target}]] ")).collect();
            vault.put(&format!("hub{number}.md"), targets);
        }
        let storage = MemNoteStorage::default();
        let (knowledge, running) = start(&vault, &storage);
        for edit in &edits {
            let Some(path) = make(&vault, edit) else { continue };
            knowledge.apply(&FileBatch::Paths(vec![path]), &|_| {}).expect("a vault in memory can be read");
            knowledge.store_links().expect("a store in memory keeps anything");
            // Fills the caches.
            answers(&running);
        }
        let (_, fresh) = start(&vault, &MemNoteStorage::default());
        prop_assert_eq!(answers(&running), answers(&fresh));
        // A start from the stored index gives the same answers.
        let (_, remembering) = start(&vault, &storage);
        prop_assert_eq!(answers(&remembering), answers(&fresh));
    }
}
