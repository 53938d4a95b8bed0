//! The built binary serving over HTTP, for peers that talk to a server rather than start one.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::{node, place, scripts};
use crate::shell;
use crate::steps::Tally;

/// A server over HTTP and a vault of two notes; both go when this goes.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) url: String,
    pub(crate) vault: TempDir,
    /// Only kept.
    _user: TempDir,
}

impl Server {
    /// Starts it; with tokens named, each request needs one of them.
    pub(crate) fn start(binary: &Path, tokens: &[&str]) -> anyhow::Result<(Self, Vec<String>)> {
        let (vault, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
        fs::write(vault.path().join("anchors.md"), "An anchor holds. [[knots]]\n")?;
        fs::write(vault.path().join("knots.md"), "---\ntags: [rope]\n---\n\nThe rabbit comes out of the hole.\n")?;
        Self::start_in(binary, tokens, vault, user)
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
        // A free port from the system, released again; another program is unlikely to take it.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(binary);
        command.arg("serve").arg(vault.path()).args(["--http", &address.to_string()]);
        if !tokens.is_empty() {
            command.arg("--require-token");
        }
        let process = command.env("XDG_STATE_HOME", user.path()).stdin(Stdio::null()).spawn();
        let process = process.context("the server did not start")?;
        let server = Self { process, url: format!("http://{address}/mcp"), vault, _user: user };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(started.elapsed() < Duration::from_secs(20), "nobody answers at {}", server.url);
            thread::sleep(Duration::from_millis(20));
        }
        Ok((server, texts))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which its client has reported.
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

pub(super) fn typescript_clients(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let (server, tokens) = Server::start(binary, &["typescript"])?;
    let mut script = node();
    script.arg(scripts().join("typescript_client.mjs")).arg(&server.url).arg(place("node")).args(tokens);
    shell::run_watched(&mut script, |line| tally.read(line))
}
