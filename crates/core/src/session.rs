//! One client's connection: which versions of notes it has been shown, and which warnings it has been told.
//!
//! A note counts as shown in part until somebody says that the client got all of it: a tool that cuts must not let the
//! rest be written over.

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
    shown: FxHashMap<VaultPath, Shown>,
    told: (u64, u64),
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    hash: ContentHash,
    /// Not only the beginning.
    whole: bool,
}

impl Session {
    /// The version of a file this client was last shown.
    pub fn shown(&self, path: &VaultPath) -> Option<ContentHash> {
        self.lock().shown.get(path).map(|shown| shown.hash)
    }

    /// Whether this client was shown the end of that version too, `None` when it was not shown that version at all.
    pub(crate) fn shown_whole(&self, path: &VaultPath, hash: ContentHash) -> Option<bool> {
        self.lock().shown.get(path).filter(|shown| shown.hash == hash).map(|shown| shown.whole)
    }

    /// Shows a version, `whole` or its beginning. A later look at the beginning takes nothing back.
    pub(crate) fn show(&self, path: &VaultPath, hash: ContentHash, whole: bool) {
        let mut state = self.lock();
        let before = state.shown.get(path).is_some_and(|shown| shown.hash == hash && shown.whole);
        state.shown.insert(path.clone(), Shown { hash, whole: whole || before });
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
