//! `merge_entities`: merges one entity into another.

use quipu_core::memory::EntityId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::warn_of_contradictions;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// The duplicate, which is deleted.
    entity_id: i64,
    /// The entity that stays.
    into_entity_id: i64,
    /// Change nothing, only count what would move.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The entity that stays.
    entity_id: i64,
    moved: Moved,
    /// For undo_change; null for a dry run.
    change: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct Moved {
    observations: u64,
    relations: u64,
    aliases: u64,
}

pub(crate) struct MergeEntities;

impl Tool for MergeEntities {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "merge_entities";
    const DESCRIPTION: &'static str = "Merge a duplicate entity into another: its observations and relations move, its \
        names become aliases. suggest_merges finds candidates; undo_change reverts a merge.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let memory = call.memory()?;
        let (from, into) = (EntityId(params.entity_id), EntityId(params.into_entity_id));
        let (observations, relations, aliases, change) = if params.dry_run {
            let plan = memory.plan_merge(from, into)?;
            let both = [memory.observations_of(into)?, memory.observations_of(from)?].concat();
            warn_of_contradictions(call, &both, |_| true);
            (plan.observations, plan.relations, plan.aliases, None)
        } else {
            let merged = memory.merge_entities(from, into, &call.author(Self::NAME)?)?;
            warn_of_contradictions(call, &memory.observations_of(into)?, |_| true);
            (merged.observations, merged.relations, merged.aliases, Some(merged.change.0))
        };
        Ok(Output { entity_id: into.0, moved: Moved { observations, relations, aliases }, change })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn a_merge_is_counted_done_and_undone() {
        let harness = Harness::new("");
        let bulk = json!({
            "entities": [
                {"name": "Clare Hughes", "entity_type": "Author", "observations": ["sails", "sings"], "aliases": "CH"},
                {"name": "Claire Hughes", "entity_type": "Author", "observations": ["rows"], "aliases": "ch"},
                {"name": "Boat", "entity_type": "Project"},
            ],
            "relations": [
                {"from_entity_id": "Clare Hughes", "to_entity_id": "Boat", "relation_type": "owns"},
                {"from_entity_id": "Clare Hughes", "to_entity_id": "Boat", "relation_type": "paints"},
                {"from_entity_id": "Claire Hughes", "to_entity_id": "Boat", "relation_type": "owns"},
            ],
        });
        harness.call("bulk_update", bulk);
        let merge = |dry_run: bool| json!({"entity_id": 1, "into_entity_id": 2, "dry_run": dry_run});
        let moved = json!({"observations": 2, "relations": 1, "aliases": 1});
        let planned = harness.call("merge_entities", merge(true));
        assert_eq!(planned, json!({"entity_id": 2, "moved": moved, "change": null}));
        assert_eq!(harness.call("get_entity", json!({"entity_id": 1}))["name"], "Clare Hughes", "nothing has changed");
        let merged = harness.call("merge_entities", merge(false));
        assert_eq!(merged, json!({"entity_id": 2, "moved": moved, "change": 2}));
        let kept = harness.call("get_entity", json!({"entity_id": 2}));
        assert_eq!((&kept["aliases"], &kept["memory_observations_count"]), (&json!("ch|Clare Hughes"), &json!(3)));
        let gone = harness.fails("merge_entities", merge(false));
        assert_eq!(
            gone,
            ("ResourceNotFound".into(), "there is no entity 1; search_entities finds entities and their ids".into())
        );
        harness.call("undo_change", json!({"change": 2}));
        assert_eq!(harness.call("get_entity", json!({"entity_id": 1}))["memory_observations_count"], 2);
        for dry_run in [true, false] {
            let itself = json!({"entity_id": 1, "into_entity_id": 1, "dry_run": dry_run});
            assert_eq!(harness.fails("merge_entities", itself).0, "InvalidArguments");
        }
    }
}
