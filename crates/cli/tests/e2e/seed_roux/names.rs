//! `resolve_nodes` and `nodes_exist`: from names to ids, and whether ids are there.

use serde_json::{Value, json};

use crate::client::Client;

const RECIPES: &str = "\
//- recipes/Bulgogi.md
---
tags: [korean]
---
//- recipes/chicken.md
---
aliases: [Poultry]
---
//- recipes/soup-01.md
---
title: Grandmother's Soup
---
";

/// The match and score for one name.
fn resolved(client: &mut Client, name: &str, mut arguments: Value) -> (Value, Value) {
    arguments["names"] = json!([name]);
    let answer = client.answer("resolve_nodes", arguments);
    assert_eq!((answer.as_array().unwrap().len(), &answer[0]["query"]), (1, &json!(name)));
    (answer[0]["match"].clone(), answer[0]["score"].clone())
}

#[test]
fn resolve_nodes_matches_names_and_typos() {
    let mut client = Client::open(RECIPES);
    let arguments = json!({ "names": ["bulgogi", "chikken"], "strategy": "fuzzy", "threshold": 0.5 });
    assert_eq!(
        client.answer("resolve_nodes", arguments),
        json!([
            { "query": "bulgogi", "match": "recipes/bulgogi.md", "score": 1.0 },
            { "query": "chikken", "match": "recipes/chicken.md", "score": 0.67 },
        ])
    );
    assert_eq!(client.answer("resolve_nodes", json!({ "names": [] })), json!([]));
}

#[test]
fn default_threshold_is_0_7_of_the_returned_score() {
    let mut client = Client::open(RECIPES);
    let none = (Value::Null, json!(0.0));
    let chicken = (json!("recipes/chicken.md"), json!(0.67));
    assert_eq!(resolved(&mut client, "chikken", json!({})), none);
    assert_eq!(resolved(&mut client, "chikken", json!({ "threshold": 0.68 })), none);
    assert_eq!(resolved(&mut client, "chikken", json!({ "threshold": 0.67 })), chicken);
    assert_eq!(resolved(&mut client, "chikken", json!({ "threshold": "0.5" })), chicken);
}

#[test]
fn exact_strategy_matches_names_ignoring_case() {
    let mut client = Client::open(RECIPES);
    for (name, expected) in [
        ("BULGOGI", "recipes/bulgogi.md"),
        ("grandmother's soup", "recipes/soup-01.md"),
        ("soup-01", "recipes/soup-01.md"),
        ("poultry", "recipes/chicken.md"),
    ] {
        // A threshold that nothing could reach is not looked at.
        let found = resolved(&mut client, name, json!({ "strategy": "exact", "threshold": 1 }));
        assert_eq!(found, (json!(expected), json!(1.0)), "{name}");
    }
    assert_eq!(resolved(&mut client, "bulgogy", json!({ "strategy": "exact" })), (Value::Null, json!(0.0)));
}

#[test]
fn candidates_are_narrowed_by_tag_and_path() {
    let mut client = Client::open(RECIPES);
    let mut found = |arguments: Value| resolved(&mut client, "bulgogi", arguments).0;
    assert_eq!(found(json!({ "tag": "KOREAN", "path": "Recipes/" })), "recipes/bulgogi.md");
    assert_eq!(found(json!({ "tag": "french" })), Value::Null);
    assert_eq!(found(json!({ "path": "drinks/" })), Value::Null);
}

#[test]
fn meaning_needs_an_embedder() {
    if crate::team_wire::is_wanted() {
        return quipu_testkit::skip("the settings of a folder do not count for a database");
    }
    let fixture = format!("{RECIPES}\n//- .quipu/config.toml\n[embedding]\nprovider = \"none\"\n");
    let mut client = Client::open(&fixture);
    let (code, message) = client.error("resolve_nodes", json!({ "names": ["beef"], "strategy": "semantic" }));
    assert_eq!(code, "PROVIDER_ERROR");
    assert!(message.contains("fuzzy"), "it says what to do instead: {message}");
}

#[test]
fn nodes_exist_returns_normalized_ids() {
    let mut client = Client::open(RECIPES);
    let asked = json!({ "ids": ["recipes/bulgogi.md", "recipes/nonexistent.md"] });
    let answer = json!({ "recipes/bulgogi.md": true, "recipes/nonexistent.md": false });
    assert_eq!(client.answer("nodes_exist", asked), answer);
    let loud = json!({ "ids": ["Recipes/BULGOGI.md", "recipes/bulgogi.md", "Recipes/Nonexistent.md"] });
    assert_eq!(client.answer("nodes_exist", loud), answer);
    assert_eq!(
        client.answer("nodes_exist", json!({ "ids": ["recipes/bulgogi", ""] })),
        json!({ "recipes/bulgogi": false, "": false })
    );
    assert_eq!(client.answer("nodes_exist", json!({ "ids": [] })), json!({}));
}
