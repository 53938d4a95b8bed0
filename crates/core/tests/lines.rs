//! Search by lines against a plain look at every line, while notes come, change and go.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_core::index::FileBatch;
use quipu_core::model::{VaultPath, fold};
use quipu_core::parse::TitleRule;
use quipu_core::ports::VaultFiles;
use quipu_core::{Knowledge, Parts};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

fn open(vault: &Arc<MemVault>, clock: &Arc<FixedClock>) -> Knowledge {
    open_stored(vault, clock, &MemNoteStorage::default())
}

fn open_stored(vault: &Arc<MemVault>, clock: &Arc<FixedClock>, storage: &MemNoteStorage) -> Knowledge {
    let knowledge = Knowledge::new(Parts {
        vault: vault.clone(),
        store: Arc::new(storage.open()),
        clock: clock.clone(),
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {}).unwrap();
    knowledge
}

/// The score of each path, from the files themselves.
fn by_hand(knowledge: &Knowledge, vault: &MemVault, query: &str) -> BTreeMap<String, usize> {
    let spaced = |text: &str| fold(text).replace(['-', '_'], " ");
    let query = spaced(query);
    let has_all = |text: &str| query.split_whitespace().all(|word| spaced(text).contains(word));
    let snapshot = knowledge.snapshot();
    let score = |path: &VaultPath| {
        let note = snapshot.note(snapshot.find_exact(path).unwrap());
        let text = String::from_utf8(vault.read(path).unwrap().unwrap().bytes).unwrap();
        let lines = text[note.body_start..].lines().filter(|line| has_all(line)).count();
        let tags = note.tags.iter().filter(|tag| has_all(&tag.name)).count();
        10 * usize::from(has_all(&note.title)) + 5 * tags + lines
    };
    let paths = snapshot.files().map(|key| snapshot.note(key).path.clone());
    paths.map(|path| (path.to_string(), score(&path))).filter(|(_, score)| *score > 0).collect()
}

fn found(knowledge: &Knowledge, query: &str) -> BTreeMap<String, usize> {
    let snapshot = knowledge.snapshot();
    let (matches, total) = knowledge.search_lines(&snapshot, query, usize::MAX);
    assert_eq!(matches.len(), total);
    matches.iter().map(|found| (snapshot.note(found.key).path.to_string(), found.score)).collect()
}

/// Small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 12] =
            ["one", "Two", "three-four", "snake_case", "\n", "\n\n", " ", "検索の設計", "検索", "#tag", "c++", "é"];
        (0..self.below(30)).map(|_| format!("{} ", PIECES[self.below(PIECES.len())])).collect()
    }
}

#[test]
fn search_equals_a_scan_of_every_line() {
    const QUERIES: [&str; 15] = [
        "one",
        "ne",
        "ONE two",
        "three four",
        "three-four",
        "snake_case one",
        "検索",
        "索の",
        "c++",
        "é",
        "note-7",
        "x y",
        "e",
        "T",
        "n 7",
    ];
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::new(clock.clone()));
    let mut dice = Dice(7);
    for number in 0..150 {
        vault.put(&format!("note-{number}.md"), dice.text());
    }
    let knowledge = open(&vault, &clock);
    for round in 0..30 {
        for query in QUERIES {
            assert_eq!(found(&knowledge, query), by_hand(&knowledge, &vault, query), "{query:?} in round {round}");
        }
        for _ in 0..dice.below(16) {
            let path = format!("note-{}.md", dice.below(200));
            if dice.below(3) == 0 && vault.text(&path).is_some() {
                vault.remove(&path);
            } else {
                vault.put(&path, dice.text());
            }
        }
        knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    }
}

#[test]
fn search_covers_more_notes_than_one_segment_holds() {
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::new(clock.clone()));
    for number in 0..2100 {
        vault.put(&format!("{number}.md"), format!("word{number}\n\nword\n"));
    }
    let knowledge = open(&vault, &clock);
    assert_eq!(found(&knowledge, "word").len(), 2100);
    assert_eq!(found(&knowledge, "word2099").keys().collect::<Vec<_>>(), ["2099.md"]);
    vault.put("2099.md", "changed\n");
    knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    assert_eq!(found(&knowledge, "word").len(), 2099);
    assert_eq!(found(&knowledge, "changed").keys().collect::<Vec<_>>(), ["2099.md"]);
}

#[test]
fn reading_ahead_changes_nothing_and_can_be_stopped() {
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::new(clock.clone()));
    for number in 0..2100 {
        vault.put(&format!("{number}.md"), "word\n");
    }
    let knowledge = open(&vault, &clock);
    let asked = AtomicUsize::new(0);
    knowledge.read_lines_ahead(|| asked.fetch_add(1, Ordering::Relaxed) == 0).unwrap();
    assert_eq!(asked.into_inner(), 2, "stopped before the second storage");
    assert_eq!(found(&knowledge, "word").len(), 2100);
    knowledge.read_lines_ahead(|| true).unwrap();
    assert_eq!(found(&knowledge, "word").len(), 2100);
}

/// A vault of notes with random texts, its storage, and the segments stored.
fn stored_lines(notes: usize) -> (Arc<MemVault>, Arc<FixedClock>, MemNoteStorage) {
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::new(clock.clone()));
    let mut dice = Dice(11);
    for number in 0..notes {
        vault.put(&format!("note-{number}.md"), dice.text());
    }
    clock.advance(60_000_000_000);
    let storage = MemNoteStorage::default();
    open_stored(&vault, &clock, &storage).read_lines_ahead(|| true).unwrap();
    (vault, clock, storage)
}

#[test]
fn the_next_start_reads_the_stored_lines_and_only_changed_files() {
    let (vault, clock, storage) = stored_lines(300);
    assert_eq!(storage.lines().len(), 1);
    vault.put("note-7.md", "---\ntags: [changed]\n---\none more line\n");
    vault.put("note-299.md", "the last one\n");
    vault.remove("note-8.md");
    vault.put("new.md", "one new\n");
    let knowledge = open_stored(&vault, &clock, &storage);
    let queries = ["one", "検索", "c++", "e", "changed", "three four", "note"];
    let expected = queries.map(|query| by_hand(&knowledge, &vault, query));
    for number in (0..299).filter(|number| ![7, 8].contains(number)) {
        vault.refuse_reading(&format!("note-{number}.md"));
    }
    assert_eq!(queries.map(|query| found(&knowledge, query)), expected);
}

#[test]
fn damaged_stored_lines_cause_no_panic_and_are_built_again() {
    let (vault, clock, storage) = stored_lines(100);
    let whole = storage.lines()[&0].clone();
    for cut in (0..whole.len()).step_by(whole.len() / 50) {
        storage.put_lines(0, whole[..cut].to_vec());
        let knowledge = open_stored(&vault, &clock, &storage);
        assert_eq!(found(&knowledge, "one"), by_hand(&knowledge, &vault, "one"), "cut at {cut}");
    }
    let mut dice = Dice(5);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len());
            bytes[at] = dice.below(256) as u8;
        }
        storage.put_lines(0, bytes);
        let knowledge = open_stored(&vault, &clock, &storage);
        // A store has a checksum; without one, other lines may be found.
        for query in ["one", "検索", "e", "note"] {
            found(&knowledge, query);
        }
        for number in 0..70 {
            vault.put(&format!("note-{number}.md"), dice.text());
        }
        knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
        found(&knowledge, "one");
    }
}
