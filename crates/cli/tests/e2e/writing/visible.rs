//! A write is seen by the very next call, whatever that call looks at.

#![expect(clippy::disallowed_methods, reason = "what is left in the folder is counted")]

use serde_json::{Value, json};

use crate::client::{Client, ids, vault};

/// What every reading tool says of one note and one word.
fn seen(client: &mut Client, id: &str, word: &str) -> Value {
    let listed = client.answer("list_nodes", json!({}));
    let found = client.answer("search_docs", json!({ "query": word }));
    json!({
        "listed": ids(&listed["nodes"]).contains(&id),
        "exists": client.answer("nodes_exist", json!({ "ids": [id] }))[id],
        "linking": ids(&client.answer("get_neighbors", json!({ "id": "hub.md", "direction": "in" }))),
        "tagged": ids(&client.answer("search_by_tags", json!({ "tags": ["fresh"] }))),
        "found": found["results"].as_array().unwrap().iter().map(|hit| &hit["document"]["path"]).collect::<Vec<_>>(),
        "node": client.answer("get_node", json!({ "id": id }))["content"],
        "document": client.call("get_document", json!({ "path": id }))["isError"] != true,
    })
}

#[test]
fn every_tool_sees_a_write_at_once() {
    // With and without a watcher: neither may be needed, nor in the way.
    for arguments in [&["--no-watch"][..], &[]] {
        let mut client = Client::open_in(vault("//- hub.md\nThe hub.\n"), arguments);
        let nothing = json!({
            "listed": false, "exists": false, "linking": [], "tagged": [], "found": [], "node": null, "document": false,
        });
        assert_eq!(seen(&mut client, "n.md", "apple"), nothing);

        client.answer("create_node", json!({ "id": "n.md", "content": "apple [[hub]]", "tags": ["fresh"] }));
        let there = |node: &str, linking: &[&str], found: &[&str]| {
            json!({
                "listed": true, "exists": true, "linking": linking, "tagged": ["n.md"], "found": found, "node": node, "document": true,
            })
        };
        assert_eq!(seen(&mut client, "n.md", "apple"), there("apple [[hub]]", &["n.md"], &["n.md"]));

        client.answer("update_node", json!({ "id": "n.md", "content": "pear" }));
        assert_eq!(seen(&mut client, "n.md", "apple"), there("pear", &[], &[]));
        assert_eq!(seen(&mut client, "n.md", "pear"), there("pear", &[], &["n.md"]));

        let renamed = client.answer("update_node", json!({ "id": "n.md", "title": "M" }));
        assert_eq!(renamed["id"], "m.md");
        let mut gone = nothing.clone();
        gone["tagged"] = json!(["m.md"]);
        gone["found"] = json!(["M.md"]);
        assert_eq!(seen(&mut client, "n.md", "pear"), gone);
        assert_eq!(client.answer("resolve_nodes", json!({ "names": ["M"] }))[0]["match"], "m.md");

        client.answer("delete_node", json!({ "id": "m.md" }));
        assert_eq!(seen(&mut client, "m.md", "pear"), nothing);
    }
}

#[test]
fn new_note_resolves_broken_links_and_a_deleted_one_breaks_them() {
    let mut client = Client::open("//- a.md\n[[later]]\n");
    let links = |client: &mut Client| client.answer("get_node", json!({ "id": "a.md", "depth": 1 }));
    let broken = json!([{ "id": "later", "title": "later" }]);
    assert_eq!(links(&mut client)["links"], broken);
    client.answer("create_node", json!({ "id": "sub/later.md", "content": "x", "title": "At Last" }));
    let mended = links(&mut client);
    assert_eq!(mended["links"], json!([{ "id": "sub/later.md", "title": "At Last" }]));
    assert_eq!(mended["outgoingCount"], 1);
    client.answer("delete_node", json!({ "id": "sub/later.md" }));
    assert_eq!(links(&mut client)["links"], broken);
}

#[test]
fn each_of_a_hundred_writes_is_visible_to_the_next_call() {
    let mut client = Client::open("");
    for n in 0..100 {
        let create = json!({ "name": "create_node", "arguments": { "id": format!("n{n:03}.md"), "content": "x" } });
        client.request("tools/call", create);
        assert_eq!(client.answer("list_nodes", json!({ "limit": 1 }))["total"], n + 1);
    }
    assert_eq!(std::fs::read_dir(client.root()).unwrap().count(), 101, "the notes and .quipu, nothing left over");
}
