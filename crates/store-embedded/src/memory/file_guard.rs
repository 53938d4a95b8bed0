//! Detects that another program replaced memory's file while it is open: copied a backup over it, truncated it or moved it. SQLite
//! does not notice: recent commits are in the log and hide the content of the file, and a checkpoint mixes the two.
//!
//! Each write leaves a random mark. The last mark of the file, read without its log, must be among the marks of the file with its
//! log: then the file is an earlier state of the database. Inodes are compared too, and the last write that any process made
//! must still be there. All of this is done before and after each commit, so that only writes that survive are acknowledged.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use quipu_own_folder::OwnFolder;

use super::last_write::{LastWrite, LastWriteFile};
use super::opening::{self, beside};
use super::wal::{Wal, WalChange};
use crate::sqlite;

/// Within this time a file may change twice without a new modification time.
const CLOCK_TICK: Duration = Duration::from_millis(100);

/// How often a file that looks replaced is read: another process may be checkpointing it.
const ATTEMPTS: u32 = 5;

/// Watches an open file and the files beside it.
pub(super) struct FileGuard {
    file: PathBuf,
    /// Device and inode of the file, and of the `-shm` file, on which processes have their locks.
    identities: [Option<(u64, u64)>; 2],
    /// The size of the `-shm` file, which only grows.
    shared_bytes: AtomicU64,
    wal: Wal,
    /// `None` where the file system has no locks.
    last_write: Option<LastWriteFile>,
    verified: Mutex<VerifiedFile>,
}

/// The file without its log, as it was last verified.
struct VerifiedFile {
    stamp: Option<DatabaseStamp>,
    /// When this stamp was first verified.
    since: Instant,
    /// Whether any change since then would have changed the stamp.
    is_settled: bool,
    /// The number of the last write in it.
    number: i64,
    /// The number of the last commit, in the file or in its log.
    committed: i64,
}

/// Changes with the file, except for changes within [`CLOCK_TICK`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct DatabaseStamp {
    changed: (i64, i64),
    bytes: u64,
}

