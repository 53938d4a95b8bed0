//! The ports' rules, over both kinds of the embedded store.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

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

    /// An open store has read its files and does not lose their texts. What damage does at the next opening is tested in
    /// `damaged_segments.rs`.
    fn lose_text(&self, _: &EmbeddedStore) -> bool {
        false
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
