//! Who changed which note, over the real wire: two agents, a person with an editor, and the command line.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::Client;
use crate::upkeep::{SECRETS, files_with};

fn append(client: &mut Client, id: &str, text: &str) {
    client.answer("edit_node", json!({ "id": id, "edits": [{ "op": "append", "text": text }] }));
}

fn versions(client: &mut Client, id: &str) -> Vec<Value> {
    client.answer("node_history", json!({ "id": id }))["versions"].as_array().unwrap().clone()
}

fn listed(versions: &[Value]) -> Vec<String> {
    let text = |version: &Value, name: &str| version[name].as_str().unwrap().to_owned();
    versions.iter().map(|it| format!("{} {}", text(it, "by"), text(it, "action"))).collect()
}

/// A second client of the same server's vault, with a name of its own: its calls pass through the socket.
fn joined(client: &Client, name: &str) -> Client {
    let mut other = client.start_join(&[]);
    let client_info = json!({ "name": name, "version": "1" });
    other.request(
        "initialize",
        json!({ "protocolVersion": crate::client::LEGACY, "capabilities": {}, "clientInfo": client_info }),
    );
    other.notify("notifications/initialized", json!({}));
    other
}

#[test]
fn the_history_names_each_client_and_survives_a_kill() {
    let mut client = Client::open("//- Plan.md\none\n//- other.md\n[[plan]]\n");
    let mut second = joined(&client, "second agent");
    append(&mut client, "plan.md", "two");
    append(&mut second, "plan.md", "three");
    client.answer("move_node", json!({ "id": "plan.md", "to": "archive/" }));
    let all = versions(&mut second, "archive/plan.md");
    assert_eq!(listed(&all), ["raw move", "second agent edit", "raw edit", "outside edit"]);
    client.signal("KILL");
    client.wait();
    assert_eq!(versions(&mut second, "archive/plan.md"), all, "the next owner reads the same history");
    let changes = second.answer("recent_changes", json!({}));
    let by: Vec<&Value> = changes["changes"].as_array().unwrap().iter().map(|change| &change["by"]).collect();
    assert_eq!(by, ["raw", "second agent", "raw"]);
    // What the other agent did is undone by its version.
    let reverted = second.answer("revert_node", json!({ "id": "archive/plan.md", "version": all[2]["version"] }));
    assert_eq!(reverted["diff"], "@@ -2,2 +2 @@\n two\n-three\n");
    assert_eq!(second.read("archive/Plan.md"), "one\ntwo\n");
    // The note was moved since: its change is not undone as a whole.
    let (code, message) = second.error("undo_change", json!({ "change": changes["changes"][1]["change"] }));
    assert_eq!((code.as_str(), message.contains("has changed since")), ("InvalidArguments", true), "{message}");
}

