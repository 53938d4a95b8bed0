//! `cargo xtask fuzz`: random changes of random vaults, held against rules that hold for all of them.

pub(crate) mod renames;

use anyhow::bail;

/// Seed unless told otherwise.
pub(crate) const SEED: u64 = 1;

pub(crate) fn run(what: Option<&str>, rounds: Option<u64>, seed: u64) -> anyhow::Result<()> {
    match what {
        Some("renames") => renames::run(rounds.unwrap_or(renames::ROUNDS), seed),
        other => bail!("cannot fuzz {}: unknown target; give `renames`", other.unwrap_or("nothing")),
    }
}
