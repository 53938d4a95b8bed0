//! One page with everything about it.

use quipu_core::{ReadNote, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{DocType, LinkedPage, PageSection, Staleness, doc_id, freshness, linked, read_page, sections};
use crate::answer_size::{LIST_ROOM, fitting, json_chars};
use crate::parts::{Truncated, part};
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

/// Up to this many characters a text is given both whole and in sections.
const MAX_GIVEN_TWICE: usize = 20_000;
/// However long the text is, so many links are listed each way.
const MIN_LINKS: usize = 10;
/// More sources than this are not named.
const MAX_STALE_REFS: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault's root, such as "designs/search.md".
    #[schemars(length(min = 1))]
    filepath: String,
    /// Read in parts: from this character of the text on, as `truncated.next_offset` says.
    offset: Option<usize>,
    /// Read in parts: at most this many characters.
    #[schemars(range(min = 1, max = 50_000))]
    max_chars: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    doc_id: String,
    filepath: String,
    title: String,
    doc_type: DocType,
    /// The text without frontmatter; of one over 20,000 characters the beginning.
    content: String,
    /// Only where content is a part of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
    /// All of the text, split at headings of level 2 and 3; empty when reading in parts.
    sections: Vec<PageSection>,
    outlinks: Vec<LinkedPage>,
    /// Only where not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outlinks_total: Option<usize>,
    backlinks: Vec<LinkedPage>,
    /// Only where not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    backlinks_total: Option<usize>,
    staleness: Staleness,
    /// The sources that changed since the page did, or are gone.
    stale_refs: Vec<String>,
    updated_at: String,
}

pub(crate) struct GetPage;

impl Tool for GetPage {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_get_page";
    const DESCRIPTION: &'static str = "Read one whole page: text, sections, typed links in and out, and whether the \
        sources it describes have changed since (staleness, stale_refs). For a page with its surroundings call \
        ubp_get_context.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let read = read_page(call, &params.filepath)?;
        let (content, truncated, sections) = text(call, &read, &params);
        let (snapshot, key, note) = (&read.snapshot, read.key, read.note());
        let freshness = freshness(call, snapshot, &[key]).swap_remove(0);
        let path = quoted(note.path.as_str());
        let mut stale_refs: Vec<String> = freshness.offenders.into_iter().map(|offender| offender.path).collect();
        if stale_refs.len() > MAX_STALE_REFS {
            call.warn(format!("{path}: {MAX_STALE_REFS} of its {} stale sources are listed", stale_refs.len()));
            stale_refs.truncate(MAX_STALE_REFS);
        }
        for missing in freshness.never_seen.iter().take(5) {
            call.warn(format!("{path}: its source {} is not there and never was", quoted(missing)));
        }
        for unknown in freshness.unknown.iter().take(5) {
            let unknown = quoted(unknown);
            call.warn(format!("{path}: whether its source {unknown} changed since could not be found out"));
        }
        let room = LIST_ROOM.saturating_sub(json_chars(&content) + json_chars(&sections) + json_chars(&stale_refs));
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
            title: note.title.clone(),
            doc_type: DocType::of(note),
            content,
            truncated,
            sections,
            outlinks,
            outlinks_total,
            backlinks,
            backlinks_total,
            staleness: freshness.staleness.into(),
            stale_refs,
            updated_at: iso_utc(note.stat.modified_ns),
        })
    }
}

/// The text as it was asked for. A long one is not given twice: its sections have all of it.
fn text(call: &Call<'_>, read: &ReadNote, params: &Params) -> (String, Option<Truncated>, Vec<PageSection>) {
    if params.offset.is_some() || params.max_chars.is_some() {
        let (content, truncated) = part(call, read, params.offset, params.max_chars);
        return (content, truncated, Vec::new());
    }
    call.knowledge.show_whole(call.session, read);
    let is_long = read.body().char_indices().nth(MAX_GIVEN_TWICE).is_some();
    let (content, truncated) = if is_long { part(call, read, None, None) } else { (read.body().to_owned(), None) };
    (content, truncated, sections(read))
}

