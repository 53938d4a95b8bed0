//! What the embedded store adds to the port of vectors: exactness of its scan, and what becomes of its file.

#![expect(clippy::disallowed_methods, reason = "breaks the store's own files")]
#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_core::model::NoteKey;
use quipu_core::ports::{
    Coverage, EXACT_HITS, Grade, MissingVector, NoteChange, NoteSet, NoteStore, VectorQuery, VectorStore,
};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::note;

const SPACE: &str = "model";

/// How far a similarity may be from the exact one: of the closest, and of those behind them.
const EXACT: f32 = 2e-5;
const COARSE: f32 = 3e-3;

fn opened(folder: &Path) -> EmbeddedStore {
    let store = EmbeddedStore::open(folder).unwrap();
    store.load("vectors").unwrap();
    store
}

/// One note of so many sections.
fn put_sections(store: &EmbeddedStore, key: u32, sections: usize) {
    let text: String = (0..sections).map(|section| format!("## {section}\nnote {key}\n")).collect();
    let note = note(&format!("n{key}.md"), &text);
    store.apply(&[NoteChange::Put { key: NoteKey(key), note: &note, text: &text }]).unwrap();
}

fn missing(store: &EmbeddedStore) -> Vec<MissingVector> {
    store.missing(SPACE, Grade::FULL, None, usize::MAX).unwrap()
}

/// Embeds what is missing by vectors drawn one after the other, and returns these by section of the note 0.
fn embed_all(store: &EmbeddedStore, mut draw: impl FnMut() -> Vec<f32>) -> Vec<Vec<f32>> {
    let vectors: Vec<_> = missing(store).iter().map(|passage| (passage.hash, draw())).collect();
    vectors.chunks(64).for_each(|chunk| store.put_vectors(SPACE, Grade::FULL, chunk).unwrap());
    vectors.into_iter().map(|(_, vector)| vector).collect()
}

fn embedded(store: &EmbeddedStore) -> usize {
    store.coverage(SPACE).unwrap().embedded
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn number(&mut self) -> f32 {
        (0..4).map(|_| self.next() as f32 / (1_u64 << 31) as f32 - 0.5).sum()
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.number()).collect()
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) as f32
}

/// Compares the closest 100 of 3,000 with those found by comparing the numbers as they were put.
fn finds_the_closest(mut draw: impl FnMut(&mut Random) -> Vec<f32>) {
    let store = EmbeddedStore::in_memory().unwrap();
    store.load("vectors").unwrap();
    put_sections(&store, 0, 3000);
    let mut random = Random(1);
    let vectors = embed_all(&store, || draw(&mut random));
    for round in 0..10 {
        let query = draw(&mut random);
        let mut exact: Vec<f32> = vectors.iter().map(|vector| cosine(&query, vector)).collect();
        let hits = store.nearest(&VectorQuery::new(SPACE, &query, 100)).unwrap();
        let found: Vec<f32> = hits.iter().map(|hit| exact[hit.section]).collect();
        exact.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(found.len(), 100);
        for (place, (hit, found)) in hits.iter().zip(&found).enumerate() {
            let off = if place < EXACT_HITS { EXACT } else { COARSE };
            assert!((hit.similarity - found).abs() < off, "{hit:?} is {found}");
            assert!((exact[place] - found).abs() < 2.0 * off, "round {round}: a closer one than {hit:?} was missed");
        }
    }
}

#[test]
fn closest_of_random_vectors_are_found() {
    finds_the_closest(|random| random.vector(384));
}

#[test]
fn closest_of_clustered_vectors_are_found() {
    finds_the_closest(|random| {
        let mut centre = Random(random.next() % 5);
        (0..384).map(|_| centre.number() + 0.05 * random.number()).collect()
    });
}

/// As many models make them: then the steps of the coarse byte are wide.
#[test]
fn closest_of_vectors_with_one_large_number_are_found() {
    finds_the_closest(|random| {
        let mut vector = random.vector(100);
        vector[7] += 8.0;
        vector
    });
}

