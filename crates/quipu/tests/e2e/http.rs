//! Over HTTP without sessions, where every request stands alone: what a client was shown and told is remembered all the
//! same.

#![expect(clippy::disallowed_methods, reason = "a test edits its vault behind the server's back")]
#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{MODERN, modern, serve_command, vault};

/// A server at a port of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    vault: TempDir,
}

impl Server {
    fn start(fixture: &str) -> Self {
        Self::start_in(vault(fixture))
    }

    pub(crate) fn start_in(vault: TempDir) -> Self {
        // Free a moment ago; the server cannot yet say which one it chose itself.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let arguments = ["--no-watch", "--http", &address.to_string()];
        let child = serve_command(vault.path(), &arguments).stdin(Stdio::null()).spawn().expect("the program starts");
        let server = Self { child, address, vault };
        let is_up = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            TcpStream::connect(server.address).is_ok()
        });
        assert!(is_up, "the server listens");
        server
    }

    /// Calls a tool as a client of this name, on a connection of its own.
    fn call(&self, client: &str, tool: &str, arguments: Value) -> Value {
        let mut params = modern(json!({ "name": tool, "arguments": arguments }));
        params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
        let mut stream = request(self.address, tool, &params);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        // Either plain JSON or an event: one line holds the message.
        let message = answer.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let message = message.filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(Value::is_object);
        message.unwrap_or_else(|| panic!("{answer}"))["result"].clone()
    }
}

/// Sends a call on a connection of its own; the answer is yet to be read.
pub(crate) fn request(address: SocketAddr, tool: &str, params: &Value) -> TcpStream {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, and a test that fails should fail with its own words.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_edit_made_elsewhere_is_not_written_over() {
    let server = Server::start("//- a.md\nfirst\n");
    server.call("ada", "get_node", json!({ "id": "a.md" }));
    std::fs::write(server.vault.path().join("a.md"), "edited elsewhere\n").unwrap();
    // Another client's reading brings the index up to date, so only what this one was shown can tell.
    server.call("bob", "get_node", json!({ "id": "a.md" }));
    let update = json!({ "id": "a.md", "content": "second\n" });
    let refused = server.call("ada", "update_node", update.clone());
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(std::fs::read_to_string(server.vault.path().join("a.md")).unwrap(), "edited elsewhere\n");
    server.call("ada", "get_node", json!({ "id": "a.md" }));
    assert_eq!(server.call("ada", "update_node", update)["isError"], false);
}

#[test]
fn a_warning_is_told_once_to_each_client() {
    let server = Server::start("//- a.md\n[[nowhere]]\n");
    let warnings = |client| server.call(client, "list_nodes", json!({}))["_meta"]["quipu/warnings"].clone();
    assert_eq!(warnings("ada"), json!(["a.md: broken link to nowhere"]));
    assert_eq!(warnings("ada"), Value::Null);
    assert_eq!(warnings("bob"), json!(["a.md: broken link to nowhere"]));
}
