//! The schema migrations. A released migration is never edited; a change is a new one.

use rusqlite::{Connection, TransactionBehavior};

use super::opening::APPLICATION_ID;

const STEPS: [&str; 6] = [
    include_str!("migrations/001_entities.sql"),
    include_str!("migrations/002_vectors.sql"),
    include_str!("migrations/003_requests.sql"),
    include_str!("migrations/004_ties.sql"),
    include_str!("migrations/005_contexts.sql"),
    include_str!("migrations/006_write_marks.sql"),
];

/// The schema version of this program.
pub(super) const NEWEST: i64 = STEPS.len() as i64;

/// Migrates a database to the newest schema in one transaction.
pub(super) fn run(db: &mut Connection) -> rusqlite::Result<()> {
    run_until(db, NEWEST)
}

/// Like [`run`], but only up to the schema `newest`.
pub(super) fn run_until(db: &mut Connection, newest: i64) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it meanwhile.
    let found: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for step in found..newest {
        let step = usize::try_from(step).expect("a schema version is small and not negative");
        tx.execute_batch(STEPS[step])?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", newest.max(found))?;
    tx.commit()
}

/// Creates a file as an earlier version would have left it.
#[cfg(test)]
pub(super) fn file_of_schema(file: &std::path::Path, schema: i64) -> Connection {
    let mut db = Connection::open(file).unwrap();
    db.pragma_update(None, "journal_mode", "WAL").unwrap();
    run_until(&mut db, schema).unwrap();
    db
}
