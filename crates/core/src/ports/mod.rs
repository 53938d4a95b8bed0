//! What the domain needs from outside. Each port is implemented by one or more crates, and by `testkit`.
//!
//! Ports are synchronous: files, SQLite, tantivy and database clients block or compute, and a call runs on one worker
//! thread. They take batches, and filters as data instead of closures, so that a store across a network can implement
//! them.

mod clock;
mod embedder;
mod memory_store;
mod note_feed;
mod note_history;
mod note_store;
mod shown_notes;
mod sources;
mod text_model;
mod vault_files;
mod vector_store;

pub use clock::{Clock, SystemClock};
pub use embedder::{CoarseEncoder, EmbedError, Embedder, Role};
pub use memory_store::{
    Applied, ApplyError, Author, ChangeNumber, ChangedIds, CopyLogError, EntityRef, EntityUpdate, LoggedChange,
    MemoryChange, MemoryCounts, MemoryFailure, MemoryItem, MemoryStore, NewEntity, NoteTie, Redaction, Refusal,
    RelationFilter, StoredVector, TextOwner, UndoError,
};
pub use note_feed::{FeedError, LogHeads, NoteChanges, NoteFeed};
pub use note_history::{
    LoggedFile, LoggedVersion, LoggedWrite, NamePeriod, NoteAction, NoteHistory, OUTSIDE, WriteFilter, WriteNumber,
    WriteOrigin,
};
pub use note_store::{
    Loaded, NoteChange, NoteSet, NoteStore, RankedText, StoreError, TextHit, TextHits, TextMatch, TextQuery,
};
pub use shown_notes::ShownNotes;
pub use sources::{NoSources, SourceStatus, SourcedNote, Sources, Traced, TracedSource};
pub use text_model::{ModelText, NamedEntities, NamedRelation, TextModel, TextModelError};
pub use vault_files::{
    FileChange, FileContent, Image, ListedFile, Listing, OtherFiles, TrashReason, TrashedFile, VaultError, VaultFiles,
    VaultVersions, WriteError,
};
pub use vector_store::{
    Calibration, Coverage, EXACT_HITS, Grade, MissingVector, PassageHash, VectorHit, VectorQuery, VectorStore,
};
