//! The terminal side of `serve`: starting, keeping the index current, ending. The protocol has its own tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use crate::sandbox::Sandbox;

/// A server with a client that speaks plain JSON-RPC.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    fn start(vault: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = vault.command(&[&["serve"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, stdout, last_id: 0 };
        let client = serde_json::json!({ "name": "test", "version": "1" });
        let hello = serde_json::json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        server.ask("initialize", &hello);
        server.send(&serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn send(&mut self, message: &serde_json::Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &serde_json::Value) -> serde_json::Value {
        self.last_id += 1;
        self.send(&serde_json::json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server ended before it answered {method}");
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.last_id {
                return answer["result"].clone();
            }
        }
    }

    /// The first text block of a tool's answer.
    fn call(&mut self, tool: &str, arguments: &serde_json::Value) -> String {
        let result = self.ask("tools/call", &serde_json::json!({ "name": tool, "arguments": arguments }));
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// Closes the client's side; gives the exit code and what was written to stderr.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn stdio_server_is_silent_and_ends_with_its_client() {
    let vault = Sandbox::example();
    let before = vault.files();
    let mut server = Server::start(&vault, &[]);
    let power = server.call("get_node", &serde_json::json!({ "id": "station/power.md" }));
    assert!(power.contains("three and a half days"), "{power}");
    assert_eq!(server.end(), (Some(0), String::new()));
    assert_eq!(vault.files(), before);
}

#[test]
fn change_by_another_program_is_visible() {
    let vault = Sandbox::example();
    let mut server = Server::start(&vault, &[]);
    server.call("nodes_exist", &serde_json::json!({ "ids": ["late.md"] }));
    vault.write("late.md", "Written while the server runs. [[Power]]");
    // Asked of the index alone, so only the watcher can have reported it.
    let seen = (0..200).any(|_| {
        let answer = server.call("nodes_exist", &serde_json::json!({ "ids": ["late.md"] }));
        std::thread::sleep(Duration::from_millis(50));
        answer.contains("true")
    });
    assert!(seen);
    server.end();
}

#[test]
fn other_commands_and_servers_work_beside_a_running_one() {
    let vault = Sandbox::example();
    let mut first = Server::start(&vault, &["--no-watch"]);
    first.call("list_nodes", &serde_json::json!({}));

    let status = vault.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["notes"], 16);
    assert_eq!(status["index"]["owner"], "other");
    assert_eq!(vault.run(&["search", "--words", "melting ice", "--json"]).expect(0).json()["matched"], "phrase");
    let ran = vault.run(&["index", "--rebuild"]).expect(1);
    assert!(ran.stderr.starts_with("error: cannot rebuild the index: a running server"), "{ran}");

    let mut second = Server::start(&vault, &["--no-watch"]);
    let new = serde_json::json!({ "id": "from-second.md", "content": "Hello." });
    second.call("create_node", &new);
    assert!(vault.root().join("from-second.md").exists(), "notes are written through the vault's one door");
    assert_eq!(second.end(), (Some(0), String::new()));
    first.end();
}

#[test]
fn http_accepts_a_host_name() {
    let vault = Sandbox::example();
    // Free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let name = format!("localhost:{port}");
    let mut command = vault.command(&["serve", "--no-watch", "--http", &name]);
    let mut server = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let connected = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let answer = connected.map(|mut stream| {
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(answer.as_deref().is_some_and(|answer| answer.starts_with("HTTP/1.1 200")), "{answer:?}");
    let ran = vault.run(&["serve", "--http", "localhost"]).expect(2);
    assert!(ran.stderr.contains("the port is missing; write it as 127.0.0.1:7777 or localhost:7777"), "{ran}");
}

#[test]
fn flags_choose_the_tools() {
    let vault = Sandbox::example();
    let mut server = Server::start(&vault, &["--read-only", "--toolsets", "notes"]);
    let tools = server.ask("tools/list", &serde_json::json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"get_node"), "{names:?}");
    assert!(!names.contains(&"create_node") && !names.contains(&"get_document"), "{names:?}");
    server.end();
}

#[test]
fn command_prints_the_same_with_and_without_a_running_server() {
    let vault = Sandbox::example();
    vault.write("Broken.md", "# Broken\n\n[[nowhere]]");
    vault.write("Sourced.md", "---\nsource_refs: gone.txt\n---\n");
    vault.run(&["index"]).expect(0);
    vault.run(&["call", "create_node", r#"{"id": "Kept.md", "content": "one"}"#]).expect(0);
    vault.run(&["call", "delete_node", r#"{"id": "Kept.md"}"#]).expect(0);
    let commands: [&[&str]; 20] = [
        &["search", "--words", "melting ice"],
        &["search", "--words", "--json", "nosuchword"],
        &["search", " "],
        &["query", "--group-by", "tags"],
        &["query", "status = nothing"],
        &["query", "status ="],
        &["call"],
        &["call", "get_node", "--schema"],
        &["call", "get_hubs", "{}"],
        &["call", "get_node", r#"{"id": "none.md"}"#],
        &["call", "get_nod"],
        &["stale"],
        &["history", "Kept.md"],
        &["history", "none.md"],
        &["diff", "Kept.md"],
        &["revert", "--change", "12"],
        &["restore"],
        &["doctor", "--check"],
        &["doctor", "--json"],
        &["picture", "station/power.md", "--depth", "1", "--format", "dot"],
    ];
    let alone: Vec<String> = commands.iter().map(|command| vault.run(command).to_string()).collect();
    let mut server = Server::start(&vault, &["--no-watch"]);
    server.call("list_nodes", &serde_json::json!({}));
    for (command, alone) in commands.iter().zip(alone) {
        assert_eq!(vault.run(command).to_string(), alone, "{command:?}");
    }
    // The command writes the file itself, in its own folder, not the server.
    let ran = vault.run(&["picture", "--format", "svg", "-o", "graph.svg"]).expect(0);
    assert!(vault.root().join("graph.svg").exists(), "{ran}");
    let restored = vault.run(&["restore", "kept.md"]).expect(0);
    assert!(restored.stdout.starts_with("restored kept.md to the version deleted at "), "{restored}");
    server.end();
}
