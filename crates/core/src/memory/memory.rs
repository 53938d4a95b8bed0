//! One vault's memory, open: what a tool uses. Its operations are in the files beside this one.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::duplicates::DuplicateRule;
use super::entity_types::EntityTypes;
use super::error::MemoryError;
use super::model::{Entity, EntityId};
use super::search::{Embedded, LogFollower, ReadProgress, VectorError};
use crate::RequestKey;
use crate::ports::{Author, ChangeNumber, Clock, Embedder, MemoryFailure, MemoryStore};
use crate::session::Session;

/// How often a check that another process overtook is repeated.
const MAX_CHECKS: usize = 100;

/// Memory that can be read and changed.
pub struct Memory {
    pub(super) store: Arc<dyn MemoryStore>,
    pub(super) types: EntityTypes,
    pub(super) rule: DuplicateRule,
    pub(super) follower: LogFollower,
    clock: Arc<dyn Clock>,
    /// Held from a check for duplicates to the creation. Calls of one process would otherwise overtake each other's checks; that
    /// no duplicate is created, by whichever process, is up to [`MemoryStore::apply_at`].
    creating: Mutex<()>,
}

/// The parts of a memory.
pub struct MemoryParts {
    pub store: Arc<dyn MemoryStore>,
    /// Compares meanings; without one, only words are compared.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub clock: Arc<dyn Clock>,
    /// Canonical entity types.
    pub types: EntityTypes,
    pub rule: DuplicateRule,
}

impl Memory {
    /// Composes memory. Nothing is read yet.
    pub fn new(parts: MemoryParts) -> Self {
        let MemoryParts { store, embedder, clock, types, rule } = parts;
        let follower = LogFollower::new(store.clone(), embedder, types.clone());
        Self { store, types, rule, follower, clock, creating: Mutex::default() }
    }

    /// The time, in nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// The store, for operations that are no tools: log, undo, check, export, import.
    pub fn store(&self) -> &Arc<dyn MemoryStore> {
        &self.store
    }

    /// The author of a change: the client, its tool and the time.
    pub fn author(&self, session: &Session, tool: &str, request: Option<RequestKey>) -> Author {
        Author { client: session.client(), tool: tool.to_owned(), at_ns: self.now_ns(), request }
    }

    /// Whether this call was applied before, so that duplicates it finds are its own.
    pub(super) fn is_repeated(&self, author: &Author) -> Result<bool, MemoryError> {
        Ok(author.request.map(|request| self.store.was_applied(request)).transpose()?.unwrap_or_default())
    }

    /// Work that reads memory for the first search, for another thread. Searches from now until it is done find what it has read.
    pub fn read_ahead(memory: &Arc<Self>) -> impl FnOnce() -> Result<(), MemoryFailure> + Send + use<> {
        memory.follower.expect_read_ahead();
        let memory = memory.clone();
        move || memory.follower.read_ahead()
    }

    /// Waits for [`Memory::read_ahead`]; after a while, how far it is.
    pub fn wait_read(&self, patience: Duration) -> Result<(), ReadProgress> {
        self.follower.wait_read(patience)
    }

    /// Like [`Memory::wait_read`], for a call that needs all of memory.
    pub(crate) fn expect_read(&self, patience: Duration) -> Result<(), MemoryError> {
        self.follower.expect_read(patience)
    }

    /// Creates and stores at most `limit` missing vectors. Until then, search by words finds everything.
    pub fn embed_some(&self, limit: usize) -> Result<Embedded, VectorError> {
        self.follower.embed_some(limit)
    }

    /// Checks and applies, as of one log entry. If another process changes memory in between, both are repeated.
    pub(super) fn checked_at_head<T>(
        &self,
        attempt: impl Fn(Option<ChangeNumber>) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let _alone = self.creating.lock();
        for _ in 0..MAX_CHECKS {
            match attempt(Some(self.store.head()?)) {
                Err(MemoryError::Moved) => {}
                outcome => return outcome,
            }
        }
        Err(MemoryError::Moved)
    }

    pub(super) fn entity(&self, id: EntityId) -> Result<Entity, MemoryError> {
        let found = self.store.entities(&[id])?.into_iter().next().flatten();
        found.ok_or_else(|| MemoryError::no_entity(id))
    }
}