/// Candidates of one section do not keep others out.
#[test]
fn sections_behind_a_crowd_of_passages_are_found() {
    let store = EmbeddedStore::in_memory().unwrap();
    store.load("vectors").unwrap();
    let long: String = (0..8000).map(|number| format!("word{number} ")).collect();
    for key in 0..20 {
        let note = note(&format!("long{key}.md"), &long);
        store.apply(&[NoteChange::Put { key: NoteKey(key), note: &note, text: &long }]).unwrap();
    }
    let mut random = Random(5);
    embed_all(&store, || vec![1.0, 0.001 * random.number(), 0.0]);
    assert!(embedded(&store) > 1000);
    put_sections(&store, 20, 5);
    embed_all(&store, || vec![0.0, 0.0, 1.0]);
    let hits = store.nearest(&VectorQuery::new(SPACE, &[1.0, 0.0, 0.0], 25)).unwrap();
    assert_eq!(hits.len(), 25);
    assert!(hits[..20].iter().all(|hit| hit.key.0 < 20) && hits[20..].iter().all(|hit| hit.key.0 == 20));
}

#[test]
fn rebuild_reuses_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    put_sections(&store, 0, 50);
    embed_all(&store, || vec![1.0, 0.0]);
    drop(store);
    let store = EmbeddedStore::open_empty(folder.path()).unwrap();
    store.load("vectors").unwrap();
    assert_eq!(store.coverage(SPACE).unwrap(), Coverage::default());
    put_sections(&store, 3, 1);
    put_sections(&store, 0, 50);
    assert_eq!((embedded(&store), missing(&store).len()), (50, 1));
    assert_eq!(store.nearest(&VectorQuery::new(SPACE, &[1.0, 0.0], 99)).unwrap().len(), 50);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
fn store_without_searches_by_meaning_has_no_vector_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    put_sections(&store, 0, 5);
    assert_eq!(store.check().unwrap(), [""; 0]);
    assert!(!folder.path().join("vectors.db").exists());
}

