//! Symbolic links that lead out of the vault: to a file, to a folder, and on the way to a note that is yet to be made.

#![expect(clippy::disallowed_methods, reason = "files are put in the server's way")]

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{is_no_destination, names_no_note, unharmed};
use crate::client::{Client, LEGACY, first_block, serve_command, vault, warnings};

/// A vault beside a folder with a secret, and links from the one into the other.
fn open() -> Client {
    let folder = vault("//- vault/a.md\na\n//- outside/secret.md\noutside secret\n");
    let (inside, outside) = (folder.path().join("vault"), folder.path().join("outside"));
    symlink(outside.join("secret.md"), inside.join("file.md")).unwrap();
    symlink(&outside, inside.join("folder")).unwrap();
    symlink("../outside", inside.join("relative")).unwrap();
    symlink("../outside/not-yet.md", inside.join("new.md")).unwrap();
    symlink("nowhere.md", inside.join("broken.md")).unwrap();
    symlink("loop.md", inside.join("loop.md")).unwrap();
    symlink(".", inside.join("circle")).unwrap();
    let command = serve_command(&inside, &[]);
    Client::start_with(folder, command).shake_hands(LEGACY)
}

#[test]
fn a_link_out_of_the_vault_is_not_followed_to_read() {
    let mut client = open();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        let listed = client.call("list_nodes", json!({}));
        assert_eq!(first_block(&listed)["nodes"], json!([{ "id": "a.md", "title": "A" }]));
        let told = warnings(&listed);
        for (link, reason) in [
            ("file.md", "out of the vault"),
            ("folder", "out of the vault"),
            ("relative", "out of the vault"),
            ("broken.md", "does not exist"),
            ("circle", "contains it"),
        ] {
            let is_told = |line: &String| line.starts_with(&format!("{link:?}: ")) && line.contains(reason);
            assert!(told.iter().any(is_told), "{link}: {told:?}");
        }
        for id in ["file.md", "folder/secret.md", "relative/secret.md", "broken.md", "loop.md", "circle/a.md"] {
            assert_eq!(client.answer("get_node", json!({ "id": id })), json!(null), "{id}");
            let text = client.failure("get_document", json!({ "path": id }));
            assert_eq!(text, format!("Error: Document not found: {id}"));
        }
        assert_eq!(client.answer("search_docs", json!({ "query": "secret" }))["total"], 0);
    });
}

#[test]
fn a_link_out_of_the_vault_is_not_followed_to_write() {
    let mut client = open();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for id in
            ["file.md", "folder/new.md", "relative/deep/new.md", "new.md", "broken.md", "loop.md", "folder/secret.md"]
        {
            let (code, message) = client.error("create_node", json!({ "id": id, "content": "evil" }));
            assert!(["INVALID_PARAMS", "NODE_EXISTS"].contains(&code.as_str()), "{id}: {code} {message}");
            let (code, _) = client.error("update_node", json!({ "id": id, "content": "evil" }));
            assert_eq!(code, "NODE_NOT_FOUND", "{id}");
            assert_eq!(client.answer("delete_node", json!({ "id": id })), json!({ "deleted": false }), "{id}");
            names_no_note(client, id);
            is_no_destination(client, id);
        }
    });
}

#[test]
fn folder_replaced_by_a_symlink_is_not_followed() {
    let folder = vault("//- vault/sub/a.md\ninside\n//- outside/a.md\noutside secret\n");
    let command = serve_command(&folder.path().join("vault"), &["--no-watch"]);
    let mut client = Client::start_with(folder, command).shake_hands(LEGACY);
    assert_eq!(client.answer("get_node", json!({ "id": "sub/a.md" }))["content"], "inside\n");
    let sub = client.root().join("vault/sub");
    std::fs::rename(&sub, client.root().join("vault/moved")).unwrap();
    symlink("../outside", &sub).unwrap();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        let (code, message) = client.error("update_node", json!({ "id": "sub/a.md", "content": "evil" }));
        assert!(["NODE_NOT_FOUND", "PROVIDER_ERROR"].contains(&code.as_str()), "{code} {message}");
        client.answer("delete_node", json!({ "id": "sub/a.md" }));
        assert_eq!(client.answer("get_node", json!({ "id": "sub/a.md" })), json!(null));
    });
}
