//! `get_hubs`: the most linked notes.

use quipu_core::index::HubMetric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// "in_degree": links to it; "out_degree": links from it; "pagerank": links from central notes count more.
    #[serde(default)]
    metric: Metric,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Metric {
    #[default]
    InDegree,
    OutDegree,
    Pagerank,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Hub {
    id: String,
    title: String,
    #[schemars(with = "f64")]
    score: Number,
}

pub(crate) struct GetHubs;

impl Tool for GetHubs {
    type Params = Params;
    type Output = Vec<Hub>;

    const NAME: &'static str = "get_hubs";
    const DESCRIPTION: &'static str = "List the most linked notes, for an overview of a vault you do not know.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Hub>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let metric = match params.metric {
            Metric::InDegree => HubMetric::InDegree,
            Metric::OutDegree => HubMetric::OutDegree,
            Metric::Pagerank => HubMetric::PageRank,
        };
        let hubs = snapshot.hubs(metric, params.limit).into_iter().map(|(key, score)| {
            let note = snapshot.note(key);
            Hub { id: note.id.to_string(), title: cut_name(&note.title), score: written(params.metric, score) }
        });
        let mut hubs: Vec<Hub> = hubs.collect();
        // Sorted by the rounded score: further digits depend on the order of summation, which differs between two indexes of
        // one vault.
        let shown = |hub: &Hub| hub.score.as_f64().unwrap_or_default();
        hubs.sort_by(|a, b| shown(b).total_cmp(&shown(a)).then_with(|| a.id.cmp(&b.id)));
        Ok(hubs)
    }
}

/// A degree as an integer, a rank with four significant digits.
fn written(metric: Metric, score: f64) -> Number {
    if metric == Metric::Pagerank {
        let short = format!("{score:.3e}").parse().unwrap_or(score);
        return Number::from_f64(short).expect("ranks are finite");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of notes")]
    Number::from(score as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Harness, check};

    const STAR: &str = "\
//- notes/index.md
[[glossary]]
//- notes/glossary.md
//- notes/a.md
[[index]] [[glossary]]
//- notes/b.md
[[index]] and again [[index]]
//- notes/c.md
[[index]] [[c]] [[nowhere]]
";

    #[test]
    fn hubs_are_ordered_by_links_then_id() {
        let hubs = json!([
            {"id": "notes/index.md", "title": "Index", "score": 3},
            {"id": "notes/glossary.md", "title": "Glossary", "score": 2},
            {"id": "notes/a.md", "title": "A", "score": 0}
        ]);
        check(STAR, "get_hubs", json!({"limit": 3}), hubs);
    }

    #[test]
    fn out_degree_counts_outgoing_links() {
        let hubs = json!([
            {"id": "notes/a.md", "title": "A", "score": 2},
            {"id": "notes/b.md", "title": "B", "score": 1}
        ]);
        check(STAR, "get_hubs", json!({"metric": "out_degree", "limit": 2}), hubs);
    }

    #[test]
    fn ranks_add_up_to_one() {
        let answer = Harness::new(STAR).call("get_hubs", json!({"metric": "pagerank"}));
        let hubs = answer.as_array().unwrap();
        assert_eq!(hubs[0]["id"], "notes/glossary.md", "all that index has goes to it: {answer}");
        let sum: f64 = hubs.iter().map(|hub| hub["score"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 0.001, "{answer}");
        assert_eq!(hubs[4]["id"], "notes/c.md", "ties by id: {answer}");
    }

    #[test]
    fn an_unknown_metric_is_refused() {
        let (code, message) = Harness::new(STAR).fails("get_hubs", json!({"metric": "fame"}));
        assert_eq!(code, "INVALID_PARAMS");
        assert_eq!(message, "`metric` is \"fame\"; it must be one of \"in_degree\", \"out_degree\", \"pagerank\"");
    }

    #[test]
    fn an_empty_vault_has_no_hubs() {
        check("", "get_hubs", json!(null), json!([]));
    }
}
