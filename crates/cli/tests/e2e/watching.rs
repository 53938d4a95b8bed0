//! Changes by other programs are indexed without a call.

#![expect(clippy::disallowed_methods, reason = "another program's edits are made here")]

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, ids, vault, warnings};

/// A client whose server has looked through the vault and watches it: a change from now on is seen by watching alone.
///
/// The watches are placed beside the first look, and nothing tells when: a note made and seen does.
fn watched(fixture: &str) -> Client {
    let mut client = Client::open(fixture);
    client.write("sentinel.md", "");
    client.wait_for("nodes_exist", json!({ "ids": ["sentinel.md"] }), &json!({ "sentinel.md": true }));
    fs::remove_file(client.root().join("sentinel.md")).unwrap();
    client.wait_for("nodes_exist", json!({ "ids": ["sentinel.md"] }), &json!({ "sentinel.md": false }));
    client
}

/// Waits until the vault has just these notes, and no others.
#[track_caller]
fn expect_notes(client: &mut Client, expected: &[(&str, &str)]) {
    let nodes: Vec<Value> = expected.iter().map(|(id, title)| json!({ "id": id, "title": title })).collect();
    client.wait_for("list_nodes", json!({}), &json!({ "nodes": nodes, "total": expected.len() }));
}

#[test]
fn created_changed_and_deleted_note_is_indexed() {
    let mut client = watched("//- a.md\na\n");
    client.write("b.md", "---\ntitle: First\n---\n");
    expect_notes(&mut client, &[("a.md", "A"), ("b.md", "First")]);
    client.write("b.md", "---\ntitle: Second\n---\n");
    expect_notes(&mut client, &[("a.md", "A"), ("b.md", "Second")]);
    fs::remove_file(client.root().join("b.md")).unwrap();
    expect_notes(&mut client, &[("a.md", "A")]);
}

#[test]
fn note_in_new_folders_is_indexed() {
    let mut client = watched("//- a.md\na\n");
    client.write("x/y/z/deep.md", "deep\n");
    expect_notes(&mut client, &[("a.md", "A"), ("x/y/z/deep.md", "Deep")]);
    client.write("x/y/z/second.md", "the folder is watched by now, or was looked into late enough\n");
    expect_notes(&mut client, &[("a.md", "A"), ("x/y/z/deep.md", "Deep"), ("x/y/z/second.md", "Second")]);
    fs::remove_dir_all(client.root().join("x")).unwrap();
    expect_notes(&mut client, &[("a.md", "A")]);
}

#[test]
fn renamed_note_is_indexed() {
    let mut client = watched("//- old.md\ntext\n//- a.md\n[[new]]\n");
    fs::rename(client.root().join("old.md"), client.root().join("New.md")).unwrap();
    expect_notes(&mut client, &[("a.md", "A"), ("new.md", "New")]);
    let linking = client.answer("get_neighbors", json!({ "id": "new.md", "direction": "in" }));
    assert_eq!(ids(&linking), ["a.md"], "a link becomes an edge the moment its note appears");

    // The id stays when only the capitals change, and the path tells.
    fs::rename(client.root().join("New.md"), client.root().join("NEW.md")).unwrap();
    expect_notes(&mut client, &[("a.md", "A"), ("new.md", "NEW")]);
    assert_eq!(client.answer("get_document", json!({ "path": "new.md" }))["path"], "NEW.md");
}

#[test]
fn moved_folder_is_indexed() {
    let outside = vault("//- project/one.md\n1\n//- project/deep/two.md\n2\n");
    let mut client = watched("//- a.md\na\n");
    let root = client.root().to_owned();
    let (away, here, there) = (outside.path().join("project"), root.join("project"), root.join("archive/2024"));

    fs::rename(&away, &here).unwrap();
    expect_notes(&mut client, &[("a.md", "A"), ("project/deep/two.md", "Two"), ("project/one.md", "One")]);

    fs::create_dir(root.join("archive")).unwrap();
    fs::rename(&here, &there).unwrap();
    expect_notes(&mut client, &[("a.md", "A"), ("archive/2024/deep/two.md", "Two"), ("archive/2024/one.md", "One")]);

    // The folder is watched under its new name, and no longer under its old one.
    fs::write(there.join("deep/three.md"), "3").unwrap();
    let three = [
        ("a.md", "A"),
        ("archive/2024/deep/three.md", "Three"),
        ("archive/2024/deep/two.md", "Two"),
        ("archive/2024/one.md", "One"),
    ];
    expect_notes(&mut client, &three);

    fs::rename(&there, &away).unwrap();
    expect_notes(&mut client, &[("a.md", "A")]);
    fs::write(away.join("four.md"), "4").unwrap();
    client.write("b.md", "seen after whatever came before it");
    expect_notes(&mut client, &[("a.md", "A"), ("b.md", "B")]);
}

