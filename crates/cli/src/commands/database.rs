//! The options `--database` and `--graph`: which database and which graph a command uses.

use std::sync::Arc;

use clap::Args;
use quipu_core::memory::Memory;
use quipu_store_postgres::{DatabaseError, Graph, GraphError, PostgresDatabase};

use super::open_vault::VaultLocation;
use super::{Failure, Shared};
use crate::compose::{MemoryDatabase, OpenMemory, OpenMode, memory_of_graph};
use crate::config::{Config, DATABASE_VARIABLE};

/// The database of commands that always use one.
#[derive(Debug, Args)]
pub(super) struct DatabaseOption {
    /// Use this PostgreSQL database [env: QUIPU_DATABASE_URL].
    #[arg(long, value_name = "URL", global = true)]
    database: Option<String>,
}

impl DatabaseOption {
    /// Connects, whatever the database's schema is.
    pub(super) fn connect(&self) -> Result<PostgresDatabase, Failure> {
        connect(self.database.as_deref())
    }

    /// Connects to a database whose schema this program supports.
    pub(super) fn open(&self) -> Result<Arc<PostgresDatabase>, Failure> {
        open(self.database.as_deref())
    }
}

/// A graph instead of a folder, for commands that use a folder otherwise.
#[derive(Debug, Default, Args)]
pub(super) struct GraphOption {
    /// Use a graph of this PostgreSQL database instead of a folder.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Use this graph instead of a folder. Without --database, of that in QUIPU_DATABASE_URL [default: the only one].
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
}

impl GraphOption {
    /// Whether a database or a graph is named.
    pub(super) fn is_given(&self) -> bool {
        self.database.is_some() || self.graph.is_some()
    }

    /// The graph, if one is named.
    pub(super) fn find(&self) -> Result<Option<(Arc<PostgresDatabase>, Graph)>, Failure> {
        if !self.is_given() {
            return Ok(None);
        }
        let database = open(self.database.as_deref())?;
        let graph = choose_graph(&database, self.graph.as_deref())?;
        Ok(Some((database, graph)))
    }

    /// Opens the memory of the graph, or that of the folder.
    pub(super) fn memory(&self, shared: &Shared, mode: OpenMode) -> Result<CommandMemory, Failure> {
        if let Some((database, graph)) = self.find()? {
            return Ok(CommandMemory { memory: memory_of_graph(database, &graph, &settings()?, None), database: None });
        }
        let OpenMemory { memory, database } = VaultLocation::find(None, shared)?.memory(mode)?;
        Ok(CommandMemory { memory, database: Some(database) })
    }
}

/// The memory of a folder or of a graph.
pub(super) struct CommandMemory {
    pub(super) memory: Arc<Memory>,
    /// The database of a folder's memory.
    pub(super) database: Option<Arc<MemoryDatabase>>,
}

/// Settings for a graph come from the environment alone, as those of the servers do.
pub(super) fn settings() -> Result<Config, Failure> {
    Config::of_environment().map_err(|error| Failure::usage(error.to_string()).hint(error.hint))
}

/// Connects to a database whose schema this program supports: the one given, or that of the variable.
pub(super) fn open(given: Option<&str>) -> Result<Arc<PostgresDatabase>, Failure> {
    let database = connect(given)?;
    let schema = database.schema().map_err(|error| failed(&error))?;
    schema.check().map_err(|error| Failure::failed(format!("cannot use the database: {error}")))?;
    Ok(Arc::new(database))
}

fn connect(given: Option<&str>) -> Result<PostgresDatabase, Failure> {
    let variable = || std::env::var(DATABASE_VARIABLE).ok().filter(|url| !url.is_empty());
    let Some(url) = given.map(str::to_owned).or_else(variable) else {
        let message = "cannot choose a database: none is named";
        return Err(Failure::usage(message).hint(format!("use --database URL or set {DATABASE_VARIABLE}")));
    };
    PostgresDatabase::connect(&url).map_err(|error| Failure::failed(error.to_string()))
}

/// The graph of a command: the one that was named, or the only one.
pub(super) fn choose_graph(database: &PostgresDatabase, name: Option<&str>) -> Result<Graph, Failure> {
    let mut graphs = database.graphs().map_err(|error| failed(&error))?;
    if let Some(name) = name {
        let found = graphs.into_iter().find(|graph| graph.name == name);
        return found.ok_or_else(|| Failure::usage(GraphError::Unknown(name.to_owned()).to_string()));
    }
    match (graphs.pop(), graphs.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(Failure::failed("cannot choose a graph: the database has none")
            .hint("create one with `quipu graph create NAME`")),
        (Some(_), false) => {
            let message = format!("cannot choose a graph: the database has {}", graphs.len() + 1);
            Err(Failure::usage(message).hint("name one with --graph NAME; `quipu graph list` names them"))
        }
    }
}

/// The message on the terminal when the database fails.
pub(super) fn failed(error: &DatabaseError) -> Failure {
    Failure::failed(format!("cannot use the database: {}", error.explained()))
}
