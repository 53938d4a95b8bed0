//! What agents remember: entities, observations, relations. The tools use one [`Memory`].
//!
//! The store has the data and the log of every change. The search indexes follow that log, so the next search finds a change by
//! any process.

mod entity_types;
mod error;
mod model;

#[expect(clippy::module_inception, reason = "the file is named as what it holds")]
mod memory;

mod bulk;
mod change_lines;
mod context;
mod contradictions;
mod duplicates;
pub mod limits;
mod links;
mod merges;
mod names;
mod read;
mod redaction;
mod search;
mod whole_log;
mod write;

pub use bulk::{Bulk, BulkEntity, BulkObservation, BulkRelation, BulkResult, NameOrId};
pub use change_lines::{change_line, relation_by_name};
pub use contradictions::contradictions;
pub use duplicates::DuplicateRule;
pub use entity_types::EntityTypes;
pub use error::MemoryError;
pub(crate) use links::NoteLink;
pub use memory::{Memory, MemoryParts};
pub use merges::{MergePlan, MergeSuggestion, Merged};
pub use model::{Entity, EntityId, Observation, ObservationId, PART_OF, Relation, RelationId, name_key};
pub use read::{DetailPart, EntityDetail, EntityPage, PageRequest, Subgraph};
pub use redaction::{RedactionScope, merges};
pub use search::{
    Embedded, FoundEntity, FoundPage, MemoryField, MemoryFields, ReadProgress, SearchBy, SearchQuery, SubgraphQuery,
    VectorError,
};
pub use whole_log::WholeLog;
pub use write::{Creation, EntityDraft, Observed};
