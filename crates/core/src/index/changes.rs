//! What one change of the index did to the notes, for listeners.

use parking_lot::RwLock;

use super::snapshot::Snapshot;
use crate::model::{Note, NoteId, NoteKey};

/// A list of more changed notes takes milliseconds.
const MANY: usize = 1000;

/// Two snapshots, one after the other, and which notes may differ between them.
pub struct SnapshotDiff<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    keys: &'a [NoteKey],
}

impl<'a> SnapshotDiff<'a> {
    pub(super) fn new(before: &'a Snapshot, after: &'a Snapshot, keys: &'a [NoteKey]) -> Self {
        Self { before, after, keys }
    }

    /// Whether there are many notes, and were none before, as at a start: no listener needs a list of them.
    pub fn is_of_all(&self) -> bool {
        self.before.files().len() == 0 && self.keys.len() > MANY
    }

    /// Whether a list of all notes by id and title would change.
    pub fn listing(&self) -> bool {
        self.keys.iter().any(|key| {
            let listed = |snapshot: &'a Snapshot| snapshot.get(*key).map(|note| (&note.id, &note.title));
            listed(self.before) != listed(self.after)
        })
    }

    /// The notes that were added, changed or removed, by lowercased path: a client that subscribed to one of two files that
    /// differ only in case is notified of both. In no order, some possibly twice.
    pub fn notes(&self) -> impl Iterator<Item = NoteId> + '_ {
        self.keys.iter().flat_map(|key| {
            let (old, new) = (self.before.get(*key), self.after.get(*key));
            let same = old.map(|note| (&note.path, note.hash)) == new.map(|note| (&note.path, note.hash));
            let is_elsewhere = |old: &Note| new.is_none_or(|new| old.path.note_id() != new.path.note_id());
            let old = old.filter(|old| is_elsewhere(old));
            old.into_iter().chain(new).filter(move |_| !same).map(|note| note.path.note_id())
        })
    }
}

/// Called after each change, on the writing thread: a listener must be quick and must not write.
pub type ChangeListener = Box<dyn Fn(&SnapshotDiff<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct ChangeListeners(RwLock<Vec<ChangeListener>>);

impl ChangeListeners {
    pub(super) fn add(&self, listener: ChangeListener) {
        self.0.write().push(listener);
    }

    pub(super) fn notify(&self, changes: &SnapshotDiff<'_>) {
        self.0.read().iter().for_each(|listener| listener(changes));
    }
}
