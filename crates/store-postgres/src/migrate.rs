//! The schema and its versions. Migrations are numbered files, never edited once released.

use std::thread;
use std::time::{Duration, Instant};

use deadpool_postgres::Transaction;
use tokio_postgres::error::SqlState;

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::row::{self, BadRow};

/// Each migration, and the oldest version of the schema whose programs still work beside it: servers are upgraded one by one. A
/// migration that is released is never edited.
///
/// Servers write while a migration runs. It may add columns, tables and triggers, which take a lock for a moment; it must not
/// rewrite a table or read a large one, which would keep the lock for as long.
const MIGRATIONS: [(&str, i32); 1] = [(
    concat!(
        include_str!("migrations/001_memory.sql"),
        include_str!("migrations/002_notes.sql"),
        include_str!("migrations/003_access.sql")
    ),
    1,
)];

/// How long a migration waits for a lock on a table. While it waits, every statement on the table waits behind it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '500ms'";

/// How long the statements of others have in between.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a migration is tried again: a backup may hold its locks for long.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

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
        self.run(&MIGRATIONS, newest)
    }

    fn run(&self, migrations: &[(&str, i32)], newest: i32) -> Result<SchemaVersion, DatabaseError> {
        let started = Instant::now();
        loop {
            let blocked = match self.run_once(migrations, newest)? {
                Ok(before) => return Ok(before),
                Err(blocked) => blocked,
            };
            let waited = started.elapsed();
            if waited > PATIENCE {
                return Err(DatabaseError::Unreachable {
                    since: None,
                    waited,
                    in_doubt: false,
                    source: blocked.into(),
                });
            }
            thread::sleep(PAUSE);
        }
    }

    fn run_once(
        &self,
        migrations: &[(&str, i32)],
        newest: i32,
    ) -> Result<Result<SchemaVersion, Blocked>, DatabaseError> {
        self.write(Scope::Shared, async |tx| {
            row::query(tx, "SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
            prepare(tx).await?;
            let (current, needs) = version(tx).await?;
            let before = SchemaVersion { current, needs, newest: NEWEST };
            if current > newest {
                return Ok(Ok(before));
            }
            let applied = usize::try_from(current).map_err(|_| BadRow(format!("schema version {current}")))?;
            match apply(tx, migrations, applied).await {
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(Err(Blocked)),
                applied => Ok(Ok(applied.map(|()| before)?)),
            }
        })
    }
}

/// Another transaction holds a lock on a table that is to be changed.
#[derive(Debug, thiserror::Error)]
#[error("a transaction keeps a table from being changed; `SELECT * FROM pg_stat_activity` shows it")]
struct Blocked;

/// Makes the migrations after those that were applied, and what every run makes again.
async fn apply(tx: &Transaction<'_>, migrations: &[(&str, i32)], applied: usize) -> Result<(), tokio_postgres::Error> {
    tx.batch_execute(LOCK_TIMEOUT).await?;
    for (number, (sql, oldest)) in (1_i32..).zip(migrations).skip(applied) {
        tx.batch_execute(sql).await?;
        tx.execute("INSERT INTO migration (number, needs) VALUES ($1, $2)", &[&number, oldest]).await?;
    }
    tx.batch_execute(VECTORS).await?;
    tx.batch_execute(GRANTS).await
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use quipu_core::model::VaultPath;
    use quipu_core::ports::{FileChange, MemoryStore, VaultFiles};
    use quipu_testkit::memory_conformance::{author, create, observe};
    use quipu_testkit::postgres;

    use super::*;
    use crate::{Graph, PostgresMemory, PostgresVault};

    /// What a later version may do to the tables.
    const LATER: &str = "ALTER TABLE note ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'; \
                         ALTER TABLE observation ADD COLUMN weight BIGINT; CREATE TABLE later (graph BIGINT PRIMARY KEY)";

    /// Writes notes and memory until it is over; returns how often, and the longest time of one write.
    fn write(database: &Arc<PostgresDatabase>, graph: &Graph, is_over: &AtomicBool) -> (usize, Duration) {
        let (vault, memory) =
            (PostgresVault::new(database.clone(), graph), PostgresMemory::new(database.clone(), graph));
        memory.apply(&[create("log")], &author(1)).expect("an empty memory");
        let (mut count, mut longest) = (0, Duration::ZERO);
        while !is_over.load(Ordering::Relaxed) {
            let started = Instant::now();
            let path = VaultPath::parse(&format!("note{count}.md")).expect("a path");
            vault.apply(&[FileChange::Create { path, bytes: b"text".to_vec() }]).expect("servers keep writing");
            memory.apply(&[observe(1, &format!("{count}"))], &author(1)).expect("servers keep writing");
            longest = longest.max(started.elapsed());
            count += 1;
        }
        (count, longest)
    }

    /// A backup reads a table for long. The migration waits for it, the writes of the servers do not.
    #[test]
    fn migration_that_waits_for_a_lock_does_not_hold_up_servers() {
        const BACKUP: Duration = Duration::from_secs(6);
        let Some(url) = postgres::database() else { return };
        let database = Arc::new(PostgresDatabase::connect(&url).expect("reachable"));
        database.migrate().expect("the schema can be made");
        let graph = database.create_graph("team").expect("free");
        let is_over = AtomicBool::new(false);
        let (count, longest) = thread::scope(|scope| {
            let writer = scope.spawn(|| write(&database, &graph, &is_over));
            let backup = format!("SELECT count(*) FROM quipu.note, pg_sleep({})", BACKUP.as_secs());
            let backup = scope.spawn(move || postgres::sql(&url, &backup));
            thread::sleep(Duration::from_millis(500));
            let started = Instant::now();
            let before = database.run(&[MIGRATIONS[0], (LATER, 1)], i32::MAX).expect("it waits for the backup");
            assert_eq!(before.current, 1);
            assert!(started.elapsed() > BACKUP / 2, "the backup held the lock");
            backup.join().expect("it reads");
            thread::sleep(Duration::from_millis(300));
            is_over.store(true, Ordering::Relaxed);
            writer.join().expect("no write failed")
        });
        assert!(longest < BACKUP / 2, "a write waited {longest:?} for the migration");
        assert_eq!(database.graph_usage().expect("readable")[0].notes, count as i64, "every write once");
        let schema = database.schema().expect("readable");
        assert_eq!((schema.current, schema.check()), (2, Ok(())), "programs of the version before still work");
    }
}
