//! The option `--database`: which database a command uses.

use std::sync::Arc;

use clap::Args;
use quipu_store_postgres::{DatabaseError, Graph, GraphError, PostgresDatabase, PostgresMemory};

use super::Failure;
use crate::config::DATABASE_VARIABLE;

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
#[derive(Debug, Args)]
pub(super) struct GraphOption {
    /// Use a graph of this PostgreSQL database instead of a folder.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Use this graph instead of a folder. Without --database, of that in QUIPU_DATABASE_URL [default: the only one].
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
}

impl GraphOption {
    /// Opens the memory of the graph; `None` if neither a database nor a graph is named.
    pub(super) fn memory(&self) -> Result<Option<PostgresMemory>, Failure> {
        if self.database.is_none() && self.graph.is_none() {
            return Ok(None);
        }
        let database = open(self.database.as_deref())?;
        let graph = choose_graph(&database, self.graph.as_deref())?;
        Ok(Some(PostgresMemory::new(database, &graph)))
    }
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
