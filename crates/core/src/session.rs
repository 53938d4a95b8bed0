//! One client's connection: who it is, which versions of notes it has been shown, which warnings it has been told, and
//! the context it works in.
//!
//! A note counts as shown in part until somebody says that the client got all of it: a tool that cuts must not let the
//! rest be written over.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::memory::EntityId;
use crate::model::{ContentHash, VaultPath};

/// Longer names are cut: they are kept in memory's log with every change.
const MAX_NAME_CHARS: usize = 200;

/// What is remembered of one client while it is connected.
#[derive(Debug, Default)]
pub struct Session {
    inner: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shown: FxHashMap<VaultPath, Shown>,
    told: (u64, u64),
    client: String,
    /// `None` until it is set or asked for: then it is the one its name set last.
    context: Option<Option<EntityId>>,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    hash: ContentHash,
    /// Not only the beginning.
    whole: bool,
}

impl Session {
    /// The session of a client that has said its name.
    pub fn named(client: &str) -> Self {
        let session = Self::default();
        session.introduce(client);
        session
    }

    /// Notes the client's name, as it gives it. The first one stays.
    pub fn introduce(&self, client: &str) {
        let mut state = self.lock();
        if state.client.is_empty() {
            state.client = client.chars().take(MAX_NAME_CHARS).collect();
        }
    }

    /// The client's name; empty while it has given none.
    pub fn client(&self) -> String {
        self.lock().client.clone()
    }

    /// The context as far as this connection knows it.
    pub(crate) fn context(&self) -> Option<Option<EntityId>> {
        self.lock().context
    }

    pub(crate) fn set_context(&self, context: Option<EntityId>) {
        self.lock().context = Some(context);
    }

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
