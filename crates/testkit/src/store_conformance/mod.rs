//! The rules of the `NoteStore` port as tests. A rule found the hard way becomes a case here.
//!
//! A backend runs them all by `store_conformance!(storage)` in a test module, where the expression makes a new, empty
//! [`NoteStorage`].

mod history;

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_core::model::{
    ContentHash, FileStat, Link, LinkSyntax, LinkType, Note, NoteKey, Section, SourceVersion, Tag, TextCounts, Value,
    VaultPath,
};
use quipu_core::ports::{Loaded, NoteChange, NoteStore, TextHits, TextMatch, TextQuery};

pub use history::random_changes_match_the_model;

/// Where a store is kept between runs.
pub trait NoteStorage {
    /// The store under test.
    type Store: NoteStore;

    /// Opens the store, one at a time. What an earlier one kept is there.
    fn open(&self) -> Self::Store;

    /// Whether anything outlives the store.
    fn lasts(&self) -> bool;

    /// Damages the text index of an open store; `false` where it has no files that could be.
    fn lose_text(&self, store: &Self::Store) -> bool;
}

/// One `#[test]` for each rule, over the storage that the expression creates.
#[macro_export]
macro_rules! store_conformance {
    ($storage:expr) => {
        $crate::store_conformance!($storage,
            new_store_is_empty,
            notes_are_loaded_again_after_reopening,
            another_fingerprint_empties_the_store,
            touch_changes_only_the_stat,
            key_is_free_after_its_note_was_removed,
            change_of_an_unknown_note_is_ignored,
            search_sees_every_earlier_change,
            new_version_replaces_the_words_of_the_old,
            every_field_is_searched_and_hits_have_their_section,
            query_is_relaxed_step_by_step_and_reports_it,
            any_query_is_valid_and_no_words_find_nothing,
            hits_are_limited_and_in_order,
            search_among_some_notes_counts_all_their_hits,
            single_characters_of_scripts_without_spaces_are_found,
            sound_store_has_no_findings,
            stored_lines_last_until_the_store_is_scrubbed,
            lost_texts_are_reported_until_they_are_put_again,
            search_works_without_texts_whose_loss_is_accepted,
            random_changes_match_the_model
        );
    };
    ($storage:expr, $($rule:ident),+) => {
        $(#[test]
        fn $rule() {
            $crate::store_conformance::$rule(&$storage);
        })+
    };
}

pub(crate) const FINGERPRINT: &str = "parser 1";

/// A note made from its text alone: each `## ` starts a section.
pub fn note(path: &str, text: &str) -> Note {
    let path = VaultPath::parse(path).expect("a test's path is a vault path");
    let mut starts: Vec<usize> = text.match_indices("## ").map(|(at, _)| at).collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let section = |(start, end): (usize, usize)| {
        let part = &text[start..end];
        let heading = part.strip_prefix("## ").map(|rest| rest.lines().next().unwrap_or_default().to_owned());
        let heading_end = part.find('\n').map_or(part.len(), |at| at + 1);
        Section {
            level: if heading.is_some() { 2 } else { 0 },
            text_start: if heading.is_some() { start + heading_end } else { start },
            heading,
            range: start..end,
        }
    };
    Note {
        id: path.note_id(),
        title: path.stem().to_owned(),
        path,
        stat: FileStat { modified_ns: 1_700_000_000_000_000_000, size: text.len() as u64 },
        hash: ContentHash::of(text.as_bytes()),
        tags: Vec::new(),
        aliases: Vec::new(),
        properties: Vec::new(),
        links: Vec::new(),
        sections: starts.iter().copied().zip(ends).map(section).collect(),
        body_start: 0,
        counts: TextCounts { chars: text.chars().count(), ..TextCounts::default() },
        warnings: Vec::new(),
        sources: Vec::new(),
    }
}

