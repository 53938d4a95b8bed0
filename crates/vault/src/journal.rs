//! The write-ahead journal: what a write is about to do, for recovery after a crash (see [`crate::recovery`]).
//!
//! It is written before the first file is touched and marked as done when the last one is in place. Recovery undoes a write of
//! several files before that mark, unless all of its operations took place, and cleans up after it. A write of one file is
//! a single rename, done or not: its journal only serves to clean up and is never synced, so it must never undo.
//!
//! A write that failed is marked before it is undone: its caller gets an error, so if the undo fails too, or
//! is interrupted, recovery undoes the write even if all of its operations took place.
//!
//! The state is in the file and not in its name: in a `.quipu` that is shared with a group, every member can rename the file
//! and put it back later, but only its owner can write it.

#![expect(clippy::disallowed_methods, reason = "/etc/machine-id is not a note")]

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use quipu_core::RequestKey;
use quipu_core::model::VaultPath;
use serde::{Deserialize, Serialize};

use crate::dir::{Dir, Metadata};
use crate::failpoint;
use crate::file_op::{FileOp, JournalEntry, is_among_notes, remove_created_folders};
use crate::folder_vault::FolderVault;
use crate::history::{self, HistoryLine};
use crate::requests;
use crate::write_lock::WriteLock;

pub(crate) const NAME: &str = "journal.json";
pub(crate) const UNSYNCED_NAME: &str = "journal.json.new";
/// The names that formats before 3 gave to journals of done and of failed writes.
pub(crate) const DONE_NAME: &str = "journal.done.json";
pub(crate) const UNDO_NAME: &str = "journal.undo.json";

/// The newest format. Since 3 the state is in the file; 4 has renames of other files, and is only written for them.
pub(crate) const FORMAT: u32 = 4;
const FORMAT_WITHOUT_RENAMES: u32 = 3;

/// Where the name of the state begins: it is the first field and is overwritten in place. All names have the same length.
const STATE_OFFSET: u64 = r#"{"state":""#.len() as u64;

/// How far a write got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JournalState {
    #[serde(rename = "open")]
    Open,
    /// Every operation took place. Nothing can be undone after this.
    #[serde(rename = "done")]
    Done,
    /// The caller got an error. The write is undone.
    #[serde(rename = "fail")]
    Failed,
    /// Recovered or undone: the journal is of no further use.
    #[serde(rename = "used")]
    Used,
}

impl JournalState {
    fn name(self) -> &'static [u8; 4] {
        match self {
            Self::Open => b"open",
            Self::Done => b"done",
            Self::Failed => b"fail",
            Self::Used => b"used",
        }
    }
}

/// One write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// The state when the file was read or created. The name of the file says it in formats before [`FORMAT`].
    #[serde(default)]
    pub(crate) state: Option<JournalState>,
    format: u32,
    /// The journal's own file, once it exists.
    #[serde(skip)]
    file: OnceCell<File>,
    #[serde(rename = "home")]
    origin: Origin,
    #[serde(rename = "effects")]
    pub(crate) entries: Vec<JournalEntry>,
    /// The folders that the write creates, outermost first, by real path.
    #[serde(rename = "made")]
    pub(crate) created_folders: Vec<String>,
    #[serde(default, rename = "asked", skip_serializing_if = "Option::is_none")]
    request: Option<JournaledRequest>,
    /// The line that the write adds to the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<Box<HistoryLine>>,
}

/// The request that a write belongs to, which a client may retry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JournaledRequest {
    #[serde(rename = "request")]
    key: String,
    /// The path of the first change.
    #[serde(rename = "place")]
    path: String,
}

impl JournaledRequest {
    pub(crate) fn new(key: RequestKey, path: &VaultPath) -> Self {
        Self { key: key.to_string(), path: path.to_string() }
    }

    /// Records that the request was applied.
    pub(crate) fn record(&self, own: &Dir) -> io::Result<()> {
        match self.key.parse() {
            Ok(key) => requests::record(own, key, &self.path),
            // Quipu did not write this journal.
            Err(_) => Ok(()),
        }
    }
}

