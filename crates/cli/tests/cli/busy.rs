//! Commands while another process has the index: none hangs without a word.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::{Ran, Sandbox};

/// Below what a person calls waiting, above what a loaded machine needs to start a program and answer.
const AT_ONCE: Duration = Duration::from_secs(5);

/// The most that a search waits for the vector of its query.
const PROVIDER: Duration = Duration::from_secs(10);

fn within(limit: Duration, run: impl FnOnce() -> Ran) -> Ran {
    let started = Instant::now();
    let ran = run();
    assert!(started.elapsed() < limit, "it took {:?}: {ran}", started.elapsed());
    ran
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn commands_are_answered_while_another_process_embeds() {
    answered_while_another_process_embeds(true);
}

#[test]
fn commands_are_answered_while_another_process_builds_the_first_index() {
    answered_while_another_process_embeds(false);
}

fn answered_while_another_process_embeds(is_indexed_before: bool) {
    let vault = Sandbox::example();
    if is_indexed_before {
        vault.run(&["index", "--no-embed"]).expect(0);
    }
    // A provider that takes connections and never answers: embedding goes on for as long as the test needs.
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", provider.local_addr().unwrap());
    let mut index = vault.command(&["index", "--wait"]);
    index.env("QUIPU_EMBEDDING_PROVIDER", "ollama").env("QUIPU_EMBEDDING_URL", url);
    let index = Ended(index.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let connection = provider.accept().unwrap();

    let status = within(AT_ONCE, || vault.run(&["status", "--json"])).expect(0).json();
    assert_eq!((&status["notes"], &status["index"]["owner"]), (&16.into(), &"other".into()), "{status}");
    assert!(status["index"]["place"].is_string(), "not an index in memory: {status}");
    assert_eq!(status["busy"], serde_json::Value::Null, "the index is ready, only vectors are missing: {status}");
    let found = within(AT_ONCE, || vault.run(&["search", "--words", "telltale", "--json"])).expect(0).json();
    assert_eq!(found["hits"][0]["path"], "station/Anemometer.md");
    let told = within(AT_ONCE, || vault.run(&["-vv", "status"])).expect(0);
    assert!(told.stdout.contains("notes   16\n"), "{told}");
    let found = within(AT_ONCE + PROVIDER, || vault.run(&["search", "telltale", "--json"])).expect(0).json();
    assert_eq!(found["hits"][0]["path"], "station/Anemometer.md", "by meaning and words: {found}");
    within(AT_ONCE, || vault.run(&["doctor", "--check"])).expect(1);
    let again = within(AT_ONCE, || vault.run(&["index"])).expect(0);
    assert!(again.stderr.contains("passages are embedded; process"), "{again}");

    drop(index);
    drop(connection);
    let status = vault.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["index"]["owner"], "none", "a process that was killed holds nothing");
}

/// The lock of a vault as a command holds it that is busy with the index.
fn hold(vault: &Sandbox, command: &str) -> File {
    let mut lock = File::create(vault.root().join(".quipu/owner.lock")).unwrap();
    lock.try_lock().unwrap();
    let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION"));
    let card = serde_json::json!({ "pid": pid, "version": version, "hold": "passing", "command": command });
    lock.write_all(card.to_string().as_bytes()).unwrap();
    lock
}

#[test]
fn status_does_not_wait_and_other_commands_name_what_they_wait_for() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    let lock = hold(&vault, "index");
    let holder = format!("`quipu index` (process {})", std::process::id());

    let ran = within(AT_ONCE, || vault.run(&["status"])).expect(0);
    assert!(ran.stdout.contains(&format!("; {holder} is updating it\n")), "{ran}");
    assert!(ran.stdout.contains("notes   16\n") && !ran.stdout.contains("links"), "{ran}");
    assert_eq!(ran.stderr, "");
    let status = vault.run(&["status", "--json"]).expect(0).json();
    assert_eq!((&status["notes"], &status["links"]), (&16.into(), &serde_json::Value::Null), "{status}");

    let mut search = vault.command(&["search", "--words", "telltale"]);
    let mut search = search.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(search.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, format!("waiting for {holder}, which is using this vault\n"));
    assert!(search.try_wait().unwrap().is_none(), "it waits");
    drop(lock);
    let ran = vault.ran(search.wait_with_output().unwrap()).expect(0);
    assert!(ran.stdout.contains("station/Anemometer.md"), "{ran}");
}

#[test]
fn status_does_not_read_every_note_when_the_index_is_open_elsewhere() {
    let vault = Sandbox::example();
    vault.run(&["index", "--no-embed"]).expect(0);
    // Open in a process that has no lock on the vault, as an earlier version had at its first start.
    let lock = File::open(vault.root().join(".quipu/index/index.lock")).unwrap();
    lock.try_lock().unwrap();
    let status = within(AT_ONCE, || vault.run(&["status", "--json"])).expect(0).json();
    assert_eq!((&status["notes"], &status["links"]), (&16.into(), &serde_json::Value::Null), "{status}");
    assert_eq!(status["busy"], "the owner process has it open");
}
