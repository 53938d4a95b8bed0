//! `list_entities`: all entities, in pages.

use quipu_core::memory::{EntityPage, PageRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{EntityName, Pagination, default_per_page, first_page};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Page number.
    #[serde(default = "first_page")]
    #[schemars(range(min = 1))]
    page: u64,
    /// Entities per page.
    #[serde(default = "default_per_page")]
    #[schemars(range(min = 1, max = 100))]
    per_page: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    entities: Vec<EntityName>,
    pagination: Pagination,
}

pub(crate) struct ListEntities;

impl Tool for ListEntities {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "list_entities";
    const DESCRIPTION: &'static str = "List all entities in pages, oldest first. To find one use search_entities.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let page = PageRequest { number: params.page, size: params.per_page };
        let EntityPage { entities, total } = call.memory()?.list_entities(page)?;
        let entities = entities.into_iter().map(EntityName::from).collect();
        Ok(Output { entities, pagination: Pagination::of(page, total) })
    }
}
