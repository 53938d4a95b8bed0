//! The conformance suite of the protocol's makers, over HTTP, once for each generation of the protocol.
//!
//! It brings its own idea of a server's tools, so many scenarios cannot apply. `tests/peers/not-applicable.yml` lists them
//! with the reason; the suite itself fails when a listed one starts to pass and when an unlisted one fails.

use std::path::Path;

use crate::steps::Tally;

pub(super) fn run(_binary: &Path, _tally: &mut Tally) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
