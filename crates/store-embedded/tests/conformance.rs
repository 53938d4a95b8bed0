//! The ports' rules, over both kinds of the embedded store.

#![expect(clippy::disallowed_methods, reason = "breaks the store's own files")]
#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::io::Write;

use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::NoteStorage;
use tempfile::TempDir;

struct DiskStorage(TempDir);

impl NoteStorage for DiskStorage {
    type Store = EmbeddedStore;

    fn open(&self) -> EmbeddedStore {
        let store = EmbeddedStore::open(self.0.path()).unwrap();
        assert_eq!(store.notices(), [""; 0]);
        store
    }

    fn lasts(&self) -> bool {
        true
    }

    fn lose_text(&self, _: &EmbeddedStore) -> bool {
        let files = std::fs::read_dir(self.0.path().join("text")).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|path| path.extension().is_some_and(|kind| kind == "idx" || kind == "term")) {
            // In place: the open store has the file mapped.
            let half = std::fs::metadata(&file).unwrap().len() / 2;
            let bytes = vec![0xd7; usize::try_from(half).unwrap()];
            std::fs::OpenOptions::new().write(true).open(file).unwrap().write_all(&bytes).unwrap();
        }
        true
    }
}

struct InMemoryStorage;

impl NoteStorage for InMemoryStorage {
    type Store = EmbeddedStore;

    fn open(&self) -> EmbeddedStore {
        EmbeddedStore::in_memory().unwrap()
    }

    fn lasts(&self) -> bool {
        false
    }

    fn lose_text(&self, _: &EmbeddedStore) -> bool {
        false
    }
}

mod on_disk {
    quipu_testkit::store_conformance!(super::DiskStorage(tempfile::tempdir().unwrap()));
    quipu_testkit::vector_conformance!(crate::DiskStorage(tempfile::tempdir().unwrap()));
}

mod in_memory {
    quipu_testkit::store_conformance!(super::InMemoryStorage);
    quipu_testkit::vector_conformance!(crate::InMemoryStorage);
}
