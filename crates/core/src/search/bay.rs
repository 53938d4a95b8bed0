//! Neighbouring slots, and the lines of their notes: a shelf, and a pile beside it.
//!
//! To sort a changed note into a shelf of 2,000 takes tens of milliseconds, and every write would have the next search do
//! so. What changed since lies on a pile instead, which is a small shelf of its own, until it has grown.

use std::ops::Range;
use std::sync::Arc;

use super::shelf::{Query, Shelf};
use crate::index::Snapshot;
use crate::model::NoteKey;
use crate::ports::VaultFiles;

/// Slots of one bay: what sorting its shelf costs, against how often the same word is kept.
const SLOTS: usize = 2048;

/// Notes on the pile before all are sorted: what the next search costs after each write, against how often the shelf is
/// sorted.
const PILE: usize = 64;

/// The lines of the notes in neighbouring slots. Where the pile has a note, the shelf's version of it is an older one.
#[derive(Debug, Clone, Default)]
pub(super) struct Bay {
    shelf: Arc<Shelf>,
    pile: Arc<Shelf>,
}

impl Bay {
    /// How many bays the notes of a snapshot take.
    pub(super) fn count(snapshot: &Snapshot) -> usize {
        snapshot.slots().div_ceil(SLOTS)
    }

    /// This bay as the snapshot has it. Only the files are read whose notes it does not have as they are now.
    pub(super) fn at(&self, vault: &dyn VaultFiles, snapshot: &Snapshot, number: usize) -> Self {
        let notes = || snapshot.in_slots(slots(number));
        let mut shelf = self.shelf.clone();
        let mut count = 0;
        let mut changed = shelf.missing(notes().inspect(|_| count += 1));
        let outdated = shelf.len() + changed.len() - count;
        if changed.len().max(outdated) > PILE {
            shelf = Arc::new(Shelf::new(vault, notes(), &self.shelf));
            // Those whose files were already newer.
            changed = shelf.missing(notes());
        }
        let is_same = self.pile.len() == changed.len() && self.pile.missing(changed.iter().copied()).is_empty();
        let pile =
            if is_same { self.pile.clone() } else { Arc::new(Shelf::new(vault, changed.into_iter(), &self.pile)) };
        Self { shelf, pile }
    }

    /// Whether it is the very same, not merely one that says the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shelf, &other.shelf) && Arc::ptr_eq(&self.pile, &other.pile)
    }

    /// What it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.shelf.bytes() + self.pile.bytes()
    }

    /// The notes with a title, tag or line that has every word of the query, each with its score; of the snapshot it was
    /// made for.
    pub(super) fn matches(&self, snapshot: &Snapshot, query: &Query) -> Vec<(NoteKey, usize)> {
        let mut found = self.shelf.matches(query, |member| member.is_in(snapshot));
        found.extend(self.pile.matches(query, |_| true));
        found
    }
}

fn slots(bay: usize) -> Range<usize> {
    bay * SLOTS..(bay + 1) * SLOTS
}
