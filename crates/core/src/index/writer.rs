//! The state that only the writer of the index needs, and the write to the store.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::moves::MoveDetector;
use super::publish::sources_by_target;
use super::resolve::Resolver;
use super::snapshot::Snapshot;
use crate::model::{FileStat, Note, NoteKey};
use crate::ports::{NoteChange, NoteStore, StoreError};

/// A file younger than this when read may change again without a new modification time, so its time is not trusted.
const UNSETTLED_NS: i64 = 2_000_000_000;

/// How much earlier the saved time of such a file is: it differs from the file's, and is right in every answer.
const UNTRUSTED_NS: i64 = 1;

/// A note that was added, changed or (with `None`) removed, to be published.
pub(super) type StagedNote = (NoteKey, Option<Note>);

/// The changed notes of a batch of files.
#[derive(Default)]
pub(super) struct WrittenNotes {
    /// New and changed notes with their texts.
    pub(super) read: Vec<(NoteKey, Note, String)>,
    /// Notes with unchanged bytes.
    pub(super) unchanged: Vec<(NoteKey, FileStat)>,
    pub(super) removed: Vec<NoteKey>,
}

impl WrittenNotes {
    pub(super) fn into_staged(self, before: &Snapshot) -> impl Iterator<Item = StagedNote> {
        let newer = |(key, stat): &(NoteKey, FileStat)| before.note(*key).stat != *stat;
        let restated = |(key, stat)| (key, Some(Note { stat, ..before.note(key).clone() }));
        let unchanged = self.unchanged.into_iter().filter(newer).map(restated);
        let read = self.read.into_iter().map(|(key, note, _)| (key, Some(note)));
        unchanged.chain(read).chain(self.removed.into_iter().map(|key| (key, None)))
    }
}

/// The writer's state.
#[derive(Default)]
pub(crate) struct Writer {
    /// Built at the first change: a start with saved links needs none.
    pub(super) resolver: Option<Resolver>,
    /// Whether the store has the resolved links of the snapshot.
    pub(super) links_are_saved: bool,
    /// By the hash of a link's target, the notes with such a link. Built at the first small change.
    pub(super) sources_by_target: Option<FxHashMap<u64, Vec<NoteKey>>>,
    /// Notes whose links were resolved since the last announcement.
    pub(super) touched: ChangedNotes,
    pub(super) move_detector: MoveDetector,
    /// Slots that may be used again, lowest last. Ranges: an index may have few notes and large keys.
    free: Vec<Range<u32>>,
    next_key: u32,
    /// Notes that the store failed to write.
    pub(super) unsaved: FxHashSet<NoteKey>,
    /// Notes whose modification time was too young to trust when they were read.
    pub(super) unsettled: FxHashSet<NoteKey>,
    /// The store could not be loaded, so it may use these slots for other notes: nothing more is written to it.
    pub(super) store_is_lost: bool,
}

/// Which notes may have to be announced.
pub(super) enum ChangedNotes {
    All,
    These(FxHashSet<NoteKey>),
}

impl Default for ChangedNotes {
    fn default() -> Self {
        Self::These(FxHashSet::default())
    }
}

impl Writer {
    /// The state that belongs to a snapshot.
    pub(super) fn restored(snapshot: &Snapshot, store_is_lost: bool) -> Self {
        let mut writer = Self { store_is_lost, ..Self::default() };
        writer.use_keys(&snapshot.files().collect());
        writer
    }

    pub(super) fn use_keys(&mut self, used: &FxHashSet<NoteKey>) {
        let mut used: Vec<u32> = used.iter().map(|key| key.0).collect();
        used.sort_unstable();
        self.next_key = 0;
        self.free.clear();
        for key in used {
            if self.next_key < key {
                self.free.push(self.next_key..key);
            }
            self.next_key = key + 1;
        }
        self.free.reverse();
    }

    pub(super) fn take_key(&mut self) -> NoteKey {
        let Some(lowest) = self.free.last_mut() else {
            self.next_key += 1;
            return NoteKey(self.next_key - 1);
        };
        let key = lowest.start;
        lowest.start += 1;
        if lowest.start == lowest.end {
            self.free.pop();
        }
        NoteKey(key)
    }

