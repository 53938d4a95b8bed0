//! `find_relations`: relations by source, target and type.

use quipu_core::memory::EntityId;
use quipu_core::ports::RelationFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use super::wire::RelationOutput;
use crate::answer_size::{LIST_ROOM, fitting};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Source entity.
    from_entity_id: Option<i64>,
    /// Target entity.
    to_entity_id: Option<i64>,
    /// Exact type.
    relation_type: Option<String>,
    /// Maximum results.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// Results to skip.
    #[serde(default)]
    offset: u64,
}

const DEFAULT_LIMIT: usize = 200;

pub(crate) struct FindRelations;

impl Tool for FindRelations {
    type Params = Params;
    type Output = Vec<RelationOutput>;

    const NAME: &'static str = "find_relations";
    const DESCRIPTION: &'static str = "List relations by source, target or type, oldest first.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<RelationOutput>, ToolError> {
        let filter = RelationFilter {
            from: params.from_entity_id.map(EntityId),
            to: params.to_entity_id.map(EntityId),
            relation_type: params.relation_type,
        };
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
        // One more than the limit shows whether there are more.
        let found = call.memory()?.find_relations(&filter, params.offset, limit + 1)?;
        let mut relations = RelationOutput::all(call.memory()?, found)?;
        let count = relations.len();
        relations.truncate(limit);
        if params.limit.is_none() {
            relations.truncate(fitting(&relations, LIST_ROOM));
        }
        if relations.len() < count {
            let shown = relations.len();
            let next = params.offset + shown as u64;
            call.warn(format!("more than {shown} relations match; continue with `offset` {next}"));
        }
        Ok(relations)
    }
}
