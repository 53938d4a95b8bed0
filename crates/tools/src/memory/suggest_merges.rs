//! `suggest_merges`: pairs of entities that may be duplicates.

use quipu_core::memory::MergeSuggestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{EntityName, rounded};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Maximum distance: 0 is identical, 1 unrelated.
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 0.0, max = 1.0))]
    threshold: f64,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Only entities of this type.
    entity_type: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Suggestion {
    entity_a: EntityName,
    entity_b: EntityName,
    cosine_distance: f64,
    /// high_confidence_merge or review_manually.
    recommendation: &'static str,
}

/// Below this distance a merge needs no review.
const CONFIDENT: f32 = 0.15;

fn default_threshold() -> f64 {
    0.3
}

fn default_limit() -> usize {
    20
}

pub(crate) struct SuggestMerges;

impl Tool for SuggestMerges {
    type Params = Params;
    type Output = Vec<Suggestion>;

    const NAME: &'static str = "suggest_merges";
    const DESCRIPTION: &'static str =
        "List pairs of entities that may be duplicates, closest first. merge_entities merges a pair.";
    const ACCESS: Access = Access::Read;
    const HAS_VIEW: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Suggestion>, ToolError> {
        let wanted = params.entity_type.as_deref();
        let pairs = call.memory()?.suggest_merges(params.threshold as f32, params.limit, wanted)?;
        let suggestion = |pair: MergeSuggestion| Suggestion {
            entity_a: pair.a.into(),
            entity_b: pair.b.into(),
            cosine_distance: rounded(pair.distance),
            recommendation: if pair.distance < CONFIDENT { "high_confidence_merge" } else { "review_manually" },
        };
        Ok(pairs.into_iter().map(suggestion).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn two_spellings_are_offered_and_a_person_and_her_project_are_not() {
        let harness = Harness::new("");
        let bulk = json!({
            "entities": [
                {"name": "Clare Hughes", "entity_type": "User", "description": "Leads the Harbour Survey"},
                {"name": "Claire Hughes", "entity_type": "User"},
                {"name": "Harbour Survey of Clare Hughes", "entity_type": "Project"},
                {"name": "Harbour Survey of Claire Hughes", "entity_type": "Project"},
                {"name": "Gateway", "entity_type": "Service"},
                {"name": "Gate way", "entity_type": "Component"},
                {"name": "Daniel Lee", "entity_type": "User"},
                {"name": "Daniela Lee", "entity_type": "User"},
            ],
            "relations": [
                {"from_entity_id": "Clare Hughes", "to_entity_id": "Harbour Survey of Clare Hughes", "relation_type": "leads"},
            ],
        });
        harness.call("bulk_update", bulk);
        let pairs = |threshold: f64| -> Vec<(i64, i64)> {
            let found = harness.call("suggest_merges", json!({"threshold": threshold}));
            let id = |pair: &serde_json::Value, side: &str| pair[side]["entity_id"].as_i64().unwrap();
            found.as_array().unwrap().iter().map(|pair| (id(pair, "entity_a"), id(pair, "entity_b"))).collect()
        };
        let mut close = pairs(0.3);
        close.sort_unstable();
        assert_eq!(close, [(1, 2), (5, 6)]);
        assert!(!pairs(0.9).iter().any(|pair| [(1, 3), (2, 3), (1, 4), (7, 8)].contains(pair)), "{:?}", pairs(0.9));
    }
}
