//! Which note a spelled id means, where files differ only in case; and where a new note goes.

#![expect(clippy::disallowed_methods, reason = "other programs write and rename notes")]

use serde_json::{Value, json};

use crate::client::{Client, QUIPU, files_below, first_block, ids, vault_of, warnings};
use crate::team_wire;

const PAIR: &str = "//- Moloch.md\nupper\n//- moloch.md\nlower\n//- a.md\n[[Moloch]] [x](moloch.md)\n";

fn tells_case_apart(client: &Client) -> bool {
    !client.root().join("A.MD").exists()
}

#[test]
fn a_write_goes_to_the_file_spelled_exactly() {
    let mut client = Client::open(PAIR);
    if !tells_case_apart(&client) {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    assert_eq!(client.answer("get_document", json!({ "path": "moloch.md" }))["content"], "lower\n");
    client.answer("update_node", json!({ "id": "moloch.md", "content": "new lower\n" }));
    assert_eq!((client.read("Moloch.md").as_str(), client.read("moloch.md").as_str()), ("upper\n", "new lower\n"));
    client.answer("update_node", json!({ "id": "Moloch.md", "content": "new upper\n" }));
    assert_eq!((client.read("Moloch.md").as_str(), client.read("moloch.md").as_str()), ("new upper\n", "new lower\n"));
    assert_eq!(client.answer("delete_node", json!({ "id": "moloch.md" })), json!({ "deleted": true }));
    assert_eq!(client.read("Moloch.md"), "new upper\n");
    assert_eq!(client.answer("get_node", json!({ "id": "moloch.md" }))["content"], "new upper\n", "it owns the id now");
}

#[test]
fn a_repeated_delete_leaves_the_note_that_differs_in_case() {
    for deleted in ["Moloch.md", "moloch.md"] {
        let mut client = Client::open(PAIR);
        if !tells_case_apart(&client) {
            return quipu_testkit::skip("this disk does not tell case apart");
        }
        let other = if deleted == "Moloch.md" { "moloch.md" } else { "Moloch.md" };
        let text = client.read(other);
        client.answer("get_node", json!({ "id": deleted }));
        assert_eq!(client.answer("delete_node", json!({ "id": deleted })), json!({ "deleted": true }));
        assert_eq!(client.answer("delete_node", json!({ "id": deleted })), json!({ "deleted": false }));
        let refused = client.call("update_node", json!({ "id": deleted, "content": "for the deleted note\n" }));
        assert!(refused.to_string().contains("NODE_NOT_FOUND"), "{refused}");
        assert_eq!(client.read(other), text);
        client.answer("get_node", json!({ "id": other }));
        assert_eq!(client.answer("delete_node", json!({ "id": other })), json!({ "deleted": true }), "it was read");
    }
}

/// The deleted note is in the trash, older than which the present one is.
#[test]
fn note_that_took_the_name_of_a_deleted_one_is_written_by_the_shown_id() {
    if team_wire::is_wanted() {
        return quipu_testkit::skip("no other program renames notes of a graph");
    }
    let mut client = Client::open("//- foo.md\nfirst\n//- draft.md\nsecond\n");
    assert_eq!(client.answer("delete_node", json!({ "id": "foo.md" })), json!({ "deleted": true }));
    std::fs::rename(client.root().join("draft.md"), client.root().join("Foo.md")).unwrap();
    assert_eq!(client.answer("get_node", json!({ "id": "Foo.md" }))["id"], "foo.md");
    client.answer("update_node", json!({ "id": "foo.md", "content": "third\n" }));
    client.answer("edit_node", json!({ "id": "foo.md", "edits": [{ "op": "append", "text": "more" }] }));
    assert_eq!(client.read("Foo.md"), "third\nmore\n");
    // Another client is shown it by the same id.
    let mut other = client.join(&[]);
    assert_eq!(other.answer("get_node", json!({ "id": "foo.md" }))["content"], "third\nmore\n");
    assert_eq!(other.answer("delete_node", json!({ "id": "foo.md" })), json!({ "deleted": true }));
    assert_eq!(other.answer("delete_node", json!({ "id": "foo.md" })), json!({ "deleted": false }));
}

/// A client that saw both notes may repeat a delete of which it got no answer.
#[test]
fn a_delete_of_another_client_is_not_repeated_on_the_note_that_differs_in_case() {
    let mut client = Client::open(PAIR);
    if !tells_case_apart(&client) || team_wire::is_wanted() {
        return quipu_testkit::skip("this disk does not tell case apart, or there is one client");
    }
    client.answer("get_node", json!({ "id": "moloch.md" }));
    client.answer("get_node", json!({ "id": "Moloch.md" }));
    let mut other = client.join(&[]);
    assert_eq!(other.answer("delete_node", json!({ "id": "moloch.md" })), json!({ "deleted": true }));
    assert_eq!(client.answer("delete_node", json!({ "id": "moloch.md" })), json!({ "deleted": false }));
    assert_eq!(client.read("Moloch.md"), "upper\n");
}

#[test]
fn files_that_differ_only_in_case_are_all_listed_and_reachable() {
    let mut client = Client::open(PAIR);
    if !tells_case_apart(&client) {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    let listed = client.answer("list_nodes", json!({}));
    assert_eq!(ids(&listed["nodes"]), ["Moloch.md", "a.md", "moloch.md"]);
    assert_eq!(ids(&client.answer("list_nodes", json!({ "path": "MOL" }))["nodes"]), ["Moloch.md", "moloch.md"]);
    for (id, text) in [("Moloch.md", "upper\n"), ("moloch.md", "lower\n")] {
        let node = client.answer("get_node", json!({ "id": id }));
        assert_eq!((&node["id"], &node["content"]), (&json!(id), &json!(text)));
        assert_eq!(client.answer("get_document", json!({ "path": id }))["content"], text);
        assert_eq!(client.answer("ubp_get_page", json!({ "filepath": id }))["content"], text);
        let linking = client.answer("get_neighbors", json!({ "id": id, "direction": "in" }));
        assert_eq!(ids(&linking), ["a.md"]);
        assert_eq!(client.answer("find_path", json!({ "source": "a.md", "target": id }))["path"], json!(["a.md", id]));
    }
    let asked = json!({ "ids": ["Moloch.md", "moloch.md", "MOLOCH.md", "none.md"] });
    let expected = json!({ "Moloch.md": true, "moloch.md": true, "none.md": false });
    assert_eq!(client.answer("nodes_exist", asked), expected);
}

#[test]
fn an_ambiguous_read_names_the_others_and_an_ambiguous_write_is_refused() {
    let mut client = Client::open(PAIR);
    if !tells_case_apart(&client) {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    for (tool, argument) in [("get_node", "id"), ("get_document", "path"), ("ubp_get_page", "filepath")] {
        let result = client.call(tool, json!({ argument: "MOLOCH.md" }));
        assert_eq!(first_block(&result)["content"], "upper\n", "{tool} answers the first in byte order");
        let told = warnings(&result);
        assert!(
            told.iter().any(|line| line.contains("this answer is for \"Moloch.md\", the others are \"moloch.md\"")),
            "{told:?}"
        );
    }
    for (tool, arguments) in [
        ("update_node", json!({ "id": "MOLOCH.md", "content": "x" })),
        ("update_node", json!({ "id": "MOLOCH.md", "title": "New" })),
        ("delete_node", json!({ "id": "mOLOCH.md" })),
    ] {
        let (code, message) = client.error(tool, arguments);
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains("it matches Moloch.md, moloch.md; give one"), "{message}");
    }
    assert_eq!((client.read("Moloch.md").as_str(), client.read("moloch.md").as_str()), ("upper\n", "lower\n"));
}

#[test]
fn new_file_is_found_by_its_exact_spelling() {
    let mut client = Client::open("//- Moloch.md\nupper\n//- a.md\n");
    if !tells_case_apart(&client) {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    assert_eq!(client.answer("get_node", json!({ "id": "moloch.md" }))["content"], "upper\n");
    client.write("moloch.md", "lower\n");
    assert_eq!(client.answer("get_node", json!({ "id": "moloch.md" }))["content"], "lower\n");
    client.write("A.md", "other\n");
    client.answer("update_node", json!({ "id": "A.md", "content": "new\n" }));
    assert_eq!((client.read("A.md").as_str(), client.read("a.md").as_str()), ("new\n", ""));
}

#[test]
fn replacing_unread_text_warns() {
    let long = "é".repeat(15_000);
    let mut client =
        Client::open(&format!("//- docs/Init.md\n---\ntitle: T\n---\n{long}\n//- b.md\nread\n//- empty.md\n"));
    let result = client.call("update_node", json!({ "id": "docs/init.md", "content": "oops" }));
    let told = warnings(&result);
    let expected =
        "\"docs/Init.md\": 15001 characters that you had not read were replaced; revert_node with version \"";
    assert!(told.iter().any(|line| line.starts_with(expected)), "{told:?}");
    client.answer("get_node", json!({ "id": "b.md" }));
    for arguments in [
        json!({ "id": "b.md", "content": "new" }),
        json!({ "id": "empty.md", "content": "new" }),
        json!({ "id": "docs/init.md", "content": "again" }),
        json!({ "id": "docs/init.md", "tags": ["t"] }),
    ] {
        let told = warnings(&client.call("update_node", arguments));
        assert!(!told.iter().any(|line| line.contains("had not read")), "{told:?}");
    }
}

#[test]
fn new_note_uses_the_existing_folder_in_any_case() {
    let mut client = Client::open("//- en/Obsidian Sync/a.md\n");
    let id = |answer: Value| answer["id"].as_str().unwrap().to_owned();
    let created = client.answer("create_node", json!({ "id": "en/obsidian sync/Sync checklist.md", "content": "x" }));
    assert_eq!(id(created), "en/obsidian sync/sync checklist.md");
    assert_eq!(client.read("en/Obsidian Sync/sync checklist.md"), "x");
    client.answer("create_node", json!({ "id": "EN/Obsidian Sync/New Part/B.md", "content": "y" }));
    assert_eq!(client.read("en/Obsidian Sync/New Part/b.md"), "y");
    assert_eq!(files_below(client.root()).len(), 3, "no other folder was made");
}

#[test]
fn names_invalid_on_other_systems_are_refused() {
    let mut client = Client::open("//- a.md\n");
    for id in ["what?.md", "ab: c.md", "x|y.md", "con.md", "dots./a.md", "space /a.md", "a<b>.md", "\"q\".md", "s*.md"]
    {
        let (code, message) = client.error("create_node", json!({ "id": id, "content": "x" }));
        assert_eq!(code, "INVALID_PARAMS", "{id}: {message}");
        assert!(message.contains("other systems"), "{message}");
    }
    let (code, message) = client.error("update_node", json!({ "id": "a.md", "title": "Why?" }));
    assert_eq!(code, "INVALID_PARAMS", "{message}");
    assert_eq!(files_below(client.root()).len(), 1);
}

#[test]
fn tags_in_the_text_are_kept_beside_those_given() {
    let mut client = Client::open("");
    let note = json!({ "id": "a.md", "content": "---\ntags: [x]\n---\nText.\n", "tags": ["proj", "X"] });
    assert_eq!(client.answer("create_node", note)["tags"], json!(["x", "proj"]));
    assert_eq!(client.read("a.md"), "---\ntags: [x, proj]\n---\nText.\n");
}

#[test]
fn frontmatter_without_a_last_line_break_survives_a_new_text() {
    let mut client = Client::open_in(vault_of("a.md", "---\ntitle: Keep\ntags: [t]\n---"), &[]);
    let answer = client.answer("update_node", json!({ "id": "a.md", "content": "hello" }));
    assert_eq!(
        (&answer["title"], &answer["content"], &answer["tags"]),
        (&json!("Keep"), &json!("hello"), &json!(["t"]))
    );
    assert_eq!(client.read("a.md"), "---\ntitle: Keep\ntags: [t]\n---\nhello");
    client.answer("update_node", json!({ "id": "a.md", "content": "---\n---\nfresh" }));
    assert_eq!(client.read("a.md"), "---\ntitle: Keep\ntags: [t]\n---\nfresh");
}

#[test]
fn every_tool_that_reads_warns_of_an_id_that_several_notes_match() {
    let mut client = Client::open(PAIR);
    if !tells_case_apart(&client) {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    client.answer("get_node", json!({ "id": "moloch.md" }));
    client.answer("update_node", json!({ "id": "moloch.md", "content": "new\n" }));
    let versions = client.answer("node_history", json!({ "id": "Moloch.md" }))["versions"].clone();
    let version = versions[0]["version"].clone();
    let where_links_to = json!({ "where": [{ "field": "links_to", "op": "eq", "value": "MOLOCH.md" }] });
    for (tool, arguments) in [
        ("node_history", json!({ "id": "MOLOCH.md" })),
        ("diff_node", json!({ "id": "MOLOCH.md", "from": version, "to": "current" })),
        ("resolve_nodes", json!({ "names": ["MOLOCH"] })),
        ("query_nodes", where_links_to),
    ] {
        let result = client.call(tool, arguments);
        let said = warnings(&result);
        assert!(said.iter().any(|told| told.starts_with("\"MOLOCH") && told.contains("matches")), "{tool}: {result}");
    }
    // A name that one note has has no warning.
    assert_eq!(warnings(&client.call("resolve_nodes", json!({ "names": ["a"] }))), [""; 0]);
}

#[test]
fn greek_name_in_capitals_ends_with_a_final_sigma() {
    let mut client = Client::open("//- a.md\n[[\u{39f}\u{394}\u{39f}\u{3a3}]]\n");
    let capitals = "sub/\u{39f}\u{394}\u{39f}\u{3a3}.md";
    let small = "sub/\u{3bf}\u{3b4}\u{3bf}\u{3c2}.md";
    assert_eq!(client.answer("create_node", json!({ "id": capitals, "content": "x\n", "tags": [] }))["id"], small);
    assert!(client.has(small), "{:?}", files_below(client.root()).keys());
    for spelled in [capitals, small, "sub/\u{3bf}\u{3b4}\u{3bf}\u{3c3}.md"] {
        assert_eq!(client.answer("get_node", json!({ "id": spelled }))["id"], small, "{spelled}");
    }
    let linking = client.answer("get_neighbors", json!({ "id": small, "direction": "in" }));
    assert_eq!(ids(&linking), ["a.md"]);
}

/// The advice brings back every byte, by the tool and by the command, whatever the note is called.
#[test]
fn the_advice_for_unread_text_brings_it_back() {
    if team_wire::is_wanted() {
        return quipu_testkit::skip("the command is for a folder");
    }
    for (path, toolsets) in
        [("cost $HOME.md", "notes,work"), ("it's `a`.md", "notes"), ("-v.md", "notes"), ("a b/\"c\".md", "notes,work")]
    {
        let text = format!("---\ntitle: T\n---\nKept \u{e9} \r\n{path}\n");
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(path), &text).unwrap();
        let mut client = Client::open_in(folder, &["--toolsets", toolsets]);
        let told = warnings(&client.call("update_node", json!({ "id": path, "content": "oops" })));
        let advice =
            told.iter().find(|line| line.contains("had not read")).unwrap_or_else(|| panic!("{told:?}")).clone();
        assert_ne!(client.read(path), text);
        assert_eq!(advice.contains("revert_node"), toolsets.contains("work"), "{advice}");
        if let Some((_, rest)) = advice.split_once("revert_node with version \"") {
            let version = rest.split('"').next().unwrap();
            client.answer("revert_node", json!({ "id": path, "version": version }));
            assert_eq!(client.read(path), text);
            client.answer("update_node", json!({ "id": path, "content": "again" }));
        }
        let (_, command) = advice.split_once("in a shell, `").unwrap();
        let command = command.strip_suffix("` does").unwrap();
        let command = command.replacen("quipu", QUIPU, 1);
        let ran = std::process::Command::new("sh").args(["-c", &command]).current_dir(client.root()).output().unwrap();
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(client.read(path), text, "{command}");
    }
}
