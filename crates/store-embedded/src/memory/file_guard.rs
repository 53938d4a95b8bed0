//! Whether memory's file is still the one that was opened. Another program may copy a backup over it, cut it short or move it
//! away while it is open. SQLite does not notice: what was committed lately is in the log and hides what is in the file, and
//! the two are mixed when the log is moved into the file.
//!
//! Each write leaves a random mark. The file alone, read without its log, must end with a mark that the file with its log
//! knows: then the one is an earlier state of the other. Files are also compared by their inode. All of that is done before
//! and after each commit, so a write is acknowledged only where it will be found.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::opening::{self, beside};
use super::wal::{Look, Wal};

/// A file may change twice without a new time in this long.
const CLOCK_TICK: Duration = Duration::from_millis(100);

/// How often a file that looks replaced is read again: another process may be moving the log into it.
const ATTEMPTS: u32 = 5;

/// Watches an open file and what SQLite keeps beside it.
pub(super) struct FileGuard {
    file: PathBuf,
    /// Of the file, and of the index of its log, where processes keep their locks.
    identities: [Option<(u64, u64)>; 2],
    wal: Wal,
    seen: Mutex<Seen>,
}

/// The file alone, as it was last found to be right.
struct Seen {
    stamp: Option<Stamp>,
    /// When a file with this stamp was first seen.
    since: Instant,
    /// Whether the stamp would have changed with the file ever since.
    is_settled: bool,
    /// The last write that it had.
    number: i64,
    /// The last committed write that was seen here, in the file or in its log.
    committed: i64,
}

/// Changes with the file, but for changes in the same tick of the clock.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: (i64, i64),
    bytes: u64,
}

/// What a file alone says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    id: i64,
    number: i64,
    mark: i64,
}

impl FileGuard {
    /// Watches a file that `db` has open and that was found to be right.
    pub(super) fn new(file: &Path, db: &Connection) -> rusqlite::Result<Self> {
        // SQLite makes what it needs beside the file when it first reads it.
        has_marks(db)?;
        let guard = Self {
            file: file.to_owned(),
            identities: identities(file),
            wal: Wal::beside(file),
            seen: Mutex::new(Seen { stamp: None, since: Instant::now(), is_settled: false, number: 0, committed: 0 }),
        };
        guard.check(db)?;
        Ok(guard)
    }

    /// Fails where a write would go to another file, or to one that is mixed. `db` sees the file with its log.
    pub(super) fn check(&self, db: &Connection) -> rusqlite::Result<()> {
        let mut seen = self.seen();
        let identities = identities(&self.file);
        let look = self.wal.look();
        if look == Look::Overwritten {
            // Nothing of what is in it now belongs into the file.
            opening::leave_log(db)?;
            return Err(moved());
        }
        let (Look::Same(log) | Look::Restarted(log), true) = (&look, identities == self.identities) else {
            // The log is moved into its file when it is closed, unless that is another by now.
            if identities[0] == self.identities[0] {
                self.compare(db, seen.number)?;
            }
            return Err(moved());
        };
        if matches!(look, Look::Restarted(_)) {
            // All that was in it must be in the file.
            seen.number = self.compare(db, seen.number.max(seen.committed))?;
        }
        self.wal.accept(log.clone());
        let stamp = stamp(&self.file);
        if stamp != seen.stamp {
            (seen.stamp, seen.since, seen.is_settled) = (stamp, Instant::now(), false);
        }
        if seen.is_settled {
            return Ok(());
        }
        let is_settled = seen.since.elapsed() > CLOCK_TICK;
        seen.number = self.compare(db, seen.number)?;
        seen.is_settled = is_settled;
        Ok(())
    }

    /// The same of what was committed, here or by another process. A write is acknowledged only then.
    pub(super) fn check_committed(&self, db: &Connection) -> rusqlite::Result<()> {
        self.check(db)?;
        let number = db.prepare_cached("SELECT number FROM last_write")?.query_row([], |row| row.get(0))?;
        let mut seen = self.seen();
        seen.committed = seen.committed.max(number);
        Ok(())
    }

