//! What agents learn and want to keep: entities, observations, relations. The tools ask one [`Memory`].
//!
//! The store is the truth and has the log of every change. What is derived from it for searching follows that log, so a
//! change is found by the very next search, whichever process made it.

mod entity_types;
mod error;
mod model;

#[expect(clippy::module_inception, reason = "the file is named as what it holds")]
mod memory;

mod bulk;
mod context;
mod duplicates;
pub mod limits;
mod links;
mod merges;
mod names;
mod read;
mod search;
mod write;

pub use bulk::{Bulk, BulkEntity, BulkObservation, BulkRelation, Made, NameOrId};
pub use duplicates::DuplicateRule;
pub use entity_types::EntityTypes;
pub use error::MemoryError;
pub(crate) use links::NoteLink;
pub use memory::{Memory, MemoryParts};
pub use merges::{MergePlan, MergeSuggestion};
pub use model::{Entity, EntityId, Observation, ObservationId, PART_OF, Relation, RelationId, name_key};
pub use read::{DetailPart, EntityDetail, EntityPage, Page, Subgraph};
pub use search::{Embedded, Field, Fields, Found, FoundPage, SearchBy, SearchQuery, SubgraphQuery, VectorError};
pub use write::{Creation, EntityWish, Observed};
