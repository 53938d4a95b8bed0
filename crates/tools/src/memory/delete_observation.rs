//! `delete_observation`: deletes one observation.

use quipu_core::memory::ObservationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::ObservationOutput;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Observation id.
    observation_id: i64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    observation: ObservationOutput,
    message: String,
}

pub(crate) struct DeleteObservation;

impl Tool for DeleteObservation {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "delete_observation";
    const DESCRIPTION: &'static str = "Delete one observation. To correct it use update_observation.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let author = call.author(Self::NAME)?;
        let observation = call.memory()?.delete_observation(ObservationId(params.observation_id), &author)?;
        let message = format!("Deleted observation {} of entity {}.", observation.id, observation.entity);
        Ok(Output { observation: observation.into(), message })
    }
}
