//! The default store: a catalog of notes in SQLite, their words in tantivy and vectors of their passages, in one folder
//! that may be deleted.
//!
//! The catalog is written first and is the truth of the two. The text index says how far it has come, so whatever a crash
//! took from it is known at the next load.

#![warn(missing_docs)]

mod store;

mod catalog;
mod folder;
#[cfg(test)]
mod format_guard;
mod row;
mod text;
mod vectors;

pub use folder::OpenError;
pub use store::{EmbeddedStore, StoreStats};
