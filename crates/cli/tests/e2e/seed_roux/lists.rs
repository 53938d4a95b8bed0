//! `search_by_tags` and `list_nodes`: many notes by tag and by folder.

use serde_json::{Value, json};

use crate::client::{Client, ids};

const TAGGED: &str = "\
//- a.md
---
tags: [tutorial, ML]
---
Text of a.
//- b.md
---
tags: tutorial
---
//- c.md
Inline #ml/deep.
//- d.md
---
type: tutorial
---
";

#[test]
fn search_by_tags_matches_any_or_all_tags() {
    let mut client = Client::open(TAGGED);
    for (arguments, expected) in [
        (json!({ "tags": ["tutorial", "ml"], "mode": "all" }), &["a.md"][..]),
        (json!({ "tags": ["tutorial", "ml"], "mode": "any" }), &["a.md", "b.md", "c.md"]),
        (json!({ "tags": ["tutorial", "ml"] }), &["a.md", "b.md", "c.md"]),
        (json!({ "tags": ["#TUTORIAL"] }), &["a.md", "b.md"]),
        (json!({ "tags": ["ml/deep"] }), &["c.md"]),
        (json!({ "tags": ["deep"] }), &[]),
        (json!({ "tags": ["tutorial", "ml"], "limit": 1 }), &["a.md"]),
    ] {
        assert_eq!(ids(&client.answer("search_by_tags", arguments.clone())), expected, "{arguments}");
    }
    assert_eq!(
        client.answer("search_by_tags", json!({ "tags": ["tutorial", "ml"], "mode": "all" })),
        json!([{
            "id": "a.md", "title": "A", "content": "Text of a.\n", "tags": ["tutorial", "ML"], "links": [], "properties": {},
        }])
    );
}

/// 42 recipes, two of them with names.
fn recipes() -> String {
    let mut fixture = String::from("//- Recipes/Bulgogi.md\n#recipe\n//- Recipes/kimchi.md\n#recipe\n");
    (0..40).for_each(|n| fixture.push_str(&format!("//- recipes/r{n:02}.md\n---\ntags: [Recipe]\n---\n")));
    fixture + "//- other/recipe.md\n---\ncategory: recipe\n---\n//- recipes.md\n"
}

#[test]
fn list_nodes_has_a_page_and_the_total() {
    let mut client = Client::open(&recipes());
    let page = client.answer("list_nodes", json!({ "tag": "recipe", "limit": 2 }));
    let named = json!([
        { "id": "recipes/bulgogi.md", "title": "Bulgogi" },
        { "id": "recipes/kimchi.md", "title": "Kimchi" },
    ]);
    assert_eq!(page, json!({ "nodes": named, "total": 42 }));
}

#[test]
fn the_pages_together_are_the_whole_list() {
    let mut client = Client::open(&recipes());
    let whole = client.answer("list_nodes", json!({ "tag": "RECIPE" }));
    let mut pages: Vec<Value> = Vec::new();
    for offset in (0..42).step_by(20) {
        let page = client.answer("list_nodes", json!({ "tag": "recipe", "limit": 20, "offset": offset }));
        assert_eq!(page["total"], 42);
        pages.extend(page["nodes"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(json!(pages), whole["nodes"]);
    let behind = client.answer("list_nodes", json!({ "tag": "recipe", "offset": 42 }));
    assert_eq!(behind, json!({ "nodes": [], "total": 42 }));
}

#[test]
fn a_path_is_a_prefix_in_any_case() {
    let mut client = Client::open(&recipes());
    for (arguments, total) in [
        (json!({ "path": "recipes/" }), 42),
        (json!({ "path": "RECIPES" }), 43),
        (json!({ "path": "recipes/r1" }), 10),
        (json!({ "path": "ecipes" }), 0),
        (json!({ "path": "other/", "tag": "recipe" }), 0),
        (json!({}), 44),
    ] {
        assert_eq!(client.answer("list_nodes", arguments.clone())["total"], total, "{arguments}");
    }
}
