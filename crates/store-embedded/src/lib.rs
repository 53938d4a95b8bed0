//! The default stores: the index of notes, a catalog in SQLite, their words in tantivy and vectors of their passages, in one
//! folder that may be deleted; and memory, one SQLite file that may not.
//!
//! Of the index the catalog is written first and is the truth of the two. The text index says how far it has come, so whatever a crash
//! took from it is known at the next load.

#![warn(missing_docs)]

mod store;

mod catalog;
mod folder;
#[cfg(test)]
mod format_guard;
mod memory;
mod own_folder;
mod row;
mod sqlite;
mod text;
mod vectors;

pub use folder::OpenError;
pub use memory::{BackupError, MemoryDatabase, MemoryOpenError};
pub use own_folder::OwnFolder;
pub use store::{EmbeddedStore, StoreStats};
