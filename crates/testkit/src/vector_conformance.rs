//! The rules of the `VectorStore` port as tests, for every store: `vector_conformance!(storage)`, beside
//! [`crate::store_conformance!`].

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use quipu_core::model::{FileStat, Note, NoteKey};
use quipu_core::ports::{
    Calibration, Coverage, Grade, NoteChange, NoteSet, NoteStore, PassageHash, VectorHit, VectorQuery, VectorStore,
};
use quipu_core::search::{Passage, passages};

use crate::MemNoteStorage;
use crate::store_conformance::{FINGERPRINT, NoteStorage, loaded, note, opened};

/// One `#[test]` for each rule, over the storage that the expression creates.
#[macro_export]
macro_rules! vector_conformance {
    ($storage:expr) => {
        mod vectors {
            #[expect(unused_imports, reason = "the storage may be of any module")]
            use super::*;
            $crate::vector_conformance!($storage,
                without_vectors_all_passages_are_missing_and_none_is_found,
                closest_sections_come_first_and_ties_by_key_and_section,
                section_is_found_once_by_its_best_passage,
                only_notes_of_the_filter_are_searched,
                named_sections_have_the_similarities_of_a_search,
                passages_of_the_newest_files_are_missing_first,
                text_in_several_sections_is_embedded_once_and_found_in_each,
                higher_grade_replaces_a_lower_one_only,
                coarse_and_full_vectors_are_compared_on_one_scale,
                batch_with_different_dimensions_is_refused,
                space_with_new_dimensions_starts_empty_and_old_dimensions_come_back,
                spaces_do_not_mix_and_keep_their_vectors,
                changed_note_is_found_by_its_new_passages_only,
                text_that_comes_back_keeps_its_vector,
                vectors_survive_reopening,
                vectors_outlive_the_notes_of_another_fingerprint,
                random_vector_changes_match_the_model
            );
        }
    };
    ($storage:expr, $($rule:ident),+) => {
        $(#[test]
        fn $rule() {
            $crate::vector_conformance::$rule(&$storage);
        })+
    };
}

const SPACE: &str = "model 1";

/// A store of both ports.
pub trait BothStores: NoteStore + VectorStore {}

impl<S: NoteStore + VectorStore> BothStores for S {}

/// The names of a note's passages.
fn hashes(path: &str, text: &str) -> Vec<PassageHash> {
    passages(&note(path, text), text).iter().map(Passage::hash).collect()
}

fn put(store: &impl NoteStore, key: u32, path: &str, text: &str) {
    let note = note(path, text);
    store.apply(&[NoteChange::Put { key: NoteKey(key), note: &note, text }]).expect("changes apply");
}

fn remove(store: &impl NoteStore, key: u32) {
    store.apply(&[NoteChange::Remove { key: NoteKey(key) }]).expect("changes apply");
}

/// At this angle, in the plane.
fn at(degrees: f32) -> Vec<f32> {
    let angle = degrees.to_radians();
    vec![angle.cos(), angle.sin()]
}

fn embed(store: &impl VectorStore, space: &str, vectors: &[(PassageHash, f32)]) {
    let vectors: Vec<_> = vectors.iter().map(|(hash, degrees)| (*hash, at(*degrees))).collect();
    store.put_vectors(space, Grade::FULL, &vectors).expect("vectors are kept");
}

/// What is near the angle zero, with the angles.
fn near(store: &impl VectorStore, space: &str, limit: usize) -> Vec<(u32, usize, i32)> {
    let hits = store.nearest(&VectorQuery::new(space, &at(0.0), limit)).expect("it searches");
    let degrees = |hit: &VectorHit| hit.similarity.clamp(-1.0, 1.0).acos().to_degrees().round() as i32;
    hits.iter().map(|hit| (hit.key.0, hit.section, degrees(hit))).collect()
}

fn coverage(store: &impl VectorStore, space: &str) -> (usize, usize) {
    let Coverage { passages, embedded, .. } = store.coverage(space).expect("it counts");
    (passages, embedded)
}

