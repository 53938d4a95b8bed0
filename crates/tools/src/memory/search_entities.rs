//! `search_entities`: finds entities.

use quipu_core::memory::{EntityId, FoundEntity, MemoryField, SearchBy, SearchQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{join_aliases, listed_name, rounded};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, truncate};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Words or a question, in any language.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Rank members of this project first.
    project_id: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Hit {
    entity_id: i64,
    name: String,
    entity_type: String,
    /// The first 500 characters.
    description: Option<String>,
    aliases: Option<String>,
    memory_observations_count: u64,
    /// 0 to 1.
    relevance_score: f64,
    /// Fields that contain words of the query; empty if found by meaning only.
    matched_fields: Vec<&'static str>,
}

fn default_limit() -> usize {
    20
}

fn field_name(field: MemoryField) -> &'static str {
    match field {
        MemoryField::Name => "name",
        MemoryField::Type => "entity_type",
        MemoryField::Aliases => "aliases",
        MemoryField::Description => "description",
        MemoryField::Observations => "observations",
    }
}

pub(crate) struct SearchEntities;

impl Tool for SearchEntities {
    type Params = Params;
    type Output = Vec<Hit>;

    const NAME: &'static str = "search_entities";
    const DESCRIPTION: &'static str = "Find entities by words and meaning in all their fields, best first. Search \
        before you create. For their facts use search_subgraph.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Hit>, ToolError> {
        let query = SearchQuery {
            text: params.query,
            limit: params.limit,
            project: params.project_id.map(EntityId),
            by: SearchBy::Both,
        };
        let found = call.memory_to_search()?.search(call.session, &query)?;
        let hit = |found: FoundEntity| Hit {
            entity_id: found.entity.id.0,
            aliases: join_aliases(&found.entity.aliases).map(|aliases| truncate(&aliases, LISTED)),
            name: listed_name(&found.entity.name),
            entity_type: found.entity.entity_type,
            description: found.entity.description.map(|text| truncate(&text, LISTED)),
            memory_observations_count: found.entity.observation_count,
            relevance_score: rounded(found.score),
            matched_fields: found.fields.iter().map(field_name).collect(),
        };
        Ok(found.into_iter().map(hit).collect())
    }
}
