//! `get_neighbors`, `find_path` and `get_hubs`: the vault as a graph.

use serde_json::{Value, json};

use super::ROUX;
use crate::client::{Client, ids};

#[test]
fn get_neighbors_filters_by_direction() {
    let mut client = Client::open(ROUX);
    // Those that link here first, by id; then those linked to, as the text names them.
    let both = ["notes/architecture.md", "notes/storeprovider.md", "notes/embeddingprovider.md", "notes/node.md"];
    for (arguments, expected) in [
        (json!({ "id": "notes/graphcore.md", "direction": "in", "limit": 10 }), &both[..1]),
        (json!({ "id": "notes/graphcore.md", "direction": "out" }), &both[1..]),
        (json!({ "id": "notes/graphcore.md", "direction": "both" }), &both),
        (json!({ "id": "notes/graphcore.md" }), &both),
        (json!({ "id": "Notes/GraphCore.md", "limit": 2 }), &both[..2]),
        (json!({ "id": "notes/node.md" }), &["notes/graphcore.md", "notes/storeprovider.md"]),
    ] {
        assert_eq!(ids(&client.answer("get_neighbors", arguments.clone())), expected, "{arguments}");
    }
}

#[test]
fn a_neighbour_that_links_both_ways_is_given_once() {
    let mut client = Client::open("//- a.md\n[[b]] [[a]]\n//- b.md\n[[a]]\n");
    assert_eq!(ids(&client.answer("get_neighbors", json!({ "id": "a.md" }))), ["b.md"]);
}

#[test]
fn a_neighbour_has_text_only_when_it_is_asked_for() {
    let mut client = Client::open(ROUX);
    let arguments = json!({ "id": "notes/graphcore.md", "direction": "in" });
    let without = json!({
        "id": "notes/architecture.md",
        "title": "Architecture Overview",
        "tags": ["overview"],
        "links": [{ "id": "notes/graphcore.md", "title": "GraphCore" }],
        "properties": {},
    });
    assert_eq!(client.answer("get_neighbors", arguments), json!([without]));
    let arguments = json!({ "id": "notes/graphcore.md", "direction": "in", "include_content": true });
    let mut with = without;
    with["content"] = json!("Roux is built around the [[GraphCore]].\n");
    assert_eq!(client.answer("get_neighbors", arguments), json!([with]));
}

const PATHS: &str = "\
//- notes/intro.md
[[basics]] [[detour]]
//- notes/detour.md
[[detour2]]
//- notes/detour2.md
[[advanced]]
//- notes/basics.md
[[advanced]]
//- notes/advanced.md
//- notes/island.md
";

#[test]
fn find_path_returns_the_shortest_path() {
    let mut client = Client::open(PATHS);
    let mut path =
        |source: &str, target: &str| client.answer("find_path", json!({ "source": source, "target": target }));
    let found = json!({ "path": ["notes/intro.md", "notes/basics.md", "notes/advanced.md"], "length": 2 });
    assert_eq!(path("notes/intro.md", "notes/advanced.md"), found);
    assert_eq!(path("NOTES/Intro.md", "notes/ADVANCED.md"), found);
    assert_eq!(path("notes/intro.md", "notes/intro.md"), json!({ "path": ["notes/intro.md"], "length": 0 }));
    for (source, target) in [
        ("notes/advanced.md", "notes/intro.md"),
        ("notes/intro.md", "notes/island.md"),
        ("notes/intro.md", "notes/none.md"),
        ("notes/none.md", "notes/none.md"),
    ] {
        assert_eq!(path(source, target), Value::Null, "{source} to {target}");
    }
}

#[test]
fn get_hubs_orders_by_in_and_out_degree() {
    let mut client = Client::open(
        "\
//- notes/index.md
[[glossary]] [[a]] [[index]] [[glossary|again]]
//- notes/glossary.md
[[index]]
//- notes/a.md
[[index]] [[glossary]] [[nowhere]]
//- notes/b.md
[[index]]
",
    );
    let hub = |id: &str, title: &str, score: u32| json!({ "id": id, "title": title, "score": score });
    let by_incoming = json!([hub("notes/index.md", "Index", 3), hub("notes/glossary.md", "Glossary", 2)]);
    assert_eq!(client.answer("get_hubs", json!({ "metric": "in_degree", "limit": 2 })), by_incoming);
    assert_eq!(client.answer("get_hubs", json!({ "limit": 2 })), by_incoming);
    // A self link, a second link and a broken one count for nothing; ties go by id.
    let by_outgoing = json!([
        hub("notes/a.md", "A", 2),
        hub("notes/index.md", "Index", 2),
        hub("notes/b.md", "B", 1),
        hub("notes/glossary.md", "Glossary", 1),
    ]);
    assert_eq!(client.answer("get_hubs", json!({ "metric": "out_degree" })), by_outgoing);
    let ranked = client.answer("get_hubs", json!({ "metric": "pagerank" }));
    assert_eq!(ids(&ranked)[0], "notes/index.md");
}
