//! Every tool that writes, asked again because the answer was lost: the owner carries the call out, and is killed before
//! its client hears of it. The next owner must answer, and must not do it twice.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]

use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::Client;

/// With a file where the folder of the socket would be: the owner's socket lies elsewhere.
const NOTES: &str = "//- a.md\n---\ntags: [old]\n---\nOld.\n//- linking.md\nSee [[a]].\n//- .quipu/share\n";

fn elsewhere(root: &Path) -> PathBuf {
    let own_folder = root.canonicalize().unwrap().join(".quipu");
    let user = std::fs::metadata(&own_folder).unwrap().uid();
    let name = blake3::hash(own_folder.as_os_str().as_encoded_bytes()).to_hex();
    PathBuf::from(format!("/tmp/quipu-{user}/{}.sock", &name[..32]))
}

/// A proxy at the path where other processes look for the owner's socket first: it passes everything on, and kills the owner
/// once it has answered a request that contains these words, before the response is delivered.
fn swallow_the_answer_to(words: &str, root: &Path, owner: u32) {
    let words = words.to_owned();
    let (share, real) = (root.join(".quipu/share"), elsewhere(root));
    std::fs::remove_file(&share).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(&share).unwrap();
    let listener = UnixListener::bind(share.join("owner.sock")).unwrap();
    std::thread::spawn(move || {
        for guest in listener.incoming() {
            let guest = guest.unwrap();
            let Ok(host) = UnixStream::connect(&real) else { return };
            let (words, real) = (words.clone(), real.clone());
            std::thread::spawn(move || {
                let _ = pass_on(guest, host, &words, || {
                    let killed = std::process::Command::new("kill").args(["-s", "KILL", &owner.to_string()]).status();
                    assert!(killed.unwrap().success());
                    std::fs::remove_file(&real).unwrap();
                });
            });
        }
    });
}

fn pass_on(mut guest: UnixStream, mut host: UnixStream, words: &str, kill: impl FnOnce()) -> io::Result<()> {
    let hello = frame(&mut guest)?;
    host.write_all(&hello)?;
    guest.write_all(&frame(&mut host)?)?;
    if text(&hello).contains("staying") {
        // Notices, and in the end the end.
        let mut ended = host.try_clone()?;
        return io::copy(&mut ended, &mut guest).map(drop);
    }
    loop {
        let question = frame(&mut guest)?;
        host.write_all(&question)?;
        let answer = frame(&mut host)?;
        if text(&question).contains(words) {
            kill();
            return Ok(());
        }
        guest.write_all(&answer)?;
    }
}

/// What one process says to the other at once: its length, then JSON.
pub(crate) fn frame(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    stream.read_exact(&mut frame)?;
    let length = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
    frame.resize(4 + length, 0);
    stream.read_exact(&mut frame[4..])?;
    Ok(frame)
}

fn text(frame: &[u8]) -> String {
    String::from_utf8_lossy(&frame[4..]).into_owned()
}

/// A server whose answer to a tool will be lost, with its end.
fn owner_who_will_not_answer(tool: &str) -> Client {
    let mut owner = Client::open(NOTES);
    for (name, kind) in [("Ada", "Person"), ("Boat", "Project")] {
        let observations = json!(["sails"]);
        owner.answer("create_entity", json!({ "name": name, "entity_type": kind, "observations": observations }));
    }
    swallow_the_answer_to(&format!("\"tool\":\"{tool}\""), owner.root(), owner.pid());
    owner
}

/// Asks a tool whose answer is lost once. The client that asked is all that is left then; its answer is given too.
fn ask(tool: &str, arguments: Value) -> (Client, Value) {
    let mut owner = owner_who_will_not_answer(tool);
    let mut other = owner.join(&[]);
    other.answer("get_node", json!({ "id": "a.md" }));
    let answer = other.answer(tool, arguments);
    let (status, _) = owner.wait();
    assert!(!status.success(), "the owner was not killed: the call did not go through the socket");
    (other, answer)
}

