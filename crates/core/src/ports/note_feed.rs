//! The change feed of notes that several servers share.

use crate::model::VaultPath;

/// Changes of a graph's notes by every server, numbered in the order of their commits. A reader that has seen a number has seen
/// all smaller ones.
///
/// A feed that cannot be reached fails at once: its reader decides how long it waits.
pub trait NoteFeed: Send + Sync {
    /// The number of the last change; 0 if there is none.
    fn head(&self) -> Result<i64, FeedError>;

    /// The changes after a number.
    fn changes_since(&self, number: i64) -> Result<NoteChanges, FeedError>;

    /// How far the logs of notes and of memory are, and whether a text of either was redacted by any server after `known`.
    fn redacted_since(&self, known: LogHeads) -> Result<(LogHeads, bool), FeedError>;

    /// Calls this when there may be a change from now on. Some calls may come late or never: a reader also asks by itself.
    fn on_change(&self, _wake: Box<dyn Fn() + Send + Sync>) {}
}

/// The last numbers of the logs of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogHeads {
    pub notes: i64,
    pub memory: i64,
}

impl LogHeads {
    /// Above every number.
    pub const LAST: Self = Self { notes: i64::MAX, memory: i64::MAX };
}

/// The paths that changed after a number of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteChanges {
    /// The number of the last change.
    pub head: i64,
    /// Sorted, without duplicates. A path whose note was deleted is among them.
    pub paths: Vec<VaultPath>,
}

/// The feed could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the changes to the notes: {0}")]
pub struct FeedError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
