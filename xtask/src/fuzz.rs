//! `cargo xtask fuzz`: random changes of random vaults, held against rules that hold for all of them.

pub(crate) mod files;
pub(crate) mod renames;

use anyhow::bail;

use crate::shell;

/// Seed by default.
pub(crate) const SEED: u64 = 1;

pub(crate) fn run(what: Option<&str>, rounds: Option<u64>, seed: u64) -> anyhow::Result<()> {
    match what {
        Some("files") => {
            let binary = shell::build_binary(shell::Profile::Dev)?;
            files::run(&binary, rounds.unwrap_or(files::ROUNDS), seed)
        }
        Some("renames") => renames::run(rounds.unwrap_or(renames::ROUNDS), seed),
        other => bail!("cannot fuzz {}: unknown target; give `files` or `renames`", other.unwrap_or("nothing")),
    }
}
