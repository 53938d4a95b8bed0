//! `quipu serve --database`: serves the graphs of a PostgreSQL database, beside any number of other servers.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::Knowledge;
use quipu_core::index::{FileBatch, IndexError};
use quipu_core::memory::Memory;
use quipu_server::engine::{Engine, FirstPass};
use quipu_server::http::{self, Content, GraphSource, HttpSettings, Served};
use quipu_server::served_vault::ServedVault;
use quipu_server::service::{Metric, VaultService};
use quipu_server::team::{TeamGraph, TeamOptions};
use quipu_server::tokens::GraphRef;
use quipu_tools::Registry;
use serde_json::Value;

use super::{Failure, Outcome};
use crate::compose::{self, ComposeError, Database, OpenDatabaseError, OpenGraph};
use crate::config::Config;

/// Graphs that an error names.
const NAMED: usize = 10;

/// Serves graphs until the process is asked to stop: the one that was named, or all.
pub(super) fn serve(
    url: &str,
    graph: Option<&str>,
    config: Config,
    options: TeamOptions,
    settings: &HttpSettings,
) -> Result<Outcome, Failure> {
    if settings.has_oauth() && graph.is_none() {
        let message =
            "cannot serve all graphs with --oauth-issuer: a provider's tokens name no graph, so each would open all";
        return Err(Failure::usage(message).hint("name the graph that they open with --graph NAME"));
    }
    compose::check_providers(&config).map_err(failure)?;
    let database = Database::connect(url)?;
    check_graph(&database, graph)?;
    if let Some(user) = database.unbound_user()? {
        tracing::warn!(
            "row-level security does not bind the database user {user}: only the statements of this server keep graphs apart; \
             serve as quipu_server, which `quipu db roles` creates"
        );
    }
    let tokens = Arc::new(database.tokens());
    let graphs = Arc::new(TeamGraphs { database, config, options, only: graph.map(str::to_owned) });
    let served = Served { content: Content::Graphs(graphs), tokens };
    http::serve(served, settings, |_| {})?;
    Ok(Outcome::Fine)
}

/// The graphs of a database.
struct TeamGraphs {
    database: Database,
    config: Config,
    options: TeamOptions,
    /// The name of the only graph that is served; `None` for all.
    only: Option<String>,
}

impl GraphSource for TeamGraphs {
    fn graphs(&self) -> anyhow::Result<Vec<GraphRef>> {
        let mut graphs = self.database.graphs()?;
        graphs.retain(|graph| self.only.as_ref().is_none_or(|only| graph.name == *only));
        Ok(graphs)
    }

    fn rates(&self) -> anyhow::Result<HashMap<i64, u32>> {
        Ok(self.database.graph_rates()?.into_iter().collect())
    }

    fn unreachable_for(&self) -> Option<Duration> {
        self.database.unreachable_for()
    }

    fn open(&self, id: i64) -> anyhow::Result<Option<Arc<dyn VaultService>>> {
        let Some(open) = self.database.open(id, &self.config).map_err(failure)? else { return Ok(None) };
        let open = Arc::new(open);
        let feed = open.vault.clone();
        Ok(Some(Arc::new(TeamGraph::open(open, feed, self.options.clone())?)))
    }

    fn metrics(&self) -> Vec<Metric> {
        self.database.metrics()
    }
}

/// Fails unless there is something to serve.
fn check_graph(database: &Database, graph: Option<&str>) -> Result<(), Failure> {
    let graphs: Vec<String> = database.graphs()?.into_iter().map(|graph| graph.name).collect();
    match graph {
        Some(name) if !graphs.iter().any(|graph| graph == name) => Err(unknown(name, &graphs)),
        None if graphs.is_empty() => Err(Failure::failed("cannot serve the database: it has no graph")
            .hint("create one with `quipu graph create NAME`")),
        _ => Ok(()),
    }
}

fn unknown(name: &str, graphs: &[String]) -> Failure {
    let message = match graphs {
        [] => format!("cannot serve the graph {name:?}: the database has no graph"),
        graphs => format!("cannot serve the graph {name:?}: unknown graph; the database has {}", listed(graphs)),
    };
    Failure::usage(message).hint("create it with `quipu graph create NAME`, or choose another with --graph NAME")
}

fn listed(graphs: &[String]) -> String {
    let named = graphs.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if graphs.len() > NAMED { format!("{named} and {} more", graphs.len() - NAMED) } else { named }
}

impl From<OpenDatabaseError> for Failure {
    fn from(error: OpenDatabaseError) -> Self {
        Self::failed(error.to_string())
    }
}

pub(super) fn failure(error: ComposeError) -> Failure {
    match error {
        ComposeError::Config(error) => Failure::usage(error.to_string()).hint(error.hint),
        ComposeError::Folder(message) | ComposeError::Unfinished(message) => Failure::failed(message),
        ComposeError::Other(error) => error.into(),
    }
}

impl ServedVault for OpenGraph {
    fn root(&self) -> Option<&Path> {
        None
    }

    fn knowledge(&self) -> &Arc<Knowledge> {
        &self.knowledge
    }

    fn memory(&self) -> Result<&Arc<Memory>, String> {
        Ok(&self.memory)
    }

    fn registry(&self) -> Registry {
        self.registry()
    }

    /// The follower of the change feed reads the notes.
    fn read(&self, _: FirstPass) -> Result<(), IndexError> {
        Ok(())
    }

    fn is_index_taken(&self) -> bool {
        false
    }

    /// Expected: every server has its own.
    fn why_not_kept(&self) -> Option<String> {
        None
    }

    fn watch(&self, _: Box<dyn Fn(Result<FileBatch, String>) + Send>) -> Result<Box<dyn Send>, String> {
        Err("notes in a database have no files to watch".to_owned())
    }

    fn prune_trash(&self, before_ns: i64) -> io::Result<usize> {
        self.vault.prune(before_ns)
    }

    fn save(&self) {}

    fn metrics(&self) -> Vec<Metric> {
        self.metrics()
    }

    /// Not called: there is no socket at which another process could ask.
    fn run_command(self: Arc<Self>, _: &Engine, _: Value) -> Value {
        Value::Null
    }
}
