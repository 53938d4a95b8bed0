//! A client over HTTP that knows as little as can be, and the server it talks to.

#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{MODERN, PATIENCE, QUIPU, modern, serve_command, vault};

/// A server at a port of its own, and a user's folder of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    vault: TempDir,
    user: TempDir,
}

impl Server {
    pub(crate) fn start(fixture: &str) -> Self {
        Self::start_in(vault(fixture))
    }

    pub(crate) fn start_in(vault: TempDir) -> Self {
        Self::prepare(vault).start(&[])
    }

    pub(crate) fn prepare(vault: TempDir) -> Prepared {
        Prepared { vault, user: TempDir::new().unwrap() }
    }

    pub(crate) fn root(&self) -> &Path {
        self.vault.path()
    }

    /// Runs another command of the program on the same vault, as the same user.
    pub(crate) fn quipu(&self, arguments: &[&str]) -> String {
        quipu(&self.vault, &self.user, arguments)
    }

    /// Calls a tool as a client of this name, on a connection of its own.
    pub(crate) fn call(&self, client: &str, tool: &str, arguments: Value) -> Value {
        self.try_call(client, tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    pub(crate) fn try_call(&self, client: &str, tool: &str, arguments: Value) -> io::Result<Value> {
        let mut params = modern(json!({ "name": tool, "arguments": arguments }));
        params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
        let answer = Post::call(tool, &params).send(self.address)?;
        answer.message().map(|message| message["result"].clone()).ok_or_else(|| io::Error::other(format!("{answer:?}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, and a test that fails should fail with its own words.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A vault that is not served yet.
pub(crate) struct Prepared {
    pub(crate) vault: TempDir,
    user: TempDir,
}

impl Prepared {
    pub(crate) fn quipu(&self, arguments: &[&str]) -> String {
        quipu(&self.vault, &self.user, arguments)
    }

    /// The text of a new token.
    pub(crate) fn token(&self, name: &str, scope: &str) -> String {
        self.quipu(&["token", "new", "--name", name, "--scope", scope]).trim().to_owned()
    }

    pub(crate) fn start(self, arguments: &[&str]) -> Server {
        self.start_with(arguments, &[])
    }

    /// Like [`Self::start`], with variables in the environment of the server.
    pub(crate) fn start_with(self, arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        // Free a moment ago; the server cannot yet say which one it chose itself.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let port = address.to_string();
        let arguments = [&["--no-watch", "--http", &port], arguments].concat();
        let mut command = serve_command(self.vault.path(), &arguments);
        command.stdin(Stdio::null()).env("XDG_STATE_HOME", self.user.path()).envs(variables.iter().copied());
        let child = command.spawn().expect("the program starts");
        let server = Server { child, address, vault: self.vault, user: self.user };
        let is_up = (0..1200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            TcpStream::connect(server.address).is_ok()
        });
        assert!(is_up, "the server listens");
        server
    }
}

fn quipu(vault: &TempDir, user: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::new(QUIPU);
    command.arg("--vault").arg(vault.path()).args(arguments).env("XDG_STATE_HOME", user.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A request, as text.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Post {
    /// A message to `/mcp`.
    pub(crate) fn message(message: Value) -> Self {
        let post = Self { line: "POST /mcp HTTP/1.1".into(), headers: Vec::new(), body: message.to_string() };
        post.with("Content-Type", "application/json").with("Accept", "application/json, text/event-stream")
    }

    /// A request of the generation without handshake.
    pub(crate) fn modern(method: &str, params: &Value) -> Self {
        Self::message(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .with("MCP-Protocol-Version", MODERN)
            .with("Mcp-Method", method)
    }

    pub(crate) fn call(tool: &str, params: &Value) -> Self {
        Self::modern("tools/call", params).with("Mcp-Name", tool)
    }

    /// `tools/list`, for tests of whether a request is accepted.
    pub(crate) fn list() -> Self {
        Self::modern("tools/list", &modern(json!({})))
    }

    pub(crate) fn get(path: &str) -> Self {
        Self { line: format!("GET {path} HTTP/1.1"), headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    /// The whole text. A host is added where none is given.
    pub(crate) fn text(&self, address: SocketAddr) -> String {
        let has = |name: &str| self.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let mut text = format!("{}\r\n", self.line);
        if !has("Host") {
            text.push_str(&format!("Host: {address}\r\n"));
        }
        if !has("Content-Length") && !has("Transfer-Encoding") {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        text
    }

    /// Sends it on a connection of its own; the answer is yet to be read.
    pub(crate) fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(self.clone().with("Connection", "close").text(address).as_bytes())?;
        Ok(stream)
    }

    pub(crate) fn send(&self, address: SocketAddr) -> io::Result<Answer> {
        Answer::read(&mut BufReader::new(self.open(address)?))
    }

    pub(crate) fn status(&self, address: SocketAddr) -> u16 {
        self.send(address).unwrap().status
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        let head = Self::read_head(stream)?;
        let mut answer = Self { status: 0, head, body: String::new() };
        answer.status = answer.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let mut body = Vec::new();
        if answer.header("transfer-encoding").as_deref() == Some("chunked") {
            while let Some(chunk) = read_chunk(stream)? {
                body.extend(chunk);
            }
        } else if let Some(length) = answer.header("content-length") {
            body.resize(length.parse().map_err(io::Error::other)?, 0);
            stream.read_exact(&mut body)?;
        }
        answer.body = String::from_utf8(body).map_err(io::Error::other)?;
        Ok(answer)
    }

    /// Up to the empty line.
    pub(crate) fn read_head(stream: &mut impl BufRead) -> io::Result<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head)
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (header, value) = line.split_once(':')?;
            header.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// The message in it: the whole body, or the data of the last event that has one.
    pub(crate) fn message(&self) -> Option<Value> {
        let lines = self.body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).rfind(Value::is_object)
    }
}

/// The next piece of a body in pieces; `None` at its end.
pub(crate) fn read_chunk(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let length =
        usize::from_str_radix(line.trim(), 16).map_err(|_| io::Error::other(format!("no length: {line:?}")))?;
    let mut chunk = vec![0; length + 2];
    stream.read_exact(&mut chunk)?;
    chunk.truncate(length);
    Ok((length > 0).then_some(chunk))
}

/// Messages as they come on a stream of events.
pub(crate) struct Events {
    stream: BufReader<TcpStream>,
    text: String,
}

impl Events {
    pub(crate) fn open(post: &Post, address: SocketAddr) -> Self {
        let mut stream = BufReader::new(post.open(address).unwrap());
        let head = Answer::read_head(&mut stream).unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        Self { stream, text: String::new() }
    }

    /// The rest of the response.
    pub(crate) fn into_stream(self) -> BufReader<TcpStream> {
        self.stream
    }

    /// The next message; empty events and comments are passed over.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                if let Some(message) = data.and_then(|data| serde_json::from_str(data.trim()).ok()) {
                    return message;
                }
                continue;
            }
            let chunk = read_chunk(&mut self.stream).unwrap().expect("the stream goes on");
            self.text.push_str(&String::from_utf8(chunk).unwrap());
        }
    }
}
