//! `edit_node` over the real files: bytes outside the edit, two clients at once, restoring, a retried call.

#![expect(clippy::disallowed_methods, reason = "files are compared byte by byte")]

use serde_json::{Value, json};

use crate::client::{Client, vault};

#[test]
fn bytes_outside_an_edit_stay() {
    let folder = vault("//- b.md\n");
    let before =
        b"\xEF\xBB\xBF---\r\n# comment\r\nstatus:   draft\r\n---\r\n# A\r\ncaf\xE9\r\n\r\n## B\r\n- [ ] task\r\n\tend"
            .to_vec();
    std::fs::write(folder.path().join("odd.md"), &before).unwrap();
    let mut client = Client::open_in(folder, &[]);
    let edits = json!([
        { "op": "insert", "heading": "A", "position": "end", "text": "new\nlines" },
        { "op": "set_task", "text": "task", "done": true },
        { "op": "set_property", "key": "status", "value": "final" },
        { "op": "append", "text": "last" },
    ]);
    let answer = client.answer("edit_node", json!({ "id": "odd.md", "edits": edits }));
    assert_eq!(answer["changed"], true, "{answer}");
    let after = std::fs::read(client.root().join("odd.md")).unwrap();
    let expected = b"\xEF\xBB\xBF---\r\n# comment\r\nstatus:   final\r\n---\r\n# A\r\ncaf\xE9\r\nnew\r\nlines\r\n\r\n## B\r\n- [x] task\r\n\tend\r\nlast";
    assert_eq!(String::from_utf8_lossy(&after), String::from_utf8_lossy(expected));
    assert_eq!(after, expected);
    client.run_command(&["restore", "odd.md"]);
    assert_eq!(std::fs::read(client.root().join("odd.md")).unwrap(), before, "the replaced version is in the trash");
}

#[test]
fn two_clients_edit_different_sections_and_no_edit_is_lost() {
    const ROUNDS: usize = 12;
    let sections: String = (0..2).map(|n| format!("## S{n}\nstart\n\n")).collect();
    let first = Client::open(&format!("//- a.md\n{sections}"));
    let root = first.root().to_owned();
    let edit = |name: usize, mut client: Client| {
        for round in 0..ROUNDS {
            loop {
                // A part is enough to know the present version.
                let version = client.answer("get_node", json!({ "id": "a.md", "max_chars": 1 }))["version"].clone();
                let insert = json!({ "op": "insert", "heading": format!("S{name}"), "position": "end", "text": format!("{name}.{round}") });
                let reply =
                    client.call("edit_node", json!({ "id": "a.md", "edits": [insert], "expected_version": version }));
                let text = reply["content"][0]["text"].as_str().unwrap().to_owned();
                if reply["isError"] != true {
                    break;
                }
                let error: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(error["error"]["code"], "PROVIDER_ERROR", "{text}");
                assert!(text.contains("Read it again, then repeat the change"), "{text}");
            }
        }
    };
    let second = first.join(&[]);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| edit(1, second));
        edit(0, first.join(&[]));
        other.join().unwrap();
    });
    let section = |name: usize| (0..ROUNDS).map(|round| format!("{name}.{round}\n")).collect::<String>();
    let expected = format!("## S0\nstart\n{}\n## S1\nstart\n{}\n", section(0), section(1));
    assert_eq!(std::fs::read_to_string(root.join("a.md")).unwrap(), expected);
}

#[test]
fn one_of_two_equal_headings_is_named_by_its_line() {
    let mut client = Client::open("//- a.md\n---\nstatus: draft\n---\n# Log\n## Notes\none\n## Notes\ntwo\n");
    let edit = |heading: &str| {
        let edits = json!([{ "op": "insert", "heading": heading, "position": "end", "text": "new" }]);
        json!({ "id": "a.md", "edits": edits })
    };
    let (code, message) = client.error("edit_node", edit("Log > Notes"));
    assert_eq!(code, "INVALID_PARAMS");
    let lines = "line 5 \"Log > Notes\", line 7 \"Log > Notes\"";
    assert!(message.contains(lines) && message.contains("or its line, as \"Notes (line 5)\""), "{message}");
    client.answer("edit_node", edit("Log > Notes (line 7)"));
    assert_eq!(client.read("a.md"), "---\nstatus: draft\n---\n# Log\n## Notes\none\n## Notes\ntwo\nnew\n");
    let part = client.answer("get_node", json!({ "id": "a.md", "section": "Notes (line 5)" }));
    assert!(part["content"].as_str().unwrap().contains("one"), "{part}");
    let (_, message) = client.error("edit_node", edit("Notes (line 6)"));
    assert!(message.contains("2 headings are"), "a wrong line changes nothing: {message}");
    let in_frontmatter = json!([{ "op": "replace", "old": "draft", "new": "done" }]);
    let (_, message) = client.error("edit_node", json!({ "id": "a.md", "edits": in_frontmatter }));
    assert!(message.contains("occurs only in the frontmatter, in line 2; use set_property"), "{message}");
}

#[test]
fn tasks_in_other_states_are_counted_and_ticked() {
    let mut client = Client::open("//- a.md\n- [/] begun\n- [-] cancelled\n- [>] later\n- [x] done\n");
    let fields = json!({ "fields": ["tasks_open", "tasks_done"] });
    let counts = |client: &mut Client| {
        let node = client.answer("query_nodes", fields.clone())["nodes"][0].clone();
        (node["tasks_open"].as_u64(), node["tasks_done"].as_u64())
    };
    assert_eq!(counts(&mut client), (Some(2), Some(2)));
    let edits = json!([
        { "op": "set_task", "text": "begun", "done": true },
        { "op": "set_task", "text": "cancelled", "done": false },
        { "op": "set_task", "text": "later", "done": false },
    ]);
    client.answer("edit_node", json!({ "id": "a.md", "edits": edits }));
    assert_eq!(client.read("a.md"), "- [x] begun\n- [ ] cancelled\n- [>] later\n- [x] done\n");
    assert_eq!(counts(&mut client), (Some(2), Some(2)));
}