/// A note with something in every field.
fn full_note() -> (Note, &'static str) {
    let text = "Preamble.\n## Über uns\nZwei.\n";
    let link = |syntax, link_type| Link {
        syntax,
        target: "Other note".to_owned(),
        fragment: Some("^block".to_owned()),
        label: None,
        link_type,
    };
    let mut note = note("Folder/Große Notiz.md", text);
    note.tags = vec![Tag::new("Rust/Async"), Tag::new("plain")];
    note.aliases = vec!["Zweitname".to_owned(), String::new()];
    note.properties = vec![
        ("null".to_owned(), Value::Null),
        ("list".to_owned(), Value::List(vec![Value::Bool(true), Value::Int(i64::MIN), Value::Float(-0.5)])),
        ("map".to_owned(), Value::Map(vec![("k".to_owned(), Value::Text("日本".to_owned()))])),
    ];
    note.links = LinkType::ALL.into_iter().map(|link_type| link(LinkSyntax::Wiki, link_type)).collect();
    note.links.extend(
        [LinkSyntax::Embed, LinkSyntax::Markdown, LinkSyntax::Frontmatter, LinkSyntax::Shortcode]
            .map(|syntax| link(syntax, LinkType::Extends)),
    );
    note.body_start = 3;
    note.counts = TextCounts { chars: 1 << 40, file_chars: 1 << 41, tasks_open: 3, tasks_done: 200 };
    note.warnings = vec!["odd".to_owned()];
    note.sources = vec![SourceVersion { path: "src/a.rs".to_owned(), hash: ContentHash::of(b"a") }];
    note.stat = FileStat { modified_ns: -1, size: u64::MAX };
    (note, text)
}

pub(crate) fn loaded(store: &impl NoteStore) -> BTreeMap<NoteKey, Note> {
    let Loaded { notes, text_missing, .. } = store.load(FINGERPRINT).expect("a store loads");
    assert_eq!(text_missing, [], "nothing crashed");
    let count = notes.len();
    let notes: BTreeMap<_, _> = notes.into_iter().collect();
    assert_eq!(notes.len(), count, "keys are unique");
    notes
}

pub(crate) fn opened<S: NoteStorage>(storage: &S) -> S::Store {
    let store = storage.open();
    loaded(&store);
    store
}

/// Puts texts under the keys 0, 1, 2 and so on.
fn put_all(store: &impl NoteStore, texts: &[&str]) {
    let notes: Vec<Note> = texts.iter().enumerate().map(|(key, text)| note(&format!("n{key}.md"), text)).collect();
    let changes: Vec<NoteChange<'_>> = (0..)
        .map(NoteKey)
        .zip(&notes)
        .zip(texts)
        .map(|((key, note), text)| NoteChange::Put { key, note, text })
        .collect();
    store.apply(&changes).expect("changes apply");
}

/// The places found, and how strictly.
fn found(store: &impl NoteStore, text: &str) -> (Vec<(u32, usize)>, TextMatch) {
    let hits = store
        .search_text(&TextQuery { text: text.to_owned(), limit: 100, ..TextQuery::default() })
        .expect("no query is an error");
    let mut places: Vec<_> = hits.hits.iter().map(|hit| (hit.key.0, hit.section)).collect();
    places.sort_unstable();
    (places, hits.matched)
}

/// A new store is empty.
pub fn new_store_is_empty(storage: &impl NoteStorage) {
    let store = storage.open();
    assert!(loaded(&store).is_empty());
    assert!(found(&store, "anything").0.is_empty());
}

/// Every field comes back as it was.
pub fn notes_are_loaded_again_after_reopening(storage: &impl NoteStorage) {
    let (full, text) = full_note();
    // As of an index that had many more notes.
    let high = NoteKey(500_000);
    let store = opened(storage);
    let empty = Note { sections: Vec::new(), ..note("empty.md", "") };
    store
        .apply(&[
            NoteChange::Put { key: NoteKey(7), note: &full, text },
            NoteChange::Put { key: high, note: &empty, text: "" },
        ])
        .expect("changes apply");
    drop(store);
    if storage.lasts() {
        let store = storage.open();
        assert_eq!(loaded(&store), BTreeMap::from([(NoteKey(7), full), (high, empty)]));
        assert_eq!(found(&store, "zwei").0, [(7, 1)]);
    }
}

