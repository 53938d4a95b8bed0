//! The database server: its version, its user, and what this program requires of it.

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::row::{self, BadRow};

/// The oldest PostgreSQL, as `server_version_num`, and the oldest pgvector.
const OLDEST_POSTGRES: i32 = 150_000;
const OLDEST_PGVECTOR: (u32, u32) = (0, 8);

/// The server of a database, as one of its users sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseServer {
    /// The version of PostgreSQL.
    pub version: String,
    /// The version of PostgreSQL as a number: 170002 is 17.2.
    pub version_number: i32,
    /// The version of pgvector, if the database has the extension.
    pub pgvector: Option<String>,
    /// The user of this connection.
    pub user: String,
    /// Whether each transaction of this user reaches rows of one graph only.
    pub is_bound: bool,
}

/// Why this program cannot use a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedServer {
    /// PostgreSQL is too old.
    #[error("PostgreSQL {0} is not supported; upgrade it to 15 or newer")]
    Postgres(String),
    /// pgvector is too old.
    #[error(
        "pgvector {0} is not supported; install 0.8 or newer and run `ALTER EXTENSION vector UPDATE`, or drop the extension"
    )]
    Pgvector(String),
}

impl DatabaseServer {
    /// Whether this program supports the server.
    pub fn check(&self) -> Result<(), UnsupportedServer> {
        if self.version_number < OLDEST_POSTGRES {
            return Err(UnsupportedServer::Postgres(self.version.clone()));
        }
        match &self.pgvector {
            Some(version) if is_older(version) => Err(UnsupportedServer::Pgvector(version.clone())),
            _ => Ok(()),
        }
    }
}

/// Whether a version of pgvector is too old. One that cannot be read is not.
fn is_older(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < OLDEST_PGVECTOR)
}

impl PostgresDatabase {
    /// The server and the user.
    pub fn server(&self) -> Result<DatabaseServer, DatabaseError> {
        let sql = "SELECT current_setting('server_version'), current_setting('server_version_num')::int, \
                   (SELECT extversion FROM pg_extension WHERE extname = 'vector'), current_user::text, \
                   coalesce(row_security_active(to_regclass('quipu.note')), false)";
        let read = |row: &_| {
            Ok(DatabaseServer {
                version: row::get(row, 0)?,
                version_number: row::get(row, 1)?,
                pgvector: row::get(row, 2)?,
                user: row::get(row, 3)?,
                is_bound: row::get(row, 4)?,
            })
        };
        let found = self.read(Scope::Shared, async |client| row::first(client, sql, &[], read).await)?;
        found.ok_or_else(|| BadRow("the server said nothing".to_owned()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str, version_number: i32, pgvector: Option<&str>) -> DatabaseServer {
        let pgvector = pgvector.map(str::to_owned);
        DatabaseServer { version: version.into(), version_number, pgvector, user: "ada".into(), is_bound: true }
    }

    #[test]
    fn old_versions_are_refused_with_the_next_step() {
        for (version, number, pgvector) in
            [("15.0", 150_000, None), ("18.4", 180_004, Some("0.8.0")), ("17.2", 170_002, Some("1.0"))]
        {
            assert_eq!(server(version, number, pgvector).check(), Ok(()));
        }
        let old = server("14.11 (Debian)", 140_011, None).check().unwrap_err();
        assert_eq!(old.to_string(), "PostgreSQL 14.11 (Debian) is not supported; upgrade it to 15 or newer");
        let old = server("16.1", 160_001, Some("0.7.4")).check().unwrap_err();
        assert!(old.to_string().starts_with("pgvector 0.7.4 is not supported; install 0.8 or newer"), "{old}");
    }
}
