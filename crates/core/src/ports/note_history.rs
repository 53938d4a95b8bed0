//! The history of notes: who wrote which version of which file, and when.

use super::vault_files::{FileChange, VaultError, WriteError};
use crate::RequestKey;
use crate::model::{ContentHash, NoteId, VaultPath};

/// The name that the history has for other programs: editors, scripts, git.
pub const OUTSIDE: &str = "outside";

/// The writes of one vault, newest last, and the texts that they replaced.
///
/// Every [`super::VaultFiles::apply_for`] adds one entry in the same step: an acknowledged write has exactly one. Entries and
/// kept texts are removed together when they are old.
pub trait NoteHistory: Send + Sync {
    /// The writes that match, newest first.
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError>;

    /// The bytes of a version that a write displaced, by [`LoggedFile::kept`]; `None` if they are no longer kept.
    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError>;

    /// Records what another program did, as far as the history does not know it: a file whose last entry says the same is left
    /// out. A store to which nothing else writes does nothing.
    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError>;

    /// Deletes the kept versions and the entries of a note that had these names; returns the number of versions. Of the write
    /// that is `unfinished`, only what it replaced is deleted: its entry tells the next start what to finish.
    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError>;

    /// Deletes the entries of a write, which is no longer listed; its number is not used again.
    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError>;
}

/// Which writes to return.
#[derive(Debug, Clone)]
pub struct WriteFilter {
    /// Only writes of a file with this path, old or new, in any case.
    pub id: Option<NoteId>,
    /// Only writes with this action on such a file.
    pub action: Option<NoteAction>,
    /// Only later writes.
    pub after: WriteNumber,
    /// Only earlier writes.
    pub before: WriteNumber,
    /// Only writes at or after this time, in nanoseconds since 1970.
    pub since_ns: i64,
    /// At most so many.
    pub limit: usize,
}

impl Default for WriteFilter {
    fn default() -> Self {
        let (after, before) = (WriteNumber(0), WriteNumber(i64::MAX));
        Self { id: None, action: None, after, before, since_ns: i64::MIN, limit: usize::MAX }
    }
}

impl WriteFilter {
    /// Whether a write matches, apart from the limit.
    pub fn admits(&self, write: &LoggedWrite) -> bool {
        let is_named =
            |file: &LoggedFile| self.id.as_ref().is_none_or(|id| file.paths().any(|path| path.note_id() == *id));
        let is_wanted = |file: &LoggedFile| self.action.is_none_or(|action| file.action == action) && is_named(file);
        write.number > self.after
            && write.number < self.before
            && write.at_ns >= self.since_ns
            && write.files.iter().any(is_wanted)
    }
}

/// The number of a write: 1 for the first. Later writes have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteNumber(pub i64);

/// One write: all files of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedWrite {
    pub number: WriteNumber,
    /// When, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The client's name, possibly empty, or [`OUTSIDE`].
    pub by: String,
    pub files: Vec<LoggedFile>,
    /// Files that are not listed: redacted ones, or more than a list holds.
    pub unlisted: usize,
}

impl LoggedWrite {
    /// Removes the entries of a note that had these names; of the write that is `unfinished` only the version before it.
    pub fn forget(&mut self, names: &[NamePeriod], unfinished: WriteNumber) {
        let of_note = |file: &LoggedFile| names.iter().any(|name| name.covers_entry(self, file));
        let (mut left, forgotten): (Vec<_>, Vec<_>) = self.files.iter().cloned().partition(|file| !of_note(file));
        match unfinished == self.number {
            true => left.extend(forgotten.into_iter().map(LoggedFile::without_before)),
            false => self.unlisted += forgotten.len(),
        }
        self.files = left;
    }

    /// Removes all entries.
    pub fn forget_files(&mut self) {
        self.unlisted += std::mem::take(&mut self.files).len();
    }
}

/// The entry of one file of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedFile {
    /// The action on the file.
    pub action: NoteAction,
    /// Its real path after the write; of a deleted file its last one.
    pub path: VaultPath,
    /// Its real path before the write, if that was another.
    pub from: Option<VaultPath>,
    /// The version before; `None` for a new file.
    pub before: Option<LoggedVersion>,
    /// The version after; `None` for a deleted file.
    pub after: Option<LoggedVersion>,
    /// Where the text before is kept, for [`NoteHistory::kept_bytes`].
    pub kept: Option<String>,
}

impl LoggedFile {
    /// Whether it is a note. Other files are only renamed, and their versions are not recorded.
    pub fn is_note(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }

    /// The entry without the version before it.
    fn without_before(self) -> Self {
        Self { before: None, kept: None, ..self }
    }

    /// Its paths after and before.
    pub fn paths(&self) -> impl Iterator<Item = &VaultPath> {
        [&self.path].into_iter().chain(&self.from)
    }

    /// Its path before the write.
    pub fn old_path(&self) -> &VaultPath {
        self.from.as_ref().unwrap_or(&self.path)
    }
}