fn kept(client: &Client) -> usize {
    let listed = client.command(&["restore", "--json"]);
    serde_json::from_slice::<Value>(&listed.stdout).unwrap().as_array().unwrap().len()
}

fn changes(client: &Client) -> usize {
    let log = client.command(&["audit", "--limit", "100", "--json"]);
    let log: Value = serde_json::from_slice(&log.stdout).unwrap_or_else(|error| panic!("{error}: {log:?}"));
    log.as_array().unwrap().len()
}

#[test]
fn retried_create_runs_once() {
    let (mut client, answer) = ask("create_node", json!({ "id": "new.md", "content": "New." }));
    assert_eq!((&answer["id"], &answer["content"]), (&json!("new.md"), &json!("New.")));
    assert_eq!((client.read("new.md"), kept(&client)), ("New.".to_owned(), 0));
    client.answer("update_node", json!({ "id": "new.md", "content": "It is the writer's own." }));
}

#[test]
fn retried_update_runs_once() {
    let (client, answer) = ask("update_node", json!({ "id": "a.md", "content": "New." }));
    assert_eq!(answer["content"], "New.");
    assert_eq!((client.read("a.md").ends_with("New."), kept(&client)), (true, 1));
}

#[test]
fn retried_edit_runs_once() {
    let edits = json!([{ "op": "append", "text": "New." }]);
    let (client, answer) = ask("edit_node", json!({ "id": "a.md", "edits": edits }));
    assert_eq!((&answer["changed"], &answer["diff"]), (&json!(true), &json!("")), "the text before is not known");
    assert_eq!((client.read("a.md").matches("New.").count(), kept(&client)), (1, 1));
}

#[test]
fn retried_rename_runs_once_with_its_links() {
    let arguments = json!({ "id": "a.md", "title": "Anchor", "update_links": true });
    let (mut client, answer) = ask("update_node", arguments);
    assert_eq!(answer["id"], "anchor.md");
    assert_eq!(client.read("linking.md"), "See [[Anchor]].\n");
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 2);
    assert_eq!(kept(&client), 2, "the note where it was, and the one that links to it");
}

#[test]
fn retried_move_runs_once_with_its_links() {
    let (mut client, answer) = ask("move_node", json!({ "id": "a.md", "to": "deep/Anchor.md" }));
    assert_eq!((&answer["id"], &answer["old_id"]), (&json!("deep/anchor.md"), &json!("a.md")));
    assert_eq!(client.read("linking.md"), "See [[Anchor]].\n");
    assert_eq!((client.answer("list_nodes", json!({}))["total"].clone(), kept(&client)), (json!(2), 2));
}

#[test]
fn retried_delete_runs_once() {
    let (client, answer) = ask("delete_node", json!({ "id": "a.md" }));
    assert_eq!((&answer["deleted"], kept(&client)), (&json!(true), 1));
    assert!(!client.root().join("a.md").exists());
}

#[test]
fn retried_memory_write_runs_once() {
    for (tool, arguments, expected) in [
        ("create_entity", json!({ "name": "Cleo", "entity_type": "Person" }), json!({ "name": "Cleo" })),
        ("update_entity", json!({ "entity_id": 1, "name": "Ada L." }), json!({ "name": "Ada L." })),
        ("delete_entity", json!({ "entity_id": 2 }), json!({ "name": "Boat" })),
        (
            "create_observation",
            json!({ "entity_id": 1, "text_content": "swims" }),
            json!({ "observation_content": "swims" }),
        ),
        ("delete_observation", json!({ "observation_id": 1 }), json!({ "observation_content": "sails" })),
        (
            "create_relation",
            json!({ "from_entity_id": 1, "to_entity_id": 2, "relation_type": "owns" }),
            json!({ "relation_type": "owns" }),
        ),
        (
            "update_observation",
            json!({ "observation_id": 1, "text_content": "rows" }),
            json!({ "observation_content": "rows" }),
        ),
        (
            "merge_entities",
            json!({ "entity_id": 2, "into_entity_id": 1 }),
            // The other entity has the same observation.
            json!({ "entity_id": 1, "moved": { "observations": 0, "relations": 0, "aliases": 1 }, "change": 3 }),
        ),
        ("undo_change", json!({ "change": 2 }), json!({ "change": 2, "undone_by": 3 })),
        (
            "bulk_update",
            json!({ "entities": [{ "name": "Dora", "entity_type": "Person" }], "observations": [{ "entity_id": "Dora", "text_content": "x" }] }),
            json!({}),
        ),
    ] {
        let (client, answer) = ask(tool, arguments);
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(answer[field], *value, "{tool}: {answer}");
        }
        assert_eq!(changes(&client), 3, "{tool}: two made the vault, and one is this");
    }
}

