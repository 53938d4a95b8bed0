//! One vault's memory, open: what a tool asks. It composes; the verbs live beside it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::duplicates::DuplicateRule;
use super::entity_types::EntityTypes;
use super::error::MemoryError;
use super::model::{Entity, EntityId};
use super::search::{Embedded, Follower, VectorError};
use crate::RequestKey;
use crate::ports::{Author, Clock, Embedder, MemoryStore};
use crate::session::Session;

/// Memory that can be asked and changed.
pub struct Memory {
    pub(super) store: Arc<dyn MemoryStore>,
    pub(super) types: EntityTypes,
    pub(super) rule: DuplicateRule,
    pub(super) follower: Follower,
    clock: Arc<dyn Clock>,
    /// Held from the look for duplicates to the creation, so that two clients cannot make the same thing at once.
    creating: Mutex<()>,
}

/// What memory is made of.
pub struct MemoryParts {
    /// Where it is kept.
    pub store: Arc<dyn MemoryStore>,
    /// What compares meanings; without one, words do.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which words mean which type.
    pub types: EntityTypes,
    /// What counts as a duplicate.
    pub rule: DuplicateRule,
}

impl Memory {
    /// Composes memory. Nothing is read yet.
    pub fn new(parts: MemoryParts) -> Self {
        let MemoryParts { store, embedder, clock, types, rule } = parts;
        let follower = Follower::new(store.clone(), embedder, types.clone());
        Self { store, types, rule, follower, clock, creating: Mutex::default() }
    }

    /// The time, in nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Where it is kept, for what the tools do not do: log, undo, check, exchange.
    pub fn store(&self) -> &Arc<dyn MemoryStore> {
        &self.store
    }

    /// Whoever asks, using a tool, now.
    pub fn author(&self, session: &Session, tool: &str, request: Option<RequestKey>) -> Author {
        Author { client: session.client(), tool: tool.to_owned(), at_ns: self.now_ns(), request }
    }

    /// Whether this very call was carried out before: what it finds then is its own doing.
    pub(super) fn is_repeated(&self, author: &Author) -> Result<bool, MemoryError> {
        Ok(author.request.map(|request| self.store.was_applied(request)).transpose()?.unwrap_or_default())
    }

    /// Reads what searching needs, so that the first search does not have to.
    pub fn warm_up(&self) -> Result<(), MemoryError> {
        self.follower.view()?;
        Ok(())
    }

    /// Makes at most `limit` of the vectors that are missing and keeps them. Words find everything meanwhile.
    pub fn embed_some(&self, limit: usize) -> Result<Embedded, VectorError> {
        self.follower.embed_some(limit)
    }

    pub(super) fn creating(&self) -> MutexGuard<'_, ()> {
        self.creating.lock()
    }

    pub(super) fn entity(&self, id: EntityId) -> Result<Entity, MemoryError> {
        let found = self.store.entities(&[id])?.into_iter().next().flatten();
        found.ok_or_else(|| MemoryError::no_entity(id))
    }
}
