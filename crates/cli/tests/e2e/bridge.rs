//! Links from memory to notes over the real wire, through renames by a tool, by another program and while no server runs.

#![expect(clippy::disallowed_methods, reason = "another program's moves are made here")]

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, LEGACY, serve_command, vault};

const ADA: &str = "Ada";

fn linked(client: &mut Client) -> Value {
    // Memory answers before the notes are read, and then knows no notes yet.
    client.answer("list_nodes", json!({}));
    client.answer(
        "create_entity",
        json!({
            "name": ADA, "entity_type": "Author", "description": "Owns [[plan#Goals|the plan]]",
            "observations": ["Wrote [[Not Yet]]"],
        }),
    )
}

fn notes(client: &mut Client) -> Value {
    client.answer("get_entity", json!({ "entity_id": 1 }))["notes"].clone()
}

#[test]
fn entities_and_notes_list_each_other_on_request() {
    let mut client = Client::open("//- plan.md\n# Goals\n//- a.md\n[[plan]]\n");
    linked(&mut client);
    assert_eq!(notes(&mut client), json!([{ "id": "plan.md", "title": "Plan", "link": "plan" }]));
    client.answer("create_entity", json!({ "name": "Nobody", "entity_type": "Author" }));
    let unlinked = client.answer("get_entity", json!({ "entity_id": 2 }));
    assert!(unlinked.get("notes").is_none(), "the seed's shape where there is no link: {unlinked}");

    let entity = json!({ "entity_id": 1, "name": ADA, "entity_type": "Author" });
    let asked = json!({ "id": "plan.md", "include_entities": true });
    let neighbors = client.answer("get_neighbors", asked.clone());
    assert_eq!((&neighbors[0]["id"], &neighbors[1]), (&json!("a.md"), &entity));
    let full = json!({ "id": "plan.md", "include_entities": true, "limit": 1 });
    assert_eq!(client.answer("get_neighbors", full)[1], entity, "notes that fill the limit leave it its place");
    assert_eq!(client.answer("get_node", asked)["entities"], json!([entity]));
    let page = json!({ "filepath": "plan.md", "include_entities": true });
    assert_eq!(client.answer("ubp_get_context", page)["entities"], json!([entity]));
    for (tool, arguments) in [
        ("get_neighbors", json!({ "id": "plan.md" })),
        ("get_neighbors", json!({ "id": "plan.md", "include_entities": true, "direction": "out" })),
        ("get_node", json!({ "id": "plan.md", "depth": 1 })),
        ("ubp_get_context", json!({ "filepath": "plan.md" })),
    ] {
        let answer = client.answer(tool, arguments.clone());
        assert!(!answer.to_string().contains(ADA), "{tool} {arguments}: {answer}");
    }
}

#[test]
fn link_to_a_note_created_later_resolves() {
    let mut client = Client::open("");
    linked(&mut client);
    assert_eq!(notes(&mut client), Value::Null);
    client.answer("create_node", json!({ "id": "not yet.md", "content": "now" }));
    assert_eq!(notes(&mut client)[0]["id"], "not yet.md");
}

#[test]
fn a_renamed_note_keeps_its_entities() {
    let mut client = Client::open("//- plan.md\ntext\n//- a.md\n[[plan]]\n");
    linked(&mut client);
    client.answer("update_node", json!({ "id": "plan.md", "title": "Roadmap", "update_links": true }));
    assert_eq!(notes(&mut client), json!([{ "id": "roadmap.md", "title": "Roadmap", "link": "plan" }]));
    let entity = client.answer("get_entity", json!({ "entity_id": 1 }));
    assert_eq!(entity["description"], "Owns [[plan#Goals|the plan]]", "the agent's text stays as written");

    // By another program, seen by the watcher or by the question itself.
    std::fs::create_dir(client.root().join("old")).unwrap();
    std::fs::rename(client.root().join("Roadmap.md"), client.root().join("old/2025.md")).unwrap();
    client.wait_for(
        "nodes_exist",
        json!({ "ids": ["roadmap.md", "old/2025.md"] }),
        &json!({ "roadmap.md": false, "old/2025.md": true }),
    );
    let asked = json!({ "id": "old/2025.md", "include_entities": true });
    let found = client.answer("get_node", asked)["entities"].clone();
    assert_eq!(found[0]["name"], ADA);

    // Deleted and brought back.
    client.answer("delete_node", json!({ "id": "old/2025.md" }));
    assert_eq!(notes(&mut client), Value::Null);
    client.run_command(&["restore", "old/2025.md"]);
    client.wait_for("nodes_exist", json!({ "ids": ["old/2025.md"] }), &json!({ "old/2025.md": true }));
    assert_eq!(notes(&mut client)[0]["id"], "old/2025.md");

    // The entity deleted, the note renamed, the deletion undone.
    client.answer("delete_entity", json!({ "entity_id": 1 }));
    client.answer("update_node", json!({ "id": "old/2025.md", "title": "Last year", "update_links": true }));
    client.run_command(&["undo"]);
    assert_eq!(notes(&mut client)[0]["id"], "old/last year.md");
}

#[test]
fn exported_memory_keeps_links_to_renamed_notes() {
    let mut client = Client::open("//- plan.md\ntext\n");
    linked(&mut client);
    client.answer("update_node", json!({ "id": "plan.md", "title": "Roadmap" }));
    let lines = client.run_command(&["export"]);
    let text = std::fs::read_to_string(client.root().join("Roadmap.md")).unwrap();

    let mut copy = Client::open("");
    let file = copy.root().join("memory.jsonl");
    std::fs::write(&file, &lines).unwrap();
    copy.run_command(&["import", file.to_str().unwrap()]);
    assert_eq!(notes(&mut copy), Value::Null, "the note is not here yet");
    std::fs::write(copy.root().join("Roadmap.md"), text).unwrap();
    copy.wait_for("nodes_exist", json!({ "ids": ["roadmap.md"] }), &json!({ "roadmap.md": true }));
    assert_eq!(notes(&mut copy), notes(&mut client));
    let asked = json!({ "id": "roadmap.md", "include_entities": true });
    assert_eq!(copy.answer("get_neighbors", asked.clone()), client.answer("get_neighbors", asked));
    assert_eq!(copy.run_command(&["export"]), lines);
}

#[test]
fn note_moved_while_no_server_runs_keeps_its_entities() {
    let outer = vault("//- notes/plan.md\ntext\n");
    let notes_folder = outer.path().join("notes");
    // A client takes the folder it serves away with it, so the vault lies beside the folders of both.
    let serve = || Client::start_with(TempDir::new().unwrap(), serve_command(&notes_folder, &[])).shake_hands(LEGACY);
    let mut client = serve();
    linked(&mut client);
    assert_eq!(notes(&mut client)[0]["id"], "plan.md");
    client.close();
    std::fs::rename(notes_folder.join("plan.md"), notes_folder.join("Another name.md")).unwrap();
    let mut client = serve();
    client.answer("list_nodes", json!({}));
    assert_eq!(notes(&mut client)[0]["id"], "another name.md");
}
