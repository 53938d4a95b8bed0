//! `ubp_search`: finds pages by meaning, words and links, with the reason and the staleness of each.

use quipu_core::model::{self, LinkType, fold};
use quipu_core::search::{FoundNote, NoteSearch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{LinkedPage, doc_id, freshness, link_type, linked, summaries};
use crate::answer_size::{LIST_ROOM, json_chars};
use crate::score::{rounded, shown};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, cut_name, truncate};

/// Sections listed for each page.
const MAX_SECTIONS: usize = 3;
/// Linked pages listed for each result, and characters of each: fewer where the answer would be too long.
const MAX_LINKED: [(usize, usize); 4] = [(10, LISTED), (10, 200), (5, 200), (3, 100)];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// A topic or question in your own words.
    #[schemars(length(max = 10_000))]
    query: String,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 20))]
    limit: usize,
    /// Add the pages that each result links to.
    #[serde(default)]
    include_linked: bool,
    /// Distance in links within which a page is near.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 3))]
    depth: usize,
    /// Count and add only links of these types.
    #[serde(default)]
    #[schemars(length(max = 5), extend("items" = link_type()))]
    link_types: Vec<String>,
}

fn default_limit() -> usize {
    10
}

fn default_depth() -> usize {
    2
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Best first.
    results: Vec<Page>,
    /// All matches, not only those listed.
    total_found: usize,
    search_type: SearchType,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SearchType {
    Hybrid,
    FulltextFallback,
}

#[derive(Serialize, JsonSchema)]
struct Page {
    doc_id: String,
    filepath: String,
    title: String,
    /// Matching sections, best first.
    sections: Vec<PageSection>,
    /// 0 to 1: the sum of the breakdown.
    score: f64,
    score_breakdown: Breakdown,
    relevance_reason: String,
    staleness: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    linked_pages: Option<Vec<Linked>>,
}

#[derive(Serialize, JsonSchema)]
struct PageSection {
    section_id: String,
    heading: Option<String>,
    content: String,
    score: f64,
}

#[derive(Serialize, JsonSchema)]
struct Breakdown {
    vector_similarity: f64,
    graph_proximity: f64,
    fulltext: f64,
}

#[derive(Serialize, JsonSchema)]
struct Linked {
    #[serde(flatten)]
    page: LinkedPage,
    summary: String,
}

impl Page {
    fn shorten_linked(&mut self, pages: usize, summary_chars: usize) {
        let Some(linked) = &mut self.linked_pages else { return };
        linked.truncate(pages);
        linked.iter_mut().for_each(|linked| linked.summary = truncate(&linked.summary, summary_chars));
    }
}

pub(crate) struct SearchPages;

impl Tool for SearchPages {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_search";
    const DESCRIPTION: &'static str = "Find pages about a topic or question by meaning, words and links: the first \
        choice. Returns matching sections, why they match, and staleness.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        if params.query.trim().is_empty() {
            return Err(ToolError::invalid("`query` is empty; it must have at least one word"));
        }
        let link_types: Vec<LinkType> = params.link_types.iter().filter_map(|name| LinkType::from_name(name)).collect();
        let search =
            NoteSearch { depth: params.depth, link_types: &link_types, ..NoteSearch::new(&params.query, params.limit) };
        let findings = call.knowledge.search(&search)?;
        call.warn_of_ranking(&findings);
        let snapshot = &*findings.snapshot;
        let keys: Vec<_> = findings.found.iter().map(|found| found.key).collect();
        let fresh = freshness(call, snapshot, &keys);
        let results = findings.found.iter().zip(fresh).map(|(found, fresh)| {
            let note = snapshot.note(found.key);
            let best = &found.sections[..found.sections.len().min(MAX_SECTIONS)];
            let places: Vec<_> = best.iter().map(|section| (found.key, section.section)).collect();
            let texts = call.knowledge.section_texts(snapshot, &places);
            let id = doc_id(note);
            let sections = best.iter().zip(texts).map(|(section, text)| PageSection {
                section_id: format!("{id}#{}", section.section),
                heading: note.sections[section.section].heading.as_deref().map(cut_name),
                content: truncate(text.unwrap_or_default().trim(), LISTED),
                score: rounded(f64::from(section.score)),
            });
            let sections = sections.collect();
            let breakdown = Breakdown {
                vector_similarity: shown(found.meaning),
                graph_proximity: shown(found.links),
                fulltext: shown(found.words),
            };
            Page {
                filepath: note.path.to_string(),
                title: cut_name(&note.title),
                sections,
                score: shown(found.score()),
                relevance_reason: reason(found, note, &params.query),
                score_breakdown: breakdown,
                staleness: fresh.staleness.name(),
                linked_pages: params.include_linked.then(|| linked_pages(call, snapshot, found, &link_types)),
                doc_id: id,
            }
        });
        let mut results: Vec<Page> = results.collect();
        for (pages, summary_chars) in MAX_LINKED {
            results.iter_mut().for_each(|page| page.shorten_linked(pages, summary_chars));
            if json_chars(&results) <= LIST_ROOM {
                break;
            }
        }
        Ok(Output {
            results,
            total_found: findings.total,
            search_type: if findings.by_meaning { SearchType::Hybrid } else { SearchType::FulltextFallback },
        })
    }
}