/// An index that was made with other settings is discarded.
pub fn another_fingerprint_empties_the_store(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["alpha"]);
    drop(store);
    let store = storage.open();
    assert!(store.load("parser 2").expect("a store loads").notes.is_empty());
    assert!(found(&store, "alpha").0.is_empty());
    put_all(&store, &["beta"]);
    drop(store);
    let store = storage.open();
    assert!(loaded(&store).is_empty(), "the first fingerprint's notes do not come back");
    assert!(found(&store, "alpha beta").0.is_empty());
}

/// A store that does not last may keep none.
pub fn stored_lines_last_until_the_store_is_scrubbed(storage: &impl NoteStorage) {
    let store = opened(storage);
    assert_eq!(store.lines(0).expect("lines are read"), None);
    for (segment, bytes) in [(0, "old"), (7, "other"), (0, "new")] {
        store.store_lines(segment, bytes.as_bytes()).expect("lines are stored");
    }
    drop(store);
    let store = opened(storage);
    let expected = storage.lasts().then(|| b"new".to_vec());
    assert_eq!(store.lines(0).expect("lines are read"), expected);
    store.scrub().expect("a store is scrubbed");
    assert_eq!([0, 7].map(|segment| store.lines(segment).expect("lines are read")), [None, None]);
}

/// Same bytes, another time.
pub fn touch_changes_only_the_stat(storage: &impl NoteStorage) {
    let store = opened(storage);
    let mut alpha = note("n0.md", "alpha");
    put_all(&store, &["alpha"]);
    alpha.stat = FileStat { modified_ns: 5, size: 5 };
    store.apply(&[NoteChange::Touch { key: NoteKey(0), stat: alpha.stat }]).expect("changes apply");
    assert_eq!(found(&store, "alpha").0, [(0, 0)]);
    drop(store);
    if storage.lasts() {
        assert_eq!(loaded(&storage.open()), BTreeMap::from([(NoteKey(0), alpha)]));
    }
}

/// Also later in the same list.
pub fn key_is_free_after_its_note_was_removed(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["alpha", "beta"]);
    let gamma = note("c.md", "gamma");
    store
        .apply(&[
            NoteChange::Remove { key: NoteKey(0) },
            NoteChange::Remove { key: NoteKey(1) },
            NoteChange::Put { key: NoteKey(0), note: &gamma, text: "gamma" },
        ])
        .expect("changes apply");
    assert_eq!(found(&store, "gamma").0, [(0, 0)]);
    assert!(found(&store, "alpha beta").0.is_empty());
    drop(store);
    if storage.lasts() {
        assert_eq!(loaded(&storage.open()), BTreeMap::from([(NoteKey(0), gamma)]));
    }
}

/// A put that failed before leaves its key unknown; what comes after it in the same list still counts.
pub fn change_of_an_unknown_note_is_ignored(storage: &impl NoteStorage) {
    let store = opened(storage);
    let alpha = note("a.md", "alpha");
    store
        .apply(&[
            NoteChange::Touch { key: NoteKey(5), stat: FileStat { modified_ns: 5, size: 5 } },
            NoteChange::Remove { key: NoteKey(6) },
            NoteChange::Put { key: NoteKey(0), note: &alpha, text: "alpha" },
        ])
        .expect("changes apply");
    store.apply(&[NoteChange::Remove { key: NoteKey(5) }]).expect("changes apply");
    assert_eq!(found(&store, "alpha").0, [(0, 0)]);
    drop(store);
    if storage.lasts() {
        assert_eq!(loaded(&storage.open()), BTreeMap::from([(NoteKey(0), alpha)]));
    }
}

/// Read your writes.
pub fn search_sees_every_earlier_change(storage: &impl NoteStorage) {
    let store = opened(storage);
    for round in 0..20_u32 {
        let text = format!("word{round}x");
        let note = note("n.md", &text);
        store.apply(&[NoteChange::Put { key: NoteKey(round), note: &note, text: &text }]).expect("changes apply");
        assert_eq!(found(&store, &text).0, [(round, 0)]);
        store.apply(&[NoteChange::Remove { key: NoteKey(round) }]).expect("changes apply");
        assert!(found(&store, &text).0.is_empty());
    }
}