/// The keys and passages that lack a vector of full grade.
fn missing(store: &impl VectorStore, space: &str) -> Vec<(u32, usize)> {
    let missing = store.missing(space, Grade::FULL, None, usize::MAX).expect("it lists");
    missing.iter().map(|passage| (passage.key.0, passage.passage)).collect()
}

/// Before the first vector.
pub fn without_vectors_all_passages_are_missing_and_none_is_found<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    assert_eq!((missing(&store, SPACE), coverage(&store, SPACE)), (vec![], (0, 0)));
    put(&store, 3, "a.md", "alpha\n## Two\nbeta");
    assert_eq!((missing(&store, SPACE), coverage(&store, SPACE)), (vec![(3, 0), (3, 1)], (2, 0)));
    let named = store.missing(SPACE, Grade::FULL, None, 1).expect("it lists");
    assert_eq!((named.len(), named[0].hash), (1, hashes("a.md", "alpha\n## Two\nbeta")[0]));
    assert_eq!(near(&store, SPACE, 10), []);
    store.put_vectors(SPACE, Grade::FULL, &[]).expect("nothing is kept as well");
}

/// Best first.
pub fn closest_sections_come_first_and_ties_by_key_and_section<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let text = "one\n## Two\ntwo\n## Three\nthree";
    for key in [9, 2] {
        put(&store, key, &format!("n{key}.md"), text);
        let hashes = hashes(&format!("n{key}.md"), text);
        embed(&store, SPACE, &[(hashes[0], 120.0), (hashes[1], 30.0), (hashes[2], 30.0)]);
    }
    let all = [(2, 1, 30), (2, 2, 30), (9, 1, 30), (9, 2, 30), (2, 0, 120), (9, 0, 120)];
    assert_eq!(near(&store, SPACE, usize::MAX), all);
    assert_eq!(near(&store, SPACE, 3), all[..3]);
    assert_eq!(near(&store, SPACE, 0), []);
}

/// A long section has several passages.
pub fn section_is_found_once_by_its_best_passage<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let long: String = (0..1000).map(|number| format!("word{number} ")).collect();
    let short = "short";
    put(&store, 0, "long.md", &long);
    put(&store, 1, "short.md", short);
    let long = hashes("long.md", &long);
    assert!(long.len() > 3, "the section is cut");
    let vectors: Vec<_> = long.iter().enumerate().map(|(index, hash)| (*hash, 5.0 + index as f32)).collect();
    embed(&store, SPACE, &vectors);
    embed(&store, SPACE, &[(hashes("short.md", short)[0], 80.0)]);
    assert_eq!(near(&store, SPACE, 2), [(0, 0, 5), (1, 0, 80)]);
}

/// A filter takes nothing from the limit.
pub fn only_notes_of_the_filter_are_searched<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    for key in 0..200_u32 {
        put(&store, key, &format!("n{key}.md"), "text");
        embed(&store, SPACE, &[(hashes(&format!("n{key}.md"), "text")[0], key as f32 / 2.0)]);
    }
    let nearest = |among: &NoteSet| {
        let vector = at(0.0);
        let query = VectorQuery { among: Some(among), ..VectorQuery::new(SPACE, &vector, 3) };
        store.nearest(&query).expect("it searches")
    };
    let hits = nearest(&(49..200).step_by(50).map(NoteKey).collect());
    assert_eq!(hits.iter().map(|hit| hit.key.0).collect::<Vec<_>>(), [49, 99, 149]);
    assert_eq!(nearest(&NoteSet::default()), []);
}

