//! Which passages get vectors of the model, whatever becomes of their files meanwhile.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::sync::{Arc, Mutex};

use quipu_core::index::FileBatch;
use quipu_core::parse::TitleRule;
use quipu_core::ports::{Coverage, EmbedError, Embedder, Role};
use quipu_core::search::{Effort, Meaning, NoteSearch, Round};
use quipu_core::{Knowledge, Parts};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

/// Refuses one text, gives all others the same vector and records them.
#[derive(Default)]
struct Same(Mutex<Vec<String>>);

impl Embedder for Same {
    fn space(&self) -> &str {
        "same"
    }

    fn worth_beyond_english(&self) -> f32 {
        1.0
    }

    fn unrelated(&self) -> f32 {
        0.0
    }

    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedError::Unusable("it is too much".into()));
        }
        self.0.lock().unwrap().extend(texts.iter().map(|text| (*text).to_owned()));
        Ok(texts.iter().map(|_| vec![1.0, 0.0]).collect())
    }
}

fn open(fixture: &str) -> (Arc<MemVault>, Knowledge) {
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::from_fixture(clock.clone(), fixture));
    let (knowledge, _) = knowledge_of(vault.clone(), clock);
    (vault, knowledge)
}

fn knowledge_of(vault: Arc<MemVault>, clock: Arc<FixedClock>) -> (Knowledge, Arc<Same>) {
    let store = Arc::new(MemNoteStorage::default().open());
    let knowledge = Knowledge::new(Parts {
        vault,
        store: store.clone(),
        clock,
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {}).unwrap();
    let embedder = Arc::new(Same::default());
    (knowledge.with_meaning(Meaning::new(embedder.clone(), store)), embedder)
}

#[test]
fn the_most_linked_and_the_newest_notes_are_embedded_first() {
    let fixture = "//- hub.md\nthe hub\n//- second.md\nthe second\n//- a.md\n[[hub]] [[second]]\n//- b.md\n[[hub]]\n";
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::from_fixture(clock.clone(), fixture));
    clock.advance(60_000_000_000);
    vault.put("newest.md", "the newest\n");
    let (knowledge, embedder) = knowledge_of(vault, clock);
    while knowledge.embed_some(2, Effort::OneThread).unwrap() != Round::Idle {}
    let order: Vec<String> = embedder.0.lock().unwrap().clone();
    let place = |text: &str| order.iter().position(|made| made.contains(text)).unwrap();
    assert_eq!([place("the hub"), place("the newest"), place("the second")], [0, 1, 2], "{order:?}");
    assert_eq!(order.len(), 5, "each passage once");
}

/// Embeds until there is nothing to do; says how many passages there are and how many have vectors then.
fn embed_all(knowledge: &Knowledge) -> (usize, usize) {
    while knowledge.embed_some(2, Effort::OneThread).unwrap() != Round::Idle {}
    let Coverage { passages, full, .. } = knowledge.coverage().unwrap().unwrap();
    (passages, full)
}

#[test]
fn passages_of_a_note_saved_meanwhile_are_embedded_once_the_index_knows_it() {
    let long = "It stays as it is. ".repeat(100);
    let (vault, knowledge) = open(&format!("//- a.md\n# A\n\n{long}\n\n# B\n\n{long} old\n//- b.md\nother\n"));
    let Coverage { passages, .. } = knowledge.coverage().unwrap().unwrap();
    assert!(passages > 3, "{passages}");
    let text = vault.text("a.md").unwrap();
    vault.put("a.md", text.replace("old", "new"));
    assert_eq!(embed_all(&knowledge), (passages, 1), "the index knows another text");
    knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    assert_eq!(embed_all(&knowledge), (passages, passages), "passages that the save left as they were too");
}

#[test]
fn refused_passage_is_not_retried_and_does_not_block_others() {
    let (vault, knowledge) = open("//- a.md\nunspeakable\n//- b.md\none\n//- c.md\ntwo\n");
    assert_eq!(embed_all(&knowledge), (3, 2));
    vault.put("d.md", "three");
    knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    assert_eq!(embed_all(&knowledge), (4, 3));
}

/// A text with "far" is unlike all others.
struct FarOrNear;

impl Embedder for FarOrNear {
    fn space(&self) -> &str {
        "far or near"
    }

    fn worth_beyond_english(&self) -> f32 {
        1.0
    }

    fn unrelated(&self) -> f32 {
        0.0
    }

    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: &&str| if text.contains("far") { vec![0.0, 1.0] } else { vec![1.0, 0.0] };
        Ok(texts.iter().map(vector).collect())
    }
}

#[test]
fn note_with_the_words_is_no_closer_in_meaning_than_it_is() {
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::from_fixture(clock.clone(), "//- far.md\nfar heron\n"));
    for number in 0..400 {
        vault.put(&format!("n{number}.md"), format!("bird {number}"));
    }
    let store = Arc::new(MemNoteStorage::default().open());
    let knowledge = Knowledge::new(Parts {
        vault,
        store: store.clone(),
        clock,
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {}).unwrap();
    let knowledge = knowledge.with_meaning(Meaning::new(Arc::new(FarOrNear), store));
    embed_all(&knowledge);
    let found = knowledge.search(&NoteSearch::new("heron", 1000)).unwrap();
    let far = found.found.iter().find(|note| found.snapshot.note(note.key).path.as_str() == "far.md").unwrap();
    assert!(far.words > 0 && far.meaning == 0, "{far:?}");
    assert!(found.found.iter().any(|note| note.meaning > 0), "others are close");
}
