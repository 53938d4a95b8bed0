//! `ubp_get_page`: one page with its sections, links and staleness.

use quipu_core::model::DocType;
use quipu_core::{ReadNote, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{LinkedPage, PageSection, doc_id, freshness, linked, read_page, sections};
use crate::answer_size::{LIST_ROOM, fitting, json_chars};
use crate::parts::{Heading, Part, PartParams, Truncated};
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

/// A longer text is returned in sections only, and its beginning as content.
const MAX_GIVEN_TWICE: usize = 20_000;
/// Links listed in each direction however long the text is.
const MIN_LINKS: usize = 10;
/// Stale sources listed at most.
const MAX_STALE_REFS: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root: "designs/search.md".
    #[schemars(length(min = 1))]
    filepath: String,
    #[serde(flatten)]
    part: PartParams,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    doc_id: String,
    filepath: String,
    title: String,
    doc_type: &'static str,
    /// Changes with every change of the file.
    version: String,
    /// The text without frontmatter; its beginning if it is over 20,000 characters.
    content: String,
    /// Present when content is a part of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outline: Option<Vec<Heading>>,
    /// The whole text, split at headings of level 2 and 3; empty when reading in parts.
    sections: Vec<PageSection>,
    outlinks: Vec<LinkedPage>,
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outlinks_total: Option<usize>,
    backlinks: Vec<LinkedPage>,
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    backlinks_total: Option<usize>,
    staleness: &'static str,
    /// Sources that changed after the page, or were deleted.
    stale_refs: Vec<String>,
    /// When the first of them changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_since: Option<String>,
    updated_at: String,
}

pub(crate) struct GetPage;

impl Tool for GetPage {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_get_page";
    const DESCRIPTION: &'static str = "Read one page by path: text, sections, typed links both ways, and staleness \
        (whether its source files changed since). For the text alone use get_document; with neighbors use \
        ubp_get_context.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let read = read_page(call, &params.filepath)?;
        let (Part { content, truncated, outline, .. }, sections) = text(call, &read, &params.part)?;
        let content = content.unwrap_or_default();
        let (snapshot, key, note) = (&read.snapshot, read.key, read.note());
        let freshness = freshness(call, snapshot, &[key]).swap_remove(0);
        let path = quoted(note.path.as_str());
        let stale_since = freshness.stale_sources.iter().filter_map(|stale| stale.since_ns).min().map(iso_utc);
        let mut stale_refs: Vec<String> = freshness.stale_sources.into_iter().map(|stale| stale.path).collect();
        if stale_refs.len() > MAX_STALE_REFS {
            call.warn(format!("{path}: {MAX_STALE_REFS} of its {} stale sources are listed", stale_refs.len()));
            stale_refs.truncate(MAX_STALE_REFS);
        }
        for missing in freshness.never_seen.iter().take(5) {
            call.warn(format!("{path}: its source {} does not exist", quoted(missing)));
        }
        for unknown in freshness.unknown.iter().take(5) {
            let unknown = quoted(unknown);
            call.warn(format!("{path}: cannot tell whether its source {unknown} has changed"));
        }
        // Who asks for a part wants little.
        let room = if params.part.is_whole() { LIST_ROOM } else { 0 };
        let room = room.saturating_sub(json_chars(&content) + json_chars(&sections) + json_chars(&stale_refs));
        let (outlinks, outlinks_total) = some_of(linked(snapshot, &snapshot.typed_links(key)), room / 2);
        let room = room.saturating_sub(json_chars(&outlinks));
        let (backlinks, backlinks_total) = some_of(linked(snapshot, &snapshot.typed_backlinks(key)), room);
        if outlinks_total.is_some() || backlinks_total.is_some() {
            call.warn(format!(
                "{path}: not all of its links are listed; outlinks_total and backlinks_total count them"
            ));
        }
        Ok(Output {
            doc_id: doc_id(note),
            filepath: note.path.to_string(),
            title: cut_name(&note.title),
            doc_type: DocType::of(note).name(),
            version: read.hash.to_string(),
            content,
            truncated,
            outline,
            sections,
            outlinks,
            outlinks_total,
            backlinks,
            backlinks_total,
            staleness: freshness.staleness.name(),
            stale_refs,
            stale_since,
            updated_at: iso_utc(note.stat.modified_ns),
        })
    }
}

/// The text as requested. A long one is returned once, in sections.
fn text(call: &Call<'_>, read: &ReadNote, params: &PartParams) -> Result<(Part, Vec<PageSection>), ToolError> {
    if !params.is_whole() {
        return Ok((params.read(call, read)?, Vec::new()));
    }
    let is_long = read.body().char_indices().nth(MAX_GIVEN_TWICE).is_some();
    let whole = params.read_whole_or_part(call, read)?;
    let part = if is_long { params.read(call, read)? } else { whole };
    Ok((part, sections(read)))
}

