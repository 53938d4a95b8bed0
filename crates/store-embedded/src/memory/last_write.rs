//! The last write of memory, in a small file beside it, which all processes that have the memory open share.
//!
//! After a checkpoint the file of the memory is all there is: an older copy of it, put in its place, is a valid memory. This
//! file tells the two apart. It is not synced: it matters only while a process runs. A process that finds no other one starts
//! it again, so a copy that was put in place while no server ran is accepted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use rustix::fs::{FlockOperation, OFlags, flock};

use quipu_own_folder::OwnFolder;

/// The open file. Its lock says that this process has the memory open.
pub(super) struct LastWriteFile(File);

/// The id of a memory, and the number and mark of its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastWrite {
    pub(super) id: i64,
    pub(super) number: i64,
    pub(super) mark: i64,
}

impl LastWrite {
    const BYTES: usize = 24;

    /// The last write that a connection sees.
    pub(super) fn of(db: &Connection) -> rusqlite::Result<Self> {
        db.prepare_cached("SELECT id, number, mark FROM file_id, last_write")?
            .query_row([], |row| Ok(Self { id: row.get(0)?, number: row.get(1)?, mark: row.get(2)? }))
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, value) in bytes.chunks_exact_mut(8).zip([self.id, self.number, self.mark]) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut values = bytes.chunks_exact(8).map(|value| i64::from_le_bytes(value.try_into().expect("eight bytes")));
        let mut next = || values.next().expect("three values");
        Self { id: next(), number: next(), mark: next() }
    }
}

impl LastWriteFile {
    /// Opens or creates the file; `None` where the file system has no locks. `now` is the last write of the memory: if no other
    /// process has it open, the file starts from it.
    pub(super) fn open(folder: &OwnFolder, name: &str, now: LastWrite) -> io::Result<Option<Self>> {
        let file = Self(folder.file(name, OFlags::RDWR | OFlags::CREATE)?);
        match flock(&file.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => file.write(now)?,
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(_) => return Ok(None),
        }
        // Fails if another process is at this very place; it has the same memory open.
        let _ = flock(&file.0, FlockOperation::NonBlockingLockShared);
        Ok(Some(file))
    }

    /// `None` if another process is creating it.
    pub(super) fn read(&self) -> io::Result<Option<LastWrite>> {
        let mut bytes = [0; LastWrite::BYTES];
        match self.0.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Some(LastWrite::from_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Two processes may do this in the wrong order. Then the file is behind the memory until the next write.
    pub(super) fn advance_to(&self, write: LastWrite) -> io::Result<()> {
        let is_newer = self.read()?.is_none_or(|known| known.id == write.id && known.number < write.number);
        if is_newer { self.write(write) } else { Ok(()) }
    }

    fn write(&self, write: LastWrite) -> io::Result<()> {
        self.0.write_all_at(&write.to_bytes(), 0)
    }
}
