//! One client's connection: which versions of notes it has been shown, and which warnings it has been told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::model::{ContentHash, VaultPath};

/// What is remembered of one client while it is connected.
#[derive(Debug, Default)]
pub struct Session {
    inner: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shown: FxHashMap<VaultPath, ContentHash>,
    told: (u64, u64),
}

impl Session {
    /// The version of a file this client was last shown.
    pub fn shown(&self, path: &VaultPath) -> Option<ContentHash> {
        self.lock().shown.get(path).copied()
    }

    pub(crate) fn show(&self, path: &VaultPath, hash: ContentHash) {
        self.lock().shown.insert(path.clone(), hash);
    }

    pub(crate) fn forget(&self, path: &VaultPath) {
        self.lock().shown.remove(path);
    }

    /// Marks everything up to these counts of the two logs as told; returns what they were before.
    pub(crate) fn told_until(&self, odd: u64, changed: u64) -> (u64, u64) {
        std::mem::replace(&mut self.lock().told, (odd, changed))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