/// A folder with 200 vectors, the file of which is then changed.
fn damaged(damage: impl FnOnce(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    put_sections(&store, 0, 200);
    let mut random = Random(9);
    embed_all(&store, || random.vector(384));
    drop(store);
    damage(&folder.path().join("vectors.db"));
    folder
}

fn is_recreated(folder: &Path) {
    let store = opened(folder);
    assert_ne!(store.check().unwrap(), [""; 0], "the damage is seen");
    let found = store.nearest(&VectorQuery::new(SPACE, &[1.0; 384], 300)).unwrap();
    assert_eq!(found, [], "vectors are gone, and it is no error");
    assert!(store.notices().iter().any(|notice| notice.contains("Cannot read the stored vectors")));
    assert_eq!(missing(&store).len(), 200);
    embed_all(&store, || vec![1.0; 3]);
    assert_eq!((embedded(&store), store.check().unwrap()), (200, vec![]));
    drop(store);
    let store = opened(folder);
    assert_eq!((embedded(&store), store.notices()), (200, vec![]));
}

#[test]
fn vector_file_that_is_no_database_is_recreated() {
    is_recreated(damaged(|file| std::fs::write(file, "no database ".repeat(1000)).unwrap()).path());
}

#[test]
fn vector_file_of_another_format_is_recreated() {
    let damage =
        |file: &Path| rusqlite::Connection::open(file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    is_recreated(damaged(damage).path());
}

#[test]
fn vector_file_with_damaged_pages_is_recreated() {
    is_recreated(
        damaged(|file| {
            let mut bytes = std::fs::read(file).unwrap();
            let middle = bytes.len() / 2 / 4096 * 4096;
            bytes[middle..].fill(0xa5);
            std::fs::write(file, bytes).unwrap();
        })
        .path(),
    );
}

#[test]
fn vector_file_with_missing_rows_is_recreated() {
    let damage = |file: &Path| rusqlite::Connection::open(file).unwrap().execute_batch("DELETE FROM fine").unwrap();
    is_recreated(damaged(damage).path());
}

/// SQLite maps that file: reading behind its new end would end the process.
#[test]
fn truncated_shared_memory_recreates_the_vector_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    put_sections(&store, 0, 5);
    embed_all(&store, || vec![1.0, 2.0, 3.0]);
    assert_eq!(embedded(&store), 5);
    std::fs::OpenOptions::new().write(true).open(folder.path().join("vectors.db-shm")).unwrap().set_len(0).unwrap();
    assert_eq!(store.nearest(&VectorQuery::new(SPACE, &[1.0, 2.0, 3.0], 9)).unwrap(), []);
    assert!(store.notices().iter().any(|notice| notice.contains("truncated")), "{:?}", store.notices());
    embed_all(&store, || vec![1.0, 2.0, 3.0]);
    assert_eq!(store.nearest(&VectorQuery::new(SPACE, &[1.0, 2.0, 3.0], 9)).unwrap().len(), 5);
}

#[test]
fn long_unused_vectors_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    put_sections(&store, 0, 3);
    put_sections(&store, 1, 5);
    embed_all(&store, || vec![1.0, 0.0]);
    let passage = &store.missing("old model", Grade::FULL, None, 1).unwrap()[0];
    store.put_vectors("old model", Grade::FULL, &[(passage.hash, vec![1.0])]).unwrap();
    store.apply(&[NoteChange::Remove { key: NoteKey(1) }]).unwrap();
    drop(store);
    let kept = |days: i64| {
        let db = rusqlite::Connection::open(folder.path().join("vectors.db")).unwrap();
        db.execute("UPDATE vector SET seen_day = seen_day - ?1", [days]).unwrap();
        drop(db);
        let store = opened(folder.path());
        assert_eq!(embedded(&store), 3);
        drop(store);
        let db = rusqlite::Connection::open(folder.path().join("vectors.db")).unwrap();
        let count = |table| db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        let counts: [u32; 3] = ["vector", "coarse", "fine"].map(count);
        counts
    };
    assert_eq!(
        kept(200),
        [9; 3],
        "nobody was there: all are as old as what is in use, which may be indexed anew just now"
    );
    assert_eq!(kept(1), [3; 3], "what is in use was seen in between");
}

/// One embeds, one edits, two search, as a server does.
#[test]
fn searches_see_complete_vectors_during_writes() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    (0..20).for_each(|key| put_sections(&store, key, 10));
    let is_done = AtomicBool::new(false);
    let among: NoteSet = (0..20).filter(|key| *key != 1).map(NoteKey).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    let query = VectorQuery { among: Some(&among), ..VectorQuery::new(SPACE, &[1.0, 0.0], 50) };
                    for hit in store.nearest(&query).unwrap() {
                        assert!(hit.key.0 != 1 && (hit.similarity - 0.6).abs() < EXACT, "{hit:?}");
                    }
                }
            });
        }
        let editor = scope.spawn(|| (0..100).for_each(|round| put_sections(&store, round % 20, round as usize % 7)));
        while !editor.is_finished() || !missing(&store).is_empty() {
            let some = store.missing(SPACE, Grade::FULL, None, 7).unwrap();
            let vectors: Vec<_> = some.iter().map(|passage| (passage.hash, vec![0.6, 0.8])).collect();
            store.put_vectors(SPACE, Grade::FULL, &vectors).unwrap();
        }
        is_done.store(true, Ordering::Release);
    });
    let expected: usize = (80..100).map(|round| (round % 7).max(1)).sum();
    assert_eq!(store.nearest(&VectorQuery::new(SPACE, &[1.0, 0.0], 500)).unwrap().len(), expected);
    assert_eq!(store.check().unwrap(), [""; 0]);
}
