//! The document that the docs toolset comes from: every example, every table, every message.

use serde_json::{Value, json};

use crate::client::Client;

const DOCS: &str = "\
//- guides/getting-started.md
---
title: Getting Started
description: Quick start guide for using the MCP Docs Demo
tags: [\"getting-started\", \"setup\"]
---

# Getting Started

Welcome to the MCP Docs Demo!

This guide will help you with getting started quickly.
//- api/tools.md
---
title: Tools
tags: api
---
MCP setup in one line.
A second line on MCP and its setup.
//- api/Old/legacy_api.md
---
section: reference
---
Nothing.
//- readme.md
Not much.
";

fn paths(answer: &Value) -> Vec<&str> {
    answer["documents"].as_array().unwrap().iter().map(|document| document["path"].as_str().unwrap()).collect()
}

/// The paths found and their scores.
fn found(answer: &Value) -> Vec<(&str, u64)> {
    let hit = |hit: &Value| hit["relevanceScore"].as_u64().unwrap();
    let results = answer["results"].as_array().unwrap();
    results.iter().map(|result| (result["document"]["path"].as_str().unwrap(), hit(result))).collect()
}

/// Takes a time out of an answer after a look at its form: ISO 8601, in UTC.
fn take_time(metadata: &mut Value) -> String {
    let time = metadata.as_object_mut().unwrap().remove("lastModified").unwrap();
    let time = time.as_str().unwrap().to_owned();
    let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "{time}");
    time
}

#[test]
fn list_documents_has_all_metadata() {
    let mut client = Client::open(DOCS);
    let mut answer = client.answer("list_documents", json!({}));
    assert_eq!((&answer["total"], &answer["section"]), (&json!(4), &json!("all")));
    assert_eq!(paths(&answer), ["api/Old/legacy_api.md", "api/tools.md", "guides/getting-started.md", "readme.md"]);
    let time = take_time(&mut answer["documents"][2]);
    let year: u32 = time[..4].parse().unwrap();
    assert!(year >= 2025, "{time}");
    assert_eq!(
        answer["documents"][2],
        json!({
            "title": "Getting Started",
            "path": "guides/getting-started.md",
            "section": "guides",
            "filename": "getting-started.md",
            "tags": ["getting-started", "setup"],
            "description": "Quick start guide for using the MCP Docs Demo",
        })
    );
    assert!(answer["documents"][3].get("description").is_none(), "a description is there only when it is written");
}

#[test]
fn list_documents_filters_by_section() {
    let mut client = Client::open(DOCS);
    for (section, expected) in [
        ("all", &["api/Old/legacy_api.md", "api/tools.md", "guides/getting-started.md", "readme.md"][..]),
        ("guides", &["guides/getting-started.md"]),
        // One of its two files says that it belongs elsewhere.
        ("api", &["api/tools.md"]),
        ("reference", &["api/Old/legacy_api.md"]),
        ("root", &["readme.md"]),
        ("tutorials", &[]),
        ("no such section", &[]),
    ] {
        let answer = client.answer("list_documents", json!({ "section": section }));
        assert_eq!(paths(&answer), expected, "{section}");
        assert_eq!((&answer["total"], &answer["section"]), (&json!(expected.len()), &json!(section)));
    }
}

#[test]
fn frontmatter_overrides_path_metadata() {
    let custom = "---\ntitle: Document Title\ndescription: Brief description of the document\n\
                  tags: [\"tag1\", \"tag2\", \"tag3\"]\nsection: custom-section  # Optional override\n---\n\n# Content\n";
    let mut client = Client::open(&format!("//- guides/some-file.md\n{custom}//- guides/plain-file.md\n"));
    let document = |answer: &Value| {
        let mut document = answer["documents"][0].clone();
        take_time(&mut document);
        document
    };
    assert_eq!(
        document(&client.answer("list_documents", json!({ "section": "custom-section" }))),
        json!({
            "title": "Document Title",
            "path": "guides/some-file.md",
            "section": "custom-section",
            "filename": "some-file.md",
            "tags": ["tag1", "tag2", "tag3"],
            "description": "Brief description of the document",
        })
    );
    assert_eq!(
        document(&client.answer("list_documents", json!({ "section": "guides" }))),
        json!({
            "title": "Plain File", "path": "guides/plain-file.md", "section": "guides", "filename": "plain-file.md", "tags": [],
        })
    );
}