    /// The same before `db` is closed: its log does not go into another file, nor away while one is in its file's place.
    pub(super) fn check_closing(&self, db: &Connection) -> rusqlite::Result<()> {
        let outcome = self.check(db);
        let is_other = |there: Option<(u64, u64)>| there.is_some() && there != self.identities[0];
        if outcome.is_err() && is_other(identities(&self.file)[0]) {
            opening::leave_log(db)?;
        }
        outcome
    }

    /// Notes a write in its own transaction.
    pub(super) fn mark(&self, tx: &Connection) -> rusqlite::Result<()> {
        tx.prepare_cached("UPDATE last_write SET number = number + 1, mark = random()")?.execute([])?;
        tx.prepare_cached("INSERT INTO write_mark SELECT number, mark FROM last_write")?.execute([])?;
        // The file never goes back behind what it has shown.
        tx.prepare_cached("DELETE FROM write_mark WHERE number < ?1")?.execute([self.seen().number])?;
        Ok(())
    }

    /// The number of the last write that the file alone has.
    fn compare(&self, db: &Connection, least: i64) -> rusqlite::Result<i64> {
        for attempt in 1.. {
            let state = in_file(&self.file)?;
            let number = state.map_or(0, |state| state.number);
            let is_right = match is_earlier_state(db, state) {
                // The log is not the one that it was.
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
        opening::leave_log(db)?;
        Err(overwritten())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }
}

/// The id of the memory in a file, read without the log beside it.
pub(super) fn id_in(file: &Path) -> rusqlite::Result<Option<i64>> {
    Ok(in_file(file)?.map(|state| state.id))
}

/// The same of an open memory.
pub(super) fn id_of(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT id FROM file_id", [], |row| row.get(0))
}

/// Whether a file belongs to the log beside it, through which `db` sees it.
pub(super) fn is_of_its_log(file: &Path, db: &Connection) -> rusqlite::Result<bool> {
    is_earlier_state(db, in_file(file)?)
}

/// Has a copy of memory begin a history of its own, so that it is told from the original.
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

/// What the file alone says; `None` where it says nothing: it is from before there were marks, or it is damaged, or its
/// making was cut short.
fn in_file(file: &Path) -> rusqlite::Result<Option<FileState>> {
    let read = || {
        let db = opening::without_log(file)?;
        if !has_marks(&db)? {
            return Ok(None);
        }
        let sql = "SELECT id, number, mark FROM file_id, last_write";
        let state =
            db.query_row(sql, [], |row| Ok(FileState { id: row.get(0)?, number: row.get(1)?, mark: row.get(2)? }));
        state.optional()
    };
    match read() {
        Err(error) if is_damage(&error) => Ok(None),
        outcome => outcome,
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => true,
        // Cut off.
        Some(ErrorCode::SystemIoFailure) => {
            error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
        }
        Some(_) => crate::index_database::is_damage(error),
        None => true,
    }
}

/// Whether the database has come from that state.
fn is_earlier_state(db: &Connection, state: Option<FileState>) -> rusqlite::Result<bool> {
    if !has_marks(db)? {
        return Ok(state.is_none());
    }
    let FileState { number, mark, .. } = state.unwrap_or(FileState { id: 0, number: 0, mark: 0 });
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

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = std::fs::symlink_metadata(file).ok()?;
    Some(Stamp { changed: (metadata.ctime(), metadata.ctime_nsec()), bytes: metadata.len() })
}

/// That the file is not where it was, in the words of the database, as which it is handled.
fn moved() -> rusqlite::Error {
    refusal(
        "memory's file, or the log beside it, was moved, removed or cut while it was open; put it back, or restart the server",
    )
}

/// That the file is no longer what was written to.
fn overwritten() -> rusqlite::Error {
    refusal(
        "another program wrote over memory's file while it was open; end every server of this vault, move the file and the \
         -wal and -shm files beside it to another folder, put the right file in its place, and restart",
    )
}

fn refusal(words: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
    rusqlite::Error::SqliteFailure(code, Some(words.to_owned()))
}
