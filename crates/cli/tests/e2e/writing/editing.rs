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
