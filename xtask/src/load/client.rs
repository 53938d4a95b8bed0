//! A client over HTTP that keeps its connection, with as little of its own as can be: what is measured is the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

const VERSION: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    host: String,
    /// Where the server expects messages.
    path: String,
    /// The name of the client.
    name: String,
    /// A header, or nothing.
    authorization: String,
    stream: BufReader<TcpStream>,
    next_id: u64,
}

impl Client {
    pub(crate) fn connect(url: &str, token: &str) -> anyhow::Result<Self> {
        Self::connect_as("load", url, token, PATIENCE)
    }

    /// Connects under a name; no call may take longer than the patience.
    pub(crate) fn connect_as(name: &str, url: &str, token: &str, patience: Duration) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://").context("not our address")?;
        let (host, path) = rest.split_once('/').context("not our address")?;
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let authorization = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let (host, path, name) = (host.to_owned(), format!("/{path}"), name.to_owned());
        Ok(Self { host, path, name, authorization, stream: BufReader::new(stream), next_id: 1 })
    }

    /// The result of a call.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.call_once(tool, arguments, None)
    }

    /// The result of a call with a key, by which it may be sent again to any server.
    pub(crate) fn call_once(&mut self, tool: &str, arguments: &Value, key: Option<&str>) -> anyhow::Result<Value> {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": { "name": self.name, "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if let Some(key) = key {
            meta["quipu/request-key"] = json!(key);
        }
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let id = self.next_id;
        self.next_id += 1;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.host,
            self.authorization,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let answer = self.read()?;
        ensure!(answer["id"] == id, "the answer to another call: {answer}");
        if answer["error"].is_object() {
            bail!("{}", answer["error"]);
        }
        Ok(answer["result"].clone())
    }

    fn read(&mut self) -> anyhow::Result<Value> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.stream.read_line(&mut head)? > 0, "the server closed the connection");
        }
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (header, value) = line.split_once(':')?;
                header.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let length: usize = header("content-length").context("an answer without a length")?.parse()?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        ensure!(
            head.starts_with("HTTP/1.1 200"),
            "{} {}",
            head.lines().next().unwrap_or(""),
            String::from_utf8_lossy(&body)
        );
        Ok(serde_json::from_slice(&body)?)
    }
}