/// One version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedVersion {
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// Its length in characters.
    pub chars: u64,
    /// When the file was last modified, in nanoseconds since 1970.
    pub modified_ns: i64,
}

impl LoggedVersion {
    /// The version that some bytes are.
    pub fn of(bytes: &[u8], modified_ns: i64) -> Self {
        // Every character of UTF-8 has one byte that does not continue another.
        let chars = bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
        Self { hash: ContentHash::of(bytes), chars, modified_ns }
    }
}

/// An action on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteAction {
    Create,
    /// New text.
    Edit,
    /// Another path, with its own links adjusted.
    Move,
    /// Only links changed, since a note they mean was moved.
    Links,
    /// Moved to the trash.
    Delete,
    /// An earlier text again.
    Revert,
    /// A whole write undone.
    Undo,
    /// Restored from the trash.
    Restore,
    /// Removed permanently, with its kept versions.
    Redact,
}

impl NoteAction {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::Edit,
        Self::Move,
        Self::Links,
        Self::Delete,
        Self::Revert,
        Self::Undo,
        Self::Restore,
        Self::Redact,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Edit => "edit",
            Self::Move => "move",
            Self::Links => "links",
            Self::Delete => "delete",
            Self::Revert => "revert",
            Self::Undo => "undo",
            Self::Restore => "restore",
            Self::Redact => "redact",
        }
    }

    /// The action of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// The call that a write belongs to.
#[derive(Debug, Clone, Copy)]
pub struct WriteOrigin<'a> {
    /// The client's name; empty if it has none.
    pub by: &'a str,
    /// The action of the call.
    pub action: NoteAction,
    /// The key of the call, if it may be retried.
    pub request: Option<RequestKey>,
    /// For each change the kept version whose text it writes, if it writes one; or nothing for all. A note that is created gets
    /// the permissions of that version, and no write shows it to more accounts than could read it.
    pub kept: &'a [Option<String>],
}

impl WriteOrigin<'_> {
    /// A write by no known client.
    pub const UNKNOWN: WriteOrigin<'static> =
        WriteOrigin { by: "", action: NoteAction::Edit, request: None, kept: &[] };

    /// `quipu restore`.
    pub const RESTORE: WriteOrigin<'static> = WriteOrigin { by: "quipu", action: NoteAction::Restore, ..Self::UNKNOWN };

    /// A write by no known client that may be retried.
    pub const fn retried(request: RequestKey) -> WriteOrigin<'static> {
        WriteOrigin { request: Some(request), ..Self::UNKNOWN }
    }

    /// What the call does to the file of one change.
    pub fn action_on(&self, change: &FileChange) -> NoteAction {
        match (self.action, change) {
            (NoteAction::Revert | NoteAction::Undo | NoteAction::Restore | NoteAction::Redact, _) => self.action,
            (_, FileChange::Create { .. }) => NoteAction::Create,
            (_, FileChange::Delete { .. }) => NoteAction::Delete,
            (_, FileChange::Move { .. } | FileChange::Rename { .. }) => NoteAction::Move,
            (NoteAction::Move, FileChange::Replace { .. }) => NoteAction::Links,
            (_, FileChange::Replace { .. }) => NoteAction::Edit,
        }
    }
}

/// A name that a note had, and when: after `since_ns`, up to `until_ns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePeriod {
    /// The real path.
    pub path: VaultPath,
    /// The time of the write that gave the note this name, or that moved another note away from it.
    pub since_ns: i64,
    /// The time of the write that took the name from it.
    pub until_ns: i64,
}

impl NamePeriod {
    /// Whether a file at a path that a write displaced at a time was the note.
    pub fn covers(&self, path: &VaultPath, at_ns: i64) -> bool {
        self.path == *path && self.since_ns < at_ns && at_ns <= self.until_ns
    }

    /// Whether an entry of the history is about the note.
    pub fn covers_entry(&self, write: &LoggedWrite, file: &LoggedFile) -> bool {
        // A write that moves the note belongs to both of its names; one that moves another note away to neither.
        let arrived = file.from.is_some() && file.path == self.path && self.since_ns == write.at_ns;
        arrived || self.covers(file.old_path(), write.at_ns)
    }
}

/// Editors save while a person types: an outside edit that follows another one within this time is not recorded.
const COALESCED_NS: i64 = 5 * 60 * 1_000_000_000;

impl LoggedFile {
    /// Whether what another program did is to be recorded, given the last entry about a file at this path.
    pub fn is_news(&self, last: Option<(&LoggedWrite, &Self)>, now_ns: i64) -> bool {
        let Some((write, last)) = last else { return true };
        // The last entry may have moved the file away from this path.
        let known = last.after.filter(|_| last.path == self.path).map(|version| version.hash);
        let is_repeated = write.by == OUTSIDE
            && self.action == NoteAction::Edit
            && matches!(last.action, NoteAction::Edit | NoteAction::Create)
            && now_ns - write.at_ns < COALESCED_NS;
        match self.action {
            NoteAction::Move => last.from != self.from || last.path != self.path,
            _ => known != self.after.map(|version| version.hash) && !is_repeated,
        }
    }
}
