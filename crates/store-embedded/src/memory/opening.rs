//! Opening the file: whether it is ours, whole, of a schema we know, on a disk that keeps locks. Where it is not, nothing in
//! it is touched.
//!
//! Only SQLite ever opens it. Whoever else does lets go, on closing it, of every lock that this process has on it; another
//! process may then take it for closed and remove the log beside it.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::OFlags;

use super::backup::{self, BackupError};
use super::{failure, file_guard, migrate};
use crate::sqlite;
use quipu_own_folder::OwnFolder;

/// Marks the file as ours: "Qipu".
pub(super) const APPLICATION_ID: i64 = 0x5169_7075;

/// How long a write waits for another process: an import of a few hundred thousand things is one write.
const PATIENCE: Duration = Duration::from_secs(80);

/// How long moving the log waits for those who read it: an export may be read for hours, and a server is to end at once.
const MOVING_PATIENCE: Duration = Duration::from_millis(100);

/// Why memory could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryOpenError {
    /// A later version of the program made it.
    #[error("{} has schema {found}, and this version of Quipu knows {known}; use a newer one", file.display())]
    Newer {
        /// Memory's file.
        file: PathBuf,
        /// What it has.
        found: i64,
        /// What this version writes.
        known: i64,
    },
    /// It is something else.
    #[error("{} is not Quipu's memory: {reason}; move it away, or put a backup in its place", file.display())]
    Foreign {
        /// Where memory's file should be.
        file: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// Somebody put something into it that would run when it is used, or took something out.
    #[error("{} is not as Quipu makes it: it {odd}; move it away, or put a backup in its place", file.display())]
    Altered {
        /// Memory's file.
        file: PathBuf,
        /// What it has or lacks, to follow "it".
        odd: String,
    },
    /// Something was kept in it, and nothing is left.
    #[error(
        "cannot open {}: it is empty, and a memory was kept in it; put a backup in its place, see `quipu backup --help`, or \
         delete it to start a new memory",
        file.display()
    )]
    Emptied {
        /// Memory's file.
        file: PathBuf,
    },
    /// The log beside it would be mixed into it.
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
    #[error("{} is damaged ({source}); put a backup in its place, see `quipu backup --help`", file.display())]
    Damaged {
        /// Memory's file.
        file: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// Two processes could write over each other there.
    #[error("{} lies on a file system without the locks that memory needs ({reason}); move the vault to a local disk", file.display())]
    NoLocks {
        /// Memory's file.
        file: PathBuf,
        /// What was tried.
        reason: String,
    },
    /// The copy that is taken before a new schema could not be made.
    #[error("{} was not brought to this version's schema, since no backup could be made: {source}", file.display())]
    Backup {
        /// Memory's file.
        file: PathBuf,
        /// What went wrong.
        source: BackupError,
    },
    /// The file system said no: read-only, full, no permission.
    #[error("cannot open {}: {source}", file.display())]
    Failed {
        /// Memory's file.
        file: PathBuf,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl MemoryOpenError {
    /// The same for a client, who is told nothing of the machine: what is wrong with memory, and what a person can do.
    pub fn for_client(&self) -> String {
        let why = match self {
            Self::Newer { found, known, .. } => {
                format!("it has schema {found}, and this version of Quipu knows {known}; use a newer one")
            }
            Self::Foreign { .. } => "its file is something else; a backup must be put in its place".to_owned(),
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
            Self::Damaged { .. } => "its file is damaged; a backup must be put in its place".to_owned(),
            Self::NoLocks { .. } => {
                "it lies on a file system without the locks it needs; the vault must be moved to a local disk"
                    .to_owned()
            }
            Self::Backup { .. } => {
                "it was not brought to this version's schema, since no backup could be made; make room".to_owned()
            }
            Self::Failed { source, .. } => match failure::reason(&**source) {
                Some(reason) => format!("it cannot be opened for writing: {reason}"),
                None => "it cannot be opened for writing".to_owned(),
            },
        };
        format!("memory cannot be used: {why}; the server's log has the details")
    }
}

/// A file that is open, and the folder it lies in.
pub(super) struct Opened {
    pub(super) db: Connection,
    pub(super) folder: OwnFolder,
    /// What the user should know of it, as a sentence.
    pub(super) notice: Option<String>,
}

/// Opens the file for writing, makes it where there is none, and brings it to the newest schema.
pub(super) fn open(file: &Path) -> Result<Opened, MemoryOpenError> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = OwnFolder::open(folder)
        .map_err(|source| MemoryOpenError::Failed { file: file.to_owned(), source: source.into() })?;
    refuse_odd_files(&folder, file)?;
    let is_new = is_new(file)?;
    let notice = if is_new { refuse_lost_memory(&folder, file)? } else { None };
    let fail = |error| failed(file, error);
    let has_log = beside(file, "-wal").exists();
    let opened = |source: std::io::Error| MemoryOpenError::Failed { file: file.to_owned(), source: source.into() };
    folder.create_file(&name_of(file)).map_err(opened)?;
    let mut db = sqlite::connect(file, OpenFlags::empty()).map_err(fail)?;
    // SQLite knows files by their paths alone.
    folder.check_place().map_err(opened)?;
    // Where the file is refused, the log that was left beside it is not ours to move into it. One that was not there is
    // this connection's own, and goes with it.
    if has_log {
        leave_log(&db).map_err(fail)?;
        // Through the log of another file anything may be read.
        let (kept, id) = (kept_id(&folder, file), file_guard::id_in(file).map_err(fail)?);
        if kept.is_some() && id.is_some() && kept != id {
            return Err(MemoryOpenError::OtherLog { file: file.to_owned() });
        }
        if !is_new && !file_guard::is_of_its_log(file, &db).map_err(fail)? {
            return Err(MemoryOpenError::OtherLog { file: file.to_owned() });
        }
    }
    let found = if is_new { 0 } else { schema_of(&db, file)? };
    let odd = sqlite::unknown_object(&db, |fresh| migrate::run_until(fresh, found)).map_err(fail)?;
    if let Some(odd) = odd {
        return Err(MemoryOpenError::Altered { file: file.to_owned(), odd });
    }
    // Only now: the next lines write to the file.
    move_log(&db).map_err(fail)?;
    let journal = sqlite::use_wal(&db).map_err(fail)?;
    if !journal.eq_ignore_ascii_case("wal") {
        let reason = format!("journal mode {journal} in place of WAL");
        return Err(MemoryOpenError::NoLocks { file: file.to_owned(), reason });
    }
    settle(&db).map_err(fail)?;
    if found < migrate::NEWEST {
        if found > 0 {
            backup::before_migration(&db, file, found)
                .map_err(|source| MemoryOpenError::Backup { file: file.to_owned(), source })?;
        }
        migrate::run(&mut db).map_err(fail)?;
        // So that the file by itself is a memory, whatever becomes of the log beside it.
        checkpoint(&db).map_err(fail)?;
    }
    Ok(Opened { db, folder, notice })
}

/// An id is shorter.
const MARKER_BYTES: u64 = 32;

/// The file that says that a memory was kept beside it, and which.
fn marker_of(file: &Path) -> String {
    format!("{}.started", file.file_stem().unwrap_or_default().to_string_lossy())
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

/// A new file must not take the place of a memory that was lost. Who removes a file means it; an empty one is damaged. Returns
/// what to tell of one that starts anew.
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

/// Moves all of the log into the file, as far as other processes let it.
pub(super) fn checkpoint(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(MOVING_PATIENCE)?;
    let moved = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    db.busy_timeout(PATIENCE)?;
    moved
}

/// A further connection to a file that is open, for reading.
pub(super) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let db = beside_writer(file)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// A further connection to a file that is open. It leaves the log where it is: to move it into the file is for the writer,
/// which knows whether the two still belong together.
pub(super) fn beside_writer(file: &Path) -> rusqlite::Result<Connection> {
    let db = sqlite::connect(file, OpenFlags::empty())?;
    db.busy_timeout(PATIENCE)?;
    leave_log(&db)?;
    Ok(db)
}

/// Keeps a connection from moving the log into the file when it is closed.
pub(super) fn leave_log(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Lets a connection move the log into the file when it is the last to be closed.
fn move_log(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

/// What every writing connection needs.
pub(super) fn settle(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.busy_timeout(PATIENCE)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn schema_of(db: &Connection, file: &Path) -> Result<i64, MemoryOpenError> {
    let number = |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let numbers = number("application_id").and_then(|id| Ok((id, number("user_version")?)));
    let (id, schema) = numbers.map_err(|error| failed(file, error))?;
    if id != APPLICATION_ID && is_empty(db).map_err(|error| failed(file, error))? {
        // Begun, and its process was killed before it had made anything.
        return Ok(0);
    }
    if id != APPLICATION_ID {
        let reason = "it is a database of another program".to_owned();
        return Err(MemoryOpenError::Foreign { file: file.to_owned(), reason });
    }
    if schema > migrate::NEWEST {
        return Err(MemoryOpenError::Newer { file: file.to_owned(), found: schema, known: migrate::NEWEST });
    }
    Ok(schema)
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
}

/// Whether there is nothing in it yet. What is there must at least begin as a database does.
fn is_new(file: &Path) -> Result<bool, MemoryOpenError> {
    match std::fs::symlink_metadata(file) {
        Ok(metadata) if metadata.len() == 0 => return Ok(true),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(MemoryOpenError::Failed { file: file.to_owned(), source: error.into() }),
    }
    match read_header(file) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(MemoryOpenError::Foreign { file: file.to_owned(), reason: "it is no SQLite database".to_owned() })
        }
        // It begins as one. A page that is missing may still be in the log.
        Ok(()) => Ok(false),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(false),
        Err(error) => Err(failed(file, error)),
    }
}

/// Reads how the file itself begins. With the log, which a usual connection looks into first, anything would look like the
/// database that the log is of.
fn read_header(file: &Path) -> rusqlite::Result<()> {
    without_log(file)?.query_row("PRAGMA application_id", [], |_| Ok(()))
}

/// A connection that reads a file as if nothing belonged to it and nobody changed it.
pub(super) fn without_log(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut db = Connection::open_with_flags(address_without_log(file), flags | OpenFlags::SQLITE_OPEN_URI)?;
    sqlite::protect(&mut db)?;
    // Or a file whose last pages are still in the log could not be read at all.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    Ok(db)
}

/// The address by which SQLite reads a file as if nothing belonged to it and nobody changed it.
fn address_without_log(file: &Path) -> String {
    // An empty host, or the beginning of some paths would be taken for one.
    let mut address = if file.is_absolute() { "file://".to_owned() } else { "file:".to_owned() };
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => write!(address, "%{byte:02x}").expect("a text takes everything"),
        }
    }
    address + "?immutable=1"
}

/// A vault from elsewhere may hold a link where memory would be: following it would write outside the vault. What is no
/// file at all would be waited for without end. A rollback journal says what is written where before anything is read; Quipu
/// writes none.
fn refuse_odd_files(folder: &OwnFolder, file: &Path) -> Result<(), MemoryOpenError> {
    let name = name_of(file);
    let refused = |reason| Err(MemoryOpenError::Foreign { file: file.to_owned(), reason });
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match folder.check(&format!("{name}{suffix}")) {
            Ok(true) if suffix == "-journal" => {
                return refused(format!("{name}{suffix} beside it is the unfinished write of another program"));
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

/// The beginning of every log; what was changed comes after it.
const LOG_HEADER: u64 = 32;

/// A log without its file holds what was acknowledged last; a new file would throw it away.
fn refuse_orphaned_log(file: &Path) -> Result<(), MemoryOpenError> {
    let log = beside(file, "-wal");
    if std::fs::symlink_metadata(&log).is_ok_and(|metadata| metadata.len() > LOG_HEADER) {
        let reason = format!("it is gone or empty, and {} still has changes of it", log.display());
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
        // An input or output error in taking a lock or mapping the shared index of the log.
        Some(ErrorCode::SystemIoFailure) if is_lock_trouble(&error) => {
            MemoryOpenError::NoLocks { file, reason: error.to_string() }
        }
        _ => MemoryOpenError::Failed { file, source: error.into() },
    }
}

fn is_lock_trouble(error: &rusqlite::Error) -> bool {
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
    fn missing_locks_are_told_from_other_errors() {
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
            assert!(told(code).contains("without the locks it needs"), "{code}: {}", told(code));
        }
        for code in [ffi::SQLITE_IOERR_READ, ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_CORRUPT] {
            assert!(!told(code).contains("locks it needs"), "{code}: {}", told(code));
        }
    }
}
