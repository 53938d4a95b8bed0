//! Synchronisation of a folder of notes with a graph of a database.
//!
//! Each note has three versions: in the folder, in the graph, and in the base, which is the version that both had when they were
//! last in sync. [`decide`](fn@decide) compares them. [`SyncRun`] makes a plan of all decisions and applies it by guarded writes: a write
//! names the version that it replaces, so a note that changes meanwhile is compared again. The base is recorded after the writes
//! that it describes: a run that is killed at any moment repeats them, and repeating them changes nothing.

mod apply_plan;
mod base;
mod compare;
mod copy_name;
mod decide;
mod plan;
mod report;

pub use apply_plan::{SyncOptions, SyncRun};
pub use base::{Base, BaseChange, BaseLog};
pub use decide::{Decision, SyncVersion, decide};
pub use plan::{Action, Side, Step, SyncDirection};
pub use report::{Conflict, SkippedFile, SyncCounts, SyncError, SyncReport};
