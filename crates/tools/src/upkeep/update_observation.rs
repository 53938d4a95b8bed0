//! `update_observation`: replaces the text of an observation.

use quipu_core::memory::{ObservationId, limits};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::memory::{ObservationOutput, warn_of_contradictions};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Observation id.
    observation_id: i64,
    /// The whole new text.
    #[schemars(length(min = 1, max = limits::OBSERVATION))]
    text_content: String,
}

pub(crate) struct UpdateObservation;

impl Tool for UpdateObservation {
    type Params = Params;
    type Output = ObservationOutput;

    const NAME: &'static str = "update_observation";
    const DESCRIPTION: &'static str =
        "Replace the text of one observation, to correct it. undo_change restores the old text.";
    const ACCESS: Access = Access::Destroy;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<ObservationOutput, ToolError> {
        let author = call.author(Self::NAME)?;
        let id = ObservationId(params.observation_id);
        let observed = call.memory()?.update_observation(id, &params.text_content, &author)?;
        if observed.was_there {
            call.warn(format!("nothing was changed: observation {id} has this text"));
        }
        let observations = call.memory()?.observations_of(observed.observation.entity)?;
        warn_of_contradictions(call, &observations, |seen| seen == id);
        Ok(observed.observation.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn an_observation_gets_a_new_text() {
        let harness = Harness::new("");
        let entity = json!({"name": "Ada", "entity_type": "Author", "observations": ["sails", "sings"]});
        harness.call("create_entity", entity);
        let update = |text: &str| json!({"observation_id": 1, "text_content": text});
        let answer = harness.call("update_observation", update(" rows "));
        assert_eq!(answer["observation_content"], "rows");
        assert_eq!((&answer["observation_id"], &answer["memory_entity_id"]), (&json!(1), &json!(1)));
        let found = |word: &str| harness.call("search_entities", json!({"query": word}));
        assert_eq!((found("rows")[0]["entity_id"].clone(), found("sails")), (json!(1), json!([])));
        let same = harness.called("update_observation", update("rows"));
        assert_eq!(same.warnings, ["nothing was changed: observation 1 has this text"]);
        let twice = harness.fails("update_observation", update("sings"));
        assert_eq!(twice.0, "InvalidArguments");
        assert!(twice.1.starts_with("observation 2 of the same entity has this text already"), "{}", twice.1);
        let unknown = harness.fails("update_observation", json!({"observation_id": 9, "text_content": "x"}));
        assert_eq!(
            unknown,
            (
                "ResourceNotFound".into(),
                "there is no observation 9; get_entity lists the observations of an entity with their ids".into()
            )
        );
        assert_eq!(harness.fails("update_observation", update(" ")).1, "`text_content` is blank; give a text");
    }
}
