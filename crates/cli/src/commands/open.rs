//! `quipu open`: shows the vault in the browser.
//!
//! It serves on loopback until Ctrl-C. If another process owns the vault, requests go to that process, so the page shows the agents
//! that work there.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use quipu_own_folder::OwnFolder;
use quipu_server::engine::{EngineOptions, FirstPass};
use quipu_server::http::{self, HttpSettings, Served};
use quipu_server::own_files;
use quipu_server::sharing::{SharedVault, SharedVaultOptions};
use quipu_server::tokens::TokenScope;
use quipu_server::web::ExplorerSessions;
use quipu_tools::{RegistryOptions, Toolset};
use rustix::fs::OFlags;

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};

/// One person opens few tabs; each has an event stream.
const MAX_CONNECTIONS: usize = 64;

/// Ports above the well-known services.
const FIRST_PORT: u16 = 17_000;
const PORTS: u16 = 1_000;

/// Where the pages with the secret are, in the user's own folder.
const FOLDER: &str = "open";

/// How often it is checked whether the secret was used.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

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
        let (port, sessions) = (settings.address.port(), settings.explorer.clone());
        let outcome = http::serve(Served::folder(vault.clone(), &root), &settings, move |_| {
            // A new output: this closure runs on a thread of the server.
            let mut output = Output::new();
            let printed = output.line(&Line::new().plain(url.clone())).and_then(|()| output.finish());
            if printed.is_err() {
                tracing::warn!("cannot print the address");
            }
            if opens && let Err(error) = LinkFile::create(port, &url).and_then(|file| file.open(sessions)) {
                tracing::warn!("cannot start a browser: {error:#}; open the printed address yourself");
            }
        });
        if opens {
            LinkFile::remove_of(port);
        }
        vault.close();
        outcome?;
        Ok(Outcome::Fine)
    }
}

/// An address with the same port each time for a vault, where it is free: the browser remembers the theme and the last visit.
fn free_address(root: &Path) -> io::Result<SocketAddr> {
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes());
    let usual = FIRST_PORT + u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]) % PORTS;
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr();
    bind(usual).or_else(|_| bind(0))
}

/// A page that leads the browser to the address. Every account of the machine can read the arguments of a process, so the secret
/// must not be one; only this account can read the file.
struct LinkFile {
    folder: OwnFolder,
    name: String,
}

impl LinkFile {
    /// One file per port: a file that a killed process left is replaced by the next one.
    fn at(port: u16) -> anyhow::Result<Self> {
        let user = own_files::user_folder()?;
        quipu_own_folder::create_private(&user)?;
        let folder = OwnFolder::open(&user.canonicalize()?)?.private_folder(FOLDER)?;
        Ok(Self { folder, name: format!("{port}.html") })
    }

    fn create(port: u16, url: &str) -> anyhow::Result<Self> {
        let file = Self::at(port)?;
        file.folder.remove(&file.name)?;
        let mut page = file.folder.file(&file.name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        // The address has only letters, digits and the marks of an address.
        write!(
            page,
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>Quipu</title>\n\
             <meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">Open the explorer</a>\n"
        )?;
        Ok(file)
    }

    /// Starts the program that the system opens files with, and does not wait for it. The file is deleted once its secret is
    /// used or expired.
    fn open(self, sessions: Arc<ExplorerSessions>) -> anyhow::Result<()> {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut command = Command::new(program);
        command.arg(self.folder.path().join(&self.name));
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if started.is_err() {
            self.folder.remove(&self.name)?;
        }
        started.with_context(|| format!("while starting {program}"))?;
        let delete = move || {
            while sessions.has_secret() {
                std::thread::sleep(CHECK_INTERVAL);
            }
            if let Err(error) = self.folder.remove(&self.name) {
                tracing::warn!("cannot delete {}: {error}", self.folder.path().join(&self.name).display());
            }
        };
        std::thread::Builder::new().name("link file".into()).spawn(delete).map(drop).context("while starting a thread")
    }

    /// Deletes the file of a process that ends.
    fn remove_of(port: u16) {
        if let Err(error) = Self::at(port).and_then(|file| Ok(file.folder.remove(&file.name)?)) {
            tracing::debug!("cannot delete the page with the address: {error:#}");
        }
    }
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
