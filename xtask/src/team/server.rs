//! A server of the team: a process at a port of its own, with its own proxies to the database.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;

use super::cluster::{free_port, url, wait_for};
use super::proxy::Proxy;
use crate::load::client::Client;

/// Warnings of an answer that is incomplete or may be out of date.
const NOT_READY: [&str; 2] = ["still being indexed", "may be out of date"];

pub(super) struct TeamServer {
    binary: PathBuf,
    database: String,
    port: u16,
    /// One for each node of the database.
    pub(super) proxies: Vec<Proxy>,
    /// The provider of vectors.
    embedding: &'static str,
    process: Mutex<Option<Child>>,
}

impl TeamServer {
    /// Starts a server that reaches the nodes of the database through proxies of its own, and waits until it is ready.
    pub(super) fn behind_proxies(binary: &Path, nodes: [u16; 2]) -> anyhow::Result<Self> {
        let proxies = nodes.into_iter().map(Proxy::to).collect::<anyhow::Result<Vec<_>>>()?;
        let ports: Vec<u16> = proxies.iter().map(|proxy| proxy.port).collect();
        let server = Self::start(binary, url(&ports), proxies)?;
        server.await_ready()?;
        Ok(server)
    }

    /// Starts a server, without waiting for it.
    pub(super) fn start(binary: &Path, database: String, proxies: Vec<Proxy>) -> anyhow::Result<Self> {
        Self::start_embedding(binary, database, proxies, "none")
    }

    /// Like [`Self::start`], with a provider of vectors.
    pub(super) fn start_embedding(
        binary: &Path,
        database: String,
        proxies: Vec<Proxy>,
        embedding: &'static str,
    ) -> anyhow::Result<Self> {
        let (binary, port) = (binary.to_owned(), free_port()?);
        let server = Self { binary, database, port, proxies, embedding, process: Mutex::default() };
        server.launch()?;
        Ok(server)
    }

    /// Where clients reach it.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Where clients reach one of several graphs.
    pub(super) fn url_of(&self, graph: &str) -> String {
        format!("http://127.0.0.1:{}/g/{graph}/mcp", self.port)
    }

    pub(super) fn launch(&self) -> anyhow::Result<()> {
        let mut serve = Command::new(&self.binary);
        serve.args(["serve", "--http", &format!("127.0.0.1:{}", self.port)]);
        serve.env("QUIPU_DATABASE_URL", &self.database);
        serve.env("QUIPU_EMBEDDING_PROVIDER", self.embedding).env("QUIPU_LOG", "error").stdin(Stdio::null());
        *self.process() = Some(serve.spawn().context("cannot start a server")?);
        Ok(())
    }

    /// Waits until it has read the graph and the database answers it. A server that could not reach the database at its start has
    /// ended, and is started again, as a supervisor would.
    pub(super) fn await_ready(&self) -> anyhow::Result<()> {
        let ask = || -> anyhow::Result<()> {
            let mut client = Client::connect_as("starter", &self.url(), "", Duration::from_secs(5))?;
            let listed = client.call("list_nodes", &json!({ "limit": 1 }))?;
            let text = listed.to_string();
            ensure!(listed["isError"] == false && !NOT_READY.iter().any(|not| text.contains(not)), "{text}");
            Ok(())
        };
        let mut last = None;
        let ready = wait_for("a server is ready", || {
            if self.process().as_mut().is_none_or(|process| !matches!(process.try_wait(), Ok(None))) {
                self.launch()?;
            }
            last = ask().err();
            Ok(last.is_none())
        });
        ready.with_context(|| format!("its last answer: {last:?}"))
    }

    pub(super) fn await_listening(&self) -> anyhow::Result<()> {
        wait_for("a server listens", || Ok(TcpStream::connect(("127.0.0.1", self.port)).is_ok()))
    }

    /// Kills it without warning.
    pub(super) fn kill(&self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process().take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Sends a signal: STOP halts it, CONT lets it run again.
    pub(super) fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.process().as_ref().context("the server runs")?.id().to_string();
        ensure!(Command::new("kill").args(["-s", name, &id]).status()?.success(), "cannot send {name}");
        Ok(())
    }

    /// A metric of the whole server.
    pub(super) fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no {name} in {page}"))?.parse()?)
    }

    /// Memory that is resident now.
    pub(super) fn resident_bytes(&self) -> anyhow::Result<usize> {
        crate::load::resident_bytes(self.process().as_ref().context("the server runs")?.id())
    }

    fn process(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TeamServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}
