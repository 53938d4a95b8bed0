//! What the domain needs from outside, in its own words. Each port is implemented by one crate and by `testkit`.
//!
//! Ports are synchronous: every implementation we have or plan (files, SQLite, tantivy, a database client) blocks or
//! computes, and a front door runs a whole call on one worker thread. They take batches and have no closure transactions,
//! so that a store across a network can implement them.

mod clock;
mod embedder;
mod memory_store;
mod note_store;
mod sources;
mod vault_files;
mod vector_store;

pub use clock::{Clock, SystemClock};
pub use embedder::{CoarseEncoder, EmbedError, Embedder, Role};
pub use memory_store::{
    Applied, ApplyError, Author, ChangeNumber, EntityRef, EntityUpdate, LoggedChange, MemoryChange, MemoryCounts,
    MemoryFailure, MemoryItem, MemoryStore, NewEntity, NoteTie, Refusal, RelationFilter, StoredVector, TextOwner,
    Touched, UndoError,
};
pub use note_store::{Loaded, NoteChange, NoteStore, RankedText, StoreError, TextHit, TextHits, TextMatch, TextQuery};
pub use sources::{SinceThen, SourcedNote, Sources, Traced, TracedSource};
pub use vault_files::{
    FileChange, FileContent, Kept, KeptReason, ListedFile, Listing, VaultError, VaultFiles, WriteError,
};
pub use vector_store::{Calibration, Coverage, EXACT_HITS, Grade, Lacking, PassageHash, VectorHit, VectorStore};
