//! Memory survives kills and concurrent calls, and leaves files of other programs alone.

use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, LEGACY, first_block, serve_command, vault, warnings};

#[test]
fn memory_survives_a_kill() {
    let folder = TempDir::new().unwrap();
    let serve = || Client::start_with(TempDir::new().unwrap(), serve_command(folder.path(), &[])).shake_hands(LEGACY);
    let mut client = serve();
    for number in 0..20 {
        client.answer("create_entity", json!({"name": format!("Thing {number}"), "entity_type": "x"}));
    }
    client.signal("KILL");
    let mut client = serve();
    assert_eq!(client.answer("list_entities", json!({}))["pagination"]["total_entities"], 20);
}

#[test]
fn context_survives_a_restart_and_is_kept_per_client_name() {
    let folder = TempDir::new().unwrap();
    let serve = || Client::start_with(TempDir::new().unwrap(), serve_command(folder.path(), &[]));
    let mut client = serve().shake_hands(LEGACY);
    client.answer("create_entity", json!({"name": "Quipu", "entity_type": "project"}));
    client.answer("set_context", json!({"project_id": 1}));
    client.close();
    let mut client = serve().shake_hands(LEGACY);
    assert_eq!(client.answer("get_context", json!({}))["status"], "context_active");
    let mut other = serve();
    let params =
        json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "other", "version": "1"}});
    other.request("initialize", params);
    assert_eq!(other.answer("get_context", json!({})), json!({"status": "no_context"}));
    client.answer("delete_entity", json!({"entity_id": 1}));
    assert_eq!(client.answer("get_context", json!({})), json!({"status": "no_context"}));
}

#[test]
fn concurrent_memory_writes_lose_nothing() {
    let mut client = Client::open("");
    for number in 0..200 {
        let arguments = json!({"name": format!("Thing {number}"), "entity_type": "x", "observations": ["a fact"]});
        client.send("tools/call", json!({"name": "create_entity", "arguments": arguments}));
    }
    let mut made: Vec<i64> = Vec::new();
    for _ in 0..200 {
        let answer = client.receive();
        made.push(first_block(&answer["result"])["entity_id"].as_i64().unwrap_or_else(|| panic!("{answer}")));
    }
    made.sort_unstable();
    assert_eq!(made, (1..=200).collect::<Vec<_>>());
    assert_eq!(client.answer("list_entities", json!({}))["pagination"]["total_entities"], 200);
    let found = client.answer("search_subgraph", json!({"query": "fact", "per_page": 100, "page": 2}));
    assert_eq!(found["pagination"]["total_entities"], 200);
    assert_eq!(found["entities"].as_array().unwrap().len(), 100);
}

#[test]
fn foreign_memory_file_is_unchanged() {
    let folder = vault("//- a.md\n");
    plant(folder.path());
    let mut client = Client::open_in(folder, &[]);
    let result = client.call("list_nodes", json!({}));
    let told = warnings(&result);
    assert!(told[0].contains("memory.db is not Quipu's memory: it is not a SQLite database"), "{told:?}");
    assert!(!told[0].contains(client.root().to_str().unwrap()), "{told:?}");
    let (code, message) = client.error("create_entity", json!({"name": "Ada", "entity_type": "Author"}));
    assert_eq!(code, "InternalServerError");
    assert_eq!(
        message,
        "memory cannot be used: its file is not a memory; a person must put a backup in its place; the server's log has the \
         details"
    );
    assert_eq!(client.read(".quipu/memory.db"), "not a database, but somebody's");
}

#[expect(clippy::disallowed_methods, reason = "makes what the server must not touch")]
fn plant(vault: &std::path::Path) {
    std::fs::create_dir(vault.join(".quipu")).unwrap();
    std::fs::write(vault.join(".quipu/memory.db"), "not a database, but somebody's").unwrap();
}

#[test]
fn memory_answers_have_no_vault_warnings() {
    let mut client = Client::open("//- a.md\n[[nobody wrote this]]\n");
    client.wait_for("nodes_exist", json!({ "ids": ["a.md"] }), &json!({ "a.md": true }));
    let mut later = client.join(&[]);
    let made = later.call("create_entity", json!({"name": "Ada", "entity_type": "Author"}));
    assert_eq!(warnings(&made), [""; 0]);
    let listed = later.call("list_nodes", json!({}));
    assert!(warnings(&listed).iter().any(|told| told.contains("nobody wrote this")), "{listed}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "takes away what the server works on")]
fn write_after_memory_file_is_removed_fails_with_the_cause() {
    let mut client = Client::open("");
    client.answer("create_entity", json!({"name": "Ada", "entity_type": "Author"}));
    std::fs::remove_dir_all(client.root().join(".quipu")).unwrap();
    let (code, message) = client.error("create_entity", json!({"name": "Bo", "entity_type": "Author"}));
    assert_eq!(code, "InternalServerError");
    assert!(
        message.contains("moved, deleted or truncated while it was open; put it back, or restart the server"),
        "{message}"
    );
}
