//! Why memory was not changed or could not answer. The words reach clients: what happened, to what, what to do.

use std::borrow::Cow;

use super::model::{EntityId, ObservationId, RelationId};
use super::search::ReadProgress;
use crate::ports::{ApplyError, MemoryFailure, Refusal, UndoError};

/// Why a call on memory failed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// There is nothing of that number.
    #[error("there is no {kind} {id}")]
    NotFound {
        /// "entity", "observation", "relation" or "change".
        kind: &'static str,
        /// The number of the item.
        id: i64,
    },
    /// Another entity has the name.
    #[error("the name {name:?} is taken by entity {by}; add to that one, or choose another name")]
    NameTaken {
        /// The name, as the caller wrote it.
        name: String,
        /// The entity that has the name.
        by: EntityId,
    },
    /// This relation exists already.
    #[error("relation {0} already exists")]
    RelationExists(RelationId),
    /// Another observation of the entity has the text.
    #[error("observation {0} of the same entity has this text already; delete one of the two instead")]
    ObservationExists(ObservationId),
    /// The change was undone before.
    #[error("change {change} was already undone by change {by}; to apply it again, undo change {by}")]
    Undone {
        change: i64,
        /// The change that undid it.
        by: i64,
    },
    /// Later changes depend on the change.
    #[error("cannot undo change {change}: {reason}")]
    Depended { change: i64, reason: String },
    /// A text has nothing in it.
    #[error("`{field}` is blank; give a text")]
    Blank {
        /// Which argument, with its place where it is of a list.
        field: Cow<'static, str>,
    },
    /// An update that names no field.
    #[error("nothing to change: give `name`, `entity_type`, `aliases` or `description`")]
    NothingToChange,
    /// A bulk of nothing, or of too much.
    #[error("a bulk update has 1 to {max} operations, and this one has {count}; {advice}")]
    BulkSize {
        /// How many were given.
        count: usize,
        /// How many may be.
        max: usize,
        /// The next step for the caller.
        advice: &'static str,
    },
    /// Two parts of a bulk update would create the same item.
    #[error("duplicates {first} in this call; remove one")]
    Twice {
        /// Which part came first.
        first: String,
    },
    /// A name in place of an id that no entity of the same call has.
    #[error("no entity of this call has the name {name:?}; give the id of an existing entity")]
    UnknownName {
        /// As written.
        name: String,
    },
    /// A search in no field.
    #[error("nothing to search in: set at least one of the `search_in_…` arguments to true")]
    NoFields,
    /// The entity was merged into another.
    #[error("it was merged into entity {by}; redact that entity or its observations")]
    Absorbed {
        /// The entity that it is part of.
        by: EntityId,
    },
    /// Both are one.
    #[error("entity {0} cannot be merged into itself")]
    MergeIntoItself(EntityId),
    /// One part of a bulk.
    #[error("{place}: {error}")]
    At {
        place: String,
        /// The error of the operation.
        error: Box<MemoryError>,
    },
    /// Every check for duplicates was overtaken by a change of another client.
    #[error("cannot check for duplicates: other clients are changing memory too fast; nothing was stored, retry later")]
    Moved,
    /// All of memory is needed, and another thread still reads it.
    #[error("memory is still being read: {0} so far; this call changed nothing, try again in a few seconds")]
    StillRead(ReadProgress),
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] MemoryFailure),
}

impl MemoryError {
    pub(crate) fn no_entity(id: EntityId) -> Self {
        Self::NotFound { kind: "entity", id: id.0 }
    }

    pub(crate) fn at(self, place: String) -> Self {
        match self {
            failed @ (Self::Failed(_) | Self::Moved | Self::StillRead(_)) => failed,
            error => Self::At { place, error: Box::new(error) },
        }
    }

    /// What a refusal of the store means to the caller. `name` is the name that was wanted.
    pub(crate) fn refused(refusal: &Refusal, name: &str) -> Self {
        match *refusal {
            Refusal::NameTaken { by } => Self::NameTaken { name: name.to_owned(), by },
            Refusal::NoEntity(id) => Self::no_entity(id),
            Refusal::NoObservation(id) => Self::NotFound { kind: "observation", id: id.0 },
            Refusal::NoRelation(id) => Self::NotFound { kind: "relation", id: id.0 },
            Refusal::RelationExists(id) => Self::RelationExists(id),
            Refusal::Absorbed { by } => Self::Absorbed { by },
            Refusal::MergeIntoItself(id) => Self::MergeIntoItself(id),
            Refusal::NoItemCreated(_) | Refusal::IdAlreadyUsed(_) => {
                unreachable!("only an import says what was elsewhere")
            }
        }
    }
}

impl From<ApplyError> for MemoryError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Refused { refusal, .. } => Self::refused(&refusal, ""),
            ApplyError::Moved => Self::Moved,
            ApplyError::Failed(failure) => failure.into(),
        }
    }
}

impl From<UndoError> for MemoryError {
    fn from(error: UndoError) -> Self {
        match error {
            UndoError::Unknown(change) => Self::NotFound { kind: "change", id: change.0 },
            UndoError::Undone { change, by } => Self::Undone { change: change.0, by: by.0 },
            UndoError::Depended { change, reason } => Self::Depended { change: change.0, reason },
            UndoError::Failed(failure) => failure.into(),
        }
    }
}
