//! Another program replaces memory's file while a server has it open. No write may be acknowledged into a file that is mixed,
//! or that is no longer at its path.

#![expect(clippy::disallowed_methods, reason = "replaces the server's file")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, LEGACY, QUIPU, first_block, serve_command, warnings};

/// A server on a vault of its own.
fn serve(vault: &Path) -> Client {
    Client::start_with(TempDir::new().unwrap(), serve_command(vault, &[])).shake_hands(LEGACY)
}

fn remember(client: &mut Client, name: &str) -> Result<(), String> {
    let made = client.call("create_entity", json!({"name": name, "entity_type": "x", "observations": ["seen"]}));
    if made["isError"] == true { Err(made["content"][0]["text"].as_str().unwrap().to_owned()) } else { Ok(()) }
}

/// Starts a server, has it remember so many things, and ends it: the file then has all of them.
fn fill(vault: &Path, prefix: &str, count: usize) {
    let mut client = serve(vault);
    (0..count).for_each(|number| remember(&mut client, &format!("{prefix} {number:04}")).unwrap());
    client.close();
}

fn shell(folder: &Path, script: &str) {
    assert!(Command::new("sh").args(["-ec", script]).current_dir(folder).status().unwrap().success(), "{script}");
}

/// Each variant: the things that another memory has, and what is done in `.quipu` to the file of a running server. `$other`
/// is a folder with that memory, and with `old.db`, `base.db` and `backup.db` of the same one.
const VARIANTS: [(&str, usize, &str); 18] = [
    ("another memory, smaller", 1, "cp $other/memory.db memory.db"),
    ("another memory, as large", 40, "cp $other/memory.db memory.db"),
    ("another memory, larger", 400, "cp $other/memory.db memory.db"),
    ("another memory, its time kept", 40, "cp -p $other/memory.db memory.db"),
    ("another memory in place of the name", 40, "cp $other/memory.db new; mv new memory.db"),
    ("another memory, the logs removed", 40, "rm memory.db-wal memory.db-shm; cp $other/memory.db memory.db"),
    ("another memory with its log", 40, "cp $other/memory.db memory.db; cp $other/log memory.db-wal"),
    ("another log", 40, "cp $other/log memory.db-wal"),
    ("an older copy", 0, "cp $other/old.db memory.db"),
    ("an older copy, the log removed", 0, "rm memory.db-wal; cp $other/old.db memory.db"),
    ("a backup of what is there", 0, "cp $other/backup.db memory.db"),
    ("an older copy in place of the name", 0, "cp $other/old.db new; mv new memory.db"),
    (
        "an older copy in place of the name, the logs removed",
        0,
        "rm memory.db-wal memory.db-shm; cp $other/old.db new; mv new memory.db",
    ),
    (
        "another memory in place of the name, the logs removed",
        40,
        "rm memory.db-wal memory.db-shm; cp $other/memory.db new; mv new memory.db",
    ),
    ("cut to nothing", 0, ": > memory.db"),
    ("cut to nothing, the logs removed", 0, "rm memory.db-wal memory.db-shm; : > memory.db"),
    ("cut in the middle", 0, "truncate -s 8192 memory.db"),
    ("the index of the log removed", 0, "rm memory.db-shm"),
];

