//! `quipu db`: creates, upgrades and shows the tables of a team's database.

use clap::{Args, Subcommand};
use quipu_store_postgres::{DatabaseServer, PostgresDatabase, roles_sql};
use serde_json::json;

use super::database::{DatabaseOption, failed};
use super::output::{Line, Output};
use super::{Failure, Outcome};

/// Create, upgrade and show the tables of a team's database.
///
/// The tables are in their own schema, `quipu`. Upgrade the database first, then the servers one by one: servers of the
/// previous version keep working.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  quipu db roles | psql -d quipu   create roles for administrators and servers
  quipu db init --database postgresql://quipu_admin@db/quipu
  quipu db status
  quipu db migrate                 upgrade the tables to this program's version

The URL may name several hosts, separated by commas. The password comes from the URL,
PGPASSWORD, the password file (PGPASSFILE, ~/.pgpass) or a service (?service=NAME). The TLS
certificate of every host other than this machine is verified: sslmode=verify-full.

JSON fields of status:
  {server_version, pgvector, user, bound_to_one_graph, schema, supports, program, usable,
   problem, graphs}"
)]
pub(crate) struct DbCommand {
    #[command(subcommand)]
    verb: DatabaseAction,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, Subcommand)]
enum DatabaseAction {
    /// Create the tables.
    Init,
    /// Upgrade the tables to the version of this program.
    Migrate,
    /// Show the version of the tables, and whether this program supports it.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print SQL that creates roles for administrators and servers.
    Roles,
}

impl DbCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        match self.verb {
            DatabaseAction::Init => init(&self.database.connect()?, output),
            DatabaseAction::Migrate => migrate(&self.database.connect()?, output),
            DatabaseAction::Status { json } => status(&self.database.connect()?, json, output),
            DatabaseAction::Roles => {
                output.verbatim(roles_sql().as_bytes())?;
                Ok(Outcome::Fine)
            }
        }
    }
}

fn init(database: &PostgresDatabase, output: &mut Output) -> Result<Outcome, Failure> {
    check_server(database)?;
    let before = database.migrate_from(0).map_err(|error| failed(&error))?;
    match before.current {
        0 => output.line(&Line::new().plain(format!("created the tables, version {}", before.newest)))?,
        current => output.line(&Line::new().plain(format!("the tables exist already, version {current}")))?,
    }
    Ok(Outcome::Fine)
}

/// Fails before anything is changed on a server that this program does not support.
fn check_server(database: &PostgresDatabase) -> Result<DatabaseServer, Failure> {
    let server = database.server().map_err(|error| failed(&error))?;
    server.check().map_err(|error| Failure::failed(format!("cannot use the database: {error}")))?;
    Ok(server)
}

fn migrate(database: &PostgresDatabase, output: &mut Output) -> Result<Outcome, Failure> {
    check_server(database)?;
    let schema = database.schema().map_err(|error| failed(&error))?;
    if schema.current == 0 {
        return Err(Failure::failed("cannot upgrade the tables: the database has no tables of Quipu")
            .hint("create them with `quipu db init`"));
    }
    let before = database.migrate().map_err(|error| failed(&error))?;
    if before.current < before.newest {
        output.line(&Line::new().plain(format!("upgraded the tables from {} to {}", before.current, before.newest)))?;
    } else {
        output.line(&Line::new().plain(format!("the tables are current, version {}", before.current)))?;
    }
    Ok(Outcome::Fine)
}

fn status(database: &PostgresDatabase, json: bool, output: &mut Output) -> Result<Outcome, Failure> {
    let schema = database.schema().map_err(|error| failed(&error))?;
    let server = database.server().map_err(|error| failed(&error))?;
    let of_server = server.check().err().map(|error| error.to_string());
    let problem = of_server.or_else(|| schema.check().err().map(|error| error.to_string()));
    let graphs = match schema.current {
        0 => 0,
        _ => database.graphs().map_err(|error| failed(&error))?.len(),
    };
    if json {
        output.json(&json!({
            "server_version": server.version,
            "pgvector": server.pgvector,
            "user": server.user,
            "bound_to_one_graph": server.is_bound,
            "schema": schema.current,
            "supports": schema.needs,
            "program": schema.newest,
            "usable": problem.is_none(),
            "problem": problem,
            "graphs": graphs,
        }))?;
    } else {
        let pgvector = server.pgvector.as_ref().map_or_else(|| "no pgvector".to_owned(), |it| format!("pgvector {it}"));
        output.line(&Line::new().plain(format!("PostgreSQL {}, {pgvector}, user {}", server.version, server.user)))?;
        let (current, newest) = (schema.current, schema.newest);
        output.line(&Line::new().plain(format!("tables of version {current}; this program has {newest}")))?;
        output.line(&Line::new().plain(format!("graphs: {graphs}")))?;
        let bound = if server.is_bound {
            "each transaction of this user reaches one graph"
        } else {
            "this user reaches all graphs; servers should use a role of `quipu db roles`"
        };
        output.line(&Line::new().dim(bound))?;
        if let Some(problem) = &problem {
            output.warning(problem, None);
        }
    }
    Ok(if problem.is_none() { Outcome::Fine } else { Outcome::Negative })
}