/// The similarities of sections beyond the limit of a search.
pub fn named_sections_have_the_similarities_of_a_search<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let text = "one\n## Two\ntwo\n## Three\nthree";
    let long: String = (0..1000).map(|number| format!("word{number} ")).collect();
    put(&store, 4, "n.md", text);
    put(&store, 7, "long.md", &format!("short\n## Long\n{long}"));
    let (of_text, of_long) = (hashes("n.md", text), hashes("long.md", &format!("short\n## Long\n{long}")));
    let last = *of_long.last().expect("a note has a passage");
    let coarse = [(of_text[1], at(60.0)), (of_long[1], at(80.0))];
    store.put_vectors(SPACE, Grade::COARSE, &coarse).expect("vectors are kept");
    embed(&store, SPACE, &[(of_text[0], 30.0), (last, 45.0)]);
    let named = [(7, 1), (4, 2), (4, 1), (7, 0), (4, 0), (5, 0), (4, 9)].map(|(key, section)| (NoteKey(key), section));
    let calibration = Calibration { slope: 1.0, offset: 0.1 };
    let vector = at(0.0);
    let query = VectorQuery { calibration, ..VectorQuery::new(SPACE, &vector, 1) };
    let similarities = store.similarities(&query, &named).expect("it searches");
    let hundredths = |similarity: &Option<f32>| similarity.map(|similarity| (similarity * 100.0).round() as i32);
    let expected = [Some(71), None, Some(60), None, Some(87), None, None];
    assert_eq!(similarities.iter().map(hundredths).collect::<Vec<_>>(), expected);
}

/// What was written last is searched for first.
pub fn passages_of_the_newest_files_are_missing_first<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    for (key, modified_ns) in [(0, 20), (1, 40), (2, 30)] {
        let mut note = note(&format!("n{key}.md"), "text");
        note.stat.modified_ns = modified_ns;
        store.apply(&[NoteChange::Put { key: NoteKey(key), note: &note, text: "text" }]).expect("changes apply");
    }
    assert_eq!(missing(&store, SPACE), [(1, 0), (2, 0), (0, 0)]);
    let stat = FileStat { modified_ns: 50, size: 4 };
    store.apply(&[NoteChange::Touch { key: NoteKey(0), stat }]).expect("changes apply");
    assert_eq!(missing(&store, SPACE), [(0, 0), (1, 0), (2, 0)]);
    // A file that had changed just before it was read is kept without its time.
    let stat = FileStat { modified_ns: 0, size: 4 };
    store.apply(&[NoteChange::Touch { key: NoteKey(2), stat }]).expect("changes apply");
    assert_eq!(missing(&store, SPACE), [(2, 0), (0, 0), (1, 0)]);
    embed(&store, SPACE, &[(hashes("n1.md", "text")[0], 0.0)]);
    assert_eq!(missing(&store, SPACE), [(2, 0), (0, 0)]);
}

/// Two notes of one name, and a section that stands twice in a note.
pub fn text_in_several_sections_is_embedded_once_and_found_in_each<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let text = "## Same\nwords\n## Same\nwords";
    put(&store, 0, "a/n.md", text);
    put(&store, 1, "b/n.md", text);
    assert_eq!((missing(&store, SPACE), coverage(&store, SPACE)), (vec![(0, 0)], (1, 0)));
    embed(&store, SPACE, &[(hashes("n.md", text)[0], 10.0)]);
    assert_eq!(coverage(&store, SPACE), (1, 1));
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 10), (0, 1, 10), (1, 0, 10), (1, 1, 10)]);
    remove(&store, 0);
    assert_eq!(near(&store, SPACE, 9), [(1, 0, 10), (1, 1, 10)]);
    remove(&store, 1);
    assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![], (0, 0)));
}