/// Where a journal was written: the inodes of the vault's root and of `.quipu`, and the machine. Device numbers are left out:
/// they may change when the machine restarts, and a journal must outlast that.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    root: u64,
    own: u64,
    /// Inodes change too: of a network drive that is mounted again, of a vault that is copied or restored from a backup. The
    /// journal is still valid on the machine that wrote it, since it identifies files by their content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
}

impl Origin {
    pub(crate) fn here(lock: &WriteLock<'_>) -> io::Result<Self> {
        let (root, own) = (Metadata::of(&lock.root)?.inode, Metadata::of(&lock.own)?.inode);
        Ok(Self { root, own, machine: machine() })
    }

    pub(crate) fn has_inodes_of(&self, other: &Self) -> bool {
        (self.root, self.own) == (other.root, other.own)
    }

    pub(crate) fn is_on_machine_of(&self, other: &Self) -> bool {
        self.machine.is_some() && self.machine == other.machine
    }
}

/// Identifies this machine, if the system has an id in a file, as macOS and some containers do not: the creator of a vault from elsewhere does not know it. Hashed, since the
/// id itself must not leave the machine.
fn machine() -> Option<String> {
    static MACHINE: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/etc/machine-id").ok()?;
        let id = id.trim();
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| {
            blake3::Hash::from(blake3::derive_key("quipu journal machine", id.as_bytes())).to_hex().to_string()
        })
    };
    MACHINE.get_or_init(read).clone()
}

/// Why a failed write could not be undone.
#[derive(Debug, thiserror::Error)]
#[error("undoing the write failed too ({source}); {consequence}")]
pub(crate) struct FailedUndo {
    source: io::Error,
    consequence: &'static str,
}

impl Journal {
    pub(crate) fn new(
        lock: &WriteLock<'_>,
        entries: Vec<JournalEntry>,
        created_folders: Vec<String>,
        request: Option<JournaledRequest>,
        history: HistoryLine,
    ) -> io::Result<Self> {
        let (state, origin, file) = (Some(JournalState::Open), Origin::here(lock)?, OnceCell::new());
        let has_rename = entries.iter().any(|entry| matches!(entry.op, FileOp::Rename { .. }));
        let format = if has_rename { FORMAT } else { FORMAT_WITHOUT_RENAMES };
        let history = Some(Box::new(history));
        Ok(Self { state, format, file, origin, entries, created_folders, request, history })
    }

    /// The journal that was read from a file, which must be open for writing.
    pub(crate) fn with_file(self, file: File) -> Self {
        Self { file: OnceCell::from(file), ..self }
    }

    /// Whether it touches only notes, temporary files and the trash.
    pub(crate) fn is_confined(&self) -> bool {
        self.entries.iter().all(JournalEntry::is_confined)
            && self.created_folders.iter().all(|folder| is_among_notes(folder))
    }

    /// Writes the journal before the write touches a file.
    pub(crate) fn begin(&self, own: &Dir) -> io::Result<()> {
        failpoint::hit("journal")?;
        own.remove_file(UNSYNCED_NAME)?;
        let mut file = own.create_private_file(UNSYNCED_NAME)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        if self.has_several_files() {
            file.sync_all()?;
        }
        let _ = self.file.set(file);
        failpoint::hit("journal in place")?;
        own.rename(UNSYNCED_NAME, NAME)?;
        if self.has_several_files() {
            own.sync()?;
        }
        Ok(())
    }

    /// Commits the write: once this returns, or the process is killed after it, nothing is undone.
    pub(crate) fn commit(&self, lock: &WriteLock<'_>) -> io::Result<()> {
        let own = &lock.own;
        failpoint::hit("commit")?;
        self.set_state(JournalState::Done)?;
        if self.has_several_files() {
            // If this fails, the write failed, and the mark of failed writes replaces this one.
            failpoint::hit("sync the commit")?;
            self.sync()?;
        }
        // If this fails, a retry finds the journal of the done write, or that the path is taken.
        let _ = self.record_request(own);
        // The write is done. If the cleanup fails, the journal stays and the next writer repeats the cleanup.
        let cleaned = self.entries.iter().try_for_each(|entry| entry.remove_displaced(&lock.root));
        let _ = cleaned.and_then(|()| own.remove_file(NAME));
        Ok(())
    }