#[test]
fn save_through_a_temporary_file_is_indexed() {
    let mut client = watched("//- a.md\n---\ntitle: Old\n---\n");
    let root = client.root().to_owned();
    for (temporary, title) in [(".a.md.swp", "One"), ("a.md~", "Two"), (".goutputstream-X", "Three"), ("4913", "Four")]
    {
        fs::write(root.join(temporary), format!("---\ntitle: {title}\n---\n")).unwrap();
        fs::rename(root.join(temporary), root.join("a.md")).unwrap();
        expect_notes(&mut client, &[("a.md", title)]);
    }
    // Or moves the old one aside first.
    fs::rename(root.join("a.md"), root.join("a.md.bak")).unwrap();
    client.write("a.md", "---\ntitle: Five\n---\n");
    expect_notes(&mut client, &[("a.md", "Five")]);
}

#[test]
fn thousand_changed_files_are_indexed() {
    let on_branch = |branch: &str| -> String {
        (0..1000).map(|n| format!("//- d{}/n{n:04}.md\n#{branch} [[hub]]\n", n % 20)).collect()
    };
    let mut client = watched(&on_branch("main"));
    let total = |tag: &str| json!({ "tag": tag, "limit": 1 });
    assert_eq!(client.answer("list_nodes", total("main"))["total"], 1000);

    // As a checkout does: some changed, some gone, some new.
    for n in 0..1000 {
        let path = format!("d{}/n{n:04}.md", n % 20);
        match n % 10 {
            0 => fs::remove_file(client.root().join(path)).unwrap(),
            _ => client.write(&path, "#branch [[hub]]\n"),
        }
    }
    (0..50).for_each(|n| client.write(&format!("new/n{n:02}.md"), "#branch [[hub]]\n"));
    client.write("hub.md", "the middle\n");
    let first = json!({ "id": "d1/n0001.md", "title": "N0001" });
    client.wait_for("list_nodes", total("branch"), &json!({ "nodes": [first], "total": 950 }));
    client.wait_for("list_nodes", total("main"), &json!({ "nodes": [], "total": 0 }));
    client.wait_for("get_hubs", json!({ "limit": 1 }), &json!([{ "id": "hub.md", "title": "Hub", "score": 950 }]));
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 951);
}

#[test]
fn changed_ignore_rules_apply_to_indexed_notes() {
    let mut client = watched("//- a.md\na\n//- drafts/d.md\nd\n");
    client.write(".gitignore", "drafts/\n");
    expect_notes(&mut client, &[("a.md", "A")]);
    fs::remove_file(client.root().join(".gitignore")).unwrap();
    expect_notes(&mut client, &[("a.md", "A"), ("drafts/d.md", "D")]);
}

#[test]
fn client_is_warned_when_a_note_it_read_has_changed() {
    let mut client = watched("//- a.md\nold\n//- b.md\n");
    client.answer("get_node", json!({ "id": "a.md" }));
    client.write("a.md", "#changed\n");
    let start = Instant::now();
    let mut told = Vec::new();
    while told.is_empty() && start.elapsed() < PATIENCE {
        told = warnings(&client.call("list_nodes", json!({})));
    }
    assert_eq!(told, ["\"a.md\": changed since you read it; read it again before writing"]);
}

#[test]
fn without_watching_a_change_is_seen_when_its_note_is_read() {
    let mut client = Client::open_in(vault("//- a.md\n---\ntitle: Old\n---\nold text\n"), &["--no-watch"]);
    let listed = client.answer("list_nodes", json!({}));
    // Another server, of another vault, does watch: once it has seen two later changes, this one would have seen its own.
    let mut watching = watched("");
    client.write("a.md", "---\ntitle: New\n---\nnew text\n");
    client.write("b.md", "b\n");
    watching.write("a.md", "a\n");
    expect_notes(&mut watching, &[("a.md", "A")]);
    watching.write("b.md", "b\n");
    expect_notes(&mut watching, &[("a.md", "A"), ("b.md", "B")]);
    assert_eq!(client.answer("list_nodes", json!({})), listed);

    let read = client.answer("get_node", json!({ "id": "a.md" }));
    assert_eq!((&read["title"], &read["content"]), (&json!("New"), &json!("new text\n")));
    let now = json!({ "nodes": [{ "id": "a.md", "title": "New" }], "total": 1 });
    assert_eq!(client.answer("list_nodes", json!({})), now, "what was read is known from then on");
    assert_eq!(client.answer("get_node", json!({ "id": "b.md" }))["content"], "b\n");
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 2);
}

#[test]
fn deleted_text_index_is_rebuilt_by_a_running_server() {
    let mut client = watched("//- old.md\nsparrow\n");
    let paths = |client: &mut Client, query: &str| {
        let found = client.answer("ubp_fulltext_search", json!({ "query": query }));
        let hits = found["results"].as_array().unwrap().iter();
        hits.map(|hit| hit["filepath"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&mut client, "sparrow"), ["old.md"]);
    for gone in ["text", "text/meta.json"] {
        let path = client.root().join(".quipu/index").join(gone);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        let new = format!("{}.md", gone.replace(['/', '.'], "-"));
        client.write(&new, "sparrow and finch\n");
        client.wait_for("nodes_exist", json!({ "ids": [new] }), &json!({ new.clone(): true }));
        let found = paths(&mut client, "sparrow");
        assert!(found.contains(&new) && found.contains(&"old.md".to_owned()), "{gone}: {found:?}");
    }
}