impl FileGuard {
    /// Watches a file in `folder` that `db` has open and that was verified.
    pub(super) fn new(file: &Path, folder: &OwnFolder, db: &Connection) -> rusqlite::Result<Self> {
        // SQLite creates the files beside it at the first read.
        has_marks(db)?;
        let last_write = LastWriteFile::open(folder, &opening::name_beside(file, "last"), LastWrite::of(db)?);
        let last_write = last_write.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot watch for an older copy of the memory in its place");
            None
        });
        let guard = Self {
            file: file.to_owned(),
            identities: identities(file),
            shared_bytes: AtomicU64::new(0),
            wal: Wal::beside(file),
            last_write,
            verified: Mutex::new(VerifiedFile {
                stamp: None,
                since: Instant::now(),
                is_settled: false,
                number: 0,
                committed: 0,
            }),
        };
        guard.check(db)?;
        Ok(guard)
    }

    /// Fails if the file or its log was replaced. `db` sees the file with its log.
    pub(super) fn check(&self, db: &Connection) -> rusqlite::Result<()> {
        self.check_files(db)?;
        self.check_last_write(db)
    }

    /// Fails if another program truncated the `-shm` file. SQLite maps it: reading behind its new end would end the process.
    pub(super) fn check_shared_memory(&self) -> rusqlite::Result<()> {
        let Ok(metadata) = std::fs::symlink_metadata(beside(&self.file, "-shm")) else {
            // A deleted file can still be read where it is mapped.
            return Ok(());
        };
        let bytes = metadata.len();
        if bytes < self.shared_bytes.fetch_max(bytes, Ordering::Relaxed) { Err(moved()) } else { Ok(()) }
    }

    fn check_files(&self, db: &Connection) -> rusqlite::Result<()> {
        if let Err(error) = self.check_shared_memory() {
            sqlite::leave_log(db)?;
            return Err(error);
        }
        let mut verified = self.verified();
        let identities = identities(&self.file);
        let change = self.wal.changes();
        if change == WalChange::Overwritten {
            // Its content must not get into the file.
            sqlite::leave_log(db)?;
            return Err(moved());
        }
        let (WalChange::Same(log) | WalChange::Restarted(log), true) = (&change, identities == self.identities) else {
            // Closing checkpoints the log into the file, unless the file was replaced.
            if identities[0] == self.identities[0] {
                self.verify(db, verified.number)?;
            }
            return Err(moved());
        };
        if matches!(change, WalChange::Restarted(_)) {
            // Everything that was in the log must be in the file.
            verified.number = self.verify(db, verified.number.max(verified.committed))?;
        }
        self.wal.accept(log.clone());
        let stamp = stamp(&self.file);
        if stamp != verified.stamp {
            (verified.stamp, verified.since, verified.is_settled) = (stamp, Instant::now(), false);
        }
        if verified.is_settled {
            return Ok(());
        }
        let is_settled = verified.since.elapsed() > CLOCK_TICK;
        verified.number = self.verify(db, verified.number)?;
        verified.is_settled = is_settled;
        Ok(())
    }

    /// Like [`Self::check`], after a commit, here or in another process. Only then is a write acknowledged.
    pub(super) fn check_committed(&self, db: &Connection) -> rusqlite::Result<()> {
        self.check(db)?;
        let last = LastWrite::of(db)?;
        if let Some(Err(error)) = self.last_write.as_ref().map(|file| file.advance_to(last)) {
            tracing::debug!(%error, "cannot note the last write of the memory");
        }
        let mut verified = self.verified();
        verified.committed = verified.committed.max(last.number);
        Ok(())
    }

    /// Fails if a write that some process made is no longer there.
    fn check_last_write(&self, db: &Connection) -> rusqlite::Result<()> {
        let Some(file) = &self.last_write else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            // Before the database is read, which can only be newer.
            let Ok(Some(noted)) = file.read() else { return Ok(()) };
            let last = LastWrite::of(db)?;
            let is_same = last == noted;
            if is_same || last.id == noted.id && last.number > noted.number {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        sqlite::leave_log(db)?;
        Err(overwritten())
    }

    /// Like [`Self::check`], before `db` is closed: its log must neither be applied to another file nor deleted while another
    /// file is in place.
    pub(super) fn check_closing(&self, db: &Connection) -> rusqlite::Result<()> {
        let outcome = self.check(db);
        let is_other = |there: Option<(u64, u64)>| there.is_some() && there != self.identities[0];
        if outcome.is_err() && is_other(identities(&self.file)[0]) {
            sqlite::leave_log(db)?;
        }
        outcome
    }

    /// Marks a write, in its transaction.
    pub(super) fn mark(&self, tx: &Connection) -> rusqlite::Result<()> {
        tx.prepare_cached("UPDATE last_write SET number = number + 1, mark = random()")?.execute([])?;
        tx.prepare_cached("INSERT INTO write_mark SELECT number, mark FROM last_write")?.execute([])?;
        // The file never goes back to an earlier state than the verified one.
        tx.prepare_cached("DELETE FROM write_mark WHERE number < ?1")?.execute([self.verified().number])?;
        Ok(())
    }

    /// Verifies the file; returns the number of the last write in it.
    fn verify(&self, db: &Connection, least: i64) -> rusqlite::Result<i64> {
        for attempt in 1.. {
            let state = read_marks(&self.file)?;
            let number = state.map_or(0, |state| state.number);
            let is_right = match is_earlier_state(db, state) {
                // The log was replaced.
                Err(error) if is_damage(&error) => false,
                outcome => outcome?,
            };
            if number >= least && is_right {
                return Ok(number);
            }
            if attempt == ATTEMPTS {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        sqlite::leave_log(db)?;
        Err(overwritten())
    }

    fn verified(&self) -> MutexGuard<'_, VerifiedFile> {
        self.verified.lock()
    }
}

/// The id of the memory in a file, read without the log beside it.
pub(super) fn id_in(file: &Path) -> rusqlite::Result<Option<i64>> {
    Ok(read_marks(file)?.map(|state| state.id))
}

/// The id of an open memory.
pub(super) fn id_of(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT id FROM file_id", [], |row| row.get(0))
}

/// Whether a file and the log beside it belong together. `db` sees the file with its log.
pub(super) fn is_of_its_log(file: &Path, db: &Connection) -> rusqlite::Result<bool> {
    is_earlier_state(db, read_marks(file)?)
}

/// Gives a copy of memory an id and marks of its own, so that it differs from the original.
pub(super) fn begin_history(copy: &Connection) -> rusqlite::Result<()> {
    if !has_marks(copy)? {
        return Ok(());
    }
    copy.execute_batch(
        "UPDATE file_id SET id = random();
         UPDATE last_write SET number = 1, mark = random();
         DELETE FROM write_mark;
         INSERT INTO write_mark SELECT number, mark FROM last_write;",
    )
}

/// The marks of the file without its log; `None` if it has none: it is older than marks, damaged, or was not completed.
fn read_marks(file: &Path) -> rusqlite::Result<Option<LastWrite>> {
    let read = || {
        let db = opening::without_log(file)?;
        if !has_marks(&db)? {
            return Ok(None);
        }
        LastWrite::of(&db).optional()
    };
    match read() {
        Err(error) if is_damage(&error) => Ok(None),
        outcome => outcome,
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => true,
        // Truncated.
        Some(ErrorCode::SystemIoFailure) => {
            error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
        }
        Some(_) => crate::index_database::is_damage(error),
        None => true,
    }
}

/// Whether that is an earlier state of the database.
fn is_earlier_state(db: &Connection, state: Option<LastWrite>) -> rusqlite::Result<bool> {
    if !has_marks(db)? {
        return Ok(state.is_none());
    }
    let LastWrite { number, mark, .. } = state.unwrap_or(LastWrite { id: 0, number: 0, mark: 0 });
    let mut knows = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM write_mark WHERE number = ?1 AND mark = ?2)")?;
    let mut id = db.prepare_cached("SELECT id FROM file_id")?;
    Ok(knows.query_row((number, mark), |row| row.get(0))?
        && state.is_none_or(|state| id.query_row([], |row| row.get(0)).is_ok_and(|id: i64| id == state.id)))
}

fn has_marks(db: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'last_write')";
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

fn identities(file: &Path) -> [Option<(u64, u64)>; 2] {
    let identity = |path: PathBuf| std::fs::symlink_metadata(path).ok().map(|there| (there.dev(), there.ino()));
    [identity(file.to_owned()), identity(beside(file, "-shm"))]
}

fn stamp(file: &Path) -> Option<DatabaseStamp> {
    let metadata = std::fs::symlink_metadata(file).ok()?;
    Some(DatabaseStamp { changed: (metadata.ctime(), metadata.ctime_nsec()), bytes: metadata.len() })
}

/// The file or its log was moved, as an error of SQLite.
fn moved() -> rusqlite::Error {
    refusal(
        "memory's file, or the log beside it, was moved, deleted or truncated while it was open; put it back, or restart the server",
    )
}

/// The file was overwritten, as an error of SQLite.
fn overwritten() -> rusqlite::Error {
    refusal(
        "another program overwrote memory's file while it was open; stop every server of this vault, move the file and the \
         -wal and -shm files beside it to another folder, put the right file in its place, and restart",
    )
}

fn refusal(words: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
    rusqlite::Error::SqliteFailure(code, Some(words.to_owned()))
}
