//! What the store does with a folder that is owned, damaged or of another format.

#![expect(clippy::disallowed_methods, reason = "breaks the store's own files")]
#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::path::Path;

use quipu_core::model::NoteKey;
use quipu_core::ports::{NoteChange, NoteStore, TextQuery};
use quipu_store_embedded::{EmbeddedStore, StoreOpenError};
use quipu_testkit::store_conformance::note;

/// A folder with a store of some hundred notes.
fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path()).unwrap();
    store.load("damage").unwrap();
    put_all(&store);
    folder
}

fn put_all(store: &EmbeddedStore) {
    let text = "alpha beta\n## More\ngamma ".repeat(20);
    let notes: Vec<_> = (0..300).map(|key| note(&format!("folder/n{key}.md"), &text)).collect();
    let changes: Vec<_> =
        (0..).map(NoteKey).zip(&notes).map(|(key, note)| NoteChange::Put { key, note, text: &text }).collect();
    store.apply(&changes).unwrap();
}

/// Opens and loads, expects a notice with these words and a store that works.
fn recovers(folder: &Path, notice: &str, kept_notes: usize) {
    let store = EmbeddedStore::open(folder).unwrap();
    let loaded = store.load("damage").unwrap();
    let notices = store.notices();
    assert!(notices.iter().any(|line| line.contains(notice)), "{notices:?}");
    assert_eq!(loaded.notes.len(), kept_notes);
    assert_eq!(loaded.text_missing.len(), kept_notes, "no text is left");
    put_all(&store);
    assert_eq!(store.check().unwrap(), [""; 0]);
    drop(store);
    let store = EmbeddedStore::open(folder).unwrap();
    let loaded = store.load("damage").unwrap();
    assert_eq!((loaded.notes.len(), loaded.text_missing.len()), (300, 0));
    assert_eq!(store.notices(), [""; 0]);
    assert_eq!(
        store
            .search_text(&TextQuery { text: "gamma".to_owned(), limit: 9999, ..TextQuery::default() })
            .unwrap()
            .hits
            .len(),
        300 * 20
    );
}

#[test]
fn folder_has_one_owner() {
    let folder = filled();
    let store = EmbeddedStore::open(folder.path()).unwrap();
    assert!(matches!(EmbeddedStore::open(folder.path()), Err(StoreOpenError::Owned { .. })));
    drop(store);
    EmbeddedStore::open(folder.path()).unwrap();
}

#[test]
fn catalog_that_is_no_database_is_recreated() {
    let folder = filled();
    std::fs::write(folder.path().join("catalog.db"), "not a database, but longer than its header ".repeat(100))
        .unwrap();
    recovers(folder.path(), "Cannot use the catalog", 0);
}

#[test]
fn catalog_with_a_damaged_page_is_recreated() {
    let folder = filled();
    let file = folder.path().join("catalog.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 8192].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();
    recovers(folder.path(), "Cannot read the catalog", 0);
}

#[test]
fn catalog_of_another_format_is_recreated() {
    for format in [0, 99] {
        let folder = filled();
        let db = rusqlite::Connection::open(folder.path().join("catalog.db")).unwrap();
        db.pragma_update(None, "user_version", format).unwrap();
        drop(db);
        recovers(folder.path(), "format", 0);
    }
}

#[test]
fn unreadable_text_index_is_rebuilt() {
    let folder = filled();
    std::fs::write(folder.path().join("text/meta.json"), "{").unwrap();
    recovers(folder.path(), "text index", 300);
}

#[test]
fn missing_text_index_is_rebuilt() {
    let folder = filled();
    std::fs::remove_dir_all(folder.path().join("text")).unwrap();
    let store = EmbeddedStore::open(folder.path()).unwrap();
    let loaded = store.load("damage").unwrap();
    assert_eq!((loaded.notes.len(), loaded.text_missing.len()), (300, 300));
}

#[test]
fn texts_not_put_again_are_still_missing_at_the_next_load() {
    let folder = filled();
    std::fs::remove_dir_all(folder.path().join("text")).unwrap();
    let store = EmbeddedStore::open(folder.path()).unwrap();
    let loaded = store.load("damage").unwrap();
    let (key, first) = &loaded.notes[0];
    let text = "alpha beta\n## More\ngamma ".repeat(20);
    store.apply(&[NoteChange::Put { key: *key, note: first, text: &text }]).unwrap();
    drop(store);
    let again = EmbeddedStore::open(folder.path()).unwrap().load("damage").unwrap();
    assert_eq!(again.text_missing.len(), 299);
    assert!(!again.text_missing.contains(key));
}

/// As a disk would, or a power cut.
fn spoil_positions(folder: &Path) {
    for entry in std::fs::read_dir(folder.join("text")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pos") {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[3] ^= 0xff;
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn text_index_damaged_by_a_power_cut_is_rebuilt() {
    let folder = filled();
    spoil_positions(folder.path());
    recovers(folder.path(), "is damaged", 300);
}

#[test]
fn list_with_an_invalid_range_changes_nothing() {
    let store = EmbeddedStore::in_memory().unwrap();
    store.load("damage").unwrap();
    let alpha = note("a.md", "alpha");
    let put = NoteChange::Put { key: NoteKey(0), note: &alpha, text: "alpha" };
    assert!(store.apply(&[put, NoteChange::Put { key: NoteKey(1), note: &alpha, text: "x" }]).is_err());
    assert_eq!(store.stats().unwrap().notes, 0);
    assert_eq!(
        store.search_text(&TextQuery { text: "alpha".to_owned(), limit: 9, ..TextQuery::default() }).unwrap().hits,
        []
    );
}

#[cfg(unix)]
#[test]
fn folder_that_cannot_be_created_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let Err(error) = EmbeddedStore::open(&file.join("index")) else { panic!("a file is no folder") };
    assert!(error.to_string().contains("file/index"), "{error}");
}

#[test]
fn links_in_place_of_the_index_are_refused_and_not_followed() {
    for place in ["index", "index/text", "index/catalog.db", "index/index.lock", "index/text/meta.json"] {
        let (vault, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = vault.path().join(place);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let is_folder = ["index", "index/text"].contains(&place);
        let target = if is_folder { outside.path().to_owned() } else { outside.path().join("victim") };
        std::os::unix::fs::symlink(&target, &link).unwrap();
        match EmbeddedStore::open(&vault.path().join("index")) {
            Err(error @ StoreOpenError::Failed { .. }) => assert!(error.to_string().contains("is a link"), "{error}"),
            other => panic!("{place}: {:?}", other.map(|_| "opened")),
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{place}");
    }
}
