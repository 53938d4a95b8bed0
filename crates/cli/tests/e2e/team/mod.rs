//! Servers on one PostgreSQL: the built program, real HTTP, a real database.

#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]

mod answers;
mod duplicates;
mod explorer;
mod faults;
mod freshness;
mod graphs;
mod guards;
mod isolation;
mod loading;
mod readiness;
mod restarts;
mod vectors;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_core::ports::{Clock, FileChange, SystemClock, VaultFiles};
use quipu_store_postgres::{NewToken, PostgresDatabase, PostgresVault};
use quipu_testkit::generate::Random;
use quipu_testkit::postgres;
use serde_json::{Value, json};

use crate::client::{LEGACY, PATIENCE, QUIPU, modern};
use crate::http::Post;

/// The graph of a test.
const GRAPH: &str = "team";

/// The error for a client that was shown an older version of the note.
const CHANGED: &str = "changed elsewhere";

/// Creates the graph in a new database.
fn create_graph(url: &str) {
    let database = PostgresDatabase::connect(url).unwrap();
    database.migrate().unwrap();
    database.create_graph(GRAPH).unwrap();
}

/// A token that may read the graph.
fn create_token(url: &str, name: &str) -> String {
    new_token(&PostgresDatabase::connect(url).unwrap(), name, "read", &[GRAPH])
}

/// A token that does not expire.
fn new_token(database: &PostgresDatabase, name: &str, scope: &str, graphs: &[&str]) -> String {
    let created = jiff::Timestamp::from_nanosecond(SystemClock.now_ns().into()).unwrap();
    let graphs: Vec<String> = graphs.iter().map(|&graph| graph.to_owned()).collect();
    database.create_token(&NewToken { name, scope, graphs: &graphs, created, expires: None }).unwrap().0
}

/// The notes of the graph, without a server.
fn notes(url: &str) -> PostgresVault {
    let database = PostgresDatabase::connect(url).unwrap();
    let graph = database.graph(GRAPH).unwrap().expect("it was created");
    PostgresVault::new(Arc::new(database), &graph)
}

/// Puts notes into the graph.
fn push(url: &str, files: &[(String, Vec<u8>)]) {
    create(&notes(url), files);
}

fn create(vault: &dyn VaultFiles, files: &[(String, Vec<u8>)]) {
    for files in files.chunks(500) {
        let create = |(path, bytes): &(String, Vec<u8>)| {
            let path = quipu_core::model::VaultPath::parse(path).unwrap();
            FileChange::Create { path, bytes: bytes.clone() }
        };
        vault.apply(&files.iter().map(create).collect::<Vec<_>>()).unwrap();
    }
}

/// A server of the graph. It is killed when this is dropped.
struct TeamServer {
    child: Child,
    address: SocketAddr,
}

impl TeamServer {
    /// Starts a server and waits until it has read the graph.
    fn start(url: &str) -> Self {
        let server = Self::launch(url);
        server.await_ready();
        server
    }

    /// Starts a server and waits until it listens.
    fn launch(url: &str) -> Self {
        Self::launch_with(url, &["--graph", GRAPH])
    }

    fn launch_with(url: &str, arguments: &[&str]) -> Self {
        Self::launch_in(url, arguments, &[])
    }

    /// Starts a server that computes vectors.
    fn start_with_model(url: &str) -> Self {
        let server = Self::launch_in(url, &["--graph", GRAPH], &[("QUIPU_EMBEDDING_PROVIDER", "builtin")]);
        server.await_ready();
        server
    }

    /// Starts a server with variables in its environment.
    fn launch_in(url: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let (mut command, address) = Self::command(url, arguments);
        command.envs(variables.iter().copied());
        Self::spawn(command, address)
    }

    /// Starts a server that logs to `log`.
    fn launch_logging(url: &str, arguments: &[&str], log: Stdio) -> Self {
        let (mut command, address) = Self::command(url, arguments);
        command.stderr(log);
        Self::spawn(command, address)
    }

    fn command(url: &str, arguments: &[&str]) -> (Command, SocketAddr) {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(QUIPU);
        command.args(["serve", "--http", &address.to_string()]).args(arguments).env("QUIPU_DATABASE_URL", url);
        // Vectors of the model take minutes of a test's time, and few answers here depend on them.
        command.env("QUIPU_EMBEDDING_PROVIDER", "none").stdin(Stdio::null());
        (command, address)
    }

