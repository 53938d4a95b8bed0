//! Documents that hold given words, with the lines that show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::DocumentMetadata;
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};
use crate::truncate::{LISTED, truncate};

const QUERY_REQUIRED: &str = "Search query is required";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params {
    /// Words that must all be in the title, a tag or one line; case, "-" and "_" do not matter.
    #[schemars(length(max = 1000))]
    query: String,
    /// At most this many.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    max_results: usize,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Best first.
    results: Vec<Found>,
    query: String,
    /// All that match, beyond the limit too.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Found {
    document: DocumentMetadata,
    /// 10 for the title, 5 for each tag, 1 for each line.
    relevance_score: usize,
    /// Up to three matching lines, each with the lines around it.
    excerpts: Vec<String>,
}

pub(crate) struct SearchDocs;

impl Tool for SearchDocs {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "search_docs";
    const DESCRIPTION: &'static str = "Find documents by the words in their title, tags and lines, with excerpts. Use \
        it for known terms and names; it knows no synonyms, so try other words when it finds nothing.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn missing(_argument: &str) -> Option<&'static str> {
        Some(QUERY_REQUIRED)
    }

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        if params.query.trim().is_empty() {
            return Err(Fault::invalid(QUERY_REQUIRED));
        }
        let snapshot = call.knowledge.snapshot();
        let (matches, total) = call.knowledge.search_lines(&snapshot, &params.query, params.max_results);
        let results = matches.into_iter().map(|found| Found {
            document: DocumentMetadata::of(snapshot.note(found.key)),
            relevance_score: found.score,
            excerpts: found.excerpts.iter().map(|excerpt| truncate(excerpt, LISTED)).collect(),
        });
        Ok(Output { results: results.collect(), query: params.query, total })
    }
}
