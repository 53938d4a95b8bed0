//! `list_documents`: documents, in pages.

use quipu_core::model::NoteKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::DocumentMetadata;
use crate::answer_size::{self, Wanted};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

const DEFAULT_LIMIT: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// A section, usually a top folder such as "guides"; "root" for files in none.
    #[serde(default = "every_section")]
    section: String,
    /// Maximum results.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// Results to skip.
    #[serde(default)]
    offset: usize,
}

fn every_section() -> String {
    "all".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    documents: Vec<DocumentMetadata>,
    /// All matches, not only those listed.
    total: usize,
    section: String,
}

pub(crate) struct ListDocuments;

impl Tool for ListDocuments {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "list_documents";
    const DESCRIPTION: &'static str =
        "List documents by path with section, tags and description. To search their text use search_docs.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let wanted = Wanted { offset: params.offset, limit: params.limit };
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
        let page = |found: &mut dyn Iterator<Item = NoteKey>| found.skip(params.offset).take(limit).collect();
        let (keys, total): (Vec<NoteKey>, usize) = if params.section == every_section() {
            (page(&mut snapshot.files()), snapshot.files().len())
        } else {
            let found = snapshot.in_area(&params.section);
            (page(&mut found.iter().copied()), found.len())
        };
        let documents = keys.into_iter().map(|key| DocumentMetadata::of(snapshot.note(key)).listed()).collect();
        Ok(Output {
            documents: answer_size::page(call, &wanted, documents, total, "documents"),
            total,
            section: params.section,
        })
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
description: Quick start guide for using the demo
tags: [getting-started, setup]
---
Welcome.
//- readme.md
//- api/Tools.md
---
section: reference
---
//- guides/deep/more.md
";

    #[test]
    fn a_document_has_all_metadata() {
        let expected = json!({
            "documents": [{
                "title": "Getting Started",
                "path": "guides/getting-started.md",
                "section": "guides",
                "filename": "getting-started.md",
                "lastModified": "2025-01-29T10:30:00.000Z",
                "tags": ["getting-started", "setup"],
                "description": "Quick start guide for using the demo"
            }],
            "total": 2,
            "section": "guides"
        });
        let mut answer = Harness::new(DOCS).call("list_documents", json!({"section": "guides"}));
        answer["documents"].as_array_mut().unwrap().remove(0);
        assert_eq!(answer, expected);
    }

    #[test]
    fn sections_come_from_folders_or_frontmatter() {
        let answer = Harness::new(DOCS).call("list_documents", json!({}));
        let rows: Vec<_> =
            answer["documents"].as_array().unwrap().iter().map(|row| (&row["path"], &row["section"])).collect();
        let expected = [
            ("api/Tools.md", "reference"),
            ("guides/deep/more.md", "guides"),
            ("guides/getting-started.md", "guides"),
            ("readme.md", "root"),
        ]
        .map(|(path, section)| (json!(path), json!(section)));
        assert_eq!(rows, expected.each_ref().map(|(path, section)| (path, section)));
        assert_eq!((&answer["total"], &answer["section"]), (&json!(4), &json!("all")));
        for (section, total) in [("reference", 1), ("root", 1), ("Guides", 2), ("api", 0)] {
            assert_eq!(Harness::new(DOCS).call("list_documents", json!({"section": section}))["total"], total);
        }
    }

    #[test]
    fn an_unknown_section_has_no_documents() {
        let expected = json!({"documents": [], "total": 0, "section": "tutorials"});
        check(DOCS, "list_documents", json!({"section": "tutorials"}), expected);
    }

    #[test]
    fn files_that_differ_in_case_are_two_documents() {
        let answer = Harness::new("//- b.md\n//- Twin.md\n//- twin.md\n").call("list_documents", json!({}));
        let paths: Vec<_> =
            answer["documents"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["Twin.md", "b.md", "twin.md"]);
    }

    #[test]
    fn pages_of_the_default_size_reach_every_document_once() {
        // Long descriptions: a page is shorter than its default number of documents.
        let document = |n: usize| format!("//- d{n:03}.md\n---\ndescription: {}\n---\n", "long ".repeat(200));
        let harness = Harness::new(&(0..130).map(document).collect::<String>());
        let (mut seen, mut pages) = (Vec::new(), 0);
        loop {
            let called = harness.called("list_documents", json!({"offset": seen.len()}));
            let crate::Reply::Answer(page) = called.reply else { panic!("it answers") };
            assert!(page.to_string().chars().count() <= 40_000);
            seen.extend(page["documents"].as_array().unwrap().iter().map(|row| row["path"].clone()));
            pages += 1;
            if seen.len() == 130 {
                assert_eq!(called.warnings, [""; 0]);
                break;
            }
            assert!(called.warnings[0].ends_with(&format!("continue with `offset` {}", seen.len())));
        }
        let expected: Vec<_> = (0..130).map(|n| json!(format!("d{n:03}.md"))).collect();
        assert_eq!((seen, pages > 2), (expected, true));
        let all = harness.call("list_documents", json!({"limit": 130}));
        assert_eq!(all["documents"].as_array().unwrap().len(), 130, "a limit that was asked for holds");
    }

    #[test]
    fn offset_and_limit_select_a_page() {
        let harness = Harness::new(DOCS);
        let page = harness.call("list_documents", json!({"limit": 1, "offset": "3"}));
        assert_eq!((&page["documents"][0]["path"], &page["total"]), (&json!("readme.md"), &json!(4)));
        let failed = harness.call("list_documents", json!({"limit": 0}));
        assert_eq!(failed["failed"], "Error: `limit` is 0; it must be a whole number from 1 to 1000");
    }
}
