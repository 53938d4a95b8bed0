//! `quipu open`: shows the vault in the browser.
//!
//! It serves on loopback until Ctrl-C. If another process owns the vault, requests go to that process, so the page shows the agents
//! that work there.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use quipu_server::engine::{EngineOptions, FirstPass};
use quipu_server::http::{self, HttpSettings, Served};
use quipu_server::sharing::{SharedVault, SharedVaultOptions};
use quipu_server::tokens::TokenScope;
use quipu_server::web::ExplorerSessions;
use quipu_tools::{RegistryOptions, Toolset};

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};

/// One person opens few tabs; each has an event stream.
const MAX_CONNECTIONS: usize = 64;

/// Ports above the well-known services.
const FIRST_PORT: u16 = 17_000;
const PORTS: u16 = 1_000;

/// Open the explorer: notes, graph, memory and live changes in the browser.
///
/// Serves the page on loopback until Ctrl-C. The address contains a secret that works once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu open ~/notes               open the explorer in the browser
  quipu open --no-browser          print the address and open nothing
  quipu open --write               allow edits, merges and undo in the page")]
pub(crate) struct Open {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    folder: Option<PathBuf>,
    /// Print the address and open nothing.
    #[arg(long)]
    no_browser: bool,
    /// Allow the page to change notes and memory.
    #[arg(long)]
    write: bool,
}

impl Open {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let location = VaultLocation::find(self.folder.as_deref(), shared)?;
        let root = location.root.clone();
        let options = SharedVaultOptions {
            engine: EngineOptions {
                watches: true,
                background: true,
                trash_days: 0,
                first_pass: FirstPass::ReportToLog,
            },
            offer: RegistryOptions { toolsets: Toolset::ALL.to_vec(), read_only: !self.write },
            is_waiting: Arc::default(),
        };
        let vault = Arc::new(SharedVault::open(Box::new(location), options)?);
        let explorer = Arc::<ExplorerSessions>::default();
        let secret = explorer.new_secret(if self.write { TokenScope::Write } else { TokenScope::Read })?;
        let settings = HttpSettings {
            address: free_address(&root)
                .map_err(|error| Failure::failed(format!("cannot listen on loopback: {error}")))?,
            require_token: true,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls: None,
            max_connections: MAX_CONNECTIONS,
            rate: None,
            drain: Duration::ZERO,
            explorer,
            #[cfg(feature = "oauth")]
            oauth: None,
        };
        output.aside(&Line::new().plain("opening ").bold(root.display().to_string()).dim("; Ctrl-C ends it"));
        let opens = !self.no_browser;
        let url = format!("http://{}/#k={secret}", settings.address);
        let outcome = http::serve(Served::folder(vault.clone(), &root), &settings, move |_| {
            // A new output: this closure runs on a thread of the server.
            let mut output = Output::new();
            let printed = output.line(&Line::new().plain(url.clone())).and_then(|()| output.finish());
            if printed.is_err() {
                tracing::warn!("cannot print the address");
            }
            if opens && let Err(error) = open_browser(&url) {
                tracing::warn!("cannot start a browser: {error}; open the printed address yourself");
            }
        });
        vault.close();
        outcome?;
        Ok(Outcome::Fine)
    }
}

/// The same port for a vault each time where it is free, so that the browser remembers the theme and the last visit.
fn free_address(root: &Path) -> io::Result<SocketAddr> {
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes());
    let usual = FIRST_PORT + u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]) % PORTS;
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr();
    bind(usual).or_else(|_| bind(0))
}

/// Starts the program that the system opens addresses with, and does not wait for it.
fn open_browser(url: &str) -> io::Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vault_has_its_own_port_unless_it_is_in_use() {
        let first = free_address(Path::new("/notes")).unwrap();
        assert!(first.ip().is_loopback());
        let _taken = TcpListener::bind(first).unwrap();
        assert_ne!(free_address(Path::new("/notes")).unwrap(), first);
    }
}
