//! `search_subgraph`: finds entities, with their observations and the relations among them.

use quipu_core::memory::{EntityId, MemoryField, PageRequest, SubgraphQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{GraphEntity, Pagination, RelationOutput, default_per_page, first_page, show_subgraph};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Words or a question, in any language.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// Search names.
    #[serde(default = "yes")]
    search_in_name: bool,
    /// Search types.
    #[serde(default = "yes")]
    search_in_type: bool,
    /// Search aliases.
    #[serde(default = "yes")]
    search_in_aliases: bool,
    /// Search observations and descriptions.
    #[serde(default = "yes")]
    search_in_observations: bool,
    /// Page number.
    #[serde(default = "first_page")]
    #[schemars(range(min = 1))]
    page: u64,
    /// Entities per page.
    #[serde(default = "default_per_page")]
    #[schemars(range(min = 1, max = 100))]
    per_page: usize,
    /// Rank members of this project first.
    project_id: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    entities: Vec<GraphEntity>,
    /// Among the listed entities.
    relations: Vec<RelationOutput>,
    pagination: Pagination,
}

fn yes() -> bool {
    true
}

pub(crate) struct SearchSubgraph;

impl Tool for SearchSubgraph {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "search_subgraph";
    const DESCRIPTION: &'static str = "Find entities with their observations and the relations among them, best \
        first: all that memory has on a topic in one call.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let wanted = [
            (params.search_in_name, MemoryField::Name),
            (params.search_in_type, MemoryField::Type),
            (params.search_in_aliases, MemoryField::Aliases),
            (params.search_in_observations, MemoryField::Description),
            (params.search_in_observations, MemoryField::Observations),
        ];
        let page = PageRequest { number: params.page, size: params.per_page };
        let query = SubgraphQuery {
            text: params.query,
            fields: wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, field)| field).collect(),
            page,
            project: params.project_id.map(EntityId),
        };
        let found = call.memory_to_search()?.search_subgraph(call.session, &query)?;
        let (entities, relations) = show_subgraph(call, found.subgraph, &found.fitting)?;
        Ok(Output { entities, relations, pagination: Pagination::of(page, found.total) })
    }
}
