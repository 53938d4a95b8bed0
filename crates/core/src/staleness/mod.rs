//! Staleness of notes: a note names the files it is about (`source_refs`), and they may have changed after it.
//!
//! Computed for every call from [`Sources`](crate::ports::Sources); nothing is cached here.

mod judge;
mod remembered;
mod source_ref;

pub use judge::{Freshness, SourceChange, StaleSource, Staleness, judge};
pub use remembered::{NOT_READ, NOT_SEARCHED, since_remembered, to_remember};
pub use source_ref::{SourceRef, source_refs, unusable_refs};

use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::NoteKey;
use crate::ports::SourcedNote;

impl Knowledge {
    /// The freshness of some notes, in their order, and warnings about sources that could not be compared.
    pub fn freshness(&self, snapshot: &Snapshot, keys: &[NoteKey]) -> (Vec<Freshness>, Vec<String>) {
        let sourced = |key: &NoteKey| {
            let note = snapshot.note(*key);
            let refs = source_refs(note);
            (!refs.is_empty()).then_some(SourcedNote { path: &note.path, refs, remembered: &note.sources })
        };
        let notes: Vec<Option<SourcedNote<'_>>> = keys.iter().map(sourced).collect();
        let asked: Vec<SourcedNote<'_>> = notes.iter().flatten().cloned().collect();
        if asked.is_empty() {
            return (keys.iter().map(|_| Freshness::untracked()).collect(), Vec::new());
        }
        let traced = self.sources.trace(&asked);
        let now_ns = self.clock.now_ns();
        let mut traces = traced.notes.into_iter();
        let judged = |note: &Option<SourcedNote<'_>>| match note {
            Some(_) => judge(&traces.next().unwrap_or_default(), now_ns, self.stale_after_ns),
            None => Freshness::untracked(),
        };
        (notes.iter().map(judged).collect(), traced.warnings)
    }
}
