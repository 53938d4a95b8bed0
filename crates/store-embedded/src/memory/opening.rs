//! Opens memory's file after checks: it is ours, sound, of a known schema, and on a file system with locks. A file that fails a
//! check is not changed.
//!
//! Only SQLite opens it. Closing any other handle would release all locks of this process on it; another process could then
//! take it for closed and delete its log.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::OFlags;

use super::backup::{self, BackupError};
use super::{failure, file_guard, migrate};
use crate::sqlite;
use quipu_own_folder::OwnFolder;

/// The id of our files: "Qipu".
pub(super) const APPLICATION_ID: i64 = 0x5169_7075;

/// How long a write waits for the writes of other calls and processes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// How long a checkpoint waits for readers: an export may take hours, and a server must exit at once.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_millis(100);

/// Why memory could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryOpenError {
    /// A later version of Quipu created it.
    #[error("cannot open {}: its schema is {found}, and this version of Quipu knows {known}; use a newer version", file.display())]
    Newer {
        /// Memory's file.
        file: PathBuf,
        found: i64,
        /// This version's schema.
        known: i64,
    },
    /// It is another file.
    #[error("{} is not Quipu's memory: {reason}; move it away, or put a backup in its place", file.display())]
    Foreign {
        /// Where memory's file should be.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// Its tables, indexes, views or triggers differ from those of Quipu.
    #[error("cannot open {}: it {odd}; move it away, or put a backup in its place", file.display())]
    Altered {
        /// Memory's file.
        file: PathBuf,
        /// The difference, to follow "it".
        odd: String,
    },
    /// It is empty, but had a memory in it.
    #[error(
        "cannot open {}: it is empty, and a memory was kept in it; put a backup in its place, see `quipu backup --help`, or \
         delete it to start a new memory",
        file.display()
    )]
    Emptied {
        /// Memory's file.
        file: PathBuf,
    },
    /// The log beside it belongs to another file.
    #[error(
        "cannot open {}: the log beside it ({}) belongs to another file; move the -wal and -shm files to another folder to use \
         this file as it is, or put back the file that the log belongs to",
        file.display(), beside(file, "-wal").display()
    )]
    OtherLog {
        /// Memory's file.
        file: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot open {}: it is damaged ({source}); put a backup in its place, see `quipu backup --help`", file.display())]
    Damaged {
        /// Memory's file.
        file: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// Two processes could overwrite each other there.
    #[error("cannot open {}: its file system does not have the locks that memory needs ({reason}); move the vault to a local disk", file.display())]
    NoLocks {
        /// Memory's file.
        file: PathBuf,
        /// The lock that failed.
        reason: String,
    },
    /// The copy that is taken before a new schema could not be made.
    #[error("cannot migrate {} to this version's schema: the backup before it failed: {source}", file.display())]
    Backup {
        /// Memory's file.
        file: PathBuf,
        source: BackupError,
    },
    /// The file system refused: read-only, full, or no permission.
    #[error("cannot open {}: {source}", file.display())]
    Failed {
        /// Memory's file.
        file: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl MemoryOpenError {
    /// The text for clients, without paths: the cause, and what a person can do.
    pub fn for_client(&self) -> String {
        let why = match self {
            Self::Newer { found, known, .. } => {
                format!("its schema is {found}, and this version of Quipu knows {known}; use a newer version")
            }
            Self::Foreign { .. } => "its file is not a memory; a person must put a backup in its place".to_owned(),
            Self::Altered { odd, .. } => {
                format!("its file {odd}; a person must move it away, or put a backup in its place")
            }
            Self::Emptied { .. } => {
                "its file is empty, and a memory was kept in it; a backup must be put in its place, or the file \
                 deleted to start a new memory"
                    .to_owned()
            }
            Self::OtherLog { .. } => {
                "the log beside its file belongs to another file; a person must move one of them away".to_owned()
            }
            Self::Damaged { .. } => "its file is damaged; a person must put a backup in its place".to_owned(),
            Self::NoLocks { .. } => {
                "its file system does not have the locks that it needs; a person must move the vault to a local disk"
                    .to_owned()
            }
            Self::Backup { .. } => {
                "it cannot be migrated to this version's schema, since the backup before it failed; a person must free disk space".to_owned()
            }
            Self::Failed { source, .. } => match failure::reason(&**source) {
                Some(reason) => format!("it cannot be opened for writing: {reason}"),
                None => "it cannot be opened for writing".to_owned(),
            },
        };
        format!("memory cannot be used: {why}; the server's log has the details")
    }
}

/// The file that says that a redaction is not finished: the memory is being rewritten.
pub(super) const REDACTING: &str = "memory.redacting";

/// An open file and its folder.
pub(super) struct Opened {
    pub(super) db: Connection,
    pub(super) folder: OwnFolder,
    /// A notice for the user, as a sentence.
    pub(super) notice: Option<String>,
}

/// Opens or creates the file for writing and migrates it to the newest schema.
pub(super) fn open(file: &Path) -> Result<Opened, MemoryOpenError> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = OwnFolder::open(folder)
        .map_err(|source| MemoryOpenError::Failed { file: file.to_owned(), source: source.into() })?;
    refuse_special_files(&folder, file)?;
    let is_new = is_new(file)?;
    let notice = if is_new { refuse_lost_memory(&folder, file)? } else { None };
    let fail = |error| failed(file, error);
    let has_log = beside(file, "-wal").exists();
    let opened = |source: std::io::Error| MemoryOpenError::Failed { file: file.to_owned(), source: source.into() };
    folder.create_file(&name_of(file)).map_err(opened)?;
    let mut db = connect(file).map_err(fail)?;
    // SQLite opens files by path only.
    folder.check_place().map_err(opened)?;
    // If the file is refused, an existing log must not be checkpointed into it. A log that did not exist belongs to this
    // connection.
    let is_rewriting = folder.check(REDACTING).map_err(opened)?;
    if has_log {
        sqlite::leave_log(&db).map_err(fail)?;
        let kept = kept_id(&folder, file);
        let is_own = if is_rewriting {
            // The log may be moved into the file in part: only the two together are a memory.
            kept.is_none() || kept == file_guard::id_of(&db).ok()
        } else {
            // With the log of another file, any content could be read.
            let id = file_guard::id_in(file).map_err(fail)?;
            let is_kept = kept.is_none() || id.is_none() || kept == id;
            is_kept && (is_new || file_guard::is_of_its_log(file, &db).map_err(fail)?)
        };
        if !is_own {
            return Err(MemoryOpenError::OtherLog { file: file.to_owned() });
        }
    }
    let found = if is_new { 0 } else { schema_of(&db, file)? };
    let odd = sqlite::unknown_object(&db, |fresh| migrate::run_until(fresh, found)).map_err(fail)?;
    let odd = match odd {
        None if found > 0 => number_out_of_range(&db, found).map_err(fail)?,
        odd => odd,
    };
    if let Some(odd) = odd {
        return Err(MemoryOpenError::Altered { file: file.to_owned(), odd });
    }
    // All checks passed: from here on the file is written.
    move_log(&db).map_err(fail)?;
    let journal = sqlite::use_wal(&db).map_err(fail)?;
    if !journal.eq_ignore_ascii_case("wal") {
        let reason = format!("journal mode {journal} in place of WAL");
        return Err(MemoryOpenError::NoLocks { file: file.to_owned(), reason });
    }
    settle(&db).map_err(fail)?;
    if is_rewriting {
        checkpoint(&db).map_err(fail)?;
    }
    if found < migrate::NEWEST {
        if found > 0 {
            backup::before_migration(&db, file, found)
                .map_err(|source| MemoryOpenError::Backup { file: file.to_owned(), source })?;
        }
        migrate::run(&mut db).map_err(fail)?;
        // So that the file is a complete memory without its log.
        checkpoint(&db).map_err(fail)?;
    }
    Ok(Opened { db, folder, notice })
}

/// An id is shorter.
const MARKER_BYTES: u64 = 32;

/// The file that says that a memory was kept beside it, and which.
fn marker_of(file: &Path) -> String {
    name_beside(file, "started")
}

/// The name of a file beside the memory, which has another extension.
pub(super) fn name_beside(file: &Path, extension: &str) -> String {
    format!("{}.{extension}", file.file_stem().unwrap_or_default().to_string_lossy())
}

/// The id of the memory that was last kept in the folder, as the marker has it.
fn kept_id(folder: &OwnFolder, file: &Path) -> Option<i64> {
    let mut text = String::new();
    folder.file(&marker_of(file), OFlags::RDONLY).ok()?.take(MARKER_BYTES).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Has the folder say which memory is kept in it.
pub(super) fn keep_id(folder: &OwnFolder, file: &Path, id: i64) -> std::io::Result<()> {
    if kept_id(folder, file) == Some(id) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    folder.file(&marker_of(file), flags)?.write_all(id.to_string().as_bytes())
}

/// Whether the folder says that a memory was kept in it.
pub(super) fn is_marked(folder: &OwnFolder, file: &Path) -> bool {
    folder.check(&marker_of(file)).unwrap_or(false)
}

/// A new file must not replace a lost memory. A deleted file was deleted on purpose; an empty one is damaged. Returns a notice
/// for a memory that starts empty.
fn refuse_lost_memory(folder: &OwnFolder, file: &Path) -> Result<Option<String>, MemoryOpenError> {
    refuse_orphaned_log(file)?;
    let name = name_of(file);
    let is_there = |name: &str| folder.check(name).unwrap_or(false);
    let what = match (is_there(&name), is_there(&marker_of(file))) {
        (true, true) => return Err(MemoryOpenError::Emptied { file: file.to_owned() }),
        (true, false) => "was empty",
        (false, true) => "was removed",
        (false, false) => return Ok(None),
    };
    Ok(Some(format!(
        "{name} {what}, so memory starts empty; to restore an earlier one, stop every server, put a backup in its place \
         (.quipu/backups has those of Quipu), and restart"
    )))
}

/// Checkpoints the log, as far as other processes permit.
pub(super) fn checkpoint(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(CHECKPOINT_TIMEOUT)?;
    let moved = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    db.busy_timeout(BUSY_TIMEOUT)?;
    moved
}

/// The longest value or row that is read or written: far more than the longest text of a memory, as JSON.
const MAX_ROW_BYTES: i32 = 16 * 1024 * 1024;

/// A row may come from a file of another person, so its length is limited.
fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let db = sqlite::connect(file, OpenFlags::empty())?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)?;
    Ok(db)
}

/// A read-only connection to an open file.
pub(super) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let db = beside_writer(file)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// Another connection to an open file. It never checkpoints: only the writer knows whether the file and its log still belong
/// together.
pub(super) fn beside_writer(file: &Path) -> rusqlite::Result<Connection> {
    let db = connect(file)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    sqlite::leave_log(&db)?;
    Ok(db)
}

/// Turns on the checkpoint when the last connection is closed.
fn move_log(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

/// Configures a connection for writing.
pub(super) fn settle(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn schema_of(db: &Connection, file: &Path) -> Result<i64, MemoryOpenError> {
    let number = |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let numbers = number("application_id").and_then(|id| Ok((id, number("user_version")?)));
    let (id, schema) = numbers.map_err(|error| failed(file, error))?;
    if id != APPLICATION_ID && is_empty(db).map_err(|error| failed(file, error))? {
        // Its process was killed before it created a table.
        return Ok(0);
    }
    if id != APPLICATION_ID {
        let reason = "it is the database of another program".to_owned();
        return Err(MemoryOpenError::Foreign { file: file.to_owned(), reason });
    }
    if schema > migrate::NEWEST {
        return Err(MemoryOpenError::Newer { file: file.to_owned(), found: schema, known: migrate::NEWEST });
    }
    Ok(schema)
}

/// More items than a memory can ever have. At the largest number of all, SQLite gives out no further one and reports a full disk.
const MAX_NUMBER: i64 = 1 << 53;

/// The first schema with numbers of writes.
const WITH_WRITES: i64 = 6;

fn number_out_of_range(db: &Connection, schema: i64) -> rusqlite::Result<Option<String>> {
    let mut sql = "SELECT max(seq), 'row' FROM sqlite_sequence UNION ALL SELECT max(id), 'entity' FROM entity
        UNION ALL SELECT max(id), 'observation' FROM observation UNION ALL SELECT max(id), 'relation' FROM relation
        UNION ALL SELECT max(number), 'change' FROM change"
        .to_owned();
    if schema >= WITH_WRITES {
        sql +=
            " UNION ALL SELECT number, 'write' FROM last_write UNION ALL SELECT max(number), 'write' FROM write_mark";
    }
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query_map([], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, String>(1)?)))?;
    rows.find_map(|row| match row {
        Ok((Some(number), what)) if number > MAX_NUMBER => {
            Some(Ok(format!("has {what} {number}, a number out of range")))
        }
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
    .transpose()
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
}

/// Whether it is missing or empty. Other files must have the header of a database.
fn is_new(file: &Path) -> Result<bool, MemoryOpenError> {
    match std::fs::symlink_metadata(file) {
        Ok(metadata) if metadata.len() == 0 => return Ok(true),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(MemoryOpenError::Failed { file: file.to_owned(), source: error.into() }),
    }
    match read_header(file) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(MemoryOpenError::Foreign { file: file.to_owned(), reason: "it is not a SQLite database".to_owned() })
        }
        // Its header is valid. Missing pages may be in the log.
        Ok(()) => Ok(false),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(false),
        Err(error) => Err(failed(file, error)),
    }
}

/// Reads the header of the file itself. A normal connection reads the log first, with which any file would look like the
/// database of the log.
fn read_header(file: &Path) -> rusqlite::Result<()> {
    without_log(file)?.query_row("PRAGMA application_id", [], |_| Ok(()))
}

/// A connection that reads a file without its log and without locks.
pub(super) fn without_log(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut db = Connection::open_with_flags(address_without_log(file), flags | OpenFlags::SQLITE_OPEN_URI)?;
    sqlite::protect(&mut db)?;
    // So that a file can be read whose last pages are only in the log.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    Ok(db)
}

/// The URI with which SQLite reads a file without its log and without locks.
fn address_without_log(file: &Path) -> String {
    // With an empty host, or a path that starts with two slashes would be read as a host.
    let mut address = if file.is_absolute() { "file://".to_owned() } else { "file:".to_owned() };
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => write!(address, "%{byte:02x}").expect("writing to a string cannot fail"),
        }
    }
    address + "?immutable=1"
}

