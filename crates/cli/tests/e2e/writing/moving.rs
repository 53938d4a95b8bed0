//! Notes and folders under another path: every link keeps its meaning, in one write.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]

use serde_json::json;

use crate::client::{Client, files_below, ids, vault, warnings};

const VAULT: &str = "\
//- projects/Boat/Plan.md
---
aliases: [The Plan]
---
[log](log/day.md) [[Parts]] [home](../../Home.md#top) ![photo](photo.png)
## Part
//- projects/Boat/log/day.md
[plan](../Plan.md#part) and [[projects/Boat/Plan|by path]]
//- projects/Boat/Parts.md
Sails.
//- projects/Boat/photo.png
not a note
//- Home.md
---
depends_on: \"[[projects/Boat/Plan]]\"
---
[[Plan]], [[The Plan]], ![[projects/Boat/Plan#Part]], [md](projects/Boat/Plan.md), [day](<projects/Boat/log/day.md>)
";

#[test]
fn folder_moves_in_one_write_and_back() {
    let mut client = Client::open(VAULT);
    let before = files_below(client.root());
    let answer = client.answer("move_node", json!({ "id": "projects/boat/", "to": "Archive/Old Boat/" }));
    let moved: Vec<_> = answer["moved"].as_array().unwrap().iter().map(|note| note["id"].as_str().unwrap()).collect();
    let expected = ["archive/old boat/log/day.md", "archive/old boat/parts.md", "archive/old boat/plan.md"];
    assert_eq!(moved, expected, "{answer}");
    assert_eq!(answer["updated_links"], json!(["archive/old boat/log/day.md", "archive/old boat/plan.md", "home.md"]));
    assert_eq!(
        client.read("Home.md"),
        "---\ndepends_on: \"[[Archive/Old Boat/Plan]]\"\n---\n[[Plan]], [[The Plan]], \
         ![[Archive/Old Boat/Plan#Part]], [md](Archive/Old%20Boat/Plan.md), [day](<Archive/Old Boat/log/day.md>)\n"
    );
    assert_eq!(
        client.read("Archive/Old Boat/Plan.md"),
        "---\naliases: [The Plan]\n---\n[log](log/day.md) [[Parts]] [home](../../Home.md#top) \
         ![photo](../../projects/Boat/photo.png)\n## Part\n",
        "files that are not notes stay, and links to them follow"
    );
    let linking = client.answer("get_neighbors", json!({ "id": "archive/old boat/plan.md", "direction": "in" }));
    assert_eq!(ids(&linking), ["archive/old boat/log/day.md", "home.md"]);
    client.answer("move_node", json!({ "id": "archive/old boat/", "to": "projects/Boat/" }));
    assert!(!client.root().join("Archive/Old Boat").exists(), "an empty folder does not stay");
    assert_eq!(files_below(client.root()), before, "moving back is the undo");
}

#[test]
fn refused_move_changes_nothing() {
    let mut client = Client::open(&format!("{VAULT}//- archive/log/day.md\nin the way\n"));
    let before = files_below(client.root());
    let (code, message) = client.error("move_node", json!({ "id": "projects/Boat/", "to": "Archive/" }));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("NODE_EXISTS", "archive/log/day.md already exists; choose another name or update that note")
    );
    for (id, to, code) in [
        ("projects/boat/plan.md", "Home.md", "NODE_EXISTS"),
        ("projects/boat/plan.md", "../outside.md", "INVALID_PARAMS"),
        ("projects/boat/plan.md", "projects", "INVALID_PARAMS"),
        ("projects/boat/none.md", "x.md", "NODE_NOT_FOUND"),
        ("none/", "x/", "NODE_NOT_FOUND"),
        ("projects/", "projects/Boat/", "INVALID_PARAMS"),
    ] {
        assert_eq!(client.error("move_node", json!({ "id": id, "to": to })).0, code, "{id} to {to}");
    }
    assert_eq!(files_below(client.root()), before);
}

#[test]
fn edit_by_another_program_moves_along() {
    let mut client = Client::open("//- a.md\nold\n//- b.md\n[a](a.md)\n");
    client.answer("get_node", json!({ "id": "a.md" }));
    std::fs::write(client.root().join("a.md"), "edited by hand\n").unwrap();
    client.answer("move_node", json!({ "id": "a.md", "to": "deep/" }));
    assert_eq!((client.read("deep/a.md"), client.read("b.md")), ("edited by hand\n".into(), "[a](deep/a.md)\n".into()));
}

#[test]
fn two_agents_move_and_edit_the_same_notes() {
    let mut one = Client::open_in(vault("//- a.md\nA\n//- b.md\n[[a]] and [md](a.md)\n"), &[]);
    let mut two = one.join(&[]);
    two.answer("get_node", json!({ "id": "b.md" }));
    one.answer("move_node", json!({ "id": "a.md", "to": "x/" }));
    let (code, message) = two.error("update_node", json!({ "id": "b.md", "content": "blind\n" }));
    assert_eq!((code.as_str(), message.contains("changed elsewhere")), ("PROVIDER_ERROR", true), "{message}");
    assert_eq!(one.read("b.md"), "[[a]] and [md](x/a.md)\n");
    assert_eq!(two.error("move_node", json!({ "id": "a.md", "to": "y/" })).0, "NODE_NOT_FOUND");
    assert_eq!(two.answer("move_node", json!({ "id": "x/a.md", "to": "y/" }))["id"], "y/a.md");
    assert_eq!(two.read("b.md"), "[[a]] and [md](y/a.md)\n");
    one.answer("get_node", json!({ "id": "b.md" }));
    one.answer("update_node", json!({ "id": "b.md", "content": "mine\n" }));
}

#[test]
fn symbolic_link_to_a_moved_note_is_reported() {
    let mut client = Client::open("//- a.md\nA\n");
    std::os::unix::fs::symlink("a.md", client.root().join("link.md")).unwrap();
    client.wait_for("nodes_exist", json!({ "ids": ["link.md"] }), &json!({ "link.md": true }));
    let result = client.call("move_node", json!({ "id": "a.md", "to": "x/" }));
    assert!(warnings(&result).iter().any(|warning| warning.contains("\"link.md\": this symbolic link")), "{result}");
}
