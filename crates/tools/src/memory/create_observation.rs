//! `create_observation`: adds a fact to an entity.

use quipu_core::memory::{EntityId, Observation, limits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::wire::ObservationOutput;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entity id.
    entity_id: i64,
    /// One fact, complete in itself.
    #[schemars(length(min = 1, max = limits::OBSERVATION))]
    text_content: String,
}

pub(crate) struct CreateObservation;

impl Tool for CreateObservation {
    type Params = Params;
    type Output = ObservationOutput;

    const NAME: &'static str = "create_observation";
    const DESCRIPTION: &'static str = "Add one fact to an entity. For several use bulk_update.";
    const ACCESS: Access = Access::Write;

    fn call(call: &Call<'_>, params: Params) -> Result<ObservationOutput, ToolError> {
        let author = call.author(Self::NAME)?;
        let memory = call.memory()?;
        let observed = memory.create_observation(EntityId(params.entity_id), &params.text_content, &author)?;
        if observed.was_there {
            let Observation { id, entity, .. } = &observed.observation;
            call.warn(format!("nothing was added: entity {entity} already has this observation, as observation {id}"));
        }
        Ok(observed.observation.into())
    }
}
