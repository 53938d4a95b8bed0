//! Scores depend on the notes that are there, not on how they came to be.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::collections::BTreeMap;

use quipu_core::model::NoteKey;
use quipu_core::ports::{NoteChange, NoteStore, TextHit, TextMatch, TextQuery};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::generate::Random;
use quipu_testkit::store_conformance::note;

const WORDS: [&str; 12] = [
    "storm",
    "anchor",
    "knots",
    "harbour",
    "the",
    "pilot",
    "getUserName",
    "夜の嵐",
    "sails",
    "lantern",
    "mast",
    "lanterns",
];

/// Each level of relaxing, rare and common words, words that only deleted notes had.
const QUERIES: [&str; 10] = [
    "storm",
    "storm anchor",
    "anchor the pilot",
    "pilot storm harbour knots",
    "lantren",
    "嵐",
    "夜の嵐 mast",
    "get user",
    "once",
    "storm zeppelin",
];

fn text(random: &mut Random) -> String {
    let mut text = format!("# {}\n", WORDS[random.below(WORDS.len())]);
    for _ in 0..2 + random.below(60) {
        text.push_str(WORDS[random.below(WORDS.len())]);
        text.push_str(if random.below(12) == 0 { "\n## Part\n" } else { " " });
    }
    text
}

fn put(store: &EmbeddedStore, key: u32, text: &str) {
    store.apply(&[NoteChange::Put { key: NoteKey(key), note: &note("n.md", text), text }]).unwrap();
}

fn fresh(notes: &BTreeMap<u32, String>) -> EmbeddedStore {
    let store = EmbeddedStore::in_memory().unwrap();
    store.load("history").unwrap();
    notes.iter().for_each(|(key, text)| put(&store, *key, text));
    store
}

type Answer = (Vec<TextHit>, TextMatch, usize, Vec<TextHit>, f32);

fn answer(store: &EmbeddedStore, query: &str) -> Answer {
    let found = store.search_text(&TextQuery { text: query.to_owned(), limit: 9, ..TextQuery::default() }).unwrap();
    let ranked = store.rank_text(query, 9).unwrap();
    (found.hits, found.matched, found.total, ranked.hits, ranked.most)
}

#[test]
fn scores_equal_those_of_a_fresh_index_after_any_history() {
    let mut random = Random(7);
    let mut notes = BTreeMap::new();
    let edited = fresh(&notes);
    for round in 0..400_u32 {
        let key = random.below(60) as u32;
        if random.below(5) == 0 {
            notes.remove(&key);
            edited.apply(&[NoteChange::Remove { key: NoteKey(key) }]).unwrap();
        } else {
            let text = text(&mut random);
            put(&edited, key, &format!("{text} once {round} lanterna"));
            put(&edited, key, &text);
            notes.insert(key, text);
        }
        // A search commits, so that later changes delete from several segments.
        if round % 7 == 0 {
            answer(&edited, "storm");
        }
        if round % 100 == 99 {
            let fresh = fresh(&notes);
            for query in QUERIES {
                assert_eq!(answer(&edited, query), answer(&fresh, query), "{query} after {round} changes");
            }
        }
    }
}

#[test]
fn restoring_a_note_restores_its_score() {
    let notes = BTreeMap::from_iter((0..20).map(|key| (key, format!("harbour {}", "pilot ".repeat(key as usize % 5)))));
    let store = fresh(&notes);
    let before = answer(&store, "harbour pilot");
    for round in 0..7 {
        put(&store, 3, &format!("something else {round}"));
        answer(&store, "harbour");
    }
    put(&store, 3, &notes[&3]);
    assert_eq!(answer(&store, "harbour pilot"), before);
}
