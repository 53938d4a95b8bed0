//! Names as people write them to the ids of the notes they mean.

use quipu_core::index::{NameMatch, best_match, exact_match};
use quipu_core::model::{Note, NoteId, Tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, FaultKind};
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Titles, aliases or file names to look up.
    #[schemars(length(max = 1000), inner(length(max = 1000)))]
    names: Vec<String>,
    /// "exact": the same but for case; "fuzzy": typos too; "semantic": other words for it, needs an embedding model.
    #[serde(default)]
    strategy: Strategy,
    /// Least score to count as a match; not for "exact".
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 0, max = 1))]
    threshold: f64,
    /// Only notes with this tag.
    tag: Option<String>,
    /// Only ids that start so.
    #[serde(default)]
    path: String,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    Exact,
    #[default]
    Fuzzy,
    Semantic,
}

fn default_threshold() -> f64 {
    0.7
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Resolved {
    query: String,
    /// The node's id.
    r#match: Option<String>,
    /// 1 for the very name, 0 for no match.
    score: f64,
}

pub(crate) struct ResolveNodes;

impl Tool for ResolveNodes {
    type Params = Params;
    type Output = Vec<Resolved>;

    const NAME: &'static str = "resolve_nodes";
    const DESCRIPTION: &'static str = "Turn names into note ids, one result for each name in the order given; match is \
        null if nothing is near. Use it before creating notes or links. To check ids you have, call nodes_exist.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Resolved>, Fault> {
        let snapshot = call.knowledge.snapshot();
        let tag = params.tag.as_deref().map(|tag| Tag::new(tag).folded);
        let prefix = NoteId::new(&params.path);
        let admits = |note: &Note| {
            note.id.as_str().starts_with(prefix.as_str()) && tag.as_ref().is_none_or(|tag| note.has_tag(tag))
        };
        let find = |name: &str| match params.strategy {
            Strategy::Exact => Ok(exact_match(&snapshot, name, admits)),
            Strategy::Fuzzy => Ok(best_match(&snapshot, name, params.threshold - HALF_STEP, admits)),
            Strategy::Semantic => Err(Fault::new(
                FaultKind::Provider,
                "`strategy` \"semantic\" needs an embedding model and this server has none; use \"fuzzy\", or configure [embedding]",
            )),
        };
        params.names.into_iter().map(|query| {
            let found = find(&query)?.map(|found| NameMatch { score: rounded(found.score), ..found });
            let found = found.filter(|found| found.score >= params.threshold || found.score == 1.0);
            Ok(Resolved {
                r#match: found.map(|found| snapshot.note(found.key).id.to_string()),
                score: found.map_or(0.0, |found| found.score),
                query,
            })
        }).collect()
    }
}

/// Scores have two decimals, and a threshold is held against what is shown: a score of 0.67 passes one of 0.67.
fn rounded(score: f64) -> f64 {
    let rounded = (score * 100.0).round() / 100.0;
    // Only the very name scores 1.
    if score < 1.0 { rounded.min(0.99) } else { rounded }
}

const HALF_STEP: f64 = 0.005;
