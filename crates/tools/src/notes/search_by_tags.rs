//! `search_by_tags`: finds notes by tag.

use quipu_core::index::TagMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::LISTED;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Tags in any case, with or without "#"; "a" also finds "a/b".
    #[schemars(length(min = 1, max = 1000))]
    tags: Vec<String>,
    /// "any": at least one of the tags; "all": every tag.
    #[serde(default)]
    mode: Mode,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Any,
    All,
}

fn default_limit() -> usize {
    20
}

pub(crate) struct SearchByTags;

impl Tool for SearchByTags {
    type Params = Params;
    type Output = Vec<Node>;

    const NAME: &'static str = "search_by_tags";
    const DESCRIPTION: &'static str = "Find notes by tag, with their first 500 characters. For ids alone use \
        list_nodes; for further conditions use query_nodes.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Node>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let mode = match params.mode {
            Mode::Any => TagMode::Any,
            Mode::All => TagMode::All,
        };
        let mut keys = snapshot.tagged(&params.tags, mode);
        keys.truncate(params.limit);
        Ok(Node::list(call, &snapshot, &keys, Some(LISTED)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{Harness, check};

    const TAGGED: &str = "\
//- c.md
---
tags: [ML, Tutorial]
---
Both.
//- a.md
---
tags: [\"#tutorial\"]
---
One.
//- b.md
Inline #ml/vision here.
//- d.md
None: #mlops is another tag.
";

    fn ids(arguments: Value) -> Vec<String> {
        let answer = Harness::new(TAGGED).call("search_by_tags", arguments);
        answer.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn mode_selects_any_or_all_tags() {
        assert_eq!(ids(json!({"tags": ["tutorial", "ml"]})), ["a.md", "b.md", "c.md"]);
        assert_eq!(ids(json!({"tags": ["tutorial", "ml"], "mode": "all"})), ["c.md"]);
        assert_eq!(ids(json!({"tags": ["ml", "ML", "#ml"], "mode": "all"})), ["b.md", "c.md"]);
        assert_eq!(ids(json!({"tags": ["tutorial", "ml"], "limit": 2})), ["a.md", "b.md"]);
        assert!(ids(json!({"tags": ["nothing"]})).is_empty());
    }

    #[test]
    fn a_tag_finds_nested_tags() {
        assert_eq!(ids(json!({"tags": ["ml/vision"]})), ["b.md"]);
        assert_eq!(ids(json!({"tags": ["#ML"]})), ["b.md", "c.md"]);
    }

    #[test]
    fn content_is_cut_at_500_characters() {
        let node = json!([{
            "id": "a.md", "title": "A", "content": "One.\n", "tags": ["tutorial"], "links": [], "properties": {}
        }]);
        check(TAGGED, "search_by_tags", json!({"tags": ["tutorial"], "limit": 1}), node);
        let long = format!("//- long.md\n#x {}\n", "é".repeat(600));
        let answer = Harness::new(&long).call("search_by_tags", json!({"tags": ["x"]}));
        assert_eq!(answer[0]["content"].as_str().unwrap().chars().count(), 500);
    }

    #[test]
    fn an_empty_tag_list_is_refused() {
        let harness = Harness::new(TAGGED);
        let message = "`tags` has 0 items; it must be a list of 1 to 1000 strings";
        assert_eq!(harness.fails("search_by_tags", json!({"tags": []})).1, message);
        let message = "`tags` is missing; it must be a list of 1 to 1000 strings; `tag` is not an argument of this tool; \
                       did you mean `tags`? (allowed: `tags`, `mode`, `limit`)";
        assert_eq!(harness.fails("search_by_tags", json!({"tag": "ml"})).1, message);
        let message = "`limit` is 101; it must be a whole number from 1 to 100";
        assert_eq!(harness.fails("search_by_tags", json!({"tags": ["ml"], "limit": 101})).1, message);
    }
}