#[test]
fn edits_by_other_programs_are_listed_as_outside() {
    let mut client = Client::open("//- a.md\n---\nstatus: draft\n---\none\n//- b.md\n[[a]]\n");
    append(&mut client, "a.md", "two");
    let (written, typed) = (client.read("a.md"), "---\nstatus: draft\n---\ntyped by hand\n");
    // In place, as many editors save.
    client.write("a.md", typed);
    client.write("new.md", "new\n");
    let start = std::time::Instant::now();
    loop {
        let changes = client.answer("recent_changes", json!({ "by": "outside" }));
        let ids: Vec<String> = changes["changes"].as_array().unwrap().iter().map(|it| it["id"].to_string()).collect();
        if ids.concat().contains("a.md") && changes.to_string().contains("new.md") {
            break;
        }
        assert!(start.elapsed() < crate::client::PATIENCE, "{changes}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let all = versions(&mut client, "a.md");
    assert_eq!(listed(&all), ["outside edit", "raw edit", "outside edit"]);
    assert!(all.iter().all(|version| version["kept"].is_null()), "{all:?}");
    let chars: Vec<&Value> = all.iter().map(|version| &version["chars"]).collect();
    assert_eq!(chars, [typed.len(), written.len(), written.len() - "two\n".len()], "each counts the whole file");
    let version = &all[1]["version"];
    let diff = client.answer("diff_node", json!({ "id": "a.md", "from": version }));
    assert_eq!(diff["diff"], "@@ -3,3 +3,2 @@\n ---\n-one\n-two\n+typed by hand\n");
    client.answer("revert_node", json!({ "id": "a.md", "version": version }));
    assert_eq!(client.read("a.md"), written);
}

#[test]
fn history_diff_and_revert_commands_work_on_notes() {
    let mut client = Client::open("//- a.md\none\n//- old/b.md\n[[a]]\n");
    append(&mut client, "a.md", "two");
    let history = client.run_command(&["history", "a.md"]);
    assert!(history.contains("edit") && history.contains("raw") && history.contains("outside"), "{history}");
    assert_eq!(client.run_command(&["diff", "a.md"]), "@@ -1 +1,2 @@\n one\n+two\n");
    let json: Value = serde_json::from_str(&client.run_command(&["history", "a.md", "--json"])).unwrap();
    let version = json["versions"][1]["version"].as_str().unwrap();
    client.run_command(&["revert", "a.md", version]);
    assert_eq!(client.read("a.md"), "one\n");
    client.answer("move_node", json!({ "id": "a.md", "to": "fresh/deep/c.md" }));
    let json: Value = serde_json::from_str(&client.run_command(&["history", "fresh/deep/c.md", "--json"])).unwrap();
    let change = json["versions"][0]["change"].as_str().unwrap();
    let undone = client.run_command(&["revert", "--change", change]);
    assert!(undone.contains("is undone by change"), "{undone}");
    assert_eq!((client.read("a.md").as_str(), client.read("old/b.md").as_str()), ("one\n", "[[a]]\n"));
    assert!(!client.root().join("fresh").exists(), "the folders of the move are gone");
    let wrong = client.command(&["revert", "a.md", "0123456789abcdef"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
}

#[test]
fn history_command_lists_changes_of_an_entity() {
    let mut client = Client::open("//- a.md\none\n");
    let entity = json!({ "name": "Ada Lovelace", "entity_type": "Author", "observations": ["sails"] });
    client.answer("create_entity", entity);
    client.answer("update_observation", json!({ "observation_id": 1, "text_content": "rows" }));
    let by_name = client.run_command(&["history", "ada lovelace"]);
    assert_eq!(by_name, client.run_command(&["history", "1"]));
    let lines: Vec<&str> = by_name.lines().collect();
    assert_eq!(lines.len(), 2, "{by_name}");
    assert!(
        lines[0].starts_with("2  ") && lines[0].ends_with(r#"  raw  ~ observation 1 of entity 1: "sails" to "rows""#),
        "{by_name}"
    );
    client.run_command(&["undo", "2"]);
    let json: Value = serde_json::from_str(&client.run_command(&["history", "1", "--json", "--limit", "2"])).unwrap();
    assert_eq!(
        json["changes"][1]["summary"], r#"~ observation 1 of entity 1: "sails" to "rows"; undone by 3"#,
        "{json}"
    );
    for command in [vec!["diff", "ada lovelace"], vec!["revert", "1", "0123456789abcdef"]] {
        let wrong = client.command(&command);
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert_eq!(wrong.status.code(), Some(2), "{said}");
        assert!(
            said.contains("is an entity") && said.contains("quipu history") && said.contains("quipu undo"),
            "{said}"
        );
    }
    let wrong = client.command(&["history", "7"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("there is no entity 7"), "{wrong:?}");
    let wrong = client.command(&["history", "Unknown Person"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no entity has this name either"), "{wrong:?}");
}

#[test]
fn a_damaged_history_blocks_nothing_and_is_reported() {
    let mut client = Client::open("//- a.md\none\n");
    append(&mut client, "a.md", "two");
    append(&mut client, "a.md", "three");
    client.close();
    let history = client.read(".quipu/history.jsonl");
    let (first, rest) = history.split_once('\n').unwrap();
    client.write(".quipu/history.jsonl", format!("{first}\nnot a line\n{}", &rest[..rest.len() / 2]));
    let mut next = client.join(&[]);
    let answer = next.answer("recent_changes", json!({ "by": "raw" }));
    assert_eq!(answer["changes"].as_array().unwrap().len(), 1, "{answer}");
    append(&mut next, "a.md", "four");
    assert_eq!(next.read("a.md"), "one\ntwo\nthree\nfour\n");
    let answer = next.answer("recent_changes", json!({ "by": "raw" }));
    assert_eq!(answer["changes"].as_array().unwrap().len(), 2, "{answer}");
    let doctor = next.run_command(&["doctor"]);
    assert!(doctor.contains("history.jsonl"), "{doctor}");
}

/// A note that was edited, renamed with its links, moved outside and edited again; another one has its first name.
#[test]
fn redaction_covers_all_names_of_a_note_and_no_other_note() {
    let shared = "A line that both notes have.\n".repeat(20);
    let fixture = format!("//- First.md\n{shared}zyxomorph\n//- linking.md\n[[first]]\n//- twin.md\n{shared}plain\n");
    let mut client = Client::open(&fixture);
    append(&mut client, "first.md", "quandrifex");
    append(&mut client, "twin.md", "more");
    client.answer("update_node", json!({ "id": "first.md", "title": "Blorptangle", "update_links": true }));
    client.answer("move_node", json!({ "id": "blorptangle.md", "to": "deep/second.md" }));
    client.answer("move_node", json!({ "id": "twin.md", "to": "first.md" }));
    append(&mut client, "deep/second.md", "wimblesnark [up](../linking.md)");
    let moved = client.answer("redact", json!({ "kind": "note", "id": "deep/second.md", "reason": "a leak" }));
    assert_eq!(moved["redacted"], true);
    // The note that links to it had its old title in a link.
    client.answer("redact", json!({ "kind": "note", "id": "linking.md", "reason": "its links" }));
    assert_eq!(files_with(client.root(), &SECRETS), [""; 0].map(PathBuf::from));
    // The other note has every version.
    let all = versions(&mut client, "first.md");
    assert_eq!(listed(&all), ["raw move", "raw edit", "outside edit"]);
    let diff = client.answer("diff_node", json!({ "id": "first.md", "from": all[2]["version"] }));
    assert!(diff["diff"].as_str().unwrap().contains("+more"), "{diff}");
}

/// Kills the server at moments spread over a redaction. The next start finishes it.
#[test]
fn killed_redaction_is_completed_at_the_next_start() {
    for moment in [0, 5, 15, 40, 80, 150] {
        let notes = "//- keep.md\nA plain note.\n//- secret.md\nzyxomorph rain\n";
        let mut client = Client::open(notes);
        append(&mut client, "secret.md", "blorptangle");
        let text = "the key is quandrifex";
        client.answer("create_entity", json!({ "name": "Ada", "entity_type": "Author", "observations": [text] }));
        client.send(
            "tools/call",
            json!({ "name": "redact", "arguments": { "kind": "observation", "id": 1, "reason": "a key" } }),
        );
        client.send(
            "tools/call",
            json!({ "name": "redact", "arguments": { "kind": "note", "id": "secret.md", "reason": "a leak" } }),
        );
        std::thread::sleep(std::time::Duration::from_millis(moment));
        client.signal("KILL");
        client.wait();
        let mut next = client.join(&[]);
        // Either it was not begun, or it is finished by the time the vault is served.
        let is_there = next.answer("nodes_exist", json!({ "ids": ["secret.md"] }))["secret.md"] == true;
        let entity = next.answer("get_entity", json!({ "entity_id": 1 }));
        let words: Vec<&str> = match (is_there, entity.to_string().contains("quandrifex")) {
            (true, true) => vec![],
            (true, false) => vec!["quandrifex"],
            (false, true) => vec!["zyxomorph", "blorptangle"],
            (false, false) => SECRETS.to_vec(),
        };
        next.run_command(&["index"]);
        assert_eq!(files_with(next.root(), &words), [""; 0].map(PathBuf::from), "after {moment} ms");
    }
}

#[test]
fn client_can_edit_a_note_after_its_own_undo() {
    let mut client = Client::open("//- a.md\none\n");
    client.call("get_node", json!({ "id": "a.md" }));
    append(&mut client, "a.md", "two");
    let changes = client.answer("recent_changes", json!({}));
    client.answer("undo_change", json!({ "change": changes["changes"][0]["change"] }));
    append(&mut client, "a.md", "three");
    assert_eq!(client.read("a.md"), "one\nthree\n");
}

#[test]
fn a_private_note_is_private_after_its_deletion_is_undone_or_reverted() {
    use std::os::unix::fs::PermissionsExt;
    let mut client = Client::open("//- a.md\nprivate\n");
    let file = client.root().join("a.md");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    client.answer("get_node", json!({ "id": "a.md" }));
    client.answer("delete_node", json!({ "id": "a.md" }));
    let change = client.answer("recent_changes", json!({}))["changes"][0]["change"].clone();
    client.answer("undo_change", json!({ "change": change }));
    assert_eq!((client.read("a.md").as_str(), mode()), ("private\n", 0o600));
    client.answer("get_node", json!({ "id": "a.md" }));
    client.answer("delete_node", json!({ "id": "a.md" }));
    let version = versions(&mut client, "a.md")[0]["version"].clone();
    client.answer("revert_node", json!({ "id": "a.md", "version": version }));
    assert_eq!((client.read("a.md").as_str(), mode()), ("private\n", 0o600));
}

/// Waits until the history has what another program did.
fn wait_for_outside(client: &mut Client, part: &str) {
    let start = std::time::Instant::now();
    loop {
        let changes = client.answer("recent_changes", json!({ "by": "outside" }));
        if changes.to_string().contains(part) {
            return;
        }
        assert!(start.elapsed() < crate::client::PATIENCE, "{changes}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn edit_while_no_server_runs_leaves_no_wrong_date_in_the_history() {
    let mut client = Client::open("//- a.md\none\n");
    client.answer("get_node", json!({ "id": "a.md" }));
    client.close();
    client.write("a.md", "one, and more\n");
    let mut next = client.join(&[]);
    wait_for_outside(&mut next, "a.md");
    let all = versions(&mut next, "a.md");
    assert_eq!(listed(&all), ["outside edit", "outside edit"]);
    let year = |version: &Value| version["at"].as_str().unwrap()[..4].parse::<u32>().unwrap();
    assert!(all.iter().all(|version| year(version) > 2000), "{all:?}");
}

#[test]
fn text_of_a_note_that_a_person_renamed_is_listed_as_kept() {
    let mut client = Client::open("//- a.md\none\n//- b.md\n[[a]]\n");
    append(&mut client, "a.md", "two");
    let (from, to) = (client.root().join("a.md"), client.root().join("renamed.md"));
    #[expect(clippy::disallowed_methods, reason = "another program moves the file")]
    std::fs::rename(from, to).unwrap();
    wait_for_outside(&mut client, "renamed.md");
    let all = versions(&mut client, "renamed.md");
    assert_eq!(listed(&all), ["outside move", "raw edit", "outside edit"]);
    assert!(all.iter().all(|version| version["kept"].is_null()), "{all:?}");
    client.answer("revert_node", json!({ "id": "renamed.md", "version": all[2]["version"] }));
    assert_eq!(client.read("renamed.md"), "one\n");
}

#[test]
fn second_undo_of_a_change_names_the_first() {
    let mut client = Client::open("//- a.md\none\n");
    append(&mut client, "a.md", "two");
    let undo = json!({ "change": "n1" });
    client.answer("undo_change", undo.clone());
    let expected = "change n1 was already undone by change n2; to apply it again, undo change n2".to_owned();
    assert_eq!(client.error("undo_change", undo.clone()), ("InvalidArguments".into(), expected));
    client.answer("undo_change", json!({ "change": "n2" }));
    assert_eq!(client.read("a.md"), "one\ntwo\n");
    append(&mut client, "a.md", "three");
    let (_, message) = client.error("undo_change", undo);
    assert!(message.contains("a.md has changed since"), "its undo was undone: {message}");
}

#[test]
fn redacted_note_has_no_version_to_go_back_to() {
    let mut client = Client::open("//- a.md\none\n");
    append(&mut client, "a.md", "two");
    client.answer("redact", json!({ "kind": "note", "id": "a.md", "reason": "a leak" }));
    let all = versions(&mut client, "a.md");
    assert_eq!(listed(&all), ["raw redact"]);
    assert_eq!((&all[0]["kept"], &all[0]["chars"]), (&json!(false), &json!(0)));
    let (code, message) = client.error("revert_node", json!({ "id": "a.md", "version": all[0]["version"] }));
    assert!(code == "INVALID_PARAMS" && message.contains("Quipu has no copy of its text"), "{message}");
    assert!(!client.has("a.md"));
}