    fn spawn(mut command: Command, address: SocketAddr) -> Self {
        let server = Self { child: command.spawn().unwrap(), address };
        wait_for("the server listens", || TcpStream::connect(address).is_ok());
        server
    }

    fn await_ready(&self) {
        wait_for("the server is ready", || Post::get("/readyz").send(self.address).is_ok_and(|it| it.status == 200));
    }

    /// Kills it, as `kill -9` does.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal: `STOP` suspends it, `TERM` asks it to stop.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Calls a tool that must succeed.
    fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments.clone(), None).unwrap();
        assert_eq!(result["isError"], json!(false), "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// The result of a call by a client of this name.
    fn call_as(&self, client: &str, tool: &str, arguments: Value) -> Value {
        let mut params = modern(json!({ "name": tool, "arguments": arguments }));
        params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
        let answer = Post::call(tool, &params).send(self.address).unwrap();
        answer.message().unwrap_or_else(|| panic!("{answer:?}"))["result"].clone()
    }

    /// A metric of the graph.
    fn metric(&self, name: &str) -> f64 {
        let page = Post::get("/metrics").send(self.address).unwrap().body;
        let start = format!("{name}{{graph=\"{GRAPH}\"}} ");
        let value = page.lines().find_map(|line| line.strip_prefix(&start));
        value.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
    }

    fn try_call(&self, tool: &str, arguments: Value, key: Option<&str>) -> io::Result<Value> {
        call_at(self.address, tool, arguments, key)
    }
}

/// Calls a tool, with a key by which it may be repeated; the error is a lost connection.
fn call_at(address: SocketAddr, tool: &str, arguments: Value, key: Option<&str>) -> io::Result<Value> {
    let mut params = modern(json!({ "name": tool, "arguments": arguments }));
    if let Some(key) = key {
        params["_meta"]["quipu/request-key"] = json!(key);
    }
    let answer = Post::call(tool, &params).send(address)?;
    let message = answer.message().ok_or_else(|| io::Error::other(format!("{answer:?}")))?;
    Ok(message["result"].clone())
}

/// Locks in the database, which a transaction holds until this is dropped.
struct HeldLock {
    url: String,
    holder: Option<JoinHandle<()>>,
}

impl HeldLock {
    /// Statements that take locks.
    fn take(url: &str, statements: &str) -> Self {
        let sleeping = format!("SELECT count(*) {SLEEPERS}");
        let script = format!("BEGIN; {statements}; SELECT pg_sleep(600)");
        let at = url.to_owned();
        // Ended by an error, since its connection is.
        let holder = std::thread::spawn(move || drop(postgres::try_sql(&at, &script)));
        let held = Self { url: url.to_owned(), holder: Some(holder) };
        wait_for("the lock is held", || postgres::sql(url, &sleeping) == "1");
        held
    }
}

/// The transactions of [`HeldLock`].
const SLEEPERS: &str = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

impl Drop for HeldLock {
    fn drop(&mut self) {
        let _ = postgres::try_sql(&self.url, &format!("SELECT pg_terminate_backend(pid) {SLEEPERS}"));
        let _ = self.holder.take().map(JoinHandle::join);
    }
}

/// A message of a session of the older generation at a path; without a session, one that opens it.
fn in_session(path: &str, token: Option<&str>, session: Option<&str>, method: &str, params: Value) -> Post {
    let mut post = Post::message(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
    post.line = format!("POST {path} HTTP/1.1");
    if let Some(session) = session {
        post = post.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", LEGACY);
    }
    token.map_or(post.clone(), |token| post.bearer(token))
}

/// Opens a session of the older generation; returns its id.
fn open_session(address: SocketAddr, path: &str, token: Option<&str>) -> String {
    let client_info = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client_info });
    let answer = in_session(path, token, None, "initialize", params).send(address).unwrap();
    let session = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}"));
    let mut ready = in_session(path, token, Some(&session), "", json!({}));
    ready.body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(ready.status(address), 202);
    session
}

impl Drop for TeamServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The key of one call: a UUID of version 7.
fn request_key(random: &mut Random) -> String {
    let ms = u128::try_from(SystemClock.now_ns() / 1_000_000).unwrap();
    let mut part = || random.below(0x1_0000) as u128;
    let random = part() << 48 | part() << 32 | part() << 16 | part();
    let uuid = ms << 80 | 0x7 << 76 | 0x2 << 62 | random & ((1 << 62) - 1);
    let text = format!("{uuid:032x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
