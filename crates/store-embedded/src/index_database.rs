//! What the SQLite databases of the index have in common, the catalog and the vectors: both are derived, so a damaged one or one
//! of another format is recreated.

use std::time::Duration;

use quipu_own_folder::OwnFolder;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::row::RowError;
use crate::sqlite;

/// The files of a database: itself and those that SQLite creates beside it.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Why a database of the index failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexFileError {
    #[error("its format is {found}, and this version of Quipu needs format {needed}")]
    Format { found: i64, needed: i64 },
    #[error("it {0}")]
    Foreign(String),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("cannot read the passages of note {0}; run `quipu index --rebuild`")]
    Passages(u32),
    #[error("the number {0} is out of range")]
    Number(i64),
    #[error("vector {0} is corrupt")]
    Vector(i64),
    #[error("vectors of {one} and of {other} dimensions cannot share a space")]
    Dimensions { one: usize, other: usize },
    #[error("a vector has no dimensions")]
    Empty,
    #[error("a vector has a number that is not finite")]
    NotFinite,
    /// The catalog failed while vectors were loaded, which a new database of vectors does not help.
    #[error(transparent)]
    Catalog(Box<Self>),
}

impl IndexFileError {
    /// Whether a new database helps. It does not help against a full disk or a missing permission.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Format { .. }
            | Self::Foreign(_)
            | Self::Row(_)
            | Self::Passages(_)
            | Self::Number(_)
            | Self::Vector(_) => true,
            Self::Sql(error) => is_damage(error),
            Self::File(_) | Self::Dimensions { .. } | Self::Empty | Self::NotFinite | Self::Catalog(_) => false,
        }
    }
}

/// Rewrites a database without its free space, and empties its write-ahead log.
pub(crate) fn rewrite(db: &Connection) -> Result<(), IndexFileError> {
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.execute_batch("VACUUM")?;
    Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
}

/// Whether an error of SQLite comes from the content of the file.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => matches!(
            error.code,
            // `Unknown` is SQLite's "logic error", such as a table that is not there.
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown | ErrorCode::TypeMismatch
        ),
        rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::QueryReturnedNoRows => true,
        _ => false,
    }
}

/// Opens or creates a database. Links and rollback journals, which may have come with a cloned vault, are refused.
/// `has_one_connection` saves the shared memory file that several connections need.
pub(crate) fn open(folder: &OwnFolder, name: &str, has_one_connection: bool) -> Result<Connection, IndexFileError> {
    for suffix in SUFFIXES {
        // SQLite would roll such a journal back, which may name any file.
        if folder.check(&format!("{name}{suffix}"))? && suffix == "-journal" {
            return Err(IndexFileError::Foreign(
                "has a rollback journal beside it, which Quipu never writes".to_owned(),
            ));
        }
    }
    folder.create_file(name)?;
    let db = sqlite::connect(&folder.path().join(name), OpenFlags::empty())?;
    // SQLite opens files by path only.
    folder.check_place()?;
    if has_one_connection {
        db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    sqlite::use_wal(&db)?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.busy_timeout(Duration::from_secs(5))?;
    Ok(db)
}

/// Creates the tables of a new database; fails if an existing one has others.
pub(crate) fn prepare(db: &mut Connection, schema: &str, format: i64) -> Result<(), IndexFileError> {
    let version = |db: &Connection| db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    if version(db)? == 0 {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if tx.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))? {
            tx.execute_batch(schema)?;
            tx.pragma_update(None, "user_version", format)?;
        }
        tx.commit()?;
    }
    let found = version(db)?;
    if found != format {
        return Err(IndexFileError::Format { found, needed: format });
    }
    match sqlite::unknown_object(db, |fresh| fresh.execute_batch(schema))? {
        Some(odd) => Err(IndexFileError::Foreign(odd)),
        None => Ok(()),
    }
}

/// Deletes a database and the files beside it. It must not be open.
pub(crate) fn remove(folder: &OwnFolder, name: &str) -> std::io::Result<()> {
    SUFFIXES.iter().try_for_each(|suffix| folder.remove(&format!("{name}{suffix}")))
}
