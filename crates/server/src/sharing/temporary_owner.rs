//! Answers other processes while a command owns the vault, so that they need not wait for its end.

use std::path::Path;
use std::sync::Arc;

use super::owner_lock::{OwnerLock, OwnerMode};
use super::ownership::{OwnerResources, Ownership};
use crate::engine::Engine;
use crate::own_files::own_folder;

/// The ownership of a command that shares the vault.
pub struct TemporaryOwner(Ownership);

impl TemporaryOwner {
    /// Answers other processes until [`TemporaryOwner::end`].
    pub fn start(engine: Engine, root: &Path, mut lock: OwnerLock) -> Self {
        let engine = Arc::new(engine);
        let listener = lock.listen(&own_folder(root));
        lock.write_info(OwnerMode::Shared);
        let resources = OwnerResources::new(&engine, listener, lock);
        Self(Ownership::Owner(engine, Some(resources)))
    }

    /// Waits a moment for requests that run. The lock is released when the process exits.
    pub fn end(self) {
        self.0.close();
    }
}
