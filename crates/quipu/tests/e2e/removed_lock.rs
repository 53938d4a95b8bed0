//! The files by which servers find each other, removed under a running server: there is one owner again soon, and everybody
//! finds it.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, vault};

/// Who has the vault, by the card in the lock.
fn owner(root: &Path) -> Option<u64> {
    let card = std::fs::read(root.join(".quipu/owner.lock")).ok()?;
    serde_json::from_slice::<Value>(&card).ok()?["pid"].as_u64()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nobody watches the files: what one wrote another sees only when both ask the same owner.
fn open() -> Client {
    Client::open_in(vault("//- a.md\nOld.\n"), &["--no-watch"])
}

fn share_one_index(one: &mut Client, other: &mut Client, note: &str) {
    one.answer("create_node", json!({ "id": note, "content": "x" }));
    let there = json!({ note: true });
    other.wait_for("nodes_exist", json!({ "ids": [note] }), &there);
}

#[test]
fn a_removed_lock_is_taken_anew() {
    let mut first = open();
    let pid = u64::from(first.pid());
    std::fs::remove_file(first.root().join(".quipu/owner.lock")).unwrap();
    wait_until("the lock is there again", || owner(first.root()) == Some(pid));
    let mut second = first.join(&["--no-watch"]);
    share_one_index(&mut second, &mut first, "b.md");
    assert_eq!(owner(first.root()), Some(pid), "the first still owns the vault");
}

#[test]
fn a_removed_socket_is_made_anew() {
    let mut first = open();
    let share = first.root().join(".quipu/share");
    std::fs::remove_dir_all(&share).unwrap();
    wait_until("the socket is there again", || share.join("owner.sock").exists());
    let mut second = first.join(&["--no-watch"]);
    share_one_index(&mut second, &mut first, "b.md");
    assert_eq!(owner(first.root()), Some(u64::from(first.pid())));
}

#[test]
fn an_owner_whose_lock_another_took_asks_there_and_loses_nothing() {
    let mut first = open();
    let mut follower = first.join(&["--no-watch"]);
    let project =
        first.answer("create_entity", json!({ "name": "Boat", "entity_type": "Project" }))["entity_id"].clone();
    first.answer("set_context", json!({ "project_id": project }));
    first.answer("get_node", json!({ "id": "a.md" }));
    std::fs::remove_file(first.root().join(".quipu/owner.lock")).unwrap();
    let mut second = first.join(&["--no-watch"]);
    if owner(first.root()) == Some(u64::from(first.pid())) {
        // It was quicker than the second could start.
        return;
    }
    share_one_index(&mut second, &mut first, "b.md");
    share_one_index(&mut first, &mut second, "c.md");
    share_one_index(&mut second, &mut follower, "d.md");
    assert_eq!(first.answer("get_context", json!({}))["project_id"], project);
    first.answer("update_node", json!({ "id": "a.md", "content": "It was shown this." }));
    second.signal("KILL");
    second.wait();
    share_one_index(&mut follower, &mut first, "e.md");
    let status = first.command(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(status["index"]["place"].is_string(), "whoever stepped down let go of the index: {status}");
}