/// The old words are gone, also when both versions come in one list.
pub fn new_version_replaces_the_words_of_the_old(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["## One\nalpha\n## Two\nbeta\n"]);
    let (second, third) = (note("n0.md", "gamma"), note("n0.md", "delta"));
    store
        .apply(&[
            NoteChange::Put { key: NoteKey(0), note: &second, text: "gamma" },
            NoteChange::Put { key: NoteKey(0), note: &third, text: "delta" },
        ])
        .expect("changes apply");
    assert!(found(&store, "alpha beta gamma one two").0.is_empty());
    assert_eq!(found(&store, "delta").0, [(0, 0)]);
}

/// A note's own words find all its sections, a section's words that section.
pub fn every_field_is_searched_and_hits_have_their_section(storage: &impl NoteStorage) {
    let store = opened(storage);
    let text = "Intro text.\n## Setup steps\nRun cargo.\n";
    let mut note = note("Folder/Guide.md", text);
    note.tags = vec![Tag::new("How/To")];
    note.aliases = vec!["Handbook".to_owned()];
    store.apply(&[NoteChange::Put { key: NoteKey(3), note: &note, text }]).expect("changes apply");
    for (query, places) in [
        ("intro", vec![(3, 0)]),
        ("SETUP", vec![(3, 1)]),
        ("cargo", vec![(3, 1)]),
        ("guide", vec![(3, 0), (3, 1)]),
        ("handbook", vec![(3, 0), (3, 1)]),
        ("how/to", vec![(3, 0), (3, 1)]),
        ("guide cargo", vec![(3, 1)]),
        ("folder", vec![]),
    ] {
        assert_eq!(found(&store, query).0, places, "{query}");
    }
}

/// Phrase, all words, any word.
pub fn query_is_relaxed_step_by_step_and_reports_it(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["the quick brown fox", "brown and quick", "a lazy dog"]);
    assert_eq!(found(&store, "quick brown"), (vec![(0, 0)], TextMatch::Phrase));
    assert_eq!(found(&store, "brown quick"), (vec![(0, 0), (1, 0)], TextMatch::AllWords));
    assert_eq!(found(&store, "quick dog"), (vec![(0, 0), (1, 0), (2, 0)], TextMatch::AnyWord));
    assert_eq!(found(&store, "lazy"), (vec![(2, 0)], TextMatch::Phrase));
    assert_eq!(found(&store, "zebra"), (vec![], TextMatch::Phrase));
}

/// There is no syntax.
pub fn any_query_is_valid_and_no_words_find_nothing(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["alpha and beta", "gamma"]);
    for query in ["", "   ", "?!", "\"\"", "*", "\0", "()", "\\", "\u{301}"] {
        assert_eq!(found(&store, query), (vec![], TextMatch::Phrase), "{query:?}");
    }
    for query in ["\"alpha and", "alpha AND", "(alpha", "title:alpha^2 ~", "+alpha -and", "alpha*"] {
        assert!(found(&store, query).0.contains(&(0, 0)), "{query:?}");
    }
}

/// Best first, ties by key and section; what ties with the last is not cut off.
pub fn hits_are_limited_and_in_order(storage: &impl NoteStorage) {
    let store = opened(storage);
    let mut texts = vec!["alpha"; 90];
    texts[17] = "alpha alpha";
    for chunk in [30, 90] {
        put_all(&store, &texts[..chunk]);
        let search = |limit| {
            store
                .search_text(&TextQuery { text: "alpha".to_owned(), limit, ..TextQuery::default() })
                .expect("it searches")
                .hits
        };
        assert_eq!(search(0), []);
        let all = search(usize::MAX);
        assert_eq!(all.len(), chunk);
        assert!(all.is_sorted_by(|a, b| (b.score, a.key, a.section) <= (a.score, b.key, b.section)), "{all:?}");
        assert_eq!(search(1), all[..1]);
        assert_eq!(search(3), all);
    }
}