/// Grades.
pub fn higher_grade_replaces_a_lower_one_only<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    put(&store, 0, "n.md", "text");
    put(&store, 1, "m.md", "text");
    let hash = hashes("n.md", "text")[0];
    let put = |grade, degrees| store.put_vectors(SPACE, Grade(grade), &[(hash, at(degrees))]).expect("it is kept");
    let lack = |grade| store.missing(SPACE, Grade(grade), None, 9).expect("it lists").iter().map(|l| l.key.0).collect();
    put(0, 70.0);
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 70)]);
    let lists: [Vec<u32>; 2] = [lack(0), lack(1)];
    assert_eq!(lists, [vec![1], vec![0, 1]]);
    put(50, 20.0);
    put(50, 90.0);
    put(49, 90.0);
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 20)]);
    let lists: [Vec<u32>; 2] = [lack(50), lack(51)];
    assert_eq!(lists, [vec![1], vec![0, 1]]);
    put(100, 40.0);
    assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![(0, 0, 40)], (2, 1)));
}

/// A half and half index, while the full vectors come one by one, and after a new opening.
pub fn coarse_and_full_vectors_are_compared_on_one_scale<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let notes = ["a.md", "b.md", "c.md"];
    let of = |note: usize| hashes(notes[note], "text")[0];
    let coarse: Vec<_> = [60.0, 70.0, 80.0].into_iter().enumerate().map(|(n, angle)| (of(n), at(angle))).collect();
    for (key, path) in (0..).zip(notes) {
        put(&store, key, path, "text");
    }
    store.put_vectors(SPACE, Grade::COARSE, &coarse).expect("vectors are kept");
    // Cosines of the coarse ones: 0.5, 0.342, 0.174; on the full scale 0.8, 0.642, 0.474.
    let calibration = Calibration { slope: 1.0, offset: 0.3 };
    let found = |store: &S::Store| {
        let vector = at(0.0);
        let query = VectorQuery { calibration, ..VectorQuery::new(SPACE, &vector, 9) };
        let hits = store.nearest(&query).expect("it searches");
        let hit = |hit: &VectorHit| (hit.key.0, hit.grade, (hit.similarity * 1000.0).round() as i32);
        (hits.iter().map(hit).collect::<Vec<_>>(), store.coverage(SPACE).expect("it counts").full)
    };
    let (full, rough) = (Grade::FULL, Grade::COARSE);
    assert_eq!(found(&store), (vec![(0, rough, 800), (1, rough, 642), (2, rough, 474)], 0));
    embed(&store, SPACE, &[(of(2), 45.0)]);
    assert_eq!(found(&store), (vec![(0, rough, 800), (2, full, 707), (1, rough, 642)], 1));
    embed(&store, SPACE, &[(of(0), 60.0)]);
    assert_eq!(found(&store), (vec![(2, full, 707), (1, rough, 642), (0, full, 500)], 2));
    remove(&store, 2);
    assert_eq!(found(&store), (vec![(1, rough, 642), (0, full, 500)], 1));
    drop(store);
    if storage.lasts() {
        let store = opened(storage);
        assert_eq!(found(&store), (vec![(1, rough, 642), (0, full, 500)], 1));
        embed(&store, SPACE, &[(of(1), 80.0)]);
        assert_eq!(found(&store), (vec![(0, full, 500), (1, full, 174)], 2));
    }
}

/// All or none.
pub fn batch_with_different_dimensions_is_refused<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    put(&store, 0, "n.md", "one\n## Two\ntwo");
    let hashes = hashes("n.md", "one\n## Two\ntwo");
    let refused = |vectors: &[(PassageHash, Vec<f32>)]| store.put_vectors(SPACE, Grade::FULL, vectors).is_err();
    assert!(refused(&[(hashes[0], at(0.0)), (hashes[1], vec![1.0, 0.0, 0.0])]), "the space is new");
    assert!(refused(&[(hashes[0], Vec::new())]), "there is no such space");
    assert!(refused(&[(hashes[0], at(0.0)), (hashes[1], vec![f32::NAN, 0.0])]), "it points nowhere");
    assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![], (2, 0)));
    embed(&store, SPACE, &[(hashes[1], 10.0)]);
    assert_eq!(near(&store, SPACE, 9), [(0, 1, 10)]);
    store.put_vectors("another", Grade::FULL, &[(hashes[0], vec![1.0])]).expect("another space has its own");
}

