//! Whatever a write replaced, moved or deleted comes back from the command line byte for byte.

#![expect(clippy::disallowed_methods, reason = "files are compared with what they were")]

use serde_json::{Value, json};

use crate::client::{Client, files_below, vault};

/// Runs `quipu restore` on the vault of a client.
#[track_caller]
fn restore(client: &Client, arguments: &[&str]) -> Value {
    let printed = client.run_command(&[&["restore", "--json"], arguments].concat());
    serde_json::from_str(&printed).unwrap()
}

/// Windows line ends, a byte order mark, no newline at the end, and bytes that are no text.
const ODD: &[u8] = b"\xef\xbb\xbf---\r\ntags: [x]   # c\r\n---\r\ncaf\xe9 \0 end";

#[test]
fn replaced_renamed_and_deleted_notes_are_restored() {
    for (name, tool, arguments) in [
        ("replaced", "update_node", json!({ "id": "sub/odd.md", "content": "new" })),
        ("replaced", "update_node", json!({ "id": "sub/odd.md", "tags": ["new"] })),
        ("moved", "update_node", json!({ "id": "sub/odd.md", "title": "Even" })),
        ("deleted", "delete_node", json!({ "id": "sub/odd.md" })),
    ] {
        let folder = vault("//- sub/Odd.md\n");
        std::fs::write(folder.path().join("sub/Odd.md"), ODD).unwrap();
        let mut client = Client::open_in(folder, &[]);
        client.answer(tool, arguments.clone());
        let now = std::fs::read(client.root().join("sub/Odd.md")).ok();
        assert_ne!(now.as_deref(), Some(ODD), "{arguments}");
        let kept = restore(&client, &[]);
        assert_eq!((&kept[0]["reason"], &kept[0]["path"]), (&json!(name), &json!("sub/Odd.md")), "{arguments}");
        assert_eq!(kept[0]["bytes"], ODD.len());
        restore(&client, &["sub/odd.md"]);
        assert_eq!(std::fs::read(client.root().join("sub/Odd.md")).unwrap(), ODD, "{arguments}");
        // The running server sees it like any other edit made elsewhere.
        client.wait_for("nodes_exist", json!({ "ids": ["sub/odd.md"] }), &json!({ "sub/odd.md": true }));
    }
}

#[test]
fn every_version_is_kept() {
    let mut client = Client::open("//- a.md\nversion 0\n");
    for n in 1..=5 {
        client.answer("update_node", json!({ "id": "a.md", "content": format!("version {n}\n") }));
    }
    client.answer("delete_node", json!({ "id": "a.md" }));
    let kept = restore(&client, &[]);
    assert_eq!(kept.as_array().unwrap().len(), 6, "newest first: {kept}");
    for (place, n) in (0..=5).rev().enumerate() {
        restore(&client, &["a.md", "--version", kept[place]["version"].as_str().unwrap()]);
        assert_eq!(client.read("a.md"), format!("version {n}\n"));
    }
}

#[test]
fn rename_is_undone_with_every_link() {
    let mut client = Client::open("//- old.md\nme: [[old]]\n//- a.md\n[[old|x]]\n//- sub/b.md\n[b](../old.md)\n");
    let before = files_below(client.root());
    client.answer("update_node", json!({ "id": "old.md", "title": "New", "update_links": true }));
    let kept = restore(&client, &[]);
    assert_eq!(kept.as_array().unwrap().len(), 3, "{kept}");
    for version in kept.as_array().unwrap() {
        restore(&client, &[version["path"].as_str().unwrap(), "--version", version["version"].as_str().unwrap()]);
    }
    let mut after = files_below(client.root());
    after.remove(&client.root().join("New.md"));
    assert_eq!(after, before);
}

#[test]
fn refused_write_leaves_nothing_in_the_trash() {
    let mut client = Client::open("//- a.md\na\n//- b.md\n[[a]]\n");
    client.error("update_node", json!({ "id": "a.md", "title": "x" }));
    client.error("create_node", json!({ "id": "a.md", "content": "x" }));
    client.error("update_node", json!({ "id": "none.md", "content": "x" }));
    client.answer("delete_node", json!({ "id": "none.md" }));
    client.answer("update_node", json!({ "id": "a.md", "content": "a\n" }));
    assert_eq!(restore(&client, &[]), json!([]));
}

#[test]
fn versions_older_than_the_setting_are_deleted() {
    const OLD: &str = ".quipu/trash/20200131T093000.123456789Z-000-deleted/old.md";
    for (setting, is_kept) in [("", false), ("trash_days = 0\n", true), ("trash_days = 36500\n", true)] {
        let folder = vault("//- a.md\nA\n");
        std::fs::create_dir_all(folder.path().join(OLD).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(OLD), "old").unwrap();
        std::fs::write(folder.path().join(".quipu/config.toml"), setting).unwrap();
        let mut client = Client::open_in(folder, &["--no-watch"]);
        client.answer("update_node", json!({ "id": "a.md", "content": "new" }));
        let left = |client: &Client| restore(client, &[]).as_array().unwrap().len();
        if is_kept {
            // Long after the first pass.
            std::thread::sleep(std::time::Duration::from_millis(500));
            assert_eq!(left(&client), 2, "{setting:?}");
        } else {
            let start = std::time::Instant::now();
            while left(&client) != 1 {
                assert!(start.elapsed() < crate::client::PATIENCE, "the old version is still there");
            }
        }
    }
}
