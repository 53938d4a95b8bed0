//! `ubp_list_pages`: pages, sorted and in pages.

use quipu_core::model::{DocType, Note, fold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{doc_id, doc_types};
use crate::answer_size::{self, Wanted};
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only pages of this type.
    #[schemars(extend("enum" = doc_types()))]
    doc_type: Option<String>,
    /// Sort key.
    #[serde(default)]
    sort: Sort,
    /// Sort order.
    #[serde(default)]
    order: Order,
    /// Maximum results.
    #[schemars(range(min = 1, max = 10_000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// Results to skip.
    #[serde(default)]
    offset: usize,
}

#[derive(Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Title,
    UpdatedAt,
    Filepath,
}

#[derive(Default, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Asc,
    Desc,
}

const DEFAULT_LIMIT: usize = 100;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    pages: Vec<Page>,
    /// All matches, not only those listed.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct Page {
    doc_id: String,
    filepath: String,
    title: String,
    doc_type: &'static str,
    /// Resolved outgoing links.
    link_count: usize,
    updated_at: String,
}

pub(crate) struct ListPages;

impl Tool for ListPages {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_list_pages";
    const DESCRIPTION: &'static str = "List pages with type, number of links and last change. By tag, property or \
        date use query_nodes; to search their text use ubp_fulltext_search.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let admits = |note: &Note| params.doc_type.as_ref().is_none_or(|wanted| DocType::of(note).name() == wanted);
        let mut found: Vec<_> =
            snapshot.files().map(|key| (key, snapshot.note(key))).filter(|(_, note)| admits(note)).collect();
        // The sorts below are stable, so ties stay in order of path.
        found.sort_unstable_by_key(|(_, note)| &note.path);
        match params.sort {
            Sort::Title => found.sort_by_cached_key(|(_, note)| fold(&note.title)),
            Sort::UpdatedAt => found.sort_by_key(|(_, note)| note.stat.modified_ns),
            Sort::Filepath => {}
        }
        if params.order == Order::Desc {
            found.reverse();
        }
        let total = found.len();
        let page = |(key, note): &(_, &Note)| Page {
            doc_id: doc_id(note),
            filepath: note.path.to_string(),
            title: cut_name(&note.title),
            doc_type: DocType::of(note).name(),
            link_count: snapshot.typed_links(*key).len(),
            updated_at: iso_utc(note.stat.modified_ns),
        };
        let wanted = Wanted { offset: params.offset, limit: params.limit };
        let pages = found.iter().skip(params.offset).take(params.limit.unwrap_or(DEFAULT_LIMIT)).map(page).collect();
        Ok(Output { pages: answer_size::page(call, &wanted, pages, total, "pages"), total })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Harness;

    const VAULT: &str = "\
//- b/Second.md
---
doc_type: adr
---
[[zeta]] [[zeta|depends_on]] [[nowhere]] [[Second]]
//- zeta.md
---
title: alpha
---
//- a.md
---
title: Beta
doc_type: poem
---
";

    fn paths(answer: &Value) -> Vec<&str> {
        answer["pages"].as_array().unwrap().iter().map(|page| page["filepath"].as_str().unwrap()).collect()
    }

    #[test]
    fn pages_are_sorted_as_requested() {
        let harness = Harness::new(VAULT);
        let list = |arguments: Value| harness.call("ubp_list_pages", arguments);
        assert_eq!(paths(&list(json!({}))), ["zeta.md", "a.md", "b/Second.md"], "by title, in any case");
        assert_eq!(paths(&list(json!({"order": "desc"}))), ["b/Second.md", "a.md", "zeta.md"]);
        assert_eq!(paths(&list(json!({"sort": "filepath"}))), ["a.md", "b/Second.md", "zeta.md"]);
        harness.clock.advance(1_000_000_000);
        harness.vault.put("a.md", "x");
        harness.knowledge.apply(&quipu_core::index::FileBatch::All, &|_| {}).unwrap();
        assert_eq!(paths(&list(json!({"sort": "updated_at", "order": "desc"})))[0], "a.md");
    }

    #[test]
    fn types_come_from_frontmatter_and_resolved_links_are_counted() {
        let harness = Harness::new(VAULT);
        let answer = harness.call("ubp_list_pages", json!({"doc_type": "adr"}));
        assert_eq!((paths(&answer), &answer["total"]), (vec!["b/Second.md"], &json!(1)));
        assert_eq!(answer["pages"][0]["link_count"], 2, "one for each type, not itself, not what is nowhere");
        assert_eq!(paths(&harness.call("ubp_list_pages", json!({"doc_type": "other"}))), ["zeta.md", "a.md"]);
        assert_eq!(harness.call("ubp_list_pages", json!({"doc_type": "db-schema"}))["total"], 0);
    }

    #[test]
    fn pages_of_the_default_size_reach_every_page_once() {
        let title = "long ".repeat(100);
        let harness = Harness::new(
            &(0..120).map(|n| format!("//- p{n:03}.md\n---\ntitle: {title}{n:03}\n---\n")).collect::<String>(),
        );
        let mut seen = Vec::new();
        while seen.len() < 120 {
            let page = harness.call("ubp_list_pages", json!({"offset": seen.len()}));
            assert!(page.to_string().chars().count() <= 40_000);
            assert_eq!(page["total"], 120);
            let before = seen.len();
            seen.extend(paths(&page).into_iter().map(str::to_owned));
            assert!(seen.len() > before && seen.len() - before < 100);
        }
        assert_eq!(seen, (0..120).map(|n| format!("p{n:03}.md")).collect::<Vec<_>>());
    }

    #[test]
    fn limit_and_offset_select_a_page() {
        let harness = Harness::new(VAULT);
        let called = harness.called("ubp_list_pages", json!({"limit": 1, "offset": 1, "sort": "filepath"}));
        assert_eq!(called.warnings[0], "1 of 3 pages are listed; continue with `offset` 2");
        let wrong = harness.call("ubp_list_pages", json!({"sort": "size"}));
        let message = "`sort` is \"size\"; it must be one of \"title\", \"updated_at\", \"filepath\"";
        assert_eq!(wrong, json!({"protocol": {"code": -32602, "message": message}}));
        assert_eq!(harness.call("ubp_list_pages", json!({"doc_type": "poem"}))["protocol"]["code"], -32602);
    }
}