#[test]
fn get_document_returns_the_full_text() {
    let mut client = Client::open(DOCS);
    let mut answer = client.answer("get_document", json!({ "path": "guides/getting-started.md" }));
    take_time(&mut answer["metadata"]);
    let body = "# Getting Started\n\nWelcome to the MCP Docs Demo!\n\nThis guide will help you with getting started quickly.\n";
    assert_eq!(
        answer,
        json!({
            "path": "guides/getting-started.md",
            "version": "3c2bafa7bb7b7fdc",
            "content": body,
            "metadata": {
                "title": "Getting Started",
                "path": "guides/getting-started.md",
                "section": "guides",
                "filename": "getting-started.md",
                "tags": ["getting-started", "setup"],
                "description": "Quick start guide for using the MCP Docs Demo",
            },
            "size": client.read("guides/getting-started.md").len(),
        })
    );
    assert_eq!(
        client.answer("get_document", json!({ "path": "API/old/LEGACY_api.md" }))["path"],
        "api/Old/legacy_api.md"
    );
}

#[test]
fn a_long_document_is_never_cut() {
    let long = "é".repeat(200_000);
    let answer = Client::open(&format!("//- long.md\n{long}\n")).answer("get_document", json!({ "path": "long.md" }));
    assert_eq!((answer["content"].as_str().unwrap().trim_end(), &answer["size"]), (long.as_str(), &json!(400_001)));
}

#[test]
fn error_messages_match_the_specification() {
    let mut client = Client::open(DOCS);
    for (tool, arguments, message) in [
        ("get_document", json!({ "path": "invalid/path.md" }), "Error: Document not found: invalid/path.md"),
        ("get_document", json!({ "path": "guides" }), "Error: Document not found: guides"),
        ("get_document", json!({}), "Error: Document path is required"),
        ("get_document", json!({ "path": "" }), "Error: Document path is required"),
        ("search_docs", json!({}), "Error: Search query is required"),
        ("search_docs", json!({ "query": " " }), "Error: Search query is required"),
        ("search_docs", json!({ "maxResults": 5 }), "Error: Search query is required"),
    ] {
        let result = client.call(tool, arguments.clone());
        let said = json!({ "content": [{ "type": "text", "text": message }], "isError": true });
        assert_eq!(
            (&result["content"], &result["isError"]),
            (&said["content"], &said["isError"]),
            "{tool} {arguments}"
        );
    }
    for (tool, arguments, argument) in [
        ("search_docs", json!({ "query": "x", "maxResults": 0 }), "`maxResults`"),
        ("search_docs", json!({ "query": "x", "max_results": 5 }), "`max_results`"),
        ("list_documents", json!({ "section": 7 }), "`section`"),
    ] {
        let text = client.failure(tool, arguments);
        assert!(text.starts_with("Error: ") && text.contains(argument), "{text}");
    }
}

