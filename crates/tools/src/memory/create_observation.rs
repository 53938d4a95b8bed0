//! `create_observation`: adds a fact to an entity.

use quipu_core::memory::{EntityId, Observation, limits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::wire::{ObservationOutput, warn_of_contradictions};
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
    const DESCRIPTION: &'static str = "Add one fact to an entity. For several use bulk_update; to correct one use \
        update_observation.";
    const ACCESS: Access = Access::Write;

    fn call(call: &Call<'_>, params: Params) -> Result<ObservationOutput, ToolError> {
        let author = call.author(Self::NAME)?;
        let memory = call.memory()?;
        let observed = memory.create_observation(EntityId(params.entity_id), &params.text_content, &author)?;
        if observed.was_there {
            let Observation { id, entity, .. } = &observed.observation;
            call.warn(format!("nothing was added: entity {entity} already has this observation, as observation {id}"));
        } else {
            let Observation { id, entity, .. } = observed.observation;
            warn_of_contradictions(call, &memory.observations_of(entity)?, Some(id));
        }
        Ok(observed.observation.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn a_contradiction_has_a_warning() {
        let harness = Harness::new("");
        let facts = json!(["The API listens on port 8080", "Written in Rust"]);
        harness.call("create_entity", json!({"name": "Gateway", "entity_type": "Service", "observations": facts}));
        let told =
            |text: &str| harness.called("create_observation", json!({"entity_id": 1, "text_content": text})).warnings;
        assert_eq!(told("Has two maintainers"), [""; 0]);
        let warnings = told("The API listens on port 9090.");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("observations 1 (\"The API listens on port 8080\") and 4 "), "{warnings:?}");
        assert_eq!(harness.called("get_entity", json!({"entity_id": 1})).warnings, warnings);
        let corrected = json!({"observation_id": 1, "text_content": "The API listens on port 9090"});
        assert_eq!(harness.called("update_observation", corrected).warnings, [""; 0]);
        assert_eq!(harness.called("get_entity", json!({"entity_id": 1})).warnings, [""; 0]);
    }
}
