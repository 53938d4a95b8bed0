//! `get_node` and `random_node`: one note, alone or with the notes around it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ROUX;
use crate::client::{Client, ids};

#[test]
fn get_node_returns_the_documented_fields() {
    let mut client = Client::open(ROUX);
    let node = json!({
        "id": "notes/graphcore.md",
        "title": "GraphCore",
        "version": "e1937cd46ffbf57f",
        "content": "The orchestration hub of Roux: [[StoreProvider]], [[EmbeddingProvider]], [[Node]].\n",
        "tags": ["architecture", "core"],
        "links": [
            { "id": "notes/storeprovider.md", "title": "StoreProvider" },
            { "id": "notes/embeddingprovider.md", "title": "EmbeddingProvider" },
            { "id": "notes/node.md", "title": "Node" },
        ],
        "properties": {},
    });
    assert_eq!(client.answer("get_node", json!({ "id": "notes/graphcore.md" })), node);
    assert_eq!(client.answer("get_node", json!({ "id": "notes/graphcore.md", "depth": 0 })), node);
    assert_eq!(client.answer("get_node", json!({ "id": "NOTES/GraphCore.md" })), node, "an id has no case");
}

#[test]
fn get_node_with_depth_has_neighbours() {
    let mut client = Client::open(ROUX);
    let alone = client.answer("get_node", json!({ "id": "notes/graphcore.md" }));
    let mut around = client.answer("get_node", json!({ "id": "notes/graphcore.md", "depth": 1 }));
    assert_eq!((&around["incomingCount"], &around["outgoingCount"]), (&json!(1), &json!(3)));
    assert_eq!(
        around["incomingNeighbors"],
        json!([{
            "id": "notes/architecture.md",
            "title": "Architecture Overview",
            "content": "Roux is built around the [[GraphCore]].\n",
            "tags": ["overview"],
            "links": [{ "id": "notes/graphcore.md", "title": "GraphCore" }],
            "properties": {},
        }])
    );
    let outgoing = around["outgoingNeighbors"].as_array().unwrap();
    assert_eq!(outgoing.len(), 3);
    let store = outgoing.iter().find(|node| node["id"] == "notes/storeprovider.md").unwrap();
    assert_eq!(store["content"], "Data persistence and graph operations. See [[Node]].\n");
    assert_eq!(store["tags"], json!(["provider"]));
    assert_eq!(store["links"], json!([{ "id": "notes/node.md", "title": "Node" }]));

    let fields = around.as_object_mut().unwrap();
    for added in ["incomingNeighbors", "outgoingNeighbors", "incomingCount", "outgoingCount"] {
        fields.remove(added);
    }
    assert_eq!(around, alone, "the rest is as without neighbours");
}

#[test]
fn at_most_twenty_neighbours_each_way_and_the_total_counted() {
    let mut fixture = String::from("//- hub.md\n");
    (0..25).for_each(|n| fixture.push_str(&format!("[[out{n:02}]] ")));
    (0..25).for_each(|n| fixture.push_str(&format!("\n//- out{n:02}.md\n\n//- in{n:02}.md\n[[hub]]")));
    let around = Client::open(&fixture).answer("get_node", json!({ "id": "hub.md", "depth": 1 }));
    assert_eq!((&around["incomingCount"], &around["outgoingCount"]), (&json!(25), &json!(25)));
    assert_eq!(ids(&around["incomingNeighbors"]).len(), 20);
    assert_eq!(ids(&around["outgoingNeighbors"]).len(), 20);
    assert_eq!(ids(&around["links"]).len(), 25, "links are those of the note, not of the neighbours shown");
}

#[test]
fn content_is_cut_at_the_limit_of_its_field() {
    let whole = |chars: usize| format!("[[other]] {}\n", "é".repeat(chars));
    let fixture = |chars: usize| format!("//- long.md\n---\ntags: [t]\n---\n{}//- other.md\n[[long]]\n", whole(chars));
    let places: [(&str, Value, &str, usize); 6] = [
        ("get_node", json!({ "id": "long.md" }), "/content", 10_000),
        ("random_node", json!({ "tags": ["t"] }), "/content", 10_000),
        ("get_neighbors", json!({ "id": "other.md", "include_content": true }), "/0/content", 500),
        ("search_by_tags", json!({ "tags": ["t"] }), "/0/content", 500),
        ("get_node", json!({ "id": "other.md", "depth": 1 }), "/incomingNeighbors/0/content", 200),
        ("get_node", json!({ "id": "other.md", "depth": 1 }), "/outgoingNeighbors/0/content", 200),
    ];
    for (tool, arguments, place, max_chars) in places {
        let content = |chars: usize| {
            let answer = Client::open(&fixture(chars)).answer(tool, arguments.clone());
            answer.pointer(place).unwrap_or_else(|| panic!("{answer}")).as_str().unwrap().to_owned()
        };
        // Ten characters of link before, one newline behind.
        let fitting = max_chars - 11;
        assert_eq!(content(fitting), whole(fitting), "{tool} {place}");
        let cut = content(fitting + 1);
        assert_eq!(cut.chars().count(), max_chars, "{tool} {place}: the suffix counts");
        let (begin, suffix) = cut.split_at(cut.len() - 15);
        assert_eq!(suffix, "... [truncated]");
        assert!(whole(fitting).starts_with(begin), "{tool} {place}");
    }
}

#[test]
fn links_have_titles_and_broken_links_the_written_target() {
    let mut client = Client::open(
        "\
//- notes/ml-basics.md
[[neural-networks]], [text](<supervised learning.md>), [[Nowhere/Man|him]], [[neural-networks#top]]
//- notes/neural-networks.md
---
title: Networks of Neurons
---
//- notes/supervised learning.md
",
    );
    assert_eq!(
        client.answer("get_node", json!({ "id": "notes/ml-basics.md" }))["links"],
        json!([
            { "id": "notes/neural-networks.md", "title": "Networks of Neurons" },
            { "id": "notes/supervised learning.md", "title": "Supervised Learning" },
            { "id": "Nowhere/Man", "title": "Nowhere/Man" },
        ])
    );
}

#[test]
fn properties_are_the_frontmatter_that_has_no_field_of_its_own() {
    let mut client = Client::open("//- a.md\n---\ntitle: T\ntags: [x]\nstatus: done\nn: 3\nlist: [1, two]\n---\n");
    let node = client.answer("get_node", json!({ "id": "a.md" }));
    assert_eq!(node["properties"], json!({ "status": "done", "n": 3, "list": [1, "two"] }));
}

#[test]
fn random_node_matches_the_tags() {
    let mut client = Client::open("//- a.md\n#idea\n//- b.md\n#idea/small\n//- c.md\n#other\n//- d.md\nplain\n");
    let mut seen = |arguments: Value| -> BTreeSet<String> {
        let picks = (0..60).map(|_| client.answer("random_node", arguments.clone()));
        picks.map(|node| node["id"].as_str().unwrap_or("null").to_owned()).collect()
    };
    let set = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(seen(json!({ "tags": ["idea"] })), set(&["a.md", "b.md"]));
    assert_eq!(seen(json!({ "tags": ["idea", "OTHER"] })), set(&["a.md", "b.md", "c.md"]), "any of the tags");
    assert_eq!(seen(json!({})), set(&["a.md", "b.md", "c.md", "d.md"]));
    assert_eq!(seen(json!({ "tags": ["none"] })), set(&["null"]));
}

#[test]
fn a_random_node_of_an_empty_vault_is_null() {
    assert_eq!(Client::open("").answer("random_node", json!({})), Value::Null);
}
