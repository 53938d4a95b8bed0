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
            warn_of_contradictions(call, &memory.observations_of(entity)?, |seen| seen == id);
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

    #[test]
    fn every_write_of_observations_warns_and_lists_every_pair() {
        let harness = Harness::new("");
        let told = |tool: &str, arguments: serde_json::Value| harness.called(tool, arguments).warnings;
        let ports = |from: usize| -> Vec<String> {
            (from..from + 3).map(|port| format!("The API listens on port {port}")).collect()
        };
        let created = json!({"name": "Gateway", "entity_type": "Service", "observations": ports(1)});
        assert_eq!(told("create_entity", created).len(), 2, "each earlier port and the last one");
        let added: Vec<_> = ports(4).iter().map(|text| json!({"entity_id": 1, "text_content": text})).collect();
        let warnings = told("bulk_update", json!({"observations": added}));
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert_eq!(warnings[3], "entity 1 has 2 more pairs of observations that may contradict");
        // However few are shown.
        assert_eq!(told("get_entity", json!({"entity_id": 1, "limit": 1}))[1..], warnings);
        told(
            "create_entity",
            json!({"name": "Other", "entity_type": "Service", "force": true, "observations": ["It is green"]}),
        );
        told(
            "create_entity",
            json!({"name": "Third", "entity_type": "Service", "force": true, "observations": ["It is not green"]}),
        );
        for dry_run in [true, false] {
            let merge = json!({"entity_id": 3, "into_entity_id": 2, "dry_run": dry_run});
            let warnings = told("merge_entities", merge);
            assert!(warnings.len() == 1 && warnings[0].contains("(\"It is green\")"), "{dry_run}: {warnings:?}");
        }
    }
}
