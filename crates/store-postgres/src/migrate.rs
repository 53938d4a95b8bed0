//! The schema and its versions. Migrations are numbered files, never edited once released.

use deadpool_postgres::Transaction;

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::row::{self, BadRow};

/// Each migration, and the oldest version of the schema whose programs still work beside it: servers are upgraded one by one.
///
/// Programs before the third would write notes without their history.
const MIGRATIONS: [(&str, i32); 7] = [
    (include_str!("migrations/001_memory.sql"), 1),
    (include_str!("migrations/002_notes.sql"), 2),
    (include_str!("migrations/003_note_history.sql"), 3),
    (include_str!("migrations/004_access.sql"), 3),
    (include_str!("migrations/005_vectors.sql"), 3),
    (include_str!("migrations/006_shown_notes.sql"), 3),
    (include_str!("migrations/007_rate.sql"), 3),
];

/// The tables that need pgvector, which may be installed after the migrations.
const VECTORS: &str = include_str!("vectors.sql");

/// What the role of servers may do, if there is such a role: write tables whose rows belong to a graph, read the others.
const GRANTS: &str = include_str!("grants.sql");

/// The version that this program works with.
const NEWEST: i32 = MIGRATIONS.len() as i32;

/// Held while the schema is changed. The number only has to differ from those of other programs.
const LOCK: i64 = 0x7175_6970_7500;

/// The version of a database's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The last migration; 0 for a database without the schema.
    pub current: i32,
    /// The oldest version whose programs may use it.
    pub needs: i32,
    /// The last migration that this program has.
    pub newest: i32,
}

impl SchemaVersion {
    /// Whether this program may use the database, or why not. A server accepts schemas from its own version up to the last that still
    /// supports programs of its version.
    pub fn check(self) -> Result<(), SchemaError> {
        let Self { current, needs, newest } = self;
        if current == 0 {
            Err(SchemaError::Missing)
        } else if current < newest {
            Err(SchemaError::Old { current, newest })
        } else if needs > newest {
            Err(SchemaError::New { current, needs, newest })
        } else {
            Ok(())
        }
    }
}

/// Why a program may not use a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It has no tables.
    #[error("the database has no tables of Quipu; create them with `quipu db init`")]
    Missing,
    /// Migrations are missing.
    #[error("the database's schema has version {current}, this program needs {newest}; run `quipu db migrate`")]
    Old {
        /// Its version.
        current: i32,
        /// The program's.
        newest: i32,
    },
    /// A newer program changed it.
    #[error(
        "the database's schema has version {current}, which supports programs from version {needs} on, and this program has {newest}; \
         upgrade the program"
    )]
    New {
        /// Its version.
        current: i32,
        /// The oldest that it supports.
        needs: i32,
        /// The program's.
        newest: i32,
    },
}

/// SQL that creates the roles of administrators and of servers, with no more rights than they need.
pub fn roles_sql() -> String {
    format!("{}{GRANTS}", include_str!("roles.sql"))
}

impl PostgresDatabase {
    /// The version of the schema.
    pub fn schema(&self) -> Result<SchemaVersion, DatabaseError> {
        self.read(Scope::Shared, async |client| {
            let exists = "SELECT to_regclass('quipu.migration') IS NOT NULL";
            let exists: Option<bool> = row::first(client, exists, &[], |row| row::get(row, 0)).await?;
            if exists != Some(true) {
                return Ok(SchemaVersion { current: 0, needs: 0, newest: NEWEST });
            }
            let (current, needs) = version(client).await?;
            Ok(SchemaVersion { current, needs, newest: NEWEST })
        })
    }

    /// Applies the migrations that the database lacks, all or none; returns the version before. Servers that start at the same
    /// time wait for each other.
    pub fn migrate(&self) -> Result<SchemaVersion, DatabaseError> {
        self.migrate_from(i32::MAX)
    }

    /// Like [`PostgresDatabase::migrate`], but leaves a database alone whose version is above this one.
    pub fn migrate_from(&self, newest: i32) -> Result<SchemaVersion, DatabaseError> {
        let outcome = self.write(Scope::Shared, async |tx| {
            row::query(tx, "SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
            prepare(tx).await?;
            let (current, needs) = version(tx).await?;
            if current > newest {
                return Ok(Ok(SchemaVersion { current, needs, newest: NEWEST }));
            }
            let applied = usize::try_from(current).map_err(|_| BadRow(format!("schema version {current}")))?;
            for (number, (sql, oldest)) in (1..).zip(MIGRATIONS).skip(applied) {
                tx.batch_execute(sql).await?;
                let note = "INSERT INTO migration (number, needs) VALUES ($1, $2)";
                row::execute(tx, note, &[&number, &oldest]).await?;
            }
            tx.batch_execute(VECTORS).await?;
            tx.batch_execute(GRANTS).await?;
            Ok(Ok::<_, std::convert::Infallible>(SchemaVersion { current, needs, newest: NEWEST }))
        })?;
        Ok(outcome.unwrap_or_else(|never| match never {}))
    }
}

async fn prepare(tx: &Transaction<'_>) -> Result<(), DatabaseError> {
    // Asked first: with `IF NOT EXISTS` the schema's owner would need a right on the database as well.
    let exists = "SELECT to_regnamespace('quipu') IS NOT NULL";
    if row::first(tx, exists, &[], |row| row::get(row, 0)).await? != Some(true) {
        tx.batch_execute("CREATE SCHEMA quipu").await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS quipu.migration ( \
            number INTEGER PRIMARY KEY, needs INTEGER NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now() \
        )";
    Ok(tx.batch_execute(table).await?)
}

async fn version(db: &impl deadpool_postgres::GenericClient) -> Result<(i32, i32), DatabaseError> {
    let sql = "SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM quipu.migration";
    let found = row::first(db, sql, &[], |row| Ok((row::get(row, 0)?, row::get(row, 1)?))).await?;
    Ok(found.unwrap_or_default())
}