fn linked_pages(
    call: &Call<'_>,
    snapshot: &quipu_core::index::Snapshot,
    found: &FoundNote,
    link_types: &[LinkType],
) -> Vec<Linked> {
    let mut links = snapshot.typed_links(found.key);
    links.retain(|(_, link_type)| link_types.is_empty() || link_types.contains(link_type));
    links.truncate(MAX_LINKED[0].0);
    let keys: Vec<_> = links.iter().map(|(key, _)| *key).collect();
    let pages = linked(snapshot, &links).into_iter().zip(summaries(call, snapshot, &keys));
    pages.map(|(page, summary)| Linked { page, summary }).collect()
}

/// Why a page matches: its name first, then its strongest scores. Never empty.
fn reason(found: &FoundNote, note: &model::Note, query: &str) -> String {
    let best = found.sections.first().and_then(|section| note.sections.get(section.section));
    let place = match best.and_then(|section| section.heading.as_deref()) {
        Some(heading) => format!("the section \"{}\"", cut_name(heading)),
        None => "its beginning".to_owned(),
    };
    let mut parts: Vec<(u32, String)> = Vec::new();
    if found.is_named {
        let is_query = |name: &str| fold(name) == fold(query.trim());
        let name = if is_query(&note.title) {
            "title"
        } else if note.aliases.iter().any(|alias| is_query(alias)) {
            "alias"
        } else {
            "file name"
        };
        parts.push((u32::MAX, format!("its {name} equals the query")));
    }
    if found.meaning > 0 {
        let how = if found.meaning > 300 {
            "very close"
        } else if found.meaning > 150 {
            "close"
        } else {
            "somewhat close"
        };
        parts.push((found.meaning, format!("{place} is {how} in meaning")));
    }
    let words_of_sections = found.sections.first().map_or(0.0, |best| best.words);
    if found.words > 0 && words_of_sections > 0.0 {
        let how = if found.words > 250 { "has the words asked for" } else { "has some of the words" };
        parts.push((found.words, format!("{place} {how}")));
    }
    if found.links > 5 {
        parts.push((found.links, "links connect it with the best results".to_owned()));
    }
    if parts.is_empty() {
        let how = if words_of_sections > 0.0 { "has few of the words" } else { "is nearest in meaning, but not close" };
        parts.push((0, format!("{place} {how}")));
    }
    parts.sort_by_key(|(strength, _)| std::cmp::Reverse(*strength));
    parts.into_iter().map(|(_, words)| words).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const DOCS: &str = "\
//- guide.md
---
doc_type: guide
---
# Guide

## Starting the server
Run it on port 8080 and watch the log. See [[storage|depends_on]].
## Unrelated
Lunch is at noon.
//- storage.md
How data is kept on disk, and what a crash may take.
//- lunch.md
Soup and bread.
";

    #[test]
    fn results_have_sections_scores_and_reason() {
        let harness = Harness::with_meaning(DOCS);
        let answer = harness.call("ubp_search", json!({"query": "start server port", "include_linked": true}));
        assert_eq!(answer["search_type"], "hybrid");
        let first = &answer["results"][0];
        assert_eq!((&first["filepath"], &first["title"]), (&json!("guide.md"), &json!("Guide")), "{answer}");
        assert_eq!(first["sections"][0]["heading"], "Starting the server");
        assert_eq!(first["staleness"], "untracked");
        assert_eq!(first["linked_pages"][0]["filepath"], "storage.md");
        assert_eq!(first["linked_pages"][0]["link_type"], "depends_on");
        let parts = &first["score_breakdown"];
        let part = |name: &str| parts[name].as_f64().unwrap();
        let sum = part("vector_similarity") + part("graph_proximity") + part("fulltext");
        assert!((sum - first["score"].as_f64().unwrap()).abs() < 1e-9, "{first}");
        let reason = first["relevance_reason"].as_str().unwrap();
        assert!(reason.contains("Starting the server"), "{reason}");
        assert!(answer["total_found"].as_u64().unwrap() >= 1);
    }

    #[test]
    fn without_an_embedder_words_and_links_rank() {
        let harness = Harness::new(DOCS);
        let answer = harness.call("ubp_search", json!({"query": "crash", "limit": 1}));
        assert_eq!(answer["search_type"], "fulltext_fallback");
        assert_eq!(answer["results"][0]["filepath"], "storage.md");
        assert_eq!(answer["results"][0]["score_breakdown"]["vector_similarity"], 0.0);
        assert!(answer["results"][0].get("linked_pages").is_none());
    }

    #[test]
    fn relevance_reason_is_never_empty() {
        let harness = Harness::with_meaning(DOCS);
        for query in ["zzzzq", "???", "start server port", "guide"] {
            let answer = harness.call("ubp_search", json!({"query": query}));
            for page in answer["results"].as_array().unwrap() {
                assert_ne!(page["relevance_reason"], "", "{query}: {page}");
            }
        }
    }

    #[test]
    fn a_blank_query_and_a_limit_out_of_range_are_refused() {
        let harness = Harness::new(DOCS);
        for arguments in [json!({"query": ""}), json!({"query": "x", "limit": 21}), json!({"query": "x", "depth": 0})] {
            assert_eq!(harness.call("ubp_search", arguments.clone())["protocol"]["code"], -32602, "{arguments}");
        }
    }
}
