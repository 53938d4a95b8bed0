//! The files that notes are about: code, schemas, other documents. Mostly not notes, and never written.

use crate::model::{SourceVersion, VaultPath};
use crate::staleness::SourceRef;

/// Knows what a note's `source_refs` name, now and when the note last changed.
///
/// Nothing outside the vault and the repository it lies in is ever opened, whatever a reference says. Never fails: what
/// cannot be found out is [`SinceThen::Unknown`], and a warning tells why.
pub trait Sources: Send + Sync {
    /// The files that some references name now, with their content. By path, each once; a bounded number.
    fn versions(&self, refs: &[SourceRef]) -> Vec<SourceVersion>;

    /// What became of each note's sources since the note itself last changed. One answer for each note, in their order.
    ///
    /// That moment is the last commit that changed the note, where there is history. A note with changes of its own that
    /// are not committed, or without history, goes by what is `remembered`. Looks at the files anew each time.
    fn trace(&self, notes: &[SourcedNote<'_>]) -> Traced;
}

/// A note that names its sources.
#[derive(Debug, Clone)]
pub struct SourcedNote<'a> {
    /// Where it lies.
    pub path: &'a VaultPath,
    /// What it names; not empty.
    pub refs: Vec<SourceRef>,
    /// Its sources when its present bytes were first seen.
    pub remembered: &'a [SourceVersion],
}

/// What became of the sources of some notes.
#[derive(Debug, Default)]
pub struct Traced {
    /// For each note its sources, by path.
    pub notes: Vec<Vec<TracedSource>>,
    /// What could not be found out, and what to do about it. Safe to show to a client.
    pub warnings: Vec<String>,
}

/// One source of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedSource {
    /// Its path as a reader of the note would write it; the reference itself where it names nothing.
    pub path: String,
    /// What became of it.
    pub since: SinceThen,
}

/// What became of a source since its note last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SinceThen {
    /// The same content.
    Same,
    /// Other content, or not there at the time.
    Changed {
        /// When it first changed, as far as is known: nanoseconds since 1970.
        at_ns: i64,
    },
    /// Not there now, and once it was.
    Gone {
        /// When it went, where that is known.
        at_ns: Option<i64>,
    },
    /// Not there now, and nobody has ever seen it.
    NeverSeen,
    /// There is a history that would tell, and it could not be read, or not far enough.
    Unknown,
}