/// A provider may put another model behind the same name, and go back.
pub fn space_with_new_dimensions_starts_empty_and_old_dimensions_come_back<S: NoteStorage<Store: BothStores>>(
    storage: &S,
) {
    let store = opened(storage);
    put(&store, 0, "n.md", "one\n## Two\ntwo");
    let hashes = hashes("n.md", "one\n## Two\ntwo");
    embed(&store, SPACE, &[(hashes[0], 10.0), (hashes[1], 20.0)]);
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 10), (0, 1, 20)]);
    // A query tells it first: nothing is close, and everything is missing.
    let axis = [0.0, 0.0, 1.0];
    let query = VectorQuery::new(SPACE, &axis, 9);
    assert_eq!(store.nearest(&query).expect("a query of the new model"), []);
    assert_eq!((coverage(&store, SPACE), missing(&store, SPACE).len()), ((2, 0), 2));
    store.put_vectors(SPACE, Grade::FULL, &[(hashes[1], axis.to_vec())]).expect("a vector of the new model");
    let found = store.nearest(&query).expect("a query of the new model");
    assert_eq!(found.iter().map(|hit| (hit.key, hit.section)).collect::<Vec<_>>(), [(NoteKey(0), 1)]);
    assert_eq!(coverage(&store, SPACE), (2, 1));
    // Back again, first by a query, then by a vector.
    assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![(0, 0, 10), (0, 1, 20)], (2, 2)));
    store.put_vectors(SPACE, Grade::FULL, &[(hashes[0], axis.to_vec())]).expect("a vector of the new model");
    assert_eq!(coverage(&store, SPACE), (2, 2));
    if storage.lasts() {
        drop(store);
        let store = opened(storage);
        assert_eq!(store.nearest(&query).expect("a query of the new model").len(), 2);
        assert_eq!(near(&store, SPACE, 9), [(0, 0, 10), (0, 1, 20)]);
    }
}

/// The model is changed and changed back.
pub fn spaces_do_not_mix_and_keep_their_vectors<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    put(&store, 0, "n.md", "text");
    put(&store, 1, "m.md", "text");
    let (n, m) = (hashes("n.md", "text")[0], hashes("m.md", "text")[0]);
    embed(&store, SPACE, &[(n, 10.0)]);
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 10)]);
    embed(&store, "model 2", &[(m, 20.0)]);
    assert_eq!((near(&store, "model 2", 9), coverage(&store, "model 2")), (vec![(1, 0, 20)], (2, 1)));
    put(&store, 2, "o.md", "text");
    assert_eq!((near(&store, SPACE, 9), missing(&store, SPACE)), (vec![(0, 0, 10)], vec![(1, 0), (2, 0)]));
    assert_eq!(near(&store, "model 3", 9), []);
}

/// Also within one list, and when the note is gone.
pub fn changed_note_is_found_by_its_new_passages_only<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let (before, after) = ("one\n## Two\ntwo", "## Two\ntwo\n## Three\nthree");
    put(&store, 0, "n.md", before);
    put(&store, 1, "m.md", "text");
    let (old, new) = (hashes("n.md", before), hashes("n.md", after));
    embed(&store, SPACE, &[(old[0], 10.0), (old[1], 20.0), (new[1], 30.0), (hashes("m.md", "text")[0], 40.0)]);
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 10), (0, 1, 20), (1, 0, 40)]);
    put(&store, 0, "n.md", after);
    assert_eq!(near(&store, SPACE, 9), [(0, 0, 20), (0, 1, 30), (1, 0, 40)]);
    assert_eq!(coverage(&store, SPACE), (3, 3));
    let note = note("n.md", before);
    let (put, gone) = (NoteChange::Put { key: NoteKey(0), note: &note, text: before }, NoteKey(0));
    store.apply(&[put, NoteChange::Remove { key: gone }]).expect("changes apply");
    assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![(1, 0, 40)], (1, 1)));
}

