//! `get_document`: one document in full or in part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::DocumentMetadata;
use crate::not_found::near_hint;
use crate::parts::{Heading, Part, PartParams, Truncated};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::echoed;

const PATH_REQUIRED: &str = "Document path is required";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root: "guides/setup.md".
    path: String,
    #[serde(flatten)]
    part: PartParams,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    path: String,
    /// Changes with every change of the file.
    version: String,
    /// The text without frontmatter, whole unless a part was requested.
    content: String,
    /// Present when content is a part of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outline: Option<Vec<Heading>>,
    metadata: DocumentMetadata,
    /// Bytes of the file.
    size: u64,
}

pub(crate) struct GetDocument;

impl Tool for GetDocument {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_document";
    const DESCRIPTION: &'static str = "Read one document by path, whole or in part. With links and \
        properties use get_node; with staleness use ubp_get_page.";
    const ACCESS: Access = Access::Read;
    const MISSING_ARGUMENT: Option<&'static str> = Some(PATH_REQUIRED);

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        if params.path.trim().is_empty() {
            return Err(ToolError::invalid(PATH_REQUIRED));
        }
        // A path outside the vault gets the same answer as a missing document.
        let Some(read) = call.read(&params.path)? else {
            let near = near_hint(&call.knowledge.snapshot(), &params.path, |note| note.path.as_str());
            let message = format!("Document not found: {}{near}", echoed(&params.path));
            return Err(ToolError::new(ToolErrorKind::NotFound, message));
        };
        let Part { content, truncated, outline, .. } = params.part.read_whole_or_part(call, &read)?;
        let note = read.note();
        Ok(Output {
            path: note.path.to_string(),
            version: read.hash.to_string(),
            content: content.unwrap_or_default(),
            truncated,
            outline,
            metadata: DocumentMetadata::of(note),
            size: note.stat.size,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Harness, check};

    const DOCS: &str = "\
//- guides/Getting-Started.md
---
title: Getting Started
tags: [setup]
---

# Getting Started

Welcome to…
";

    #[test]
    fn a_document_is_returned_in_full() {
        let expected = json!({
            "path": "guides/Getting-Started.md",
            "version": "49a52b6386c2b493",
            "content": "# Getting Started\n\nWelcome to…\n",
            "metadata": {
                "title": "Getting Started",
                "path": "guides/Getting-Started.md",
                "section": "guides",
                "filename": "Getting-Started.md",
                "lastModified": "2025-01-29T10:30:00.000Z",
                "tags": ["setup"]
            },
            "size": 79
        });
        check(DOCS, "get_document", json!({"path": "guides/Getting-Started.md"}), expected.clone());
        check(DOCS, "get_document", json!({"path": "guides/getting-started.md"}), expected);
    }

    #[test]
    fn a_long_document_is_not_cut() {
        let harness = Harness::new(&format!("//- long.md\n{}", "x".repeat(50_000)));
        assert_eq!(harness.call("get_document", json!({"path": "long.md"}))["content"].as_str().unwrap().len(), 50_000);
    }

    #[test]
    fn a_path_outside_the_vault_is_not_found() {
        for path in ["invalid/path.md", "../package.json", "/etc/passwd", "guides/../../secret.md", "guides", "pic.png"]
        {
            let expected = json!({"failed": format!("Error: Document not found: {path}")});
            check(DOCS, "get_document", json!({"path": path}), expected);
        }
    }

    #[test]
    fn a_mistyped_path_gets_near_names() {
        let expected = "Error: Document not found: guides/geting-started.md; near names: \"guides/Getting-Started.md\"";
        check(DOCS, "get_document", json!({"path": "guides/geting-started.md"}), json!({"failed": expected}));
    }

    #[test]
    fn a_path_is_required() {
        let expected = json!({"failed": "Error: Document path is required"});
        for arguments in [json!({}), json!(null), json!({"path": null}), json!({"path": ""}), json!({"path": "  "})] {
            check(DOCS, "get_document", arguments, expected.clone());
        }
        let wrong = json!({"failed": "Error: `path` is 7; it must be a string"});
        check(DOCS, "get_document", json!({"path": 7}), wrong);
    }

    #[test]
    fn files_that_differ_in_case_are_found_by_exact_path() {
        let vault = "//- Twin.md\nupper\n//- twin.md\nlower\n";
        let harness = Harness::new(vault);
        assert_eq!(harness.call("get_document", json!({"path": "twin.md"}))["content"], "lower\n");
        assert_eq!(harness.call("get_document", json!({"path": "Twin.md"}))["content"], "upper\n");
        let ambiguous = harness.called("get_document", json!({"path": "TWIN.md"}));
        assert!(matches!(&ambiguous.reply, crate::Reply::Answer(answer) if answer["content"] == "upper\n"));
        let told = "\"TWIN.md\" matches several notes; this answer is for \"Twin.md\", the others are \"twin.md\"";
        assert!(ambiguous.warnings.iter().any(|line| line == told), "{:?}", ambiguous.warnings);
    }
}
