//! Search for entities by the words of all fields and, with an embedder, by meaning; both fused.
//!
//! The indexes are in memory. They are built from the store when a server opens it, else at the first query, and follow its log:
//! nothing derived is written, so nothing can be inconsistent after a crash.

mod fields;
mod follower;
mod found;
mod function_words;
mod links;
mod names;
mod terms;
mod text;
mod vectors;

pub use fields::{MemoryField, MemoryFields};
pub use follower::{Embedded, ReadProgress, VectorError};
pub use found::{FoundEntity, FoundPage, SearchBy, SearchQuery, SubgraphQuery};

pub(super) use follower::{DerivedIndexes, LogFollower};
pub(super) use names::EntityNames;