/// As many links as there is room for, and at least a few; with the number of all where some are left out.
fn some_of(mut links: Vec<LinkedPage>, room: usize) -> (Vec<LinkedPage>, Option<usize>) {
    let count = links.len();
    links.truncate(fitting(&links, room).max(MIN_LINKS));
    let total = (links.len() < count).then_some(count);
    (links, total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Desk;

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
    fn a_page_with_everything_about_it() {
        let desk = Desk::not_started(VAULT);
        desk.sources.put("src/search.rs", "fn search() {}");
        desk.knowledge.start(&|_| {}).unwrap();
        let answer = desk.call("ubp_get_page", json!({"filepath": "designs/Search.md"}));
        let page = |path: &str| desk.call("ubp_get_page", json!({"filepath": path}))["doc_id"].clone();
        let link = |path: &str, title: &str, link_type: &str| json!({"doc_id": page(path), "filepath": path, "title": title, "link_type": link_type});
        assert_eq!(
            answer,
            json!({
                "doc_id": "51b1437a-88d2-593b-a872-73d212b4b63b",
                "filepath": "designs/Search.md",
                "title": "Search Design",
                "doc_type": "design",
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
    fn staleness_is_true_at_the_moment_of_asking() {
        let desk = Desk::not_started("//- doc.md\n---\nsource_refs: a.rs\n---\n//- plain.md\n");
        desk.sources.put("a.rs", "1");
        desk.knowledge.start(&|_| {}).unwrap();
        let level = |path: &str| {
            let answer = desk.call("ubp_get_page", json!({"filepath": path}));
            (answer["staleness"].as_str().unwrap().to_owned(), answer["stale_refs"].clone())
        };
        let day = 86_400_000_000_000;
        assert_eq!(level("plain.md"), ("untracked".into(), json!([])));
        assert_eq!(level("doc.md"), ("fresh".into(), json!([])));
        desk.sources.put("a.rs", "2");
        assert_eq!(level("doc.md"), ("possibly_stale".into(), json!(["a.rs"])));
        desk.clock.advance(7 * day);
        assert_eq!(level("doc.md"), ("stale".into(), json!(["a.rs"])));
        desk.sources.put("a.rs", "1");
        assert_eq!(level("doc.md"), ("fresh".into(), json!([])));
        desk.sources.remove("a.rs");
        assert_eq!(level("doc.md"), ("stale".into(), json!(["a.rs"])));
        desk.vault.put("doc.md", "---\nsource_refs: a.rs\n---\nThe source is gone.");
        assert_eq!(level("doc.md"), ("stale".into(), json!(["a.rs"])), "once seen is ever seen");
        desk.sources.put("a.rs", "3");
        desk.vault.put("doc.md", "---\nsource_refs: a.rs\n---\nIt is back.");
        assert_eq!(level("doc.md"), ("fresh".into(), json!([])), "a changed page starts anew");
    }

    #[test]
    fn a_stale_page_that_is_moved_or_copied_stays_stale() {
        let doc = "---\nsource_refs: a.rs\n---\n";
        let desk = Desk::not_started("");
        desk.vault.put("doc.md", doc);
        desk.sources.put("a.rs", "1");
        desk.knowledge.start(&|_| {}).unwrap();
        desk.sources.put("a.rs", "2");
        desk.vault.put("copy.md", doc);
        desk.vault.remove("doc.md");
        desk.vault.put("moved.md", doc);
        for path in ["copy.md", "moved.md"] {
            let answer = desk.call("ubp_get_page", json!({"filepath": path}));
            assert_eq!(answer["stale_refs"], json!(["a.rs"]), "{path}");
        }
    }

    #[test]
    fn a_page_that_was_read_may_be_replaced() {
        let desk = Desk::new("//- a.md\nOne.\n//- b.md\nTwo.\n");
        desk.call("ubp_get_page", json!({"filepath": "a.md"}));
        desk.call("ubp_get_context", json!({"filepath": "b.md"}));
        for path in ["a.md", "b.md"] {
            desk.call("update_node", json!({"id": path, "content": "Three."}));
        }
    }

    #[test]
    fn a_page_that_is_not_there_is_an_error_of_the_protocol() {
        let desk = Desk::new(VAULT);
        for path in ["nowhere.md", "../etc/passwd", "zzz"] {
            let message = format!("no page is at {path:?}");
            let expected = json!({"protocol": {"code": -32602, "message": message}});
            assert_eq!(desk.call("ubp_get_page", json!({"filepath": path})), expected);
        }
        let missing = json!({"protocol": {"code": -32602, "message": "`filepath` is missing; it must be a string that is not empty"}});
        assert_eq!(desk.call("ubp_get_page", json!({})), missing);
    }
}
