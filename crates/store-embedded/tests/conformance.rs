//! The ports' rules, over both kinds of the embedded store.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::Shelf;
use tempfile::TempDir;

struct DiskShelf(TempDir);

impl Shelf for DiskShelf {
    type Store = EmbeddedStore;

    fn open(&self) -> EmbeddedStore {
        let store = EmbeddedStore::open(self.0.path()).unwrap();
        assert_eq!(store.notices(), [""; 0]);
        store
    }

    fn lasts(&self) -> bool {
        true
    }
}

struct MemoryShelf;

impl Shelf for MemoryShelf {
    type Store = EmbeddedStore;

    fn open(&self) -> EmbeddedStore {
        EmbeddedStore::in_memory().unwrap()
    }

    fn lasts(&self) -> bool {
        false
    }
}

mod on_disk {
    quipu_testkit::store_conformance!(super::DiskShelf(tempfile::tempdir().unwrap()));
    quipu_testkit::vector_conformance!(crate::DiskShelf(tempfile::tempdir().unwrap()));
}

mod in_memory {
    quipu_testkit::store_conformance!(super::MemoryShelf);
    quipu_testkit::vector_conformance!(crate::MemoryShelf);
}
