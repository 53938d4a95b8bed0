//! The option `--database`: which database a command uses.

use std::sync::Arc;

use clap::Args;
use quipu_store_postgres::{DatabaseError, PostgresDatabase};

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

/// What the terminal is told when the database fails.
pub(super) fn failed(error: &DatabaseError) -> Failure {
    Failure::failed(format!("cannot use the database: {}", error.explained()))
}
