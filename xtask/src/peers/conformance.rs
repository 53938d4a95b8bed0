//! The conformance suite of the protocol's makers, over HTTP, once for each generation of the protocol.
//!
//! It expects a server with tools of its own choosing, so many scenarios cannot apply to ours. `tests/peers/conformance.yml`
//! lists them with the reason; the suite itself fails when a listed one passes and when an unlisted one does not.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{node, place, scripts};
use crate::shell;
use crate::steps::Tally;

pub(super) fn run(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let vault = tempfile::tempdir()?;
    fs::write(vault.path().join("anchors.md"), "An anchor holds. [[knots]]\n")?;
    fs::write(vault.path().join("knots.md"), "---\ntags: [rope]\n---\n\nThe rabbit comes out of the hole.\n")?;
    let server = Server::start(binary, vault.path())?;
    for version in ["2025-11-25", "2026-07-28"] {
        let mut suite = node();
        suite.arg(place("node/node_modules/.bin/conformance")).args(["server", "--suite", "all", "--url", &server.url]);
        suite.args(["--spec-version", version, "--expected-failures"]).arg(scripts().join("conformance.yml"));
        // It writes its results where it stands.
        suite.current_dir(vault.path());
        // Its failures are those listed, or it exits badly: only what held is counted.
        shell::run_watched(&mut suite, |line| tally.passed += passed(line).unwrap_or(0))?;
    }
    Ok(())
}

/// How many checks held, from the suite's `Total: 12 passed, 3 failed`.
fn passed(line: &str) -> Option<usize> {
    line.strip_prefix("Total: ")?.split(' ').next()?.parse().ok()
}

/// A server over HTTP; it ends when this goes.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(binary: &Path, vault: &Path) -> anyhow::Result<Self> {
        // Asked of the system and given back: nobody else takes it in the moment between.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let process = Command::new(binary)
            .arg("serve")
            .arg(vault)
            .args(["--http", &address.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .context("the server did not start")?;
        let server = Self { process, url: format!("http://{address}/mcp") };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(started.elapsed() < Duration::from_secs(20), "nobody answers at {}", server.url);
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which the suite has then told of.
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}
