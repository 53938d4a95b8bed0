//! Files to graph: reads what changed, resolves links in a second pass, and publishes an immutable snapshot.
//!
//! One writer at a time; readers hold a snapshot and never wait.

mod around;
mod changes;
mod ids;
mod indexer;
mod kept_links;
mod link_counts;
mod moves;
mod names;
mod publish;
mod renaming;
mod resolve;
mod site_pages;
mod snapshot;
mod sync;
mod tables;

pub use around::Related;
pub use changes::{Changes, Listener};
pub(crate) use indexer::Writer;
pub use indexer::{IndexError, Indexer, Outside};
pub use link_counts::LinkCounts;
pub(crate) use moves::Moves;
pub use names::{NameMatch, best_match, exact_match, near_names};
pub(crate) use renaming::{Renaming, Respelled};
pub(crate) use resolve::name_hashes;
pub use snapshot::{HubMetric, ResolvedLink, Snapshot, TagMode};
pub(crate) use sync::Written;
pub use sync::{Progress, Scope, SyncReport};
