//! Paths that lead out of the vault, into its reserved folders, or nowhere at all, in every spelling.

#![expect(clippy::disallowed_methods, reason = "a folder stands where a note would")]

use serde_json::json;

use super::{is_no_destination, names_no_note, reveals_no_internals, still_answers, unharmed};
use crate::client::{Client, vault};

/// A vault in a folder of its own, with a secret beside it that every `..` below aims at.
const SURROUNDED: &str = "\
//- vault/a.md
a
//- vault/sub/b.md
b
//- vault/.hidden.md
hidden secret
//- vault/.git/c.md
git secret
//- vault/.quipu/d.md
own secret
//- vault/node_modules/e.md
module secret
//- secret.md
outside secret
";

fn open() -> Client {
    let folder = vault(SURROUNDED);
    let command = crate::client::serve_command(&folder.path().join("vault"), &[]);
    Client::start_with(folder, command).shake_hands(crate::client::LEGACY)
}

/// Ways to write a path that is none inside the vault. `{}` stands for the folder around the vault.
const OUTSIDE: &[&str] = &[
    "../secret.md",
    "sub/../../secret.md",
    "sub/../a.md",
    "./a.md",
    "sub/./b.md",
    "sub//b.md",
    "a.md/",
    "..\\secret.md",
    "sub\\b.md",
    "..\\/secret.md",
    "\\\\server\\share\\secret.md",
    "{}/secret.md",
    "{}/vault/a.md",
    "/etc/passwd",
    "/secret.md",
    "//secret.md",
    "~/secret.md",
    "~root/secret.md",
    "C:/secret.md",
    "C:\\secret.md",
    "c:secret.md",
    "..",
    ".",
    "/",
    "",
    "secret.md\0.md",
    "\0",
    "a.md\n",
    "a\u{7}.md",
    "a\u{1b}[31m.md",
    "a\u{85}.md",
];

/// Names inside the vault that no client may read or write.
const RESERVED: &[&str] = &[
    ".hidden.md",
    ".new.md",
    "sub/.new.md",
    ".git/c.md",
    ".git/hooks/new.md",
    ".quipu/d.md",
    ".quipu/new.md",
    ".QUIPU/new.md",
    "node_modules/e.md",
    "sub/node_modules/new.md",
    ".md",
];

/// Spellings that are decoded elsewhere. Here they are plain names that no file has.
const ENCODED: &[&str] =
    &["%2e%2e/secret.md", "..%2fsecret.md", "%2e%2e%2fsecret.md", "..%c0%afsecret.md", "%00.md", "file:///etc/passwd"];

fn spelled(pattern: &str, client: &Client) -> String {
    pattern.replace("{}", client.root().to_str().unwrap())
}

#[test]
fn no_path_reads_outside_or_reserved_files() {
    let mut client = open();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for pattern in OUTSIDE.iter().chain(RESERVED).chain(ENCODED) {
            let path = spelled(pattern, client);
            assert_eq!(client.answer("get_node", json!({ "id": path })), json!(null), "{path:?}");
            assert_eq!(client.answer("get_node", json!({ "id": path, "depth": 1 })), json!(null), "{path:?}");
            assert_eq!(client.answer("get_neighbors", json!({ "id": path })), json!([]), "{path:?}");
            let exists = client.answer("nodes_exist", json!({ "ids": [path] }));
            assert!(exists.as_object().unwrap().values().all(|there| *there == json!(false)), "{path:?}: {exists}");
            let text = client.failure("get_document", json!({ "path": path }));
            let is_blank = path.trim().is_empty();
            let said = if is_blank { "Error: Document path is required" } else { "Error: Document not found: " };
            assert!(text.starts_with(said) && !text.contains("secret\n"), "{path:?}: {text}");
        }
        let found = client.answer("search_docs", json!({ "query": "secret" }));
        assert_eq!(found["total"], 0, "{found}");
    });
}

