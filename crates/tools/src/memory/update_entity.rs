//! `update_entity`: changes an entity's own fields.

use quipu_core::memory::{EntityId, limits};
use quipu_core::ports::EntityUpdate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::wire::{EntityOutput, split_aliases, warn_of_mapped_type};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entity id.
    entity_id: i64,
    /// New name.
    #[schemars(length(min = 1, max = limits::NAME))]
    name: Option<String>,
    /// New type.
    #[schemars(length(min = 1, max = limits::TYPE))]
    entity_type: Option<String>,
    /// New aliases, separated by |, in place of all; "" clears them.
    #[schemars(length(max = limits::ALIASES))]
    aliases: Option<String>,
    /// New description; "" clears it.
    #[schemars(length(max = limits::DESCRIPTION))]
    description: Option<String>,
}

pub(crate) struct UpdateEntity;

impl Tool for UpdateEntity {
    type Params = Params;
    type Output = EntityOutput;

    const NAME: &'static str = "update_entity";
    const DESCRIPTION: &'static str = "Change an entity's name, type, aliases or description; omitted fields stay. \
        To add a fact use create_observation.";
    const ACCESS: Access = Access::Destroy;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<EntityOutput, ToolError> {
        let update = EntityUpdate {
            name: params.name,
            entity_type: params.entity_type,
            aliases: params.aliases.as_deref().map(split_aliases),
            description: params.description.map(Some),
        };
        let given = update.entity_type.clone();
        let author = call.author(Self::NAME)?;
        let entity = call.memory()?.update_entity(EntityId(params.entity_id), update, &author)?;
        if let Some(given) = given {
            warn_of_mapped_type(call, &given, &entity.entity_type);
        }
        Ok(entity.into())
    }
}
