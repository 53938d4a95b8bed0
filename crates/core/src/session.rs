//! One client's connection: which versions of notes it has been shown, and which warnings it has been told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::model::{ContentHash, NoteId};

/// What is remembered of one client while it is connected.
#[derive(Debug, Default)]
pub struct Session {
    shown: Mutex<FxHashMap<NoteId, ContentHash>>,
    told: AtomicU64,
}

impl Session {
    /// The version of a note this client was last shown.
    pub fn shown(&self, id: &NoteId) -> Option<ContentHash> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    pub(crate) fn show(&self, id: &NoteId, hash: ContentHash) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), hash);
    }

    pub(crate) fn forget(&self, id: &NoteId) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Marks everything up to `count` as told; returns where it was before.
    pub(crate) fn told_until(&self, count: u64) -> u64 {
        self.told.swap(count, Ordering::Relaxed)
    }
}