/// A note that moves, or is deleted and restored, costs nothing.
pub fn text_that_comes_back_keeps_its_vector<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    let n = note("b/n.md", "text");
    put(&store, 0, "a/n.md", "text");
    embed(&store, SPACE, &[(hashes("n.md", "text")[0], 10.0), (hashes("later.md", "text")[0], 20.0)]);
    assert_eq!(coverage(&store, SPACE), (1, 1));
    let put_n = NoteChange::Put { key: NoteKey(5), note: &n, text: "text" };
    store.apply(&[NoteChange::Remove { key: NoteKey(0) }, put_n]).expect("changes apply");
    assert_eq!((near(&store, SPACE, 9), missing(&store, SPACE)), (vec![(5, 0, 10)], vec![]));
    remove(&store, 5);
    assert_eq!(near(&store, SPACE, 9), []);
    put(&store, 0, "later.md", "text");
    store.apply(&[put_n]).expect("changes apply");
    assert_eq!((near(&store, SPACE, 9), missing(&store, SPACE)), (vec![(5, 0, 10), (0, 0, 20)], vec![]));
}

/// Nothing is embedded twice.
pub fn vectors_survive_reopening<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    put(&store, 0, "n.md", "text");
    store.put_vectors(SPACE, Grade(7), &[(hashes("n.md", "text")[0], at(10.0))]).expect("it is kept");
    drop(store);
    if storage.lasts() {
        let store = opened(storage);
        assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![(0, 0, 10)], (1, 1)));
        assert_eq!(store.missing(SPACE, Grade(7), None, 9).expect("it lists"), []);
        assert_eq!(missing(&store, SPACE), [(0, 0)]);
    }
}

/// Other settings give other notes, but mostly the same texts.
pub fn vectors_outlive_the_notes_of_another_fingerprint<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let store = opened(storage);
    put(&store, 0, "n.md", "text");
    embed(&store, SPACE, &[(hashes("n.md", "text")[0], 10.0)]);
    drop(store);
    if storage.lasts() {
        let store = storage.open();
        store.load("parser 2").expect("a store loads");
        assert_eq!((near(&store, SPACE, 9), coverage(&store, SPACE)), (vec![], (0, 0)));
        put(&store, 7, "n.md", "text");
        assert_eq!((near(&store, SPACE, 9), missing(&store, SPACE)), (vec![(7, 0, 10)], vec![]));
        drop(store);
        assert!(storage.open().load(FINGERPRINT).expect("a store loads").notes.is_empty());
    }
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    /// Keys, and the texts they get; none is a removal.
    Apply(Vec<(u32, Option<Vec<usize>>)>),
    /// Takes some of what is missing, as the one that embeds would.
    Embed {
        space: usize,
        grade: u8,
        limit: usize,
    },
    Reopen,
}

const SPACES: [&str; 2] = ["first", "second"];
const WORDS: [&str; 5] = ["alpha", "beta", "gamma", "delta", "epsilon"];