    fn release_key(&mut self, key: NoteKey) {
        debug_assert!(!self.free.iter().any(|range| range.contains(&key.0)), "{key:?} was released twice");
        self.unsaved.remove(&key);
        self.unsettled.remove(&key);
        self.free.push(key.0..key.0 + 1);
    }

    /// Builds what resolving a small change needs.
    pub(super) fn link_tables(&mut self, snapshot: &Snapshot) -> (&mut Resolver, &mut FxHashMap<u64, Vec<NoteKey>>) {
        let Self { resolver, sources_by_target: sources, .. } = self;
        // Both take a tenth of a second and more in a big vault, while a saved file waits.
        rayon::join(
            || resolver.get_or_insert_with(|| snapshot.resolver()),
            || sources.get_or_insert_with(|| sources_by_target(snapshot.entries())),
        )
    }

    /// The notes that may differ between two snapshots.
    pub(super) fn touched_keys(&self, before: &Snapshot, after: &Snapshot) -> Vec<NoteKey> {
        let mut keys: Vec<NoteKey> = match &self.touched {
            ChangedNotes::All => before.files().chain(after.files()).collect(),
            ChangedNotes::These(keys) => keys.iter().copied().collect(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Writes changes to the store in one transaction. Notes that it does not take are retried by later batches.
    pub(super) fn save(
        &mut self,
        store: &dyn NoteStore,
        before: &Snapshot,
        changes: &WrittenNotes,
        now_ns: i64,
    ) -> Result<(), StoreError> {
        let read = changes.read.iter();
        let notes: Vec<Note> = read
            .map(|(key, note, _)| Note { stat: self.stat_to_save(*key, note.stat, now_ns), ..note.clone() })
            .collect();
        let puts =
            changes.read.iter().zip(&notes).map(|((key, _, text), note)| NoteChange::Put { key: *key, note, text });
        let touches = changes.unchanged.iter().filter_map(|(key, stat)| {
            let saved = self.stat_to_save(*key, *stat, now_ns);
            (saved == *stat || before.note(*key).stat != *stat).then_some(NoteChange::Touch { key: *key, stat: saved })
        });
        let removals = changes.removed.iter().map(|key| NoteChange::Remove { key: *key });
        // Removals first: a path may have been given to another note.
        let all: Vec<NoteChange<'_>> = removals.chain(puts).chain(touches).collect();
        let mut outcome = Ok(());
        if !all.is_empty() && !self.store_is_lost {
            outcome = store.apply(&all);
            for (key, ..) in &changes.read {
                if outcome.is_ok() {
                    self.unsaved.remove(key)
                } else {
                    self.unsaved.insert(*key)
                };
            }
        }
        for key in &changes.removed {
            self.release_key(*key);
        }
        outcome
    }

    /// The stat to save: with another time if the file's cannot be trusted, so that the next start reads the file again.
    fn stat_to_save(&mut self, key: NoteKey, stat: FileStat, now_ns: i64) -> FileStat {
        if now_ns - stat.modified_ns >= UNSETTLED_NS {
            self.unsettled.remove(&key);
            stat
        } else {
            self.unsettled.insert(key);
            FileStat { modified_ns: stat.modified_ns.saturating_sub(UNTRUSTED_NS), ..stat }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_keys_are_used_lowest_first_and_take_no_room_for_a_large_key() {
        let mut writer = Writer::default();
        writer.use_keys(&[1, 2, 5, u32::MAX - 2].map(NoteKey).into_iter().collect());
        assert!(writer.free.capacity() < 10);
        let taken: Vec<u32> = (0..5).map(|_| writer.take_key().0).collect();
        assert_eq!(taken, [0, 3, 4, 6, 7]);
        writer.release_key(NoteKey(3));
        assert_eq!((writer.take_key().0, writer.take_key().0), (3, 8));
        writer.use_keys(&[0, 1].map(NoteKey).into_iter().collect());
        assert_eq!(writer.take_key().0, 2);
    }
}
