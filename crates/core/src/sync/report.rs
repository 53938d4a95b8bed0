//! What a run did, and why one stopped.

use std::io;

use super::plan::{Action, Side, Step};
use crate::model::VaultPath;
use crate::ports::{VaultError, WriteError};

/// The result of a run.
#[derive(Debug, Default)]
pub struct SyncReport {
    /// The steps that were applied, or in a dry run would be, in order.
    pub steps: Vec<Step>,
    /// Notes that both sides changed.
    pub conflicts: Vec<Conflict>,
    /// Notes that are equal on both sides.
    pub in_sync: usize,
    /// Changes of the side that this direction does not read.
    pub waiting: usize,
    /// Notes that a side cannot hold, or that kept changing.
    pub skipped: Vec<SkippedFile>,
    /// Notes that the rules of the folder exclude, which stay as they are on both sides.
    pub excluded: Vec<SkippedFile>,
}

/// A note that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: VaultPath,
    /// Where the folder's version was kept; `None` if nothing was changed.
    pub copy: Option<VaultPath>,
}

/// A note that was not synchronised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    pub path: VaultPath,
    /// Why the note was skipped.
    pub reason: String,
}

/// Steps by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// New notes.
    pub created: usize,
    /// Notes with another version.
    pub changed: usize,
    /// Notes with another path.
    pub moved: usize,
    /// Deleted notes.
    pub deleted: usize,
}

impl SyncReport {
    /// The steps on one side.
    pub fn counts(&self, side: Side) -> SyncCounts {
        let mut counts = SyncCounts::default();
        for step in self.steps.iter().filter(|step| step.side == side) {
            match step.action {
                Action::Create(_) => counts.created += 1,
                Action::Replace { .. } | Action::KeepBoth { .. } => counts.changed += 1,
                Action::Move { .. } => counts.moved += 1,
                Action::Delete(_) => counts.deleted += 1,
            }
        }
        counts
    }

    /// Whether every note is in sync, or waits for the other direction.
    pub fn is_clean(&self) -> bool {
        self.conflicts.is_empty() && self.skipped.is_empty()
    }

    pub(super) fn add(&mut self, later: Self) {
        let Self { steps, conflicts, in_sync, waiting, skipped, excluded } = later;
        self.steps.extend(steps);
        self.conflicts.extend(conflicts);
        self.in_sync += in_sync;
        self.waiting += waiting;
        self.skipped.extend(skipped);
        self.excluded.extend(excluded);
    }
}

/// Why a run stopped. What it did before is recorded; the next run continues.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A side could not be read.
    #[error(transparent)]
    Read(#[from] VaultError),
    /// A side could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The base could not be recorded.
    #[error("cannot write the sync record: {0}")]
    Record(#[source] io::Error),
    /// Most notes of a side would be deleted, as after a wrong checkout or an unmounted disk.
    #[error("cannot delete {deleted} of {notes} notes {}: that is more than half", place(*.side))]
    TooManyDeleted {
        side: Side,
        /// Notes to delete.
        deleted: usize,
        /// Notes in sync before.
        notes: usize,
    },
}

impl SyncError {
    /// Whether the database did not answer.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Read(VaultError::Database { .. }) | Self::Write(WriteError::Database { .. }))
    }
}

fn place(side: Side) -> &'static str {
    match side {
        Side::Folder => "in the folder",
        Side::Graph => "in the graph",
    }
}
