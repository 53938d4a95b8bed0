//! The tests' client against a server of a team's database: the notes of its vault are in a graph, its lines travel over HTTP.
//!
//! With `QUIPU_TEST_TEAM` set, [`crate::client::Client`] uses this, so that tests of what is answered run a second time.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_store_postgres::{PostgresDatabase, PostgresVault};
use quipu_testkit::postgres;
use serde_json::{Value, json};

use crate::client::{PATIENCE, QUIPU};
use crate::http::Post;

const GRAPH: &str = "team";

/// Whether tests of answers are to run against a database.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os("QUIPU_TEST_TEAM").is_some()
}

/// A connection over HTTP.
pub(crate) struct TeamWire {
    address: SocketAddr,
    /// The session and the version that `initialize` agreed on.
    session: Option<(String, String)>,
    lines: Sender<String>,
    notes: PostgresVault,
}

impl TeamWire {
    /// Pushes the notes of a folder to a new graph, and serves it. What comes back is sent to `lines`.
    pub(crate) fn start(
        vault: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
        lines: Sender<String>,
    ) -> (Child, Self) {
        let url = postgres::database().expect("QUIPU_TEST_TEAM needs QUIPU_POSTGRES");
        let database = Arc::new(PostgresDatabase::connect(&url).unwrap());
        database.migrate().unwrap();
        let graph = database.create_graph(GRAPH).unwrap();
        let pushed = Command::new(QUIPU).arg("push").arg(vault).env("QUIPU_DATABASE_URL", &url).output().unwrap();
        assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(QUIPU);
        command.args(["serve", "--http", &address.to_string(), "--drain", "0"]).args(arguments);
        command.envs(variables.iter().copied());
        let child = command.env("QUIPU_DATABASE_URL", &url).stdin(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        let is_ready = || {
            TcpStream::connect(address).is_ok() && Post::get("/readyz").send(address).is_ok_and(|it| it.status == 200)
        };
        while !is_ready() {
            assert!(started.elapsed() < PATIENCE, "the server is ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        let notes = PostgresVault::new(database, &graph);
        (child, Self { address, session: None, lines, notes })
    }

    /// Sends one message, and passes on every message of the response.
    pub(crate) fn send(&mut self, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).expect("over HTTP a line is a message");
        let mut post = Post::message(message.clone());
        if let Some((session, version)) = &self.session {
            post = post.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", version);
        }
        let answer = post.send(self.address).unwrap();
        if message["method"] == json!("initialize") {
            let session = answer.header("mcp-session-id").expect("a session begins");
            let version = message["params"]["protocolVersion"].as_str().unwrap().to_owned();
            self.session = Some((session, version));
        }
        let data = answer.body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        for line in data.filter(|line| line.starts_with('{')) {
            self.lines.send(line.to_owned()).expect("the client listens");
        }
    }

    /// A note of the graph.
    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.notes.read(&VaultPath::parse(path).unwrap()).unwrap().map(|note| note.bytes)
    }

    /// Writes a note of the graph, as another client would.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let (path, bytes) = (VaultPath::parse(path).unwrap(), bytes.to_vec());
        let change = match self.notes.read(&path).unwrap() {
            Some(note) => FileChange::Replace { path, expected: note.hash, bytes },
            None => FileChange::Create { path, bytes },
        };
        self.notes.apply(&[change]).unwrap();
    }
}