/// The links that fit, at least a few, and the number of all if some are left out.
fn some_of(mut links: Vec<LinkedPage>, room: usize) -> (Vec<LinkedPage>, Option<usize>) {
    let count = links.len();
    links.truncate(fitting(&links, room).max(MIN_LINKS));
    let total = (links.len() < count).then_some(count);
    (links, total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const VAULT: &str = "\
//- designs/Search.md
---
title: Search Design
doc_type: design
source_refs: [src/search.rs, src/db/]
implements: spec
---
Before.

## Ranking
By words, see [[store|depends_on]] and [[store]].

### Ties
By path.
//- spec.md
[[Search|extends]] and [Search](designs/Search.md)
//- store.md
";

    #[test]
    fn a_page_has_all_fields() {
        let harness = Harness::not_started(VAULT);
        harness.sources.put("src/search.rs", "fn search() {}");
        harness.knowledge.start(&|_| {}).unwrap();
        let answer = harness.call("ubp_get_page", json!({"filepath": "designs/Search.md"}));
        let page = |path: &str| harness.call("ubp_get_page", json!({"filepath": path}))["doc_id"].clone();
        let link = |path: &str, title: &str, link_type: &str| json!({"doc_id": page(path), "filepath": path, "title": title, "link_type": link_type});
        assert_eq!(
            answer,
            json!({
                "doc_id": "51b1437a-88d2-593b-a872-73d212b4b63b",
                "filepath": "designs/Search.md",
                "title": "Search Design",
                "doc_type": "design",
                "version": "9eede3271b41c904",
                "content": "Before.\n\n## Ranking\nBy words, see [[store|depends_on]] and [[store]].\n\n### Ties\nBy path.\n",
                "sections": [
                    {"heading": null, "content": "Before."},
                    {"heading": "Ranking", "content": "By words, see [[store|depends_on]] and [[store]]."},
                    {"heading": "Ties", "content": "By path."},
                ],
                "outlinks": [
                    link("spec.md", "Spec", "implements"),
                    link("store.md", "Store", "depends_on"),
                    link("store.md", "Store", "references"),
                ],
                "backlinks": [link("spec.md", "Spec", "references"), link("spec.md", "Spec", "extends")],
                "staleness": "untracked",
                "stale_refs": [],
                "updated_at": "2025-01-29T10:30:00.000Z",
            })
        );
    }

    #[test]
    fn staleness_is_evaluated_on_request() {
        let harness = Harness::not_started("//- doc.md\n---\nsource_refs: a.rs\n---\n//- plain.md\n");
        harness.sources.put("a.rs", "1");
        harness.knowledge.start(&|_| {}).unwrap();
        let level = |path: &str| {
            let answer = harness.call("ubp_get_page", json!({"filepath": path}));
            (answer["staleness"].as_str().unwrap().to_owned(), answer["stale_refs"].clone())
        };
        let day = 86_400_000_000_000;
        assert_eq!(level("plain.md"), ("untracked".into(), json!([])));
        assert_eq!(level("doc.md"), ("fresh".into(), json!([])));
        harness.sources.put("a.rs", "2");
        assert_eq!(level("doc.md"), ("possibly_stale".into(), json!(["a.rs"])));
        harness.clock.advance(7 * day);
        assert_eq!(level("doc.md"), ("stale".into(), json!(["a.rs"])));
        let since = |path: &str| harness.call("ubp_get_page", json!({"filepath": path})).get("stale_since").cloned();
        assert!(since("doc.md").is_some_and(|since| since.is_string()), "a stale page says since when");
        assert_eq!(since("plain.md"), None);
        harness.sources.put("a.rs", "1");
        assert_eq!(level("doc.md"), ("fresh".into(), json!([])));
        harness.sources.remove("a.rs");
        assert_eq!(level("doc.md"), ("stale".into(), json!(["a.rs"])));
        harness.vault.put("doc.md", "---\nsource_refs: a.rs\n---\nThe source is gone.");
        assert_eq!(level("doc.md"), ("stale".into(), json!(["a.rs"])), "once seen is ever seen");
        harness.sources.put("a.rs", "3");
        harness.vault.put("doc.md", "---\nsource_refs: a.rs\n---\nIt is back.");
        assert_eq!(level("doc.md"), ("fresh".into(), json!([])), "a changed page starts anew");
    }

    #[test]
    fn a_stale_page_that_is_moved_or_copied_stays_stale() {
        let doc = "---\nsource_refs: a.rs\n---\n";
        let harness = Harness::not_started("");
        harness.vault.put("doc.md", doc);
        harness.sources.put("a.rs", "1");
        harness.knowledge.start(&|_| {}).unwrap();
        harness.sources.put("a.rs", "2");
        harness.vault.put("copy.md", doc);
        harness.vault.remove("doc.md");
        harness.vault.put("moved.md", doc);
        for path in ["copy.md", "moved.md"] {
            let answer = harness.call("ubp_get_page", json!({"filepath": path}));
            assert_eq!(answer["stale_refs"], json!(["a.rs"]), "{path}");
        }
    }

    #[test]
    fn reading_a_page_permits_its_update() {
        let harness = Harness::new("//- a.md\nOne.\n//- b.md\nTwo.\n");
        harness.call("ubp_get_page", json!({"filepath": "a.md"}));
        harness.call("ubp_get_context", json!({"filepath": "b.md"}));
        for path in ["a.md", "b.md"] {
            harness.call("update_node", json!({"id": path, "content": "Three."}));
        }
    }

    #[test]
    fn a_missing_page_is_a_protocol_error() {
        let harness = Harness::new(VAULT);
        for path in ["nowhere.md", "../etc/passwd", "zzz"] {
            let message = format!("no page has the path {path:?}");
            let expected = json!({"protocol": {"code": -32602, "message": message}});
            assert_eq!(harness.call("ubp_get_page", json!({"filepath": path})), expected);
        }
        let missing = json!({"protocol": {"code": -32602, "message": "`filepath` is missing; it must be a string that is not empty"}});
        assert_eq!(harness.call("ubp_get_page", json!({})), missing);
    }
}
