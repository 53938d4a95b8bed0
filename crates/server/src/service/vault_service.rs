//! What a front door asks of a vault, wherever that is open.

use std::sync::Arc;

use quipu_core::Session;
use quipu_core::index::SnapshotDiff;
use quipu_core::model::NoteId;
use quipu_tools::{Completion, Offer, ResourcePage, ResourceText, ToolError, ToolInfo, ToolResponse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A vault, here or in another process.
pub trait VaultService: Send + Sync {
    /// The tools that clients may use. They differ where another process has taken the vault over, with other settings; then
    /// listeners are told.
    fn offer(&self) -> Arc<Offer>;

    /// Calls a tool of the offer.
    fn call(&self, tool: &'static ToolInfo, arguments: Value, session: &Session) -> ToolResponse;

    /// See [`quipu_tools::Registry::resources`]. This and the next two wait for the vault to be read, as long as a client
    /// might: resources, unlike tool calls, have no way to say that a list is not whole yet.
    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError>;

    /// See [`quipu_tools::Registry::read_resource`].
    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError>;

    /// See [`quipu_tools::Registry::complete_note_id`].
    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion;

    /// How far the vault has been read.
    fn progress(&self) -> IndexProgress;

    /// Has someone told of every change of the notes from now on, whoever makes it. A listener must be quick.
    fn on_change(&self, listener: ChangeListener);
}

/// How far a vault has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexProgress {
    /// Files that are known.
    pub files: usize,
    /// Whether those are all.
    pub is_over: bool,
}

/// A change of the notes, or of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Whether a list of all notes by id and title would read differently.
    pub listing: bool,
    /// The notes whose bytes are others now; `None` when any may be.
    pub notes: Option<Vec<NoteId>>,
    /// Whether other tools are offered now.
    pub tools: bool,
}

impl Change {
    /// That nothing changed.
    pub const NONE: Self = Self { listing: false, notes: Some(Vec::new()), tools: false };
    /// That any note may have changed.
    pub const ANY: Self = Self { listing: true, notes: None, tools: false };
}

impl From<&SnapshotDiff<'_>> for Change {
    fn from(changes: &SnapshotDiff<'_>) -> Self {
        Self { listing: changes.listing(), notes: Some(changes.notes().collect()), tools: false }
    }
}

/// Somebody who wants to know of changes.
pub type ChangeListener = Box<dyn Fn(Change) + Send + Sync>;
