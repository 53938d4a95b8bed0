//! A client that knows as little as can be: it starts the program, writes lines, reads lines. Nothing is checked here but
//! that an answer comes at all, within [`PATIENCE`], and that it is of the kind the test asked for.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]
#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::team_wire::{self, TeamWire};

/// Long enough for a loaded machine; a hang is still distinguished from slowness.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The newest version with a handshake, and the one without.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// A running server, and the vault it serves. Both go when this is dropped.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: i64,
    /// Notices that came between answers.
    notices: Vec<Value>,
    vault: Arc<TempDir>,
    /// In place of the pipes: a server of a database.
    team: Option<TeamWire>,
}

/// A vault of one file, its bytes exactly so. Written before anyone watches: a save is two steps that a watcher may see apart.
pub(crate) fn vault_of(path: &str, bytes: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(path), bytes).unwrap();
    folder
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
        Self::start_set(vault, arguments, &[])
    }

    /// Like [`Self::start_in`], with variables in the environment of the server.
    fn start_set(vault: TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        if team_wire::is_wanted() {
            let (sender, lines) = channel();
            let (child, team) = TeamWire::start(vault.path(), arguments, variables, sender);
            let (notices, vault) = (Vec::new(), Arc::new(vault));
            return Self { child, stdin: None, lines, next_id: 1, notices, vault, team: Some(team) };
        }
        let mut command = serve_command(vault.path(), arguments);
        command.envs(variables.iter().copied());
        Self::start_with(vault, command)
    }

    /// Runs a command that serves the vault, or a folder in it.
    pub(crate) fn start_with(vault: TempDir, command: Command) -> Self {
        Self::start_beside(Arc::new(vault), command)
    }

    /// Another server on the same vault, as another client would start it.
    pub(crate) fn join(&self, arguments: &[&str]) -> Self {
        self.start_join(arguments).shake_hands(LEGACY)
    }

    /// Like [`Self::join`], without its handshake: nothing is waited for.
    pub(crate) fn start_join(&self, arguments: &[&str]) -> Self {
        self.start_join_with(&[], arguments)
    }

    /// Like [`Self::start_join`], with variables in the environment of the server.
    pub(crate) fn start_join_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut command = serve_command(self.root(), arguments);
        command.envs(variables.iter().copied());
        Self::start_beside(self.vault.clone(), command)
    }

    fn start_beside(vault: Arc<TempDir>, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
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
        Self { child, stdin, lines, next_id: 1, notices: Vec::new(), vault, team: None }
    }

    /// Starts and shakes hands in the given version.
    pub(crate) fn connect(fixture: &str, version: &str) -> Self {
        Self::start(fixture).shake_hands(version)
    }

    /// Serves the vault of a fixture to a client like most: for tests of what is answered, not of how.
    pub(crate) fn open(fixture: &str) -> Self {
        Self::connect(fixture, LEGACY)
    }

    /// Like [`Self::open`], for a vault that the caller has prepared.
    pub(crate) fn open_in(vault: TempDir, arguments: &[&str]) -> Self {
        Self::start_in(vault, arguments).shake_hands(LEGACY)
    }

    /// Like [`Self::open`], without an embedder, so without search by meaning.
    pub(crate) fn open_without_meaning(fixture: &str, arguments: &[&str]) -> Self {
        Self::start_set(vault(fixture), arguments, &[("QUIPU_EMBEDDING_PROVIDER", "none")]).shake_hands(LEGACY)
    }

    pub(crate) fn shake_hands(mut self, version: &str) -> Self {
        self.initialize(version);
        self.notify("notifications/initialized", json!({}));
        self
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

    /// Calls a tool and gives what it answers: the JSON of the first block. A failure fails the test.
    #[track_caller]
    pub(crate) fn answer(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert!(result["isError"] != true && result["content"][0]["text"].is_string(), "{tool} failed: {result}");
        first_block(&result)
    }

    /// Calls a tool that must fail and gives what it says: the first block, as it is.
    #[track_caller]
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} did not fail: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The code and message with which a tool of the notes fails.
    #[track_caller]
    pub(crate) fn error(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let text = self.failure(tool, arguments);
        let error: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let said = |field: &str| error["error"][field].as_str().unwrap_or_else(|| panic!("{text}")).to_owned();
        (said("code"), said("message"))
    }

    /// Asks again and again until the answer is the expected one.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, tool: &str, arguments: Value, expected: &Value) {
        let start = Instant::now();
        loop {
            let answer = self.answer(tool, arguments.clone());
            if answer == *expected {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{tool} {arguments} still answers {answer}, and not {expected}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs another command on the vault.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Output {
        Command::new(QUIPU).arg("--vault").arg(self.root()).args(arguments).output().unwrap()
    }

    /// What a command on the vault prints, which must succeed.
    #[track_caller]
    pub(crate) fn run_command(&self, arguments: &[&str]) -> String {
        let ran = self.command(arguments);
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Where the vault is.
    pub(crate) fn root(&self) -> &Path {
        self.vault.path()
    }

    /// Puts a file into the vault behind the server's back, in one step as editors do: of a plain write the server may see
    /// the empty file first, and rightly take that for a version.
    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        if let Some(team) = &self.team {
            return team.write(path, bytes.as_ref());
        }
        let path = self.root().join(path);
        let folder = path.parent().unwrap();
        std::fs::create_dir_all(folder).unwrap();
        let unseen = folder.join(".saving");
        std::fs::write(&unseen, bytes).unwrap();
        std::fs::rename(unseen, path).unwrap();
    }

    /// A file of the vault as it is on disk.
    pub(crate) fn read(&self, path: &str) -> String {
        let bytes = match &self.team {
            Some(team) => team.read(path).unwrap_or_else(|| panic!("{path} is not in the graph")),
            None => std::fs::read(self.root().join(path)).unwrap(),
        };
        String::from_utf8(bytes).unwrap()
    }

    /// Whether there is a file or a note of this name.
    pub(crate) fn has(&self, path: &str) -> bool {
        match &self.team {
            Some(team) => team.read(path).is_some(),
            None => self.root().join(path).exists(),
        }
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
        if let Some(team) = &mut self.team {
            return team.send(line);
        }
        let stdin = self.stdin.as_mut().expect("the client has not closed its side");
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).expect("the server reads");
    }

    /// The next message that is no notice: those may come at any time, and are put aside.
    pub(crate) fn receive(&mut self) -> Value {
        loop {
            let message = self.receive_any();
            if message.get("method").is_none() {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// The next notice.
    pub(crate) fn notice(&mut self) -> Value {
        if !self.notices.is_empty() {
            return self.notices.remove(0);
        }
        let message = self.receive_any();
        assert!(message.get("method").is_some(), "{message}");
        message
    }

    fn receive_any(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Closes the client's side and gives everything that still comes, until the server has closed its own.
    pub(crate) fn close(&mut self) -> Vec<Value> {
        self.stdin = None;
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let message: Value = serde_json::from_str(&line).expect("a line is a message");
                    // What changed meanwhile is nothing to a client that leaves.
                    rest.extend(message.get("method").is_none().then_some(message));
                }
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

/// The JSON in the first block of a result.
pub(crate) fn first_block(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// The warnings that came with a result, in the block of their own.
pub(crate) fn warnings(result: &Value) -> Vec<String> {
    let Some(text) = result["content"][1]["text"].as_str() else { return Vec::new() };
    let block: Value = serde_json::from_str(text).unwrap();
    block["_warnings"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// The ids of the nodes in a list, in their order.
pub(crate) fn ids(nodes: &Value) -> Vec<&str> {
    nodes.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect()
}

/// Every file below a folder and its bytes, a link and where it leads. What the server keeps for itself is left out.
pub(crate) fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
        if kind.is_symlink() {
            files.insert(path.clone(), std::fs::read_link(path).unwrap().into_os_string().into_encoded_bytes());
        } else if kind.is_file() {
            files.insert(path.clone(), std::fs::read(path).unwrap());
        } else if kind.is_dir() && path.file_name().is_some_and(|name| name != ".quipu") {
            files.extend(files_below(&path));
        }
    }
    files
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

/// The built program.
pub(crate) const QUIPU: &str = env!("CARGO_BIN_EXE_quipu");

pub(crate) fn serve_command(vault: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(QUIPU);
    command.arg("serve").args(arguments).arg(vault);
    command
}
