//! What a write does to a file: the bytes asked for, and no others.

use serde_json::{Value, json};

use crate::client::{Client, vault_of};

/// Updates a note that has some text; gives the file then.
fn updated(before: &str, mut arguments: Value) -> String {
    let mut client = Client::open_in(vault_of("a.md", before), &[]);
    arguments["id"] = json!("a.md");
    client.answer("update_node", arguments);
    client.read("a.md")
}

const COMMENTED: &str = "\
---
# who wrote this
author:   'J. Doe'   # two spaces, single quotes
title: \"Old: Title\"   # a comment
date: 2024-01-05
tags: [one,  two] # and these
nested:
    deep: [1,
      2]
empty:
---

  Text.   
";

#[test]
fn new_tags_change_their_own_value_only() {
    let after = updated(COMMENTED, json!({ "tags": ["three", "four five"] }));
    assert_eq!(after, COMMENTED.replace("[one,  two]", "[three, four five]"));
}

#[test]
fn a_new_title_changes_its_own_value_only() {
    // The title is the file's name too; one that differs in nothing but that leaves the file where it is.
    let after = updated(COMMENTED, json!({ "title": "a" }));
    assert_eq!(after, COMMENTED.replace("\"Old: Title\"", "\"a\""));
}

#[test]
fn new_text_leaves_the_frontmatter_alone() {
    let after = updated(COMMENTED, json!({ "content": "New.\n" }));
    assert_eq!(after, COMMENTED.replace("  Text.   \n", "New.\n"));
}

#[test]
fn update_without_a_difference_writes_nothing() {
    assert_eq!(updated(COMMENTED, json!({ "tags": ["one", "two"] })), COMMENTED);
}

#[test]
fn line_ends_byte_order_marks_and_yaml_styles_stay() {
    for (before, arguments, after) in [
        // Windows line ends.
        (
            "---\r\ntags:\r\n- a\r\nx: 1 # c\r\n---\r\ntext\r\n",
            json!({ "tags": ["b", "c"] }),
            "---\r\ntags:\r\n- b\r\n- c\r\nx: 1 # c\r\n---\r\ntext\r\n",
        ),
        (
            "---\r\nx: 1\r\n---\r\ntext\r\n",
            json!({ "tags": ["b"] }),
            "---\r\nx: 1\r\ntags:\r\n  - b\r\n---\r\ntext\r\n",
        ),
        ("text\r\n", json!({ "tags": ["b"] }), "---\r\ntags:\r\n  - b\r\n---\r\ntext\r\n"),
        // A byte order mark.
        ("\u{feff}---\nx: 1\n---\ntext\n", json!({ "tags": ["b"] }), "\u{feff}---\nx: 1\ntags:\n  - b\n---\ntext\n"),
        ("\u{feff}text\n", json!({ "tags": ["b"] }), "\u{feff}---\ntags:\n  - b\n---\ntext\n"),
        ("\u{feff}---\nx: 1\n---\ntext\n", json!({ "content": "new" }), "\u{feff}---\nx: 1\n---\nnew"),
        // Quotes, a list's own indent, tags under their other name, tags as one string.
        ("---\ntitle: 'it''s'\n---\n", json!({ "title": "a" }), "---\ntitle: 'a'\n---\n"),
        ("---\ntags:\n    - x\n    - y\nz: 1\n---\n", json!({ "tags": ["k"] }), "---\ntags:\n    - k\nz: 1\n---\n"),
        ("---\ntag: x\nz: 1\n---\n", json!({ "tags": ["k"] }), "---\ntag: x\nz: 1\ntags:\n  - k\n---\n"),
        ("---\ntags: [x]\n---\n", json!({ "tags": [] }), "---\ntags: []\n---\n"),
        // No newline at the end, and content exactly as given.
        ("old", json!({ "content": "new\r\n\r\n  " }), "new\r\n\r\n  "),
        // Content that brings its own frontmatter replaces the old.
        ("---\nx: 1\n---\nold\n", json!({ "content": "---\ny: 2\n---\nnew\n" }), "---\ny: 2\n---\nnew\n"),
    ] {
        assert_eq!(updated(before, arguments.clone()), after, "{before:?} with {arguments}");
    }
}

#[test]
fn ambiguous_yaml_values_are_quoted() {
    let mut client = Client::open("");
    let tricky =
        ["yes", "null", "1.0", "#hash", "a: b", "- x", "'quote'", "\"double\"", "[x]", "2024-01-05", "@at", "ünï"];
    for (number, title) in tricky.iter().enumerate() {
        let id = format!("n{number}.md");
        let created = client.answer("create_node", json!({ "id": id, "content": "x", "title": title }));
        assert_eq!(created["title"], *title);
        assert_eq!(client.answer("get_node", json!({ "id": id }))["title"], *title);
    }
    let tags = ["yes", "1.0", "a: b", "ünï", "with space", "nested/tag", "it's", "x,y"];
    client.answer("create_node", json!({ "id": "tags.md", "content": "x", "tags": tags }));
    assert_eq!(client.answer("get_node", json!({ "id": "tags.md" }))["tags"], json!(tags));
}

#[test]
fn frontmatter_that_cannot_be_read_is_never_edited() {
    let broken = "---\ntitle: [unclosed\n---\ntext\n";
    let mut client = Client::open(&format!("//- a.md\n{broken}"));
    let (code, message) = client.error("update_node", json!({ "id": "a.md", "tags": ["t"] }));
    assert_eq!(code, "PROVIDER_ERROR");
    assert!(message.contains("frontmatter of a.md") && message.contains("correct it first"), "{message}");
    assert_eq!(client.read("a.md"), broken);
}
