//! `search`: finds notes by meaning, words and links in one ranking.

use quipu_core::Knowledge;
use quipu_core::search::{NoteSearch, RankingSources, excerpt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::{MAX_LISTED_LINKS, Node};
use crate::answer_size::json_chars;
use crate::score::shown;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, cut_name};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// A topic or question in your own words.
    #[schemars(length(max = 10_000))]
    query: String,
    /// Maximum results.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// Add the first 500 characters of each note.
    #[serde(default)]
    include_content: bool,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    #[serde(flatten)]
    node: Node,
    /// 0 to 1, higher is better; comparable between searches.
    score: f64,
    /// The heading of the best section; null before the first heading.
    section: Option<String>,
    /// The text around the best match in it, at most 300 characters.
    excerpt: String,
}

/// Characters of an excerpt.
const EXCERPT: usize = 300;

/// Characters of an answer whose links are not limited to half of it.
const SHORT_ANSWER: usize = 4_000;

pub(crate) struct Search;

impl Tool for Search {
    type Params = Params;
    type Output = Vec<Found>;

    const NAME: &'static str = "search";
    const DESCRIPTION: &'static str = "Find notes about a topic or question by meaning and words. Returns tags, \
        links, properties and an excerpt; for the text of matching sections use ubp_search.";
    const ACCESS: Access = Access::Read;
    const HAS_VIEW: bool = true;

    const NEED: Option<&'static str> = Some(
        "embedding is off (`[embedding] provider = \"none\"` in the settings); to search by words call ubp_search; to search by \
         meaning set another provider and restart",
    );

    fn is_available(knowledge: &Knowledge) -> bool {
        knowledge.has_meaning()
    }

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Found>, ToolError> {
        if params.query.trim().is_empty() {
            return Err(ToolError::invalid("`query` is empty; it must have at least one word"));
        }
        let by = if call.knowledge.searches_by_meaning_alone() {
            RankingSources::Meaning
        } else {
            RankingSources::Everything
        };
        let findings = call.knowledge.search(&NoteSearch { by, ..NoteSearch::new(&params.query, params.limit) })?;
        call.warn_of_ranking(&findings);
        let found = findings.found;
        let keys: Vec<_> = found.iter().map(|found| found.key).collect();
        let nodes = Node::list(call, &findings.snapshot, &keys, params.include_content.then_some(LISTED));
        let best = |found: &quipu_core::search::FoundNote| found.sections.first().map_or(0, |best| best.section);
        let places: Vec<_> = found.iter().map(|found| (found.key, best(found))).collect();
        let texts = call.knowledge.section_texts(&findings.snapshot, &places);
        let with_excerpt = |((node, found), text): ((Node, &quipu_core::search::FoundNote), Option<String>)| Found {
            node,
            score: shown(found.score()),
            section: findings
                .snapshot
                .note(found.key)
                .sections
                .get(best(found))
                .and_then(|best| best.heading.as_deref().map(cut_name)),
            excerpt: excerpt(&text.unwrap_or_default(), &params.query, EXCERPT),
        };
        let mut found: Vec<Found> = nodes.into_iter().zip(&found).zip(texts).map(with_excerpt).collect();
        limit_links(&mut found);
        Ok(found)
    }
}

