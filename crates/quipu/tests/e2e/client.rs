//! A client that knows as little as can be: it starts the program, writes lines, reads lines. Nothing is checked here but
//! that an answer comes at all, within [`PATIENCE`].

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]
#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for a loaded machine; a hang is still told apart from slowness.
const PATIENCE: Duration = Duration::from_secs(60);

/// The newest version with a handshake, and the one without.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// A running server, and the vault it serves. Both go when this is dropped.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: i64,
    _vault: TempDir,
}

/// A vault in a temporary folder from one string: `//- notes/a.md` starts a file.
pub(crate) fn vault(fixture: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in quipu_testkit::fixture::files(fixture) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

impl Client {
    /// Serves the vault of a fixture. No handshake yet.
    pub(crate) fn start(fixture: &str) -> Self {
        Self::start_in(vault(fixture), &[])
    }

    /// Serves a vault that the caller has prepared, with further arguments.
    pub(crate) fn start_in(vault: TempDir, arguments: &[&str]) -> Self {
        let mut child = serve_command(vault.path(), arguments).spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, next_id: 1, _vault: vault }
    }

    /// Starts and shakes hands in the given version.
    pub(crate) fn connect(fixture: &str, version: &str) -> Self {
        let mut client = Self::start(fixture);
        client.initialize(version);
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// The answer to `initialize`.
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client_info = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client_info });
        self.request("initialize", params)["result"].clone()
    }

    /// Sends a request and waits for its answer; others that come first are an error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], json!(id), "{answer}");
        answer
    }

    /// Calls a tool and gives its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// Sends a request without waiting, and gives its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send_json(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send_json(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub(crate) fn send_json(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    pub(crate) fn send_line(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the client has not closed its side");
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).expect("the server reads");
    }

    /// The next message, whatever it is.
    pub(crate) fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Closes the client's side and gives everything that still comes, until the server has closed its own.
    pub(crate) fn close(&mut self) -> Vec<Value> {
        self.stdin = None;
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => rest.push(serde_json::from_str(&line).expect("a line is a message")),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end"),
            }
        }
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the process to end; says how, and how long it took.
    pub(crate) fn wait(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server does not end");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended already, and a test that fails should fail with its own words.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What every request of the generation without handshake carries.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

pub(crate) fn serve_command(vault: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("serve").args(arguments).arg(vault);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}
