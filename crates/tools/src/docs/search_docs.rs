//! `search_docs`: finds documents whose lines contain given words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::DocumentMetadata;
use crate::answer_size::{LIST_ROOM, fitting};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, truncate};

const QUERY_REQUIRED: &str = "Search query is required";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params {
    /// Words that the title, a tag or one line must all contain; case, "-" and "_" are ignored.
    #[schemars(length(max = 1000))]
    query: String,
    /// Maximum results.
    #[schemars(range(min = 1, max = 100), extend("default" = DEFAULT_LIMIT))]
    max_results: Option<usize>,
}

const DEFAULT_LIMIT: usize = 10;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Best first.
    results: Vec<Found>,
    query: String,
    /// All matches, not only those listed.
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
    const DESCRIPTION: &'static str = "Find documents whose title, tag or line contains all given words or parts of words, for identifiers and exact terms; for a topic use ubp_search.";
    const ACCESS: Access = Access::Read;
    const MISSING_ARGUMENT: Option<&'static str> = Some(QUERY_REQUIRED);

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        if params.query.trim().is_empty() {
            return Err(ToolError::invalid(QUERY_REQUIRED));
        }
        let snapshot = call.knowledge.snapshot();
        let limit = params.max_results.unwrap_or(DEFAULT_LIMIT);
        let (matches, total) = call.knowledge.search_lines(&snapshot, &params.query, limit);
        let results = matches.into_iter().map(|found| Found {
            document: DocumentMetadata::of(snapshot.note(found.key)).listed(),
            relevance_score: found.score,
            excerpts: found.excerpts.iter().map(|excerpt| truncate(excerpt, LISTED)).collect(),
        });
        let mut results: Vec<Found> = results.collect();
        if params.max_results.is_none() {
            results.truncate(fitting(&results, LIST_ROOM));
        }
        Ok(Output { results, query: params.query, total })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Harness, check};

    const DOCS: &str = "\
//- guides/getting-started.md
---
title: Getting Started
tags: [getting-started, setup]
---
# Getting Started

Welcome!
Getting this started takes a minute.
End.
//- guides/other.md
Started by getting up.
";

    #[test]
    fn title_tags_and_lines_add_to_the_score() {
        let expected = json!({
            "results": [
                {
                    "document": {
                        "title": "Getting Started",
                        "path": "guides/getting-started.md",
                        "section": "guides",
                        "filename": "getting-started.md",
                        "lastModified": "2025-01-29T10:30:00.000Z",
                        "tags": ["getting-started", "setup"]
                    },
                    "relevanceScore": 17,
                    "excerpts": ["# Getting Started", "Welcome!\nGetting this started takes a minute.\nEnd."]
                },
                {
                    "document": {
                        "title": "Other",
                        "path": "guides/other.md",
                        "section": "guides",
                        "filename": "other.md",
                        "lastModified": "2025-01-29T10:30:00.000Z",
                        "tags": []
                    },
                    "relevanceScore": 1,
                    "excerpts": ["Started by getting up."]
                }
            ],
            "query": "getting started",
            "total": 2
        });
        check(DOCS, "search_docs", json!({"query": "getting started"}), expected);
    }

    #[test]
    fn the_total_counts_what_the_limit_leaves_out() {
        let answer = Harness::new(DOCS).call("search_docs", json!({"query": "STARTED_getting", "maxResults": "1"}));
        assert_eq!((answer["results"].as_array().unwrap().len(), &answer["total"]), (1, &json!(2)));
        assert_eq!(answer["query"], "STARTED_getting");
    }

    #[test]
    fn every_line_counts_and_three_are_shown() {
        let vault = format!("//- a.md\n{}", "word\n\n\n".repeat(7));
        let answer = Harness::new(&vault).call("search_docs", json!({"query": "word"}));
        assert_eq!(answer["results"][0]["relevanceScore"], 7);
        assert_eq!(answer["results"][0]["excerpts"], json!(["word", "word", "word"]));
        let long = format!("//- a.md\nneedle {}\n", "x".repeat(5_000));
        let answer = Harness::new(&long).call("search_docs", json!({"query": "needle"}));
        assert_eq!(answer["results"][0]["excerpts"][0].as_str().unwrap().len(), 500);
    }

    #[test]
    fn nothing_found_is_an_empty_list() {
        let expected = json!({"results": [], "query": "absent", "total": 0});
        check(DOCS, "search_docs", json!({"query": "absent"}), expected);
        check(DOCS, "search_docs", json!({"query": "- _"}), json!({"results": [], "query": "- _", "total": 0}));
    }

    #[test]
    fn a_query_is_required() {
        for arguments in [json!({}), json!({"query": ""}), json!({"query": " \n"}), json!({"query": null})] {
            check(DOCS, "search_docs", arguments, json!({"failed": "Error: Search query is required"}));
        }
        let slip = "Error: Search query is required; `querry` is not an argument of this tool; did you mean `query`? (allowed: `query`, `maxResults`)";
        check(DOCS, "search_docs", json!({"querry": "x"}), json!({"failed": slip}));
        let wrong = json!({"failed": "Error: `maxResults` is 101; it must be a whole number from 1 to 100"});
        check(DOCS, "search_docs", json!({"query": "x", "maxResults": 101}), wrong);
    }
}