/// Shows fewer links in a long answer that would be mostly links: its reader asked for notes.
fn limit_links(found: &mut [Found]) {
    for max_links in MAX_LISTED_LINKS {
        let links: usize = found.iter().map(|found| found.node.link_chars()).sum();
        let all = json_chars(&found);
        if all < SHORT_ANSWER || links * 2 < all {
            break;
        }
        found.iter_mut().for_each(|found| found.node.limit_links(max_links));
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::ports::Coverage;
    use quipu_core::search::Effort;
    use serde_json::json;

    use crate::testing::Harness;

    const KITCHEN: &str = "\
//- recipes/bulgogi.md
---
tags: [korean]
---
Thin slices of beef in a sweet marinade, grilled over charcoal.
//- recipes/pancakes.md
Flour, eggs and milk; fry them in butter for breakfast.
//- garden/tomatoes.md
Water the seedlings each morning and keep snails away.
";

    #[test]
    fn notes_are_found_by_meaning() {
        let harness = Harness::with_meaning(KITCHEN);
        let answer = harness.call("search", json!({"query": "how do I cook meat on a barbecue?", "limit": 2}));
        let hits = answer.as_array().unwrap();
        assert_eq!((hits.len(), &hits[0]["id"]), (2, &json!("recipes/bulgogi.md")), "{answer}");
        assert_eq!(hits[0]["tags"], json!(["korean"]));
        assert!(hits[0].get("content").is_none());
        let score = |hit: &serde_json::Value| hit["score"].as_f64().unwrap();
        assert!(score(&hits[0]) > score(&hits[1]) && score(&hits[0]) <= 1.0, "{answer}");
        let answer = harness.call("search", json!({"query": "seedlings", "limit": "1", "include_content": true}));
        assert_eq!(answer[0]["content"], "Water the seedlings each morning and keep snails away.\n");
    }

    /// Before the model has read anything; then its vectors replace the coarse ones.
    #[test]
    fn a_new_note_is_found_by_its_coarse_vector() {
        let harness = Harness::before_embedding(KITCHEN);
        let covered = || {
            let Coverage { passages, embedded, full } = harness.knowledge.coverage().unwrap().unwrap();
            (passages, embedded, full)
        };
        let best = |query: &str| harness.call("search", json!({"query": query, "limit": 1}))[0]["id"].clone();
        assert_eq!((harness.knowledge.embed_coarse(&|_| true).unwrap(), covered()), (3, (3, 3, 0)));
        assert_eq!(best("how do I cook meat on a barbecue?"), "recipes/bulgogi.md");
        assert_eq!(
            harness.call("search", json!({"query": "zzqqxx flurbl"})),
            json!([]),
            "coarse vectors are no evidence"
        );
        harness.call(
            "create_node",
            json!({"id": "music/cello.md", "title": "Cello", "content": "Practise scales and the Bach suites; new strings and rosin for the bow."}),
        );
        assert_eq!((covered(), harness.knowledge.embed_coarse(&|_| true).unwrap()), ((4, 3, 0), 1));
        assert_eq!(best("playing classical music on the violin"), "music/cello.md");
        assert_eq!(harness.knowledge.embed_coarse(&|_| true).unwrap(), 0, "nothing is left to do");
        harness.knowledge.embed_some(1, Effort::OneThread).unwrap();
        assert_eq!(covered(), (4, 4, 1));
        assert_eq!(best("playing classical music on the violin"), "music/cello.md", "in a mixed index too");
        harness.knowledge.embed_some(9, Effort::OneThread).unwrap();
        assert_eq!((covered(), best("playing classical music on the violin")), ((4, 4, 4), json!("music/cello.md")));
    }

    #[test]
    fn provisional_order_has_one_warning_per_session() {
        let harness = Harness::before_embedding(KITCHEN);
        harness.knowledge.embed_coarse(&|_| true).unwrap();
        let told = "the order of results may still change: 0 of 3 passages have full vectors so far";
        let search = |tool: &str| harness.called(tool, json!({"query": "seedlings"})).warnings;
        assert_eq!((search("search"), search("ubp_search")), (vec![told.to_owned()], Vec::new()));
        assert_eq!(search("search"), [""; 0]);
    }

    #[test]
    fn an_exact_name_comes_first() {
        let filler = "agora ".repeat(40);
        let vault = format!(
            "//- agor.md\n# Agora agora\n{filler}\n//- x/agora.md\nA place.\n//- b.md\n---\naliases: [AGORA]\n---\nNothing of it.\n\
             //- links.md\n[[b]]\n//- more.md\n[[b]] and [[x/agora]]\n"
        );
        let harness = Harness::with_meaning(&vault);
        let answer = harness.call("search", json!({"query": "Agora"}));
        let hits = answer.as_array().unwrap();
        let ids: Vec<&str> = hits.iter().map(|hit| hit["id"].as_str().unwrap()).collect();
        assert_eq!(ids[..3], ["b.md", "x/agora.md", "agor.md"], "{answer}");
        let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
        assert!(scores[0] <= 1.0 && scores[0] > scores[1] && scores[1] > scores[2], "{answer}");
        let pages = harness.call("ubp_search", json!({"query": "agora"}));
        let first = &pages["results"][0];
        assert_eq!(first["filepath"], "b.md", "{pages}");
        assert!(first["relevance_reason"].as_str().unwrap().starts_with("its alias equals the query"), "{first}");
    }

    #[test]
    fn a_hit_shows_its_best_section_and_the_words_there() {
        let long = "and so on ".repeat(100);
        let vault = format!("//- guide.md\nStart.\n\n## Cellar\n{long} Anemometers hang there. {long}\n");
        let harness = Harness::with_meaning(&vault);
        let answer = harness.call("search", json!({"query": "anemometers"}));
        assert_eq!(answer[0]["section"], "Cellar", "{answer}");
        let excerpt = answer[0]["excerpt"].as_str().unwrap();
        assert!(excerpt.contains("Anemometers hang there") && excerpt.chars().count() <= 300, "{excerpt}");
        let answer = harness.call("search", json!({"query": "start"}));
        assert_eq!((&answer[0]["section"], &answer[0]["excerpt"]), (&json!(null), &json!("Start.")), "{answer}");
    }

    #[test]
    fn equal_scores_are_ordered_by_id() {
        let vault: String =
            (0..12).map(|number| format!("//- {:02}.md\nThe very same words.\n", 11 - number)).collect();
        let answer = Harness::with_meaning(&vault).call("search", json!({"query": "same words"}));
        let shown: Vec<(f64, String)> = answer
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| (-hit["score"].as_f64().unwrap(), hit["id"].as_str().unwrap().to_owned()))
            .collect();
        assert!(shown.is_sorted(), "{shown:?}");
    }

    #[test]
    fn without_an_embedder_the_tool_is_missing() {
        let harness = Harness::new(KITCHEN);
        assert!(harness.registry.tools().all(|tool| tool.name != "search"));
    }

    #[test]
    fn a_blank_query_is_refused() {
        let harness = Harness::with_meaning(KITCHEN);
        let (code, message) = harness.fails("search", json!({"query": " "}));
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("INVALID_PARAMS", "`query` is empty; it must have at least one word")
        );
    }
}
