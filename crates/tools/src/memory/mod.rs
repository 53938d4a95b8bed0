//! The toolset `memory`: what agents remember as entities, observations and relations.

mod bulk_update;
mod clear_context;
mod create_entity;
mod create_observation;
mod create_relation;
mod delete_entity;
mod delete_observation;
mod delete_relation;
mod find_relations;
mod get_context;
mod get_current_time;
mod get_entity;
mod get_subgraph_by_ids;
mod get_version;
mod list_entities;
mod search_entities;
mod search_subgraph;
mod set_context;
mod suggest_merges;
mod update_entity;

mod room;
mod wire;

pub(crate) use bulk_update::BulkUpdate;
pub(crate) use clear_context::ClearContext;
pub(crate) use create_entity::CreateEntity;
pub(crate) use create_observation::CreateObservation;
pub(crate) use create_relation::CreateRelation;
pub(crate) use delete_entity::DeleteEntity;
pub(crate) use delete_observation::DeleteObservation;
pub(crate) use delete_relation::DeleteRelation;
pub(crate) use find_relations::FindRelations;
pub(crate) use get_context::GetContext;
pub(crate) use get_current_time::GetCurrentTime;
pub(crate) use get_entity::GetEntity;
pub(crate) use get_subgraph_by_ids::GetSubgraphByIds;
pub(crate) use get_version::GetVersion;
pub(crate) use list_entities::ListEntities;
pub(crate) use search_entities::SearchEntities;
pub(crate) use search_subgraph::SearchSubgraph;
pub(crate) use set_context::SetContext;
pub(crate) use suggest_merges::SuggestMerges;
pub(crate) use update_entity::UpdateEntity;
pub(crate) use wire::EntityName;
