//! The toolset `upkeep`: repairs of memory: merge, correct, undo, redact.

pub(crate) mod merge_entities;
pub(crate) mod redact;
pub(crate) mod undo_change;
pub(crate) mod update_observation;
