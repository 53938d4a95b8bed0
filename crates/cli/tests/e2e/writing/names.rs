//! Names that meet: one that differs only in case, one name in two normal forms, letters whose capitals are longer.

use serde_json::json;

use crate::client::{Client, ids};

#[test]
fn a_new_name_must_differ_from_all_others_in_more_than_case() {
    let mut client = Client::open("//- A.md\nupper\n//- b.md\n[[a]]\n");
    for id in ["a.md", "A.md"] {
        assert_eq!(client.error("create_node", json!({ "id": id, "content": "x" })).0, "NODE_EXISTS");
    }
    assert_eq!(client.error("update_node", json!({ "id": "b.md", "title": "a" })).0, "NODE_EXISTS");
    assert_eq!(client.read("A.md"), "upper\n");
}

#[test]
fn a_name_in_another_normal_form_is_the_same_name() {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    let mut client = Client::open(&format!("//- {decomposed}.md\ntext\n//- a.md\n[[{composed}]] [x]({composed}.md)\n"));
    let id = format!("{decomposed}.md");
    assert_eq!(ids(&client.answer("get_neighbors", json!({ "id": "a.md" }))), [id.as_str()]);
    assert_eq!(client.answer("resolve_nodes", json!({ "names": [composed], "strategy": "exact" }))[0]["match"], id);
    let (code, _) = client.error("create_node", json!({ "id": format!("{composed}.md"), "content": "x" }));
    assert_eq!(code, "NODE_EXISTS");
    assert_eq!(client.read(&id), "text\n");
}

#[test]
fn letters_with_a_longer_lowercase_form_are_found() {
    let mut client = Client::open("//- \u{130}stanbul.md\ntext\n");
    let id = "\u{130}stanbul.md".to_lowercase();
    assert_eq!(client.answer("nodes_exist", json!({ "ids": ["\u{130}stanbul.md"] })), json!({ &id: true }));
    assert_eq!(client.answer("get_node", json!({ "id": id }))["content"], "text\n");
    client.answer("update_node", json!({ "id": id, "content": "new\n" }));
    assert_eq!(client.read("\u{130}stanbul.md"), "new\n");
    client.answer("create_node", json!({ "id": "\u{1e9e}.md", "content": "x" }));
    assert_eq!(client.read("\u{df}.md"), "x");
}

#[test]
fn note_that_would_be_excluded_is_not_created() {
    let mut client = Client::open("//- .gitignore\ndrafts/\n*.tmp.md\n//- a.md\na\n");
    for id in ["drafts/new.md", "x.tmp.md"] {
        let (code, message) = client.error("create_node", json!({ "id": id, "content": "x" }));
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains(".gitignore"), "{message}");
        assert!(!client.root().join(id).exists());
    }
    let (code, _) = client.error("update_node", json!({ "id": "a.md", "title": "x.tmp" }));
    assert_eq!(code, "INVALID_PARAMS");
    assert_eq!(client.read("a.md"), "a\n");
}

#[test]
fn title_that_cannot_be_a_file_name_does_not_block_an_update_that_leaves_it() {
    let files = "//- a.md\n---\ntitle: \"Why? A: B\"\n---\nold\n//- b.md\n---\ntitle: C# / F#\n---\nold\n//- c.md\n[[a]] [[b]]\n";
    let mut client = Client::open(files);
    for (id, title) in [("a.md", "Why? A: B"), ("b.md", "C# / F#")] {
        client.answer("get_node", json!({ "id": id }));
        let answer =
            client.answer("update_node", json!({ "id": id, "title": title, "content": "new\n", "tags": ["t"] }));
        assert_eq!((&answer["id"], &answer["title"]), (&json!(id), &json!(title)));
        assert_eq!((&answer["content"], &answer["tags"]), (&json!("new\n"), &json!(["t"])));
    }
    assert!(client.read("a.md").starts_with("---\ntitle: \"Why? A: B\"\n"), "{}", client.read("a.md"));
    for (title, character) in [("Who?", "`?`"), ("A: B", "`:`"), ("and/or", "`/`")] {
        let (code, message) = client.error("update_node", json!({ "id": "a.md", "title": title }));
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains("the title becomes the file name") && message.contains(character), "{message}");
    }
}

#[test]
fn colon_in_a_new_name_is_named_as_the_problem() {
    let mut client = Client::open("");
    for id in ["a:b.md", "c:notes.md", "sub/a:b.md"] {
        let (code, message) = client.error("create_node", json!({ "id": id, "content": "x" }));
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains("`:` cannot be in a file name") && !message.contains("absolute"), "{message}");
    }
    for id in ["c:/a.md", "/a.md", "~/a.md"] {
        let (_, message) = client.error("create_node", json!({ "id": id, "content": "x" }));
        assert!(message.contains("absolute"), "{message}");
    }
}
