//! Files to graph: applies changed files, resolves links in a second pass, and publishes an immutable snapshot.
//!
//! One writer at a time; readers hold a snapshot and never wait.

mod changes;
mod ids;
mod indexer;
mod link_counts;
mod moves;
mod names;
mod outside;
mod plan;
mod publish;
mod read;
mod related;
mod rename_preview;
mod resolve;
mod saved_links;
mod site_pages;
mod snapshot;
mod tables;
mod writer;

pub use changes::{ChangeListener, SnapshotDiff};
pub use indexer::{IndexError, IndexReport, Indexer, IndexerPorts, Progress};
pub use link_counts::LinkCounts;
pub(crate) use moves::Moves;
pub use names::{NameMatch, best_match, exact_match, near_names};
pub(crate) use outside::OutsideBatch;
pub use plan::FileBatch;
pub(crate) use read::WrittenFile;
pub use related::RelatedNote;
pub(crate) use rename_preview::{LinkToRespell, RenamePreview, RenamedNotes, Respelled, SourceLinks};
pub(crate) use resolve::{join, name_hashes};
pub use snapshot::{HubMetric, ResolvedLink, Snapshot, TagMode};
pub(crate) use writer::Writer;
