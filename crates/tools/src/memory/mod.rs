//! The toolset `memory`: what agents remember as entities, observations and relations.

pub(crate) mod bulk_update;
pub(crate) mod clear_context;
pub(crate) mod create_entity;
pub(crate) mod create_observation;
pub(crate) mod create_relation;
pub(crate) mod delete_entity;
pub(crate) mod delete_observation;
pub(crate) mod delete_relation;
pub(crate) mod find_relations;
pub(crate) mod get_context;
pub(crate) mod get_current_time;
pub(crate) mod get_entity;
pub(crate) mod get_subgraph_by_ids;
pub(crate) mod get_version;
pub(crate) mod list_entities;
pub(crate) mod search_entities;
pub(crate) mod search_subgraph;
pub(crate) mod set_context;
pub(crate) mod suggest_merges;
pub(crate) mod update_entity;

mod room;
mod wire;

pub(crate) use wire::{EntityName, ObservationOutput, warn_of_contradictions};
