//! The built binary serving over HTTP, for peers that talk to a server rather than start one.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::postgres::Cluster;
use tempfile::TempDir;

use super::{node, place, scripts};
use crate::postgres;
use crate::shell;
use crate::steps::Tally;

/// The graph of a server on a database.
const GRAPH: &str = "peer";

/// A server over HTTP and a vault of two notes; both go when this goes.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) url: String,
    pub(crate) vault: TempDir,
    /// Only kept.
    _user: TempDir,
    /// The database of its graph, if it serves one.
    _cluster: Option<Cluster>,
}

impl Server {
    /// Starts it; with tokens named, each request needs one of them.
    pub(crate) fn start(binary: &Path, tokens: &[&str]) -> anyhow::Result<(Self, Vec<String>)> {
        Self::start_in(binary, tokens, two_notes()?, tempfile::tempdir()?)
    }

    /// Starts it on a graph with the same notes, in a database of its own.
    pub(crate) fn start_on_graph(
        binary: &Path,
        programs: &Path,
        tokens: &[&str],
    ) -> anyhow::Result<(Self, Vec<String>)> {
        let (vault, cluster) = (two_notes()?, Cluster::start(programs));
        let database = cluster.database();
        let quipu = |arguments: &[&str]| {
            let done = Command::new(binary).args(arguments).env("QUIPU_DATABASE_URL", &database).output()?;
            ensure!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
            Ok(String::from_utf8(done.stdout)?.trim().to_owned())
        };
        quipu(&["db", "init"])?;
        quipu(&["graph", "create", GRAPH])?;
        quipu(&["push", &vault.path().to_string_lossy(), "--graph", GRAPH])?;
        let new = |name: &&str| quipu(&["token", "new", "--name", name, "--graph", GRAPH]);
        let texts = tokens.iter().map(new).collect::<anyhow::Result<Vec<String>>>()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--graph", GRAPH]).env("QUIPU_DATABASE_URL", &database);
        let server = Self::launch(command, !tokens.is_empty(), vault, tempfile::tempdir()?, Some(cluster))?;
        Ok((server, texts))
    }

    pub(crate) fn start_in(
        binary: &Path,
        tokens: &[&str],
        vault: TempDir,
        user: TempDir,
    ) -> anyhow::Result<(Self, Vec<String>)> {
        let new = |name: &&str| {
            let mut new = Command::new(binary);
            new.arg("--vault").arg(vault.path()).args(["token", "new", "--name", name]);
            let made = new.env("XDG_STATE_HOME", user.path()).output()?;
            ensure!(made.status.success(), "no token: {}", String::from_utf8_lossy(&made.stderr));
            Ok(String::from_utf8(made.stdout)?.trim().to_owned())
        };
        let texts = tokens.iter().map(new).collect::<anyhow::Result<Vec<String>>>()?;
        let mut command = Command::new(binary);
        command.arg("serve").arg(vault.path());
        let server = Self::launch(command, !tokens.is_empty(), vault, user, None)?;
        Ok((server, texts))
    }

    /// Runs a command that serves, and waits until it listens.
    fn launch(
        mut command: Command,
        needs_token: bool,
        vault: TempDir,
        user: TempDir,
        cluster: Option<Cluster>,
    ) -> anyhow::Result<Self> {
        // A free port from the system, released again; another program is unlikely to take it.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        command.args(["--http", &address.to_string()]);
        if needs_token {
            command.arg("--require-token");
        }
        let process = command.env("XDG_STATE_HOME", user.path()).stdin(Stdio::null()).spawn();
        let process = process.context("the server did not start")?;
        let server = Self { process, url: format!("http://{address}/mcp"), vault, _user: user, _cluster: cluster };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(started.elapsed() < Duration::from_secs(20), "no server answers at {}", server.url);
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

fn two_notes() -> anyhow::Result<TempDir> {
    let vault = tempfile::tempdir()?;
    fs::write(vault.path().join("anchors.md"), "An anchor holds. [[knots]]\n")?;
    fs::write(vault.path().join("knots.md"), "---\ntags: [rope]\n---\n\nThe rabbit comes out of the hole.\n")?;
    Ok(vault)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which its client has reported.
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

pub(super) fn typescript_clients(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let (server, tokens) = Server::start(binary, &["typescript"])?;
    typescript_client(&server, &tokens, tally)
}

pub(super) fn typescript_clients_on_a_graph(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let Some(programs) = postgres::installed_or_skipped() else { return Ok(()) };
    let (server, tokens) = Server::start_on_graph(binary, &programs, &["typescript"])?;
    typescript_client(&server, &tokens, tally)
}

fn typescript_client(server: &Server, tokens: &[String], tally: &mut Tally) -> anyhow::Result<()> {
    let mut script = node();
    script.arg(scripts().join("typescript_client.mjs")).arg(&server.url).arg(place("node")).args(tokens);
    shell::run_watched(&mut script, |line| tally.read(line))
}
