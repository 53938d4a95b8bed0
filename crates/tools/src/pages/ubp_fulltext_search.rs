//! `ubp_fulltext_search`: finds sections by their words, with a snippet.

use std::sync::Arc;

use quipu_core::model::DocType;
use quipu_core::ports::{TextMatch, TextQuery};
use quipu_core::search::{has_match, snippet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{doc_id, doc_types};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

/// Visible characters of a snippet.
const SNIPPET: usize = 64;
/// Sections of one page, unless there are too few other matches.
const PER_PAGE: usize = 3;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Words, in any language; no operators.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// Only pages of this type.
    #[schemars(extend("enum" = doc_types()))]
    doc_type: Option<String>,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Best first.
    results: Vec<Found>,
    /// All matching sections, not only those listed.
    total_found: usize,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    doc_id: String,
    filepath: String,
    title: String,
    section_heading: Option<String>,
    /// Up to 64 characters around the match, which is in <mark>.
    #[allow(rustdoc::invalid_html_tags, reason = "the text of the schema, not of a page")]
    snippet: String,
    /// Higher is better; comparable within one answer.
    rank: f32,
}

pub(crate) struct FulltextSearch;

impl Tool for FulltextSearch {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_fulltext_search";
    const DESCRIPTION: &'static str = "Find sections that contain given words in any of their forms, with a snippet. For parts of words use search_docs; for a topic use ubp_search.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        if params.query.trim().is_empty() {
            return Err(ToolError::invalid("`query` is empty; it must have at least one word"));
        }
        let snapshot = call.knowledge.snapshot();
        let among = params.doc_type.map(|wanted| {
            let of_type = snapshot.files().filter(|key| DocType::of(snapshot.note(*key)).name() == wanted);
            Arc::new(of_type.collect())
        });
        let (text, limit) = (params.query.clone(), params.limit);
        let found = call.knowledge.search_sections(&TextQuery { text, limit, among }, PER_PAGE)?;
        let relaxed = match found.matched {
            TextMatch::Phrase | TextMatch::AllWords => None,
            TextMatch::Similar => Some("no page has some of these words; the results have similar words"),
            TextMatch::AnyWord => Some("no section has all of these words; the results have some of them"),
        };
        if let Some(relaxed) = relaxed.filter(|_| !found.hits.is_empty()) {
            call.warn(relaxed.to_owned());
        }
        // The index may be newer than this snapshot.
        let known = |key, section| snapshot.get(key).is_some_and(|note| section < note.sections.len());
        let hits: Vec<_> = found.hits.iter().filter(|hit| known(hit.key, hit.section)).collect();
        let places: Vec<_> = hits.iter().map(|hit| (hit.key, hit.section)).collect();
        let texts = call.knowledge.section_texts(&snapshot, &places);
        let results = hits.into_iter().zip(texts).map(|(hit, text)| {
            let note = snapshot.note(hit.key);
            let heading = note.sections[hit.section].heading.as_deref();
            let text = text.unwrap_or_default();
            // The match may be in the heading or the title only.
            let names = [heading.unwrap_or_default(), &note.title];
            let shown = std::iter::once(text.as_str()).chain(names).find(|text| has_match(text, &params.query));
            Found {
                doc_id: doc_id(note),
                filepath: note.path.to_string(),
                title: cut_name(&note.title),
                section_heading: heading.map(cut_name),
                snippet: snippet(shown.unwrap_or(&text), &params.query, SNIPPET),
                rank: hit.score,
            }
        });
        Ok(Output { results: results.collect(), total_found: found.total })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Harness;

    const VAULT: &str = "\
//- design.md
---
doc_type: design
---
Before anything.