/// A vault from elsewhere may have a link in place of memory: following it would write outside the vault. A pipe would block
/// forever. A rollback journal would be rolled back before anything is read; Quipu writes none.
fn refuse_special_files(folder: &OwnFolder, file: &Path) -> Result<(), MemoryOpenError> {
    let name = name_of(file);
    let refused = |reason| Err(MemoryOpenError::Foreign { file: file.to_owned(), reason });
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match folder.check(&format!("{name}{suffix}")) {
            Ok(true) if suffix == "-journal" => {
                return refused(format!("{name}{suffix} beside it is the rollback journal of another program"));
            }
            Ok(_) => {}
            Err(error) => return refused(error.to_string()),
        }
    }
    Ok(())
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The length of a log without changes.
const LOG_HEADER: u64 = 32;

/// A log without its file has acknowledged changes; a new file would delete them.
fn refuse_orphaned_log(file: &Path) -> Result<(), MemoryOpenError> {
    let log = beside(file, "-wal");
    if std::fs::symlink_metadata(&log).is_ok_and(|metadata| metadata.len() > LOG_HEADER) {
        let reason = format!("it is missing or empty, and {} has changes of it", log.display());
        return Err(MemoryOpenError::Foreign { file: file.to_owned(), reason });
    }
    Ok(())
}

pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

pub(super) fn failed(file: &Path, error: rusqlite::Error) -> MemoryOpenError {
    let file = file.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => MemoryOpenError::Damaged { file, source: error },
        Some(ErrorCode::FileLockingProtocolFailed | ErrorCode::NoLargeFileSupport) => {
            MemoryOpenError::NoLocks { file, reason: error.to_string() }
        }
        // An I/O error while locking or mapping the `-shm` file.
        Some(ErrorCode::SystemIoFailure) if is_lock_error(&error) => {
            MemoryOpenError::NoLocks { file, reason: error.to_string() }
        }
        _ => MemoryOpenError::Failed { file, source: error.into() },
    }
}

fn is_lock_error(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    let codes = [
        ffi::SQLITE_IOERR_LOCK,
        ffi::SQLITE_IOERR_RDLOCK,
        ffi::SQLITE_IOERR_UNLOCK,
        ffi::SQLITE_IOERR_SHMOPEN,
        ffi::SQLITE_IOERR_SHMLOCK,
        ffi::SQLITE_IOERR_SHMMAP,
    ];
    error.sqlite_error().is_some_and(|error| codes.contains(&error.extended_code))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn missing_locks_are_distinguished_from_other_errors() {
        let told = |code| {
            failed(Path::new("memory.db"), rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).for_client()
        };
        for code in [
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_NOLFS,
            ffi::SQLITE_IOERR_LOCK,
            ffi::SQLITE_IOERR_RDLOCK,
            ffi::SQLITE_IOERR_UNLOCK,
            ffi::SQLITE_IOERR_SHMOPEN,
            ffi::SQLITE_IOERR_SHMLOCK,
            ffi::SQLITE_IOERR_SHMMAP,
        ] {
            assert!(told(code).contains("the locks that it needs"), "{code}: {}", told(code));
        }
        for code in [ffi::SQLITE_IOERR_READ, ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_CORRUPT] {
            assert!(!told(code).contains("locks that it needs"), "{code}: {}", told(code));
        }
    }
}
