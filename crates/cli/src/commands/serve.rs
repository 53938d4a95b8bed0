//! `quipu serve`: opens the vault, keeps its index current, and serves clients.
//!
//! It answers at once; indexing and watching start in the background.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quipu_core::shell_quoted;
use quipu_server::engine::{EngineOptions, FirstPass};
use quipu_server::http::{HttpSettings, Served};
use quipu_server::service::VaultService;
use quipu_server::sharing::{SharedVault, SharedVaultOptions};
use quipu_server::stdio;
use quipu_server::team::TeamOptions;
use quipu_tools::{RegistryOptions, Toolset};
use serde_json::json;

use super::http_options::HttpOptions;
use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared, serve_graph};
use crate::config::{Config, DATABASE_VARIABLE};
use crate::install::CLIENTS;

/// Serve the vault to agents over MCP, on standard input and output or over HTTP.
///
/// A client starts this command itself; `quipu install` connects one. With --http, one server serves many clients.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu serve ~/notes                          on a terminal, show how to connect a client
  claude mcp add quipu -- quipu serve ~/notes  connect Claude Code
  quipu serve ~/notes --http 127.0.0.1:7777    serve at http://127.0.0.1:7777/mcp
  quipu serve ~/notes --http 0.0.0.0:7777 --tls-cert cert.pem --tls-key key.pem
                                               serve other machines, whose clients need tokens
  quipu serve --http 0.0.0.0:7777 --database postgresql://quipu@db.example.org/quipu
                                               serve the graphs of a database
  quipu serve ~/notes --read-only              offer no tool that changes anything
  quipu serve ~/notes --toolsets notes         offer one toolset only")]
pub(crate) struct Serve {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    folder: Option<PathBuf>,
    /// Do not watch files for changes by other programs; notes are still read from disk.
    #[arg(long)]
    no_watch: bool,
    /// Offer only these toolsets, separated by commas; essential is a selection of 13 tools [default: all].
    #[arg(long, value_delimiter = ',', value_parser = toolset_parser())]
    toolsets: Option<Vec<Toolset>>,
    /// Offer no tool that changes notes or memory; the index is still kept in .quipu/.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    http: HttpOptions,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Notes and memory in a database instead of a folder.
#[derive(Debug, Args)]
#[command(next_help_heading = "For a team")]
struct DatabaseOptions {
    /// Serve the graphs of this PostgreSQL database; several servers can share it [env: QUIPU_DATABASE_URL].
    #[arg(long, value_name = "URL", requires = "http", conflicts_with = "folder")]
    database: Option<String>,
    /// Serve only this graph, at /mcp [default: all, each at /g/NAME/mcp; /mcp is the token's graph or the only one].
    #[arg(long, value_name = "NAME", requires = "http")]
    graph: Option<String>,
}

fn toolset_parser() -> impl TypedValueParser<Value = Toolset> {
    PossibleValuesParser::new(Toolset::CHOICES.map(Toolset::name))
        .map(|name| Toolset::from_name(&name).expect("clap rejects other values"))
}

impl Serve {
    pub(super) fn is_over_http(&self) -> bool {
        self.http.is_given()
    }

    /// The database to serve. The variable counts where no folder is named.
    fn database_url(&self, shared: &Shared) -> Option<String> {
        let variable = || std::env::var(DATABASE_VARIABLE).ok().filter(|url| !url.is_empty());
        let names_folder = self.folder.is_some() || shared.vault.is_some();
        self.database.database.clone().or_else(|| if names_folder { None } else { variable() })
    }

    fn serve_graph(self, url: &str, settings: &HttpSettings) -> Result<Outcome, Failure> {
        let config = Config::of_environment().map_err(|error| Failure::usage(error.to_string()).hint(error.hint))?;
        let toolsets = self.toolsets.or_else(|| config.toolsets.clone());
        let options = TeamOptions {
            background: true,
            trash_days: if self.read_only { 0 } else { config.trash_days },
            offer: RegistryOptions {
                toolsets: toolsets.unwrap_or_else(|| Toolset::ALL.to_vec()),
                read_only: self.read_only,
            },
        };
        serve_graph::serve(url, self.database.graph.as_deref(), config, options, settings)
    }

