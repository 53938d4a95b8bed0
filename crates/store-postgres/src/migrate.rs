//! The schema and its versions. Migrations are numbered files, never edited once released.

use tokio_postgres::Transaction;

use crate::connection::PostgresDatabase;
use crate::failure::DatabaseError;
use crate::row::{self, BadRow};

/// Each migration, and the oldest version of the schema whose programs still work beside it: servers are upgraded one by one.
const MIGRATIONS: [(&str, i32); 2] =
    [(include_str!("migrations/001_memory.sql"), 1), (include_str!("migrations/002_notes.sql"), 2)];

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
    /// Whether this program may use the database: it has what the program needs, and nothing that the program would break.
    pub fn is_usable(self) -> bool {
        self.current >= self.newest && self.needs <= self.newest
    }
}

impl PostgresDatabase {
    /// The version of the schema.
    pub fn schema(&self) -> Result<SchemaVersion, DatabaseError> {
        self.read(async |client| {
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
        let outcome = self.write(async |tx| {
            row::query(tx, "SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
            prepare(tx).await?;
            let (current, needs) = version(tx).await?;
            let applied = usize::try_from(current).map_err(|_| BadRow(format!("schema version {current}")))?;
            for (number, (sql, oldest)) in (1..).zip(MIGRATIONS).skip(applied) {
                tx.batch_execute(sql).await?;
                let note = "INSERT INTO migration (number, needs) VALUES ($1, $2)";
                row::execute(tx, note, &[&number, &oldest]).await?;
            }
            Ok(Ok::<_, std::convert::Infallible>(SchemaVersion { current, needs, newest: NEWEST }))
        })?;
        Ok(outcome.unwrap_or_else(|never| match never {}))
    }
}

async fn prepare(tx: &Transaction<'_>) -> Result<(), DatabaseError> {
    let table = "CREATE SCHEMA IF NOT EXISTS quipu; \
        CREATE TABLE IF NOT EXISTS quipu.migration ( \
            number INTEGER PRIMARY KEY, needs INTEGER NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now() \
        )";
    Ok(tx.batch_execute(table).await?)
}

async fn version(db: &impl deadpool_postgres::GenericClient) -> Result<(i32, i32), DatabaseError> {
    let sql = "SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM quipu.migration";
    let found = row::first(db, sql, &[], |row| Ok((row::get(row, 0)?, row::get(row, 1)?))).await?;
    Ok(found.unwrap_or_default())
}
