//! The lines of the notes in neighbouring slots: an index, and a delta of what changed since.
//!
//! Rebuilding an index of 2,000 notes takes tens of milliseconds, too long for the first search after every write. So changed
//! notes go into a small index of their own, the delta, until there are many.

use std::ops::Range;
use std::sync::Arc;

use super::line_search::LineSources;
use super::word_line_index::{LineQuery, WordLineIndex};
use crate::index::Snapshot;
use crate::model::NoteKey;
use crate::ports::{NoteStore, StoreError};

/// Slots of a segment. More cost time to rebuild, fewer cost memory: each segment has its own list of words.
const SLOTS: usize = 2048;

/// Notes in the delta before the segment is rebuilt. More cost each search after a write, fewer cause more rebuilds.
const MAX_DELTA: usize = 64;

/// The lines of the notes in neighbouring slots. A note in the delta replaces the older version in the base.
#[derive(Debug, Clone, Default)]
pub(super) struct LineSegment {
    base: Arc<WordLineIndex>,
    delta: Arc<WordLineIndex>,
}

impl LineSegment {
    /// How many segments the notes of a snapshot take.
    pub(super) fn count(snapshot: &Snapshot) -> usize {
        snapshot.slots().div_ceil(SLOTS)
    }

    /// This segment, brought up to a snapshot. Reads only the files of notes that changed since it was built, or stored.
    pub(super) fn updated(&self, sources: LineSources<'_>, number: usize) -> Self {
        let LineSources { vault, snapshot, .. } = sources;
        let notes = || snapshot.in_slots(slots(number));
        let mut base = self.base.clone();
        if self.base.len() + self.delta.len() == 0 {
            base = stored(sources, number).map_or(base, Arc::new);
        }
        let mut count = 0;
        let mut changed = base.missing(notes().inspect(|_| count += 1));
        let outdated = base.len() + changed.len() - count;
        if changed.len().max(outdated) > MAX_DELTA {
            base = Arc::new(WordLineIndex::new(vault, &notes().collect::<Vec<_>>(), &base));
            // Files that were newer than the snapshot when they were read.
            changed = base.missing(notes());
        }
        let is_same = self.delta.len() == changed.len() && self.delta.missing(changed.iter().copied()).is_empty();
        let delta =
            if is_same { self.delta.clone() } else { Arc::new(WordLineIndex::new(vault, &changed, &self.delta)) };
        Self { base, delta }
    }

    /// Stores the base, unless the store has it. Changes in the delta are read again by the next start.
    pub(super) fn store(&self, store: &dyn NoteStore, number: u32) -> Result<(), StoreError> {
        if self.base.len() > 0 && !self.base.is_stored() {
            store.store_lines(number, &self.base.encode())?;
            self.base.set_stored();
        }
        Ok(())
    }

    /// Whether both share the same memory.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.base, &other.base) && Arc::ptr_eq(&self.delta, &other.delta)
    }

    /// The memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.base.bytes() + self.delta.bytes()
    }

    /// The notes with a title, tag or line that has every word of the query, with their scores. The snapshot is the one that
    /// the segment was updated to.
    pub(super) fn matches(&self, snapshot: &Snapshot, query: &LineQuery) -> Vec<(NoteKey, usize)> {
        let mut found = self.base.matches(query, |note| note.is_in(snapshot));
        found.extend(self.delta.matches(query, |_| true));
        found
    }
}

/// The base as an earlier start stored it. One that cannot be read is built again.
fn stored(sources: LineSources<'_>, number: usize) -> Option<WordLineIndex> {
    let bytes = sources.store.lines(u32::try_from(number).ok()?).ok()??;
    WordLineIndex::decode(&bytes, sources.snapshot)
}

fn slots(segment: usize) -> Range<usize> {
    segment * SLOTS..(segment + 1) * SLOTS
}
