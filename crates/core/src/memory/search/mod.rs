//! Finding entities: by the words of all their fields, by meaning where there is an embedder, both fused.
//!
//! The index over words lies in memory. It is built from the store at the first question and follows the store's log from
//! then on: nothing derived is written, nothing can disagree after a crash.

mod fields;
mod follower;
mod found;
mod function_words;
mod links;
mod names;
mod terms;
mod text;
mod vectors;

pub use fields::{Field, Fields};
pub use follower::{Embedded, VectorError};
pub use found::{Found, FoundPage, SearchBy, SearchQuery, SubgraphQuery};

pub(super) use follower::Follower;
pub(super) use names::Names;