/// A command has its key too. What it asks for is answered by the next server, or where there is none by itself.
#[test]
fn retried_command_runs_once_and_is_answered() {
    for (tool, arguments) in [
        ("create_node", json!({ "id": "new.md", "content": "New." })),
        ("create_observation", json!({ "entity_id": 1, "text_content": "swims" })),
    ] {
        for is_alone in [true, false] {
            let mut owner = owner_who_will_not_answer(tool);
            let other = (!is_alone).then(|| owner.join(&[]));
            let printed = owner.command(&["call", tool, &arguments.to_string()]);
            assert!(printed.status.success(), "{tool}, alone {is_alone}: {printed:?}");
            let answer: Value = serde_json::from_slice(&printed.stdout).unwrap();
            let (status, _) = owner.wait();
            assert!(!status.success(), "the owner was not killed: the call did not go through the socket");
            if tool == "create_node" {
                assert_eq!((&answer["id"], owner.read("new.md")), (&json!("new.md"), "New.".to_owned()));
                assert_eq!(kept(&owner), 0);
            } else {
                assert_eq!(answer["observation_content"], "swims");
                assert_eq!(changes(&owner), 3, "two made the vault, and one is this");
            }
            drop(other);
        }
    }
}

/// What brings a version back is not done twice: the second time it would take its own work back.
#[test]
fn command_that_cannot_be_retried_reports_it() {
    let mut owner = Client::open(NOTES);
    owner.answer("get_node", json!({ "id": "a.md" }));
    owner.answer("update_node", json!({ "id": "a.md", "content": "New." }));
    swallow_the_answer_to("\"restore\":", owner.root(), owner.pid());
    let printed = owner.command(&["restore", "a.md"]);
    let said = String::from_utf8(printed.stderr).unwrap();
    assert!(!printed.status.success() && said.contains("check whether the command took effect"), "{said}");
    assert!(owner.read("a.md").ends_with("Old.\n"));
}

/// A request key is recorded for ten minutes. A process that was suspended for longer between two attempts, with its machine
/// or by a signal, must not have its call applied again.
#[test]
fn retry_older_than_the_recorded_requests_is_refused() {
    let owner = Client::open(NOTES);
    let mut stream = UnixStream::connect(elsewhere(owner.root())).unwrap();
    let mut exchange = |message: Value| -> Value {
        let message = message.to_string();
        let length = u32::try_from(message.len()).unwrap();
        stream.write_all(&[&length.to_le_bytes(), message.as_bytes()].concat()).unwrap();
        serde_json::from_slice(&frame(&mut stream).unwrap()[4..]).unwrap()
    };
    exchange(json!({ "wire": 2, "version": "test", "process": "test", "purpose": "asking" }));
    let mut create = |minutes_ago: u64, id: &str| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let key = format!("{:012x}{:020x}", now.as_millis() as u64 - minutes_ago * 60_000, 7);
        let session = json!({
            "number": 1, "client": "test", "known": 0, "whole": { "edition": 0, "shown": [], "context": null },
        });
        let arguments = json!({ "id": id, "content": "x" });
        let call = json!({ "key": key, "tool": "create_node", "arguments": arguments, "session": session });
        exchange(json!({ "call_tool": call })).to_string()
    };
    let refused = create(6, "late.md");
    assert!(refused.contains("an earlier attempt may have succeeded"), "{refused}");
    assert!(!owner.root().join("late.md").exists());
    create(4, "in_time.md");
    assert!(owner.root().join("in_time.md").exists());
}
