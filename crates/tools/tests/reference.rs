//! `docs/tools.md` is generated from the tools by `cargo xtask docs`.
#![expect(clippy::disallowed_methods, reason = "compares a page of the repository")]

use std::path::Path;
use std::sync::Arc;

use quipu_core::parse::TitleRule;
use quipu_core::search::Meaning;
use quipu_core::{Knowledge, Parts};
use quipu_embed::Builtin;
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault, mem_memory};
use quipu_tools::{Registry, RegistryOptions, reference};

#[test]
fn the_page_of_tools_is_up_to_date() {
    let clock = Arc::new(FixedClock::default());
    let store = Arc::new(MemNoteStorage::default().open());
    let knowledge = Knowledge::new(Parts {
        vault: Arc::new(MemVault::new(clock.clone())),
        store: store.clone(),
        clock: clock.clone(),
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    let knowledge = knowledge.with_meaning(Meaning::new(Arc::new(Builtin::new()), store));
    let page =
        reference(&Registry::with_memory(Arc::new(knowledge), Arc::new(mem_memory(clock)), RegistryOptions::default()));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    if std::env::var_os("QUIPU_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/tools.md is out of date; run `cargo xtask docs`");
}
