//! Files to graph: reads what changed, resolves links in a second pass, and publishes an immutable snapshot.
//!
//! One writer at a time; readers hold a snapshot and never wait.

mod around;
mod changes;
mod indexer;
mod kept_links;
mod names;
mod publish;
mod renaming;
mod resolve;
mod snapshot;
mod sync;

pub use around::Related;
pub use changes::{Changes, Listener};
pub(crate) use indexer::Writer;
pub use indexer::{IndexError, Indexer, Outside};
pub use names::{NameMatch, best_match, exact_match};
pub(crate) use renaming::Renaming;
pub use snapshot::{HubMetric, ResolvedLink, Snapshot, TagMode};
pub(crate) use sync::Written;
pub use sync::{Progress, Scope, SyncReport};
