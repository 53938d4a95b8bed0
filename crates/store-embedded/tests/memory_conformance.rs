//! The rules of the memory port, over the database on disk and without one.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use quipu_store_embedded::MemoryDatabase;
use quipu_testkit::memory_conformance::MemoryStorage;
use tempfile::TempDir;

struct DiskStorage(TempDir);

impl MemoryStorage for DiskStorage {
    type Store = MemoryDatabase;

    fn open(&self) -> MemoryDatabase {
        MemoryDatabase::open(&self.0.path().join("memory.db")).unwrap()
    }
}

mod on_disk {
    quipu_testkit::memory_conformance!(super::DiskStorage(tempfile::tempdir().unwrap()));
}
