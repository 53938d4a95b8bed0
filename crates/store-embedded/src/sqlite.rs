//! Connections to databases in a vault. The file may have come with a cloned vault: only the rows of our own tables are used,
//! and every statement has a time limit.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// The time limit of an operation: far more than reading or importing the largest memory takes.
const LONGEST_OPERATION: Duration = Duration::from_secs(600);

/// Steps of SQLite's virtual machine between two checks of the clock: some milliseconds.
const STEPS_BETWEEN_CHECKS: i32 = 200_000;

thread_local! {
    /// When this thread's operation times out.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Starts the time limit for the statements that follow on this thread.
pub(crate) fn start_operation() {
    start_operation_of(LONGEST_OPERATION);
}

fn start_operation_of(longest: Duration) {
    DEADLINE.set(Instant::now().checked_add(longest));
}

/// Opens a database file. Neither it nor a folder above it may be a link.
pub(crate) fn connect(file: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut db = Connection::open_with_flags(file, flags | more)?;
    protect(&mut db)?;
    Ok(db)
}

/// Turns off everything that a schema can trigger by itself, and limits the time of statements.
pub(crate) fn protect(db: &mut Connection) -> rusqlite::Result<()> {
    start_operation();
    for (setting, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        db.set_db_config(setting, is_on)?;
    }
    db.progress_handler(
        STEPS_BETWEEN_CHECKS,
        Some(|| DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline)),
    )?;
    // A setting of the connection; does not read the file.
    db.pragma_update(None, "cell_size_check", true)
}

/// Sets a database to write-ahead logging and returns its journal mode. No rollback journal is ever written: one beside a
/// database is another program's.
pub(crate) fn use_wal(db: &Connection) -> rusqlite::Result<String> {
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        // Changing the mode writes one page, which would need a journal.
        db.pragma_update(None, "journal_mode", "MEMORY")?;
    }
    db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
}

/// Turns off the checkpoint when a connection is closed.
pub(crate) fn leave_log(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// The messages of SQLite's integrity check; none for a sound database.
pub(crate) fn integrity_check(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = db.prepare("PRAGMA integrity_check(20)")?;
    let lines = check.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// The first table, index, trigger or view that differs from those that `create` makes in an empty database, as the end of a
/// sentence.
pub(crate) fn unknown_object(
    db: &Connection,
    create: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
) -> rusqlite::Result<Option<String>> {
    let mut fresh = Connection::open_in_memory()?;
    create(&mut fresh)?;
    let (known, found) = (objects(&fresh)?, objects(db)?);
    let odd = found.difference(&known).next().map(|object| format!("has {} that Quipu does not create", object.name()));
    Ok(odd.or_else(|| known.difference(&found).next().map(|object| format!("has no {}", object.name()))))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    kind: String,
    name: String,
    table: String,
    sql: Option<String>,
}

impl Object {
    fn name(&self) -> String {
        let name: String = self.name.chars().take(60).collect();
        format!("{} {name:?}", self.kind.chars().take(20).collect::<String>())
    }
}

fn objects(db: &Connection) -> rusqlite::Result<BTreeSet<Object>> {
    let mut find = db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let found = find.query_map([], |row| {
        Ok(Object { kind: row.get(0)?, name: row.get(1)?, table: row.get(2)?, sql: row.get(3)? })
    })?;
    found.collect()
}

#[cfg(test)]
mod tests {
    use rusqlite::ErrorCode;

    use super::*;

    fn open() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE t (x); CREATE VIEW v AS SELECT x FROM t;
             CREATE TRIGGER loops AFTER INSERT ON t BEGIN DELETE FROM t; END;",
        )
        .unwrap();
        protect(&mut db).unwrap();
        db
    }

    #[test]
    fn triggers_do_not_fire_and_views_are_not_read() {
        let db = open();
        db.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let rows: i64 = db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
        assert!(db.prepare("SELECT x FROM v").is_err());
    }

    #[test]
    fn statement_over_its_time_limit_is_interrupted() {
        let db = open();
        start_operation_of(Duration::from_millis(50));
        let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let error = db.query_row(endless, [], |_| Ok(())).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::OperationInterrupted));
        start_operation();
        db.query_row("SELECT count(*) FROM t", [], |_| Ok(())).unwrap();
    }

    #[test]
    fn unknown_changed_and_missing_objects_are_named() {
        let make = |db: &mut Connection| db.execute_batch("CREATE TABLE t (x); CREATE INDEX i ON t (x)");
        for (sql, expected) in [
            ("", None),
            ("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END", Some("has trigger \"g\"")),
            ("CREATE VIEW w AS SELECT 1", Some("has view \"w\"")),
            ("CREATE TABLE more (x)", Some("has table \"more\"")),
            ("DROP INDEX i; CREATE INDEX i ON t (abs(x))", Some("has index \"i\"")),
            ("DROP INDEX i", Some("has no index \"i\"")),
        ] {
            let mut db = Connection::open_in_memory().unwrap();
            make(&mut db).unwrap();
            db.execute_batch(sql).unwrap();
            let found = unknown_object(&db, make).unwrap();
            assert_eq!(found.is_some(), expected.is_some(), "{sql}: {found:?}");
            assert!(found.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{sql}");
        }
    }
}
