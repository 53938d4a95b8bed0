//! The files by which servers find each other, removed under a running server: there is one owner again soon, and everybody
//! finds it.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::asked_again::frame;
use crate::client::{Client, LEGACY, PATIENCE, vault};

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

/// Without a watcher: a client sees the write of another only if both use the same owner.
fn open() -> Client {
    Client::open_in(vault("//- a.md\nOld.\n"), &["--no-watch"])
}

fn share_one_index(one: &mut Client, other: &mut Client, note: &str) {
    one.answer("create_node", json!({ "id": note, "content": "x" }));
    let there = json!({ note: true });
    other.wait_for("nodes_exist", json!({ "ids": [note] }), &there);
}

/// Removes an owner's lock and does something before the owner can see it.
fn without_its_lock<T>(owner: &Client, meanwhile: impl FnOnce() -> T) -> T {
    owner.signal("STOP");
    std::fs::remove_file(owner.root().join(".quipu/owner.lock")).unwrap();
    let done = meanwhile();
    owner.signal("CONT");
    done
}

/// Where the owner of the vault has its index; null if the index is only in memory.
fn index_place(client: &Client) -> Value {
    let status = client.command(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    status["index"]["place"].clone()
}

#[test]
fn removed_lock_is_recreated() {
    let mut first = open();
    let pid = u64::from(first.pid());
    std::fs::remove_file(first.root().join(".quipu/owner.lock")).unwrap();
    wait_until("the lock is there again", || owner(first.root()) == Some(pid));
    let mut second = first.join(&["--no-watch"]);
    share_one_index(&mut second, &mut first, "b.md");
    assert_eq!(owner(first.root()), Some(pid), "the first still owns the vault");
}

#[test]
fn removed_socket_is_recreated() {
    let mut first = open();
    let share = first.root().join(".quipu/share");
    std::fs::remove_dir_all(&share).unwrap();
    wait_until("the socket is there again", || share.join("owner.sock").exists());
    let mut second = first.join(&["--no-watch"]);
    share_one_index(&mut second, &mut first, "b.md");
    assert_eq!(owner(first.root()), Some(u64::from(first.pid())));
}

#[test]
fn owner_whose_lock_was_taken_forwards_to_the_new_owner_and_loses_nothing() {
    let mut first = open();
    let mut follower = first.join(&["--no-watch"]);
    let project =
        first.answer("create_entity", json!({ "name": "Boat", "entity_type": "Project" }))["entity_id"].clone();
    first.answer("set_context", json!({ "project_id": project }));
    first.answer("get_node", json!({ "id": "a.md" }));
    let second = without_its_lock(&first, || {
        let second = first.start_join(&["--no-watch"]);
        wait_until("the second has the lock", || owner(first.root()) == Some(u64::from(second.pid())));
        second
    });
    let mut second = second.shake_hands(LEGACY);
    share_one_index(&mut second, &mut first, "b.md");
    assert!(index_place(&first).is_string(), "the first let go of the index, and the second has it");
    assert_eq!(owner(first.root()), Some(u64::from(second.pid())));
    share_one_index(&mut first, &mut second, "c.md");
    share_one_index(&mut second, &mut follower, "d.md");
    assert_eq!(first.answer("get_context", json!({}))["project_id"], project);
    first.answer("update_node", json!({ "id": "a.md", "content": "It was shown this." }));
    second.signal("KILL");
    second.wait();
    share_one_index(&mut follower, &mut first, "e.md");
    assert!(index_place(&first).is_string(), "and so does the next");
}

#[test]
fn owner_whose_lock_was_taken_by_another_program_steps_down_with_a_reason() {
    let mut first = open();
    let own_folder = first.root().join(".quipu");
    let (lock, socket) = (own_folder.join("owner.lock"), own_folder.join("share/owner.sock"));
    let stranger = without_its_lock(&first, || {
        let mut held = File::create_new(&lock).unwrap();
        held.lock().unwrap();
        write!(held, "{}", json!({ "pid": 1, "version": "99.0.0", "hold": "shared" })).unwrap();
        std::fs::remove_file(&socket).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for guest in listener.incoming() {
                let mut guest = guest.unwrap();
                frame(&mut guest).unwrap();
                let welcome = json!({ "wire": 99, "version": "99.0.0", "pid": 1 }).to_string();
                let length = u32::try_from(welcome.len()).unwrap().to_le_bytes();
                guest.write_all(&[&length, welcome.as_bytes()].concat()).unwrap();
            }
        });
        held
    });
    wait_until("it no longer works on the vault", || {
        let result = first.call("get_node", json!({ "id": "a.md" }));
        let said = result["content"][0]["text"].as_str().unwrap_or_default();
        result["isError"] == true && said.contains("process 1 of quipu 99.0.0, with which this one")
    });
    drop(stranger);
    wait_until("it works on the vault again", || first.call("get_node", json!({ "id": "a.md" }))["isError"] != true);
    assert_eq!(owner(first.root()), Some(u64::from(first.pid())));
}