#[test]
fn no_write_is_acknowledged_once_another_program_replaced_memory() {
    for (variant, others, script) in VARIANTS {
        let (vault, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let own = vault.path().join(".quipu");
        let theirs = other.path().join(".quipu");
        fill(vault.path(), "thing", 20);
        fill(other.path(), "other", others);
        std::fs::copy(own.join("memory.db"), theirs.join("old.db")).unwrap();
        fill(vault.path(), "more", 20);
        // A log as a kill leaves it.
        let mut client = serve(other.path());
        remember(&mut client, "late").unwrap();
        std::fs::copy(theirs.join("memory.db-wal"), theirs.join("log")).unwrap();
        client.close();

        let mut client = serve(vault.path());
        remember(&mut client, "new").unwrap();
        let backup = theirs.join("backup.db");
        let copied = Command::new(QUIPU).arg("--vault").arg(vault.path()).arg("backup").arg(&backup).output().unwrap();
        assert!(copied.status.success(), "{copied:?}");
        shell(&own, &script.replace("$other", theirs.to_str().unwrap()));
        let replaced = std::fs::read(own.join("memory.db")).unwrap();
        let read = client.call("get_current_time", json!({}));
        assert!(warnings(&read).iter().any(|told| told.contains("memory's file")), "{variant}: {read}");
        for number in 0..10 {
            let refused = remember(&mut client, &format!("late {number}")).expect_err(variant);
            assert!(refused.contains("memory's file"), "{variant}: {refused}");
        }
        client.close();
        // Where only what belongs to it was touched, the file is still ours.
        let is_replaced = script.split([' ', ';']).any(|word| word == "memory.db");
        let is_written = std::fs::read(own.join("memory.db")).unwrap() != replaced;
        assert!(!is_replaced || !is_written, "{variant}: the file was written to");
        check_next_start(vault.path(), variant, script);
    }
}

/// The next server has all that was acknowledged, or has the file that was put there, or says what is wrong. What was in the log
/// alone is never lost silently, unless the log itself was removed.
fn check_next_start(vault: &Path, variant: &str, script: &str) {
    let mut client = serve(vault);
    let found = client.call("search_entities", json!({"query": "new"}));
    let is_refused = found["isError"] == true && found.to_string().contains("memory cannot be used");
    let names = |found: &Value| found.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "new"));
    let is_found = found["isError"] != true && names(&first_block(&found));
    let is_log_removed = script.contains("memory.db-wal");
    assert!(is_refused || is_found || is_log_removed, "{variant}: {found}");
    client.close();
}

/// What is there already may be copied over itself.
#[test]
fn identical_copy_of_the_memory_file_changes_nothing() {
    let vault = TempDir::new().unwrap();
    fill(vault.path(), "thing", 20);
    let own = vault.path().join(".quipu");
    std::fs::copy(own.join("memory.db"), own.join("copy.db")).unwrap();
    let mut client = serve(vault.path());
    remember(&mut client, "before").unwrap();
    shell(&own, "cp copy.db memory.db");
    remember(&mut client, "after").unwrap();
    client.close();
    let mut client = serve(vault.path());
    assert_eq!(client.answer("list_entities", json!({}))["pagination"]["total_entities"], 22);
}

#[test]
fn writes_are_refused_as_soon_as_the_file_is_replaced() {
    let (vault, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fill(other.path(), "other", 30);
    let mut client = serve(vault.path());
    (0..30).for_each(|number| remember(&mut client, &format!("thing {number}")).unwrap());
    let (from, to) = (other.path().join(".quipu/memory.db"), vault.path().join(".quipu/memory.db"));
    let mut copy = Command::new("cp").arg(&from).arg(&to).spawn().unwrap();
    let mut is_refused = false;
    for number in 0..500 {
        let is_copied = copy.try_wait().unwrap().is_some();
        let outcome = remember(&mut client, &format!("late {number}"));
        assert!(outcome.is_err() || !is_copied && !is_refused, "acknowledged after the copy");
        is_refused |= outcome.is_err();
        if is_refused && is_copied {
            break;
        }
    }
    assert!(is_refused);
}

/// As a kill leaves it, and a person who puts a backup there without the words of `quipu backup --help`.
#[test]
fn log_of_another_file_is_not_applied_to_a_restored_one() {
    let (vault, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fill(vault.path(), "thing", 20);
    fill(other.path(), "other", 30);
    let mut client = serve(vault.path());
    remember(&mut client, "only in the log").unwrap();
    client.signal("KILL");
    client.wait();
    let own = vault.path().join(".quipu");
    std::fs::copy(other.path().join(".quipu/memory.db"), own.join("memory.db")).unwrap();
    let files = || ["memory.db", "memory.db-wal"].map(|name| std::fs::read(own.join(name)).unwrap());
    let before = files();
    let mut client = serve(vault.path());
    let refused = remember(&mut client, "new").unwrap_err();
    assert!(refused.contains("memory cannot be used"), "{refused}");
    client.close();
    assert!(files() == before);
    std::fs::remove_file(own.join("memory.db-wal")).unwrap();
    let mut client = serve(vault.path());
    assert_eq!(client.answer("list_entities", json!({}))["pagination"]["total_entities"], 30);
}