#[test]
fn no_path_writes_outside_or_reserved_files() {
    let mut client = open();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for pattern in OUTSIDE.iter().chain(RESERVED) {
            let id = spelled(pattern, client);
            let (code, message) = client.error("create_node", json!({ "id": id, "content": "evil" }));
            assert_eq!(code, "INVALID_PARAMS", "{id:?}: {message}");
            // What the client itself wrote may be said back to it.
            reveals_no_internals(&message.replace(&id, ""));
            let (code, message) = client.error("update_node", json!({ "id": id, "content": "evil" }));
            assert_eq!(code, "NODE_NOT_FOUND", "{id:?}: {message}");
            assert_eq!(client.answer("delete_node", json!({ "id": id })), json!({ "deleted": false }), "{id:?}");
            names_no_note(client, &id);
            // The root folder of the vault is a folder to move to.
            if id != "/" {
                is_no_destination(client, &id);
            }
        }
        let (_, message) = client.error("move_node", json!({ "id": "a.md", "to": ".quipu/x.md" }));
        assert!(message.starts_with("`to` \".quipu/x.md\" cannot be used: "), "{message}");
    });
}

#[test]
fn a_new_title_stays_in_its_folder() {
    let mut client = open();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for title in ["../secret", "..", ".", "a/b", "sub\\b", "/etc/passwd", ".hidden", "x\0y", "x\ny", "  ", ".quipu"]
        {
            let (code, message) = client.error("update_node", json!({ "id": "a.md", "title": title }));
            assert_eq!(code, "INVALID_PARAMS", "{title:?}: {message}");
        }
        let long = "x".repeat(300);
        let (code, _) = client.error("update_node", json!({ "id": "a.md", "title": long }));
        assert_eq!(code, "INVALID_PARAMS");
    });
}

#[test]
fn percent_encoded_path_is_a_plain_name() {
    let mut client = open();
    let created = client.answer("create_node", json!({ "id": "%2e%2e%2fsecret.md", "content": "x" }));
    assert_eq!(created["id"], "%2e%2e%2fsecret.md");
    assert!(client.root().join("vault/%2e%2e%2fsecret.md").is_file());
    assert_eq!(client.read("secret.md"), "outside secret\n");
}

#[test]
fn path_too_long_for_a_disk_is_refused() {
    let mut client = open();
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for id in [
            format!("{}.md", "x".repeat(253)),
            format!("{}.md", "é".repeat(127)),
            format!("{}a.md", "folder/".repeat(600)),
            format!("{}/a.md", "x".repeat(256)),
        ] {
            let (code, message) = client.error("create_node", json!({ "id": id, "content": "" }));
            assert_eq!(code, "INVALID_PARAMS", "{message}");
            assert_eq!(client.answer("get_node", json!({ "id": id })), json!(null));
        }
    });
    let longest = format!("{}.md", "x".repeat(252));
    assert_eq!(client.answer("create_node", json!({ "id": longest, "content": "" }))["id"], longest);
}

#[test]
fn file_used_as_a_folder_is_refused() {
    let mut client = Client::open("//- a.md\na\n//- plain\n");
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for id in ["a.md/b.md", "plain/b.md"] {
            let (code, message) = client.error("create_node", json!({ "id": id, "content": "" }));
            assert_eq!(code, "INVALID_PARAMS");
            assert!(message.contains("a part of its path is a file"), "{message}");
        }
    });
    std::fs::create_dir(client.root().join("folder.md")).unwrap();
    client.error("create_node", json!({ "id": "folder.md", "content": "" }));
    assert!(client.root().join("folder.md").is_dir());
    still_answers(&mut client);
}

#[test]
fn link_in_a_note_never_resolves_outside_the_vault() {
    let mut client = open();
    client.answer(
        "create_node",
        json!({ "id": "links.md", "content": "[[../secret]] [x](../secret.md) [y](/etc/passwd) [z](%2e%2e/secret.md) ![[../../secret]]" }),
    );
    assert_eq!(client.answer("get_neighbors", json!({ "id": "links.md" })), json!([]));
    let around = client.answer("get_node", json!({ "id": "links.md", "depth": 1 }));
    assert_eq!((&around["outgoingCount"], &around["outgoingNeighbors"]), (&json!(0), &json!([])));
}