#[test]
fn search_docs_returns_the_documented_fields() {
    let mut client = Client::open(DOCS);
    let mut answer = client.answer("search_docs", json!({ "query": "getting started", "maxResults": 5 }));
    take_time(&mut answer["results"][0]["document"]);
    assert_eq!(
        answer,
        json!({
            "results": [{
                "document": {
                    "title": "Getting Started",
                    "path": "guides/getting-started.md",
                    "section": "guides",
                    "filename": "getting-started.md",
                    "tags": ["getting-started", "setup"],
                    "description": "Quick start guide for using the MCP Docs Demo",
                },
                // The title 10, one of two tags 5, the heading and one line.
                "relevanceScore": 17,
                "excerpts": ["# Getting Started", "This guide will help you with getting started quickly."],
            }],
            "query": "getting started",
            "total": 1,
        })
    );
    assert_eq!(found(&client.answer("search_docs", json!({ "query": "MCP setup" }))), [("api/tools.md", 2)]);
    let nothing = json!({ "results": [], "query": "no such words", "total": 0 });
    assert_eq!(client.answer("search_docs", json!({ "query": "no such words" })), nothing);
}

#[test]
fn a_score_is_ten_for_the_title_five_for_each_tag_and_one_for_each_line() {
    let mut client = Client::open(
        "\
//- title.md
---
title: The Apple-Tree
---
//- tags.md
---
tags: [apple_tree, big/apple-tree, apple]
---
//- lines.md
apple tree
a tree, an apple: every word of it
only an apple
Apple_Tree and apple-tree in one line
```
apple tree
```
//- all.md
---
title: Apple tree
tags: [apple-tree]
---
apple tree
",
    );
    let answer = client.answer("search_docs", json!({ "query": "Apple tree" }));
    assert_eq!(found(&answer), [("all.md", 16), ("tags.md", 10), ("title.md", 10), ("lines.md", 4)]);
    assert_eq!(answer["total"], 4);
}

#[test]
fn three_excerpts_at_most_each_a_line_with_its_neighbours() {
    let lines = "before\nhit one\nafter\n\n\nhit two\n\nhit three\n\nhit four\n";
    let answer = Client::open(&format!("//- a.md\n{lines}")).answer("search_docs", json!({ "query": "hit" }));
    assert_eq!(answer["results"][0]["relevanceScore"], 4, "every line counts, shown or not");
    assert_eq!(answer["results"][0]["excerpts"], json!(["before\nhit one\nafter", "hit two", "hit three"]));
}

#[test]
fn search_docs_returns_ten_results_by_default() {
    let fixture: String = (0..12).map(|n| format!("//- n{n:02}.md\nword\n")).collect();
    let mut client = Client::open(&fixture);
    for (arguments, count) in [
        (json!({ "query": "word" }), 10),
        (json!({ "query": "word", "maxResults": 3 }), 3),
        (json!({ "query": "word", "maxResults": "12" }), 12),
    ] {
        let answer = client.answer("search_docs", arguments.clone());
        assert_eq!(answer["results"].as_array().unwrap().len(), count, "{arguments}");
        assert_eq!(answer["total"], 12, "all that match are counted");
    }
}

#[test]
fn changed_document_is_read_from_its_file() {
    let mut client = Client::open(DOCS);
    client.answer("get_document", json!({ "path": "readme.md" }));
    client.write("readme.md", "Quite something now.\n");
    assert_eq!(client.answer("get_document", json!({ "path": "readme.md" }))["content"], "Quite something now.\n");
    assert_eq!(found(&client.answer("search_docs", json!({ "query": "quite something" }))), [("readme.md", 1)]);
}

#[test]
fn handshake_announces_tools_and_the_list_has_all_three() {
    let mut client = Client::start(DOCS);
    assert!(client.initialize(crate::client::LEGACY)["capabilities"]["tools"].is_object());
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for (name, properties, required) in [
        ("list_documents", json!({ "section": "string" }), Value::Null),
        ("get_document", json!({ "path": "string" }), json!(["path"])),
        ("search_docs", json!({ "query": "string", "maxResults": "integer" }), json!(["query"])),
    ] {
        let schema = &tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"];
        for (property, kind) in properties.as_object().unwrap() {
            assert_eq!(schema["properties"][property]["type"], *kind, "{name}");
        }
        assert_eq!(schema["required"], required, "{name}");
    }
}
