//! Files that are not what they seem: no text, no file at all, or gone by the time they are read.

#![expect(clippy::disallowed_methods, reason = "files are put in the server's way")]

use std::process::Command;

use serde_json::json;

use super::{still_answers, unharmed};
use crate::client::{Client, first_block, ids, vault, warnings};

#[test]
fn a_file_that_is_not_utf8_is_read_and_kept_as_it_is() {
    let folder = vault("//- a.md\n[[latin]] [[half]]\n");
    std::fs::write(folder.path().join("latin.md"), b"---\ntags: [caf\xe9]\n---\ncaf\xe9 au lait [[a]]\n").unwrap();
    std::fs::write(folder.path().join("half.md"), b"whole line\ncut \xe2\x82\nlast line\n").unwrap();
    std::fs::write(folder.path().join("wide.md"), b"\xff\xfeh\0i\0").unwrap();
    let mut client = Client::open_in(folder, &[]);
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        let listed = client.call("list_nodes", json!({}));
        assert_eq!(ids(&first_block(&listed)["nodes"]), ["a.md", "half.md", "latin.md", "wide.md"]);
        let told = warnings(&listed);
        for path in ["half.md", "latin.md"] {
            assert!(
                told.iter().any(|line| line.starts_with(&format!("{path:?}")) && line.contains("UTF-8")),
                "{path}: {told:?}"
            );
        }
        assert_eq!(
            client.answer("get_node", json!({ "id": "half.md" }))["content"],
            "whole line\ncut \u{fffd}\nlast line\n"
        );
        assert_eq!(client.answer("search_docs", json!({ "query": "au lait" }))["total"], 1);
        assert_eq!(ids(&client.answer("get_neighbors", json!({ "id": "a.md", "direction": "in" }))), ["latin.md"]);
    });
    // New tags touch the frontmatter, or are refused because it cannot be read; the text keeps its bytes.
    let kept = std::fs::read(client.root().join("half.md")).unwrap();
    client.answer("update_node", json!({ "id": "half.md", "tags": ["t"] }));
    assert_eq!(
        std::fs::read(client.root().join("half.md")).unwrap(),
        [b"---\ntags:\n  - t\n---\n".as_slice(), &kept].concat()
    );
}

#[test]
fn non_utf8_file_name_is_reported_and_skipped() {
    use std::os::unix::ffi::OsStrExt;
    let folder = vault("//- a.md\na\n");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.md");
    if std::fs::write(folder.path().join(name), "x").is_err() {
        quipu_testkit::skip("this file system wants names in UTF-8");
        return;
    }
    let mut client = Client::open_in(folder, &[]);
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        let listed = client.call("list_nodes", json!({}));
        assert_eq!(ids(&first_block(&listed)["nodes"]), ["a.md"]);
        assert!(warnings(&listed).iter().any(|line| line.contains("UTF-8")), "{listed}");
    });
}

#[test]
fn file_deleted_between_listing_and_reading_is_missing() {
    let folder = vault("//- gone.md\n#t [[here]]\n//- here.md\n#t [[gone]]\n");
    let mut client = Client::open_in(folder, &["--no-watch"]);
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 2);
    std::fs::remove_file(client.root().join("gone.md")).unwrap();
    // A list is of the index, which cannot know yet; the text of what is gone is left out.
    let tagged = client.answer("search_by_tags", json!({ "tags": ["t"] }));
    assert_eq!(ids(&tagged), ["gone.md", "here.md"]);
    assert!(tagged[0].get("content").is_none() && tagged[1]["content"].is_string(), "{tagged}");
    let around = client.answer("get_node", json!({ "id": "here.md", "depth": 1 }));
    assert!(around["outgoingNeighbors"][0].get("content").is_none(), "{around}");
    client.answer("search_docs", json!({ "query": "here" }));

    let (code, _) = client.error("update_node", json!({ "id": "gone.md", "content": "x" }));
    assert_eq!(code, "NODE_NOT_FOUND");
    assert_eq!(client.answer("get_node", json!({ "id": "gone.md" })), json!(null));
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 1, "and now the index knows");
    assert_eq!(client.failure("get_document", json!({ "path": "gone.md" })), "Error: Document not found: gone.md");
    assert_eq!(client.answer("delete_node", json!({ "id": "gone.md" })), json!({ "deleted": false }));
    assert!(!client.root().join("gone.md").exists());
    still_answers(&mut client);
}

