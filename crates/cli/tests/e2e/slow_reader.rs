//! A client that asks for much and reads none of it: the server stays small, and ends when it is asked to.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "a test makes its vault, and looks how big the process is")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::client::{PATIENCE, modern, serve_command, vault_of};
use crate::http::{self, Post};

const NOTE_BYTES: usize = 10_000_000;
const CALLS: usize = 120;

/// More than are accepted at once, so that the end of input is behind unread calls.
const TOO_MANY_CALLS: usize = 2300;

/// Three parts for each answer under way, and sixteen of those besides what may be unsent; all answers would be four times
/// as much.
const MOST_BYTES: usize = 1_200_000_000;

/// It takes a second, and longer on a machine that has other tests to run; waiting for the client takes half as long again.
const ENDED: Duration = Duration::from_secs(10);

fn big_note() -> TempDir {
    vault_of("big.md", &"x".repeat(NOTE_BYTES))
}

/// A server whose answers lie in the pipe.
fn unread(calls: usize) -> (Child, TempDir) {
    let vault = big_note();
    let mut server = serve_command(vault.path(), &["--no-watch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let arguments = json!({ "path": "big.md" });
    for id in 0..calls {
        let params = json!({ "name": "get_document", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        server.stdin.as_mut().unwrap().write_all(format!("{call}\n").as_bytes()).unwrap();
    }
    // A first byte says that answers are being written.
    server.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    (server, vault)
}

fn resident_bytes(server: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// How long the process still lives. One that does not end is killed.
fn ending(server: &mut Child) -> Duration {
    let start = Instant::now();
    while server.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            server.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

fn terminate(server: &Child) {
    assert!(Command::new("kill").args(["-s", "TERM", &server.id().to_string()]).status().unwrap().success());
}

#[test]
fn unread_responses_are_bounded_and_a_signal_ends_the_server() {
    let (mut server, _vault) = unread(CALLS);
    let mut most = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        most = most.max(resident_bytes(&server));
        std::thread::sleep(Duration::from_millis(20));
    }
    terminate(&server);
    let took = ending(&mut server);
    assert!(took < ENDED, "{took:?}");
    assert!(most < MOST_BYTES, "{most} bytes");
}

#[test]
fn a_client_that_leaves_without_reading_ends_the_server() {
    for calls in [CALLS, TOO_MANY_CALLS] {
        let (mut server, _vault) = unread(calls);
        // Running calls are finished; finished responses are dropped.
        std::thread::sleep(Duration::from_secs(3));
        drop(server.stdin.take());
        let took = ending(&mut server);
        assert!(took < ENDED, "{took:?} after {calls} calls");
    }
}

#[test]
fn unread_http_responses_do_not_block_shutdown() {
    let mut server = http::Server::start_in(big_note());
    let call = modern(json!({ "name": "get_document", "arguments": { "path": "big.md" } }));
    let _unread: Vec<TcpStream> =
        (0..CALLS).map(|_| Post::call("get_document", &call).open(server.address).unwrap()).collect();
    let mut most = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        most = most.max(resident_bytes(&server.child));
        std::thread::sleep(Duration::from_millis(20));
    }
    terminate(&server.child);
    let took = ending(&mut server.child);
    assert!(took < ENDED, "{took:?}");
    assert!(most < MOST_BYTES, "{most} bytes");
}
