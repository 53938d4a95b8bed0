//! The conformance suite of the protocol's makers, over HTTP, once for each generation of the protocol.
//!
//! It expects a server with tools of its own choosing, so many scenarios cannot apply to ours. `tests/peers/conformance.yml`
//! lists them with the reason; the suite itself fails when a listed one passes and when an unlisted one does not.

use std::path::Path;

use super::http::Server;
use super::{node, place, scripts};
use crate::postgres;
use crate::shell;
use crate::steps::Tally;

pub(super) fn run(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    check(&Server::start(binary, &[])?.0, tally)
}

pub(super) fn run_on_a_graph(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let Some(programs) = postgres::installed_or_skipped() else { return Ok(()) };
    check(&Server::start_on_graph(binary, &programs, &[])?.0, tally)
}

fn check(server: &Server, tally: &mut Tally) -> anyhow::Result<()> {
    for version in ["2025-11-25", "2026-07-28"] {
        let mut suite = node();
        suite.arg(place("node/node_modules/.bin/conformance")).args(["server", "--suite", "all", "--url", &server.url]);
        suite.args(["--spec-version", version, "--expected-failures"]).arg(scripts().join("conformance.yml"));
        // It writes its results where it stands.
        suite.current_dir(server.vault.path());
        // Its failures are those listed, or it exits badly: only what held is counted.
        shell::run_watched(&mut suite, |line| tally.passed += passed(line).unwrap_or(0))?;
    }
    Ok(())
}

/// How many checks held, from the suite's `Total: 12 passed, 3 failed`.
fn passed(line: &str) -> Option<usize> {
    line.strip_prefix("Total: ")?.split(' ').next()?.parse().ok()
}
