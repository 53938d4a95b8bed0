//! `list_nodes`: ids and titles, in pages.

use quipu_core::model::{NoteId, Tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer_size::{Wanted, page};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only notes with this tag or a tag below it.
    tag: Option<String>,
    /// Only ids with this prefix, in any case: "projects/".
    path: Option<String>,
    /// Maximum results.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// Results to skip.
    #[serde(default)]
    offset: usize,
}

const DEFAULT_LIMIT: usize = 100;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    nodes: Vec<NodeSummary>,
    /// All matches, not only those listed.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct NodeSummary {
    id: String,
    title: String,
}

pub(crate) struct ListNodes;

impl Tool for ListNodes {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "list_nodes";
    const DESCRIPTION: &'static str = "List ids and titles by folder or tag, with the total. For \
        other conditions, order or counts use query_nodes; to search the text use ubp_search.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let tag = params.tag.map(|tag| Tag::new(&tag).folded);
        let found = snapshot
            .with_id_prefix(&NoteId::new(&params.path.unwrap_or_default()))
            .into_iter()
            .map(|key| snapshot.note(key))
            .filter(|note| tag.as_ref().is_none_or(|tag| note.has_tag(tag)));
        let (mut nodes, mut total) = (Vec::new(), 0);
        for (number, note) in found.enumerate() {
            total += 1;
            if number >= params.offset && nodes.len() < params.limit.unwrap_or(DEFAULT_LIMIT) {
                nodes.push(NodeSummary { id: note.id.to_string(), title: cut_name(&note.title) });
            }
        }
        let wanted = Wanted { offset: params.offset, limit: params.limit };
        Ok(Output { nodes: page(call, &wanted, nodes, total, "notes"), total })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Harness, check};

    const RECIPES: &str = "\
//- recipes/Kimchi.md
---
tags: [recipe/korean]
---
//- recipes/bulgogi.md
---
tags: [Recipe]
---
//- recipes-old/soup.md
---
tags: [recipe]
type: recipe
---
//- other.md
---
type: recipe
---
";

    #[test]
    fn tag_and_path_filter() {
        let (bulgogi, kimchi) = (
            json!({"id": "recipes/bulgogi.md", "title": "Bulgogi"}),
            json!({"id": "recipes/kimchi.md", "title": "Kimchi"}),
        );
        let soup = json!({"id": "recipes-old/soup.md", "title": "Soup"});
        let by_tag = json!({"nodes": [soup, bulgogi, kimchi], "total": 3});
        check(RECIPES, "list_nodes", json!({"tag": "recipe", "limit": 20}), by_tag);
        let by_path = json!({"nodes": [bulgogi, kimchi], "total": 2});
        check(RECIPES, "list_nodes", json!({"path": "Recipes/"}), by_path.clone());
        check(RECIPES, "list_nodes", json!({"path": "recipes/", "tag": "#RECIPE"}), by_path);
        check(RECIPES, "list_nodes", json!({"tag": "recipe/korean"}), json!({"nodes": [kimchi], "total": 1}));
        check(RECIPES, "list_nodes", json!({"tag": "korean"}), json!({"nodes": [], "total": 0}));
    }

    #[test]
    fn offset_and_limit_select_a_page() {
        let harness = Harness::new(RECIPES);
        let mut seen = Vec::new();
        for offset in 0..4 {
            let page = harness.call("list_nodes", json!({"limit": 1, "offset": offset}));
            assert_eq!(page["total"], 4);
            seen.push(page["nodes"][0]["id"].as_str().unwrap().to_owned());
        }
        assert_eq!(seen, ["other.md", "recipes-old/soup.md", "recipes/bulgogi.md", "recipes/kimchi.md"]);
        let beyond = json!({"nodes": [], "total": 4});
        assert_eq!(harness.call("list_nodes", json!({"offset": "4"})), beyond);
        assert_eq!(harness.call("list_nodes", json!({"offset": u64::MAX})), beyond);
    }

    #[test]
    fn limits_are_not_clamped() {
        let harness = Harness::new(RECIPES);
        let message = "`limit` is 1001; it must be a whole number from 1 to 1000";
        assert_eq!(harness.fails("list_nodes", json!({"limit": 1001})), ("INVALID_PARAMS".into(), message.into()));
        let message = "`offset` is -1; it must be a whole number of at least 0";
        assert_eq!(harness.fails("list_nodes", json!({"offset": -1})), ("INVALID_PARAMS".into(), message.into()));
    }
}