/// A limit to some notes comes before the limit in number, and the total counts all that match.
pub fn search_among_some_notes_counts_all_their_hits(storage: &impl NoteStorage) {
    let store = opened(storage);
    let mut texts = vec!["alpha"; 90];
    texts[5] = "alpha alpha";
    put_all(&store, &texts);
    let search = |among: Option<&[u32]>, limit: usize| {
        let among = among.map(|keys| Arc::new(keys.iter().copied().map(NoteKey).collect()));
        let query = TextQuery { text: "alpha".to_owned(), limit, among };
        let TextHits { hits, total, .. } = store.search_text(&query).expect("it searches");
        (hits.iter().take(limit).map(|hit| hit.key.0).collect::<Vec<_>>(), total)
    };
    assert_eq!(search(None, 2), (vec![5, 0], 90));
    assert_eq!(search(Some(&[70, 80, 7, 1000]), 2), (vec![7, 70], 3));
    assert_eq!(search(Some(&(40..90).collect::<Vec<_>>()), 1), (vec![40], 50));
    assert_eq!(search(Some(&[]), 2), (vec![], 0));
}

/// Single characters and pairs of Han, Kana and Hangul.
pub fn single_characters_of_scripts_without_spaces_are_found(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["全文検索の設計", "猫が好き", "한국어 검색", "Rustで検索エンジン"]);
    for (query, places) in [
        ("検索", vec![(0, 0), (3, 0)]),
        ("検", vec![(0, 0), (3, 0)]),
        ("計", vec![(0, 0)]),
        ("猫", vec![(1, 0)]),
        ("文検索の", vec![(0, 0)]),
        ("국어", vec![(2, 0)]),
        ("검색", vec![(2, 0)]),
        ("rust", vec![(3, 0)]),
        ("エンジン", vec![(3, 0)]),
        ("犬", vec![]),
    ] {
        assert_eq!(found(&store, query).0, places, "{query}");
    }
}

fn search_fails(store: &impl NoteStore) -> bool {
    store.search_text(&TextQuery { text: "alpha".to_owned(), limit: 9, ..TextQuery::default() }).is_err()
}

/// A search tells of the damage rather than finding nothing; once everything is put again it answers.
pub fn lost_texts_are_reported_until_they_are_put_again(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["alpha", "alpha beta"]);
    assert_eq!(found(&store, "alpha").0, [(0, 0), (1, 0)]);
    assert_eq!(store.text_lost().expect("a store knows what it lost"), []);
    if !storage.lose_text(&store) {
        return;
    }
    assert!(search_fails(&store));
    assert_eq!(store.text_lost().expect("a store knows what it lost"), [NoteKey(0), NoteKey(1)]);
    put_all(&store, &["alpha"]);
    assert!(search_fails(&store));
    assert_eq!(store.text_lost().expect("a store knows what it lost"), [NoteKey(1)]);
    put_all(&store, &["alpha", "alpha beta"]);
    assert_eq!(store.text_lost().expect("a store knows what it lost"), []);
    assert_eq!(found(&store, "alpha").0, [(0, 0), (1, 0)]);
    assert_eq!(store.check().expect("a store checks itself"), [""; 0]);
}

/// What cannot be put again does not keep the rest from being found.
pub fn search_works_without_texts_whose_loss_is_accepted(storage: &impl NoteStorage) {
    let store = opened(storage);
    put_all(&store, &["alpha", "alpha beta"]);
    found(&store, "alpha");
    if !storage.lose_text(&store) {
        return;
    }
    assert!(search_fails(&store));
    put_all(&store, &["alpha"]);
    store.accept_loss();
    assert_eq!(found(&store, "alpha").0, [(0, 0)]);
    assert_eq!(store.text_lost().expect("a store knows what it lost"), []);
}

/// Before and after changes, and after a new opening.
pub fn sound_store_has_no_findings(storage: &impl NoteStorage) {
    let store = opened(storage);
    assert_eq!(store.check().expect("a store checks itself"), [""; 0]);
    put_all(&store, &["## One\nalpha\n## Two\nbeta\n", "gamma"]);
    store.apply(&[NoteChange::Remove { key: NoteKey(1) }]).expect("changes apply");
    assert_eq!(store.check().expect("a store checks itself"), [""; 0]);
    drop(store);
    assert_eq!(opened(storage).check().expect("a store checks itself"), [""; 0]);
}
