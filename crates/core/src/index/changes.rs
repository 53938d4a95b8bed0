//! What one change of the index did to the notes, for whoever has to pass it on.

use parking_lot::RwLock;

use super::snapshot::Snapshot;
use crate::model::{NoteId, NoteKey};

/// Two snapshots, one after the other, and which notes may differ between them.
pub struct Changes<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    keys: &'a [NoteKey],
}

impl<'a> Changes<'a> {
    pub(super) fn new(before: &'a Snapshot, after: &'a Snapshot, keys: &'a [NoteKey]) -> Self {
        Self { before, after, keys }
    }

    /// Whether a list of all notes by id and title would read differently.
    pub fn listing(&self) -> bool {
        self.keys.iter().any(|key| {
            let listed = |snapshot: &'a Snapshot| snapshot.get(*key).map(|note| (&note.id, &note.title));
            listed(self.before) != listed(self.after)
        })
    }

    /// The notes whose bytes are others now, also those that came or went, by their paths in lower case: a client that
    /// follows one of two files that differ only in case is told of both. In no order, a few perhaps twice.
    pub fn notes(&self) -> impl Iterator<Item = NoteId> + '_ {
        self.keys.iter().flat_map(|key| {
            let (old, new) = (self.before.get(*key), self.after.get(*key));
            let same = old.map(|note| (&note.path, note.hash)) == new.map(|note| (&note.path, note.hash));
            let moved = old.map(|note| note.path.note_id()) != new.map(|note| note.path.note_id());
            let old = old.filter(|_| moved);
            old.into_iter().chain(new).filter(move |_| !same).map(|note| note.path.note_id())
        })
    }
}

/// Called after each change, on the thread that made it: a listener must be quick and must not write.
pub type Listener = Box<dyn Fn(&Changes<'_>) + Send + Sync>;

/// Those who want to know.
#[derive(Default)]
pub(super) struct Listeners(RwLock<Vec<Listener>>);

impl Listeners {
    pub(super) fn add(&self, listener: Listener) {
        self.0.write().push(listener);
    }

    pub(super) fn tell(&self, changes: &Changes<'_>) {
        self.0.read().iter().for_each(|listener| listener(changes));
    }
}
