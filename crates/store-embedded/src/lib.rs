//! The default stores. The index of notes is one folder that may be deleted: a catalog in SQLite, the words in tantivy, the
//! line index and the vectors of passages. Memory is one SQLite file that must not be deleted.
//!
//! The catalog is written first and decides. The text index records its position, so the next load knows what a crash took
//! from it.

mod store;

mod catalog;
mod folder;
#[cfg(test)]
mod format_guard;
mod index_database;
mod lines;
mod memory;
mod row;
mod sqlite;
mod text;
mod vectors;

pub use folder::StoreOpenError;
pub use memory::{BackupError, MemoryDatabase, MemoryOpenError};
pub use store::{EmbeddedStore, StoreStats};
