//! What a transport needs from a vault, in this process or another.

use std::sync::Arc;

use quipu_core::index::SnapshotDiff;
use quipu_core::model::{NoteId, VaultPath};
use quipu_core::ports::Image;
use quipu_core::{RequestKey, Session};
use quipu_tools::{
    Completion, Offer, Overview, ResourcePage, ResourceText, ToolError, ToolInfo, ToolResponse, WholeGraph,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::last_hour::LastHour;
use super::metric::Metric;
use super::trail::{ClientCalls, ToolLatency, TrailPage};

/// The word for a database that does not answer.
pub(crate) const UNREACHABLE: &str = "database unreachable";

/// A vault, here or in another process.
pub trait VaultService: Send + Sync {
    /// The tools that clients may use. They can change when another process with other settings becomes the owner; listeners
    /// are notified.
    fn offer(&self) -> Arc<Offer>;

    /// Calls a tool of the offer. A call with a key takes effect once, however often a client sends it.
    fn call(
        &self,
        tool: &'static ToolInfo,
        arguments: Value,
        session: &Session,
        key: Option<RequestKey>,
    ) -> ToolResponse;

    /// See [`quipu_tools::Registry::resources`]. This and the next two wait for the first index as long as a client would:
    /// unlike tool calls, resources cannot say that a list is incomplete.
    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError>;

    /// See [`quipu_tools::Registry::read_resource`].
    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError>;

    /// See [`quipu_tools::Registry::complete_note_id`].
    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion;

    /// The index progress.
    fn progress(&self) -> IndexProgress;

    /// Why clients should rather ask another server, in a word, if they should. Does not wait.
    fn unready_reason(&self) -> Option<&'static str> {
        None
    }

    /// Metrics of this vault or graph.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// See [`quipu_tools::Registry::whole_graph`].
    fn whole_graph(&self) -> Result<WholeGraph, ToolError>;

    /// See [`quipu_core::ports::VaultFiles::image`].
    fn image(&self, note: &VaultPath, target: &str) -> Result<Option<Image>, ToolError>;

    /// Counts, warnings, clients and latencies.
    fn report(&self) -> Result<Report, ToolError>;

    /// The calls and changes from a number on: see [`super::Trail::since`].
    fn trail(&self, from: u64) -> Result<TrailPage, ToolError>;

    /// Calls the listener on every change of the notes from now on, whichever program makes it. A listener must be fast.
    fn on_change(&self, listener: VaultChangeListener);
}

/// The index progress of a vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexProgress {
    /// Files indexed so far.
    pub files: usize,
    /// Whether the first index is complete.
    pub is_over: bool,
}

/// A vault as a person wants to know it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the vault has been read.
    pub indexed: bool,
    pub overview: Overview,
    pub clients: Vec<ClientCalls>,
    pub latency: Vec<ToolLatency>,
    pub hour: LastHour,
    /// Resident memory of the process that owns the vault, in MB; 0 where the system does not tell it.
    pub memory_mb: u64,
}

/// A change of the notes, or of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultChange {
    /// Whether the list of notes by id and title has changed.
    pub listing: bool,
    /// The changed notes; `None` if any may have changed.
    pub notes: Option<Vec<NoteId>>,
    /// Whether the offered tools have changed.
    pub tools: bool,
}

impl VaultChange {
    /// Nothing changed.
    pub const NONE: Self = Self { listing: false, notes: Some(Vec::new()), tools: false };
    /// Any note may have changed.
    pub const ANY: Self = Self { listing: true, notes: None, tools: false };
}

impl From<&SnapshotDiff<'_>> for VaultChange {
    fn from(changes: &SnapshotDiff<'_>) -> Self {
        // A start must not wait for lists of all notes.
        if changes.is_of_all() {
            return Self::ANY;
        }
        Self { listing: changes.listing(), notes: Some(changes.notes().collect()), tools: false }
    }
}

/// A callback for changes.
pub type VaultChangeListener = Box<dyn Fn(VaultChange) + Send + Sync>;
