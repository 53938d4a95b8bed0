//! `delete_entity`: deletes an entity with its observations and relations.

use quipu_core::memory::{Entity, EntityId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::EntityOutput;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entity id.
    entity_id: i64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    entity: EntityOutput,
    message: String,
}

pub(crate) struct DeleteEntity;

impl Tool for DeleteEntity {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "delete_entity";
    const DESCRIPTION: &'static str = "Delete an entity with its observations and relations. undo_change restores \
        them. For a duplicate use merge_entities.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let author = call.author(Self::NAME)?;
        let (entity, relations) = call.memory()?.delete_entity(EntityId(params.entity_id), &author)?;
        let Entity { id, observation_count, .. } = &entity;
        let message = format!("Deleted entity {id}, {observation_count} observations and {relations} relations.");
        Ok(Output { entity: entity.into(), message })
    }
}
