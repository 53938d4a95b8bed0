//! A small MCP client for the built binary: JSON lines over its stdin and stdout, nothing else.
//!
//! Written by hand rather than with the server's library, so that a bug in the library shows.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A running server and the connection to it.
pub struct Client {
    child: Child,
    wire: Wire,
}

/// Both directions of a connection. Requests may be sent before earlier responses arrive.
pub struct Wire {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    last_id: u64,
}

/// The response to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The id of the request.
    pub id: u64,
    /// The result or the JSON-RPC error.
    pub message: Value,
}

impl Client {
    /// Starts a server and initialises the connection.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut client = Self::start(command)?;
        client.wire.shake_hands()?;
        Ok(client)
    }

    /// Starts a server and sends nothing yet.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().expect("stdin was piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout was piped"));
        Ok(Self { child, wire: Wire { requests, answers, last_id: 0 } })
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, method: &str, params: &Value) -> io::Result<Answer> {
        let id = self.wire.send(method, params)?;
        let answer = self.wire.receive()?;
        if answer.id == id {
            Ok(answer)
        } else {
            Err(io::Error::other(format!("answer to another request: {answer:?}")))
        }
    }

    /// Calls a tool and waits for its response.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<Answer> {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process and the connection, so that one thread can kill the process while another uses the connection.
    pub fn into_parts(self) -> (Child, Wire) {
        (self.child, self.wire)
    }

    /// Closes the connection, as a client does, and waits for the server to exit.
    pub fn close(self) -> io::Result<std::process::ExitStatus> {
        let (mut child, wire) = self.into_parts();
        drop(wire);
        child.wait()
    }
}

impl Wire {
    /// Agrees on a protocol version.
    pub fn shake_hands(&mut self) -> io::Result<()> {
        let client = json!({ "name": "quipu-testkit", "version": "0" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &hello)?;
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    fn request(&mut self, method: &str, params: &Value) -> io::Result<Answer> {
        let id = self.send(method, params)?;
        let answer = self.receive()?;
        if answer.id == id {
            Ok(answer)
        } else {
            Err(io::Error::other(format!("answer to another request: {answer:?}")))
        }
    }

    /// Sends a tool call without waiting; returns its id.
    pub fn send_call(&mut self, tool: &str, arguments: &Value) -> io::Result<u64> {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Sends a request without waiting; returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> io::Result<u64> {
        self.last_id += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }))?;
        Ok(self.last_id)
    }

    /// Waits for the next response; notifications are skipped. `UnexpectedEof` when the server has exited.
    pub fn receive(&mut self) -> io::Result<Answer> {
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if let Some(id) = message["id"].as_u64() {
                return Ok(Answer { id, message });
            }
        }
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.requests.write_all(line.as_bytes())
    }
}

impl Answer {
    /// A tool's result: the JSON of the first text block. `None` for an error of any kind.
    pub fn value(&self) -> Option<Value> {
        let result = &self.message["result"];
        if result["isError"] == json!(true) {
            return None;
        }
        serde_json::from_str(result["content"][0]["text"].as_str()?).ok()
    }

    /// A tool's result.
    ///
    /// # Panics
    /// When the response is an error; the message has it.
    #[track_caller]
    pub fn expect_value(&self) -> Value {
        self.value().unwrap_or_else(|| panic!("the call failed: {}", self.message))
    }
}