/// Random histories, with the store closed and opened in between.
pub fn random_vector_changes_match_the_model<S: NoteStorage<Store: BothStores>>(storage: &S) {
    let text = prop::option::weighted(0.8, prop::collection::vec(0..WORDS.len(), 1..4));
    let step = prop_oneof![
        4 => prop::collection::vec((0..8_u32, text), 1..5).prop_map(Step::Apply),
        4 => (0..2_usize, prop::sample::select(&[0, 50, 100][..]), 1..5_usize)
            .prop_map(|(space, grade, limit)| Step::Embed { space, grade, limit }),
        1 => Just(Step::Reopen),
    ];
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(step, 1..20), |steps| {
        let model_storage = MemNoteStorage::default();
        let (mut model, mut store) = (opened(&model_storage), storage.open());
        let left: Vec<_> = loaded(&store).into_keys().map(|key| NoteChange::Remove { key }).collect();
        store.apply(&left).expect("changes apply");
        // What an earlier history embedded must not be found in this one.
        let spaces = SPACES.map(|space| format!("{space} {:?}", std::time::Instant::now()));
        for step in steps {
            match step {
                Step::Apply(changes) => {
                    apply(&model, &changes);
                    apply(&store, &changes);
                }
                Step::Embed { space, grade, limit } => {
                    let missing = model.missing(&spaces[space], Grade(grade), None, limit).expect("it lists");
                    prop_assert_eq!(
                        &store.missing(&spaces[space], Grade(grade), None, limit).expect("it lists"),
                        &missing
                    );
                    let some = [NoteKey(5), NoteKey(1), NoteKey(99), NoteKey(3)];
                    let of_some = |store: &dyn VectorStore| {
                        store.missing(&spaces[space], Grade(grade), Some(&some), limit).expect("it lists")
                    };
                    prop_assert_eq!(of_some(&store), of_some(&model));
                    let vectors: Vec<_> = missing.iter().map(|passage| (passage.hash, spread(passage.hash))).collect();
                    model.put_vectors(&spaces[space], Grade(grade), &vectors).expect("vectors are kept");
                    store.put_vectors(&spaces[space], Grade(grade), &vectors).expect("vectors are kept");
                }
                Step::Reopen if storage.lasts() => {
                    drop((model, store));
                    (model, store) = (opened(&model_storage), opened(storage));
                }
                Step::Reopen => {}
            }
            for space in &spaces {
                prop_assert_eq!(store.coverage(space).expect("it counts"), model.coverage(space).expect("it counts"));
                for limit in [2, 99] {
                    let near = |store: &dyn VectorStore| {
                        let calibration = Calibration { slope: 0.8, offset: 0.1 };
                        let among: NoteSet = (0..100).filter(|key| *key != 3).map(NoteKey).collect();
                        let query = VectorQuery::new(space, &[0.6, 0.8, 0.0], limit);
                        store.nearest(&VectorQuery { calibration, among: Some(&among), ..query }).expect("it searches")
                    };
                    let (found, expected) = (near(&store), near(&model));
                    let places = |hits: &[VectorHit]| {
                        hits.iter().map(|hit| (hit.key, hit.section, hit.grade)).collect::<Vec<_>>()
                    };
                    prop_assert_eq!(places(&found), places(&expected));
                    for (found, expected) in found.iter().zip(&expected) {
                        prop_assert!((found.similarity - expected.similarity).abs() < 1e-4);
                    }
                }
            }
        }
        prop_assert_eq!(store.check().expect("a store checks itself"), [""; 0]);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn apply(store: &impl NoteStore, changes: &[(u32, Option<Vec<usize>>)]) {
    let text = |words: &Vec<usize>| words.iter().map(|word| format!("## {0}\n{0}\n", WORDS[*word])).collect::<String>();
    let texts: Vec<Option<String>> = changes.iter().map(|(_, words)| words.as_ref().map(text)).collect();
    let notes: Vec<Option<Note>> =
        texts.iter().map(|text| text.as_ref().map(|text| note("folder/n.md", text))).collect();
    let change = |((key, _), (note, text)): (&(u32, _), (_, _))| match (note, text) {
        (Some(note), Some(text)) => NoteChange::Put { key: NoteKey(*key), note, text },
        _ => NoteChange::Remove { key: NoteKey(*key) },
    };
    let pairs = notes.iter().map(Option::as_ref).zip(texts.iter().map(Option::as_deref));
    store.apply(&changes.iter().zip(pairs).map(change).collect::<Vec<_>>()).expect("changes apply");
}

/// A vector of the text's own, far enough from all others to be distinguished.
fn spread(hash: PassageHash) -> Vec<f32> {
    let number = |at: usize| f32::from(i16::from_le_bytes([hash.0[at], hash.0[at + 1]])) / 32768.0;
    let vector = [number(0), number(2), number(4)];
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter().map(|number| number / length).collect()
}