    /// Undoes the write at any stage. If that fails, the next writer undoes it.
    pub(crate) fn undo(&self, vault: &FolderVault, lock: &WriteLock<'_>) -> Result<(), FailedUndo> {
        let own = &lock.own;
        let marked = self.mark_failed();
        let consequence = match marked {
            Ok(()) => "the next write undoes it first",
            Err(_) => "the next write undoes or completes it; then read the notes again",
        };
        if let Err(source) = marked
            && !self.has_stored_state(JournalState::Open)
        {
            // Recovery completes a write that is marked as done, so it must not be undone in part.
            return Err(FailedUndo { source, consequence });
        }
        // Done even without the mark: recovery undoes the rest of an incomplete write.
        let remove_journal = || {
            failpoint::hit("remove the journal")?;
            self.mark_used()?;
            [UNSYNCED_NAME, NAME].into_iter().try_for_each(|name| own.remove_file(name))?;
            own.sync()
        };
        let undone = self.undo_entries(vault, lock).and_then(|()| remove_journal());
        undone.map_err(|source| FailedUndo { source, consequence })
    }

    /// Marks the journal, if it exists, as that of a failed write. After this, no crash makes the write count as done.
    fn mark_failed(&self) -> io::Result<()> {
        failpoint::hit("mark")?;
        self.set_state(JournalState::Failed)?;
        // The journal of a single operation is not synced yet, and an incomplete one would undo nothing.
        self.sync()
    }

    /// Marks a journal after its undo, so that it is not applied again if another account puts it back.
    pub(crate) fn mark_used(&self) -> io::Result<()> {
        self.set_state(JournalState::Used)?;
        self.sync()
    }

    fn set_state(&self, state: JournalState) -> io::Result<()> {
        // Only the name of a state is overwritten.
        match self.file.get() {
            Some(file) if self.state.is_some() => file.write_all_at(state.name(), STATE_OFFSET),
            _ => Ok(()),
        }
    }

    fn has_stored_state(&self, state: JournalState) -> bool {
        let mut name = *JournalState::Open.name();
        let read = self.file.get().map_or(Ok(()), |file| file.read_exact_at(&mut name, STATE_OFFSET));
        read.is_ok() && name == *state.name()
    }

    fn sync(&self) -> io::Result<()> {
        self.file.get().map_or(Ok(()), File::sync_all)
    }

    pub(crate) fn undo_entries(&self, vault: &FolderVault, lock: &WriteLock<'_>) -> io::Result<()> {
        self.entries.iter().rev().try_for_each(|entry| entry.undo(&lock.root))?;
        self.remove_history(vault, &lock.own)?;
        remove_created_folders(&lock.root, &self.created_folders)
    }

    /// Removes the write, which did not take place, from the history.
    pub(crate) fn remove_history(&self, vault: &FolderVault, own: &Dir) -> io::Result<()> {
        self.history.as_ref().map_or(Ok(()), |line| history::remove(vault, own, line.number()))
    }

    /// Adds the write, which took place, to the history, unless it is there already.
    pub(crate) fn record_history(&self, vault: &FolderVault, own: &Dir) -> io::Result<()> {
        self.history.as_ref().map_or(Ok(()), |line| history::append(vault, own, line))
    }

    pub(crate) fn record_request(&self, own: &Dir) -> io::Result<()> {
        self.request.as_ref().map_or(Ok(()), |request| request.record(own))
    }

    fn has_several_files(&self) -> bool {
        self.entries.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::{JournalState, STATE_OFFSET};

    #[test]
    fn journal_state_names_match_the_written_bytes() {
        for state in [JournalState::Open, JournalState::Done, JournalState::Failed, JournalState::Used] {
            let json = serde_json::json!({ "state": state }).to_string();
            assert_eq!(&json.as_bytes()[STATE_OFFSET as usize..][..4], state.name());
        }
    }
}