## Cups
The cups froze at night.
//- guide.md
---
doc_type: guide
---
How to clean the cups.
//- 検索.md
全文検索の設計を説明する。
";

    fn found(answer: &Value) -> Vec<(&str, &str)> {
        let results = answer["results"].as_array().unwrap();
        results.iter().map(|row| (row["filepath"].as_str().unwrap(), row["snippet"].as_str().unwrap())).collect()
    }

    #[test]
    fn sections_with_a_snippet_of_the_match() {
        let harness = Harness::new(VAULT);
        let answer = harness.call("ubp_fulltext_search", json!({"query": "cups froze"}));
        let id = harness.call("ubp_get_page", json!({"filepath": "design.md"}))["doc_id"].clone();
        let rank = answer["results"][0]["rank"].clone();
        assert_eq!(
            answer,
            json!({
                "results": [{
                    "doc_id": id,
                    "filepath": "design.md",
                    "title": "Design",
                    "section_heading": "Cups",
                    "snippet": "The <mark>cups</mark> <mark>froze</mark> at night.",
                    "rank": rank,
                }],
                "total_found": 1,
            })
        );
        let japanese = harness.call("ubp_fulltext_search", json!({"query": "検索"}));
        assert_eq!(found(&japanese), [("検索.md", "全文<mark>検索</mark>の設計を説明する。")]);
        assert_eq!(japanese["results"][0]["section_heading"], Value::Null);
    }

    #[test]
    fn the_type_filters_before_the_limit_and_the_total_counts_all() {
        let harness = Harness::new(VAULT);
        let search = |arguments: Value| harness.call("ubp_fulltext_search", arguments);
        let all = search(json!({"query": "cups", "limit": 1}));
        assert_eq!((found(&all).len(), &all["total_found"]), (1, &json!(2)));
        let guide = search(json!({"query": "cups", "limit": 1, "doc_type": "guide"}));
        assert_eq!((found(&guide)[0].0, &guide["total_found"]), ("guide.md", &json!(1)));
        assert_eq!(search(json!({"query": "cups", "doc_type": "adr"})), json!({"results": [], "total_found": 0}));
    }

    #[test]
    fn one_page_does_not_fill_the_answer() {
        let sections: String = (0..80).map(|number| format!("## Cups {number}\ncups cups cups\n")).collect();
        let others: String =
            (0..4).map(|number| format!("//- other {number}.md\nA long text that has cups once.\n")).collect();
        let harness = Harness::new(&format!("//- all.md\n{sections}{others}"));
        let pages = |limit: usize| {
            let answer = harness.call("ubp_fulltext_search", json!({"query": "cups", "limit": limit}));
            assert_eq!(answer["total_found"], 84);
            let ranks = answer["results"].as_array().unwrap().iter().map(|row| row["rank"].as_f64().unwrap());
            assert!(ranks.is_sorted_by(|a, b| a >= b), "{answer}");
            found(&answer).iter().filter(|(page, _)| *page != "all.md").count()
        };
        assert_eq!(pages(7), 4, "three sections of one page, then the others");
        assert_eq!(pages(20), 4, "there is room for more of it");
        assert_eq!(pages(5), 2);
    }

    #[test]
    fn a_match_in_the_heading_or_title_is_shown_there() {
        let harness = Harness::new("//- long.md\n---\ntitle: About Anemometers\n---\n## Frozen things\nText.\n");
        let snippet = |query: &str| {
            let answer = harness.call("ubp_fulltext_search", json!({"query": query}));
            answer["results"][0]["snippet"].as_str().unwrap().to_owned()
        };
        assert_eq!(snippet("frozen"), "<mark>Frozen</mark> things");
        assert_eq!(snippet("anemometers"), "About <mark>Anemometers</mark>");
    }

    #[test]
    fn partial_matches_have_a_warning_and_a_blank_query_is_refused() {
        let harness = Harness::new(VAULT);
        let called = harness.called("ubp_fulltext_search", json!({"query": "cups zeppelin"}));
        assert_eq!(called.warnings, ["no section has all of these words; the results have some of them"]);
        for query in ["", "  "] {
            assert_eq!(harness.call("ubp_fulltext_search", json!({"query": query}))["protocol"]["code"], -32602);
        }
        assert_eq!(harness.call("ubp_fulltext_search", json!({"query": "x", "limit": 51}))["protocol"]["code"], -32602);
    }
}