#[test]
fn pipe_and_socket_named_like_notes_do_not_block_the_server() {
    let folder = vault("//- a.md\na\n");
    let pipe = folder.path().join("pipe.md");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket.md")).unwrap();
    let mut client = Client::open_in(folder, &[]);
    let listed = client.call("list_nodes", json!({}));
    assert_eq!(ids(&first_block(&listed)["nodes"]), ["a.md"]);
    for id in ["pipe.md", "socket.md"] {
        assert_eq!(client.answer("get_node", json!({ "id": id })), json!(null));
        assert_eq!(client.failure("get_document", json!({ "path": id })), format!("Error: Document not found: {id}"));
        let (code, message) = client.error("create_node", json!({ "id": id, "content": "x" }));
        assert!(["INVALID_PARAMS", "NODE_EXISTS"].contains(&code.as_str()), "{code}: {message}");
        assert_eq!(client.answer("delete_node", json!({ "id": id })), json!({ "deleted": false }));
        assert!(client.root().join(id).exists());
    }
    // A note that turns into a pipe while the server runs.
    std::fs::remove_file(client.root().join("a.md")).unwrap();
    assert!(Command::new("mkfifo").arg(client.root().join("a.md")).status().unwrap().success());
    assert_eq!(client.answer("get_node", json!({ "id": "a.md" })), json!(null));
    client.wait_for("nodes_exist", json!({ "ids": ["a.md"] }), &json!({ "a.md": false }));
    still_answers(&mut client);
}

#[test]
fn pipe_in_the_index_does_not_block_the_server() {
    for name in ["index.lock", "catalog.db", "vectors.db", "text/meta.json", "text/.managed.json"] {
        let folder = vault("//- a.md\na\n");
        let place = folder.path().join(".quipu/index").join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
        let mut client = Client::open_in(folder, &[]);
        assert_eq!(client.answer("list_nodes", json!({}))["total"], 1, "{name}");
        let status = String::from_utf8(client.command(&["status"]).stdout).unwrap();
        assert!(status.contains("not a file; remove it"), "{name}: {status}");
    }
}

#[test]
fn unusual_notes_are_read() {
    let deep_quote = "> ".repeat(5_000);
    let deep_list: String = (0..500).map(|depth| format!("{}- x\n", " ".repeat(2 * depth))).collect();
    let brackets = "[".repeat(50_000);
    let one_line = "x".repeat(5_000_000);
    let yaml = format!("---\na: {}1{}\n---\ntext\n", "[".repeat(5_000), "]".repeat(5_000));
    let bomb = "---\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n---\ntext\n";
    let fixture = format!(
        "//- quote.md\n{deep_quote}\n//- list.md\n{deep_list}//- brackets.md\n{brackets}\n//- line.md\n{one_line}\n//- yaml.md\n{yaml}//- bomb.md\n{bomb}//- empty.md\n//- fence.md\n```\n[[never closed]]\n"
    );
    let mut client = Client::open(&fixture);
    let root = client.root().to_owned();
    unharmed(&mut client, &root, |client| {
        for name in ["quote", "list", "brackets", "line", "yaml", "bomb", "empty", "fence"] {
            let id = format!("{name}.md");
            assert_eq!(client.answer("get_node", json!({ "id": id, "depth": 1 }))["id"], id);
        }
        assert_eq!(client.answer("list_nodes", json!({}))["total"], 8);
    });
}

#[test]
fn too_large_file_is_reported_and_skipped() {
    let folder = vault("//- a.md\na\n");
    let huge = std::fs::File::create(folder.path().join("huge.md")).unwrap();
    huge.set_len(200 << 20).unwrap();
    let mut client = Client::open_in(folder, &[]);
    let listed = client.call("list_nodes", json!({}));
    assert!(warnings(&listed).iter().any(|line| line.starts_with("\"huge.md\"")), "{listed}");
    let result = client.call("get_node", json!({ "id": "huge.md" }));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text == "null" || text.contains("PROVIDER_ERROR"), "{text}");
    assert_eq!(huge.metadata().unwrap().len(), 200 << 20);
    still_answers(&mut client);
}

/// Without limits, 30 MB of tags took more than 2 GB.
#[test]
fn a_note_of_millions_of_tags_takes_a_bounded_amount_of_memory() {
    let Ok(_) = std::fs::metadata("/proc/self/status") else {
        return quipu_testkit::skip("this system does not tell how much memory a process took");
    };
    let folder = vault("//- a.md\n[[tags]]\n");
    let tags: String = (0..2_500_000).map(|number| format!("#tag{number:07} ")).collect();
    std::fs::write(folder.path().join("tags.md"), tags).unwrap();
    let mut command = crate::client::serve_command(folder.path(), &[]);
    command.env("QUIPU_EMBEDDING_PROVIDER", "none");
    let mut client = Client::start_with(folder, command).shake_hands(crate::client::LEGACY);
    client.wait_for("nodes_exist", json!({ "ids": ["tags.md"] }), &json!({ "tags.md": true }));
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    let megabytes = most.parse::<u64>().unwrap() / 1024;
    assert!(megabytes < 1000, "it took {megabytes} MB");
}