    pub(super) fn run(self, shared: &Shared, output: &Output) -> Result<Outcome, Failure> {
        let database = self.database_url(shared).filter(|_| self.http.is_given());
        let http = self.http.settings(database.is_some());
        if let (Some(url), Some(settings)) = (database, &http) {
            return self.serve_graph(&url, settings);
        }
        let location = VaultLocation::find(self.folder.as_deref(), shared)?;
        let on_terminal = match http {
            None => std::io::stdin().is_terminal(),
            Some(_) => std::io::stderr().is_terminal(),
        };
        let toolsets = self.toolsets.or_else(|| location.config.toolsets.clone());
        let is_waiting = Arc::<AtomicBool>::default();
        let options = SharedVaultOptions {
            engine: EngineOptions {
                watches: !self.no_watch,
                background: true,
                trash_days: if self.read_only { 0 } else { location.config.trash_days },
                first_pass: if on_terminal { FirstPass::ReportToTerminal } else { FirstPass::ReportToLog },
            },
            offer: RegistryOptions {
                toolsets: toolsets.unwrap_or_else(|| Toolset::ALL.to_vec()),
                read_only: self.read_only,
            },
            is_waiting: is_waiting.clone(),
        };
        let root = location.root.clone();
        let take = move || SharedVault::open(Box::new(location), options);
        let vault = match http {
            None => stdio::prepare(&is_waiting, take)?,
            Some(_) => Some(take()),
        };
        let Some(vault) = vault.transpose()? else { return Ok(Outcome::Fine) };
        let vault = Arc::new(vault);
        if on_terminal {
            let lines = greeting(&root, vault.offer().tools().count(), vault.owner(), http.as_ref());
            lines.iter().for_each(|line| output.aside(line));
        }
        let outcome = match http {
            None => stdio::serve(vault.clone()),
            Some(settings) => quipu_server::http::serve(Served::folder(vault.clone(), &root), &settings, |_| {}),
        };
        vault.close();
        outcome?;
        Ok(Outcome::Fine)
    }
}

/// What is served and how to connect a client.
fn greeting(root: &Path, tools: usize, owner: Option<u32>, http: Option<&HttpSettings>) -> Vec<Line> {
    let vault = root.display().to_string();
    let way = match http {
        None => "over standard input and output".to_owned(),
        Some(settings) => format!("at {}", settings.url()),
    };
    let (claude, server) = match http {
        None => {
            let program =
                std::env::current_exe().map_or_else(|_| "quipu".to_owned(), |path| path.display().to_string());
            (
                format!("claude mcp add quipu -- {} serve {}", shell_quoted(&program), shell_quoted(&vault)),
                json!({ "command": program, "args": ["serve", vault] }),
            )
        }
        Some(settings) => {
            let url = settings.url();
            let mut claude = format!("claude mcp add --transport http quipu {url}");
            let mut server = json!({ "type": "http", "url": url });
            if settings.needs_token() {
                claude.push_str(" --header 'Authorization: Bearer TOKEN'");
                server["headers"] = json!({ "Authorization": "Bearer TOKEN" });
            }
            (claude, server)
        }
    };
    let mut lines = Vec::new();
    let mut say = |line: Line| lines.push(line);
    say(Line::new().plain("serving ").bold(vault.clone()).plain(format!(" {way}, {tools} tools")));
    if let Some(owner) = owner {
        say(Line::new().dim(format!("Process {owner} already has the vault open; this process forwards calls to it.")));
    }
    say(Line::new().dim("Clients start this command themselves; Ctrl-C stops this one. To connect a client:"));
    if http.is_none() {
        say(Line::new().plain(format!("  quipu install CLIENT --vault {}", shell_quoted(&vault))));
        let names = CLIENTS.iter().map(|client| client.name).collect::<Vec<_>>().join(", ");
        say(Line::new().dim(format!("where CLIENT is one of {names}; or by hand:")));
    }
    say(Line::new().plain(format!("  {claude}")));
    say(Line::new().dim("or add this to the settings of another client:"));
    say(Line::new().plain(format!("  {}", json!({ "mcpServers": { "quipu": server } }))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_message_names_the_command_that_connects_a_client() {
        let lines = greeting(Path::new("/my notes"), 42, None, None);
        let said: String = lines.iter().map(|line| format!("{}\n", line.render(false))).collect();
        assert!(said.starts_with("serving /my notes over standard input and output, 42 tools\n"), "{said}");
        assert!(said.contains("\n  quipu install CLIENT --vault '/my notes'\n"), "{said}");
        assert!(said.contains("one of claude-code, "), "{said}");
    }
}
