//! The files that notes are about: code, schemas, other documents. Mostly not notes, and never written.

use crate::model::{SourceVersion, VaultPath};
use crate::staleness::SourceRef;

/// Resolves the `source_refs` of notes, now and at the time the note last changed.
///
/// Opens nothing outside the vault and the repository around it. Never fails: a source whose past cannot be read is
/// [`SourceStatus::Unknown`], and a warning says why.
pub trait Sources: Send + Sync {
    /// The files that references name now, with their content. By path, without duplicates; a bounded number. What was not read
    /// has the hash [`NOT_READ`](crate::staleness::NOT_READ) or, for a reference, [`NOT_SEARCHED`](crate::staleness::NOT_SEARCHED).
    fn versions(&self, refs: &[SourceRef]) -> Vec<SourceVersion>;

    /// What happened to each note's sources since the note last changed. One answer for each note, in their order.
    ///
    /// With git history, "last changed" is the last commit that changed the note. A note with uncommitted changes or
    /// without history is compared with `remembered`. Looks at the files on every call.
    fn trace(&self, notes: &[SourcedNote<'_>]) -> Traced;
}

/// A note that names its sources.
#[derive(Debug, Clone)]
pub struct SourcedNote<'a> {
    pub path: &'a VaultPath,
    /// The sources that the note names; not empty.
    pub refs: Vec<SourceRef>,
    /// Its sources when its present bytes were first indexed.
    pub remembered: &'a [SourceVersion],
}

/// The result of [`Sources::trace`].
#[derive(Debug, Default)]
pub struct Traced {
    /// For each note its sources, by path.
    pub notes: Vec<Vec<TracedSource>>,
    /// Which comparisons failed, and what to do. Safe to show to a client.
    pub warnings: Vec<String>,
}

/// One source of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedSource {
    /// Its path as in `source_refs`; the reference itself where it matches no file.
    pub path: String,
    /// The state of the source.
    pub status: SourceStatus,
}

/// What happened to a source since its note last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceStatus {
    /// The content did not change.
    Same,
    /// Other content, or created since.
    Changed {
        /// The first known change: nanoseconds since 1970.
        at_ns: i64,
    },
    /// The file was deleted.
    Deleted {
        /// When, if known.
        at_ns: Option<i64>,
    },
    /// Matches no file, and never did.
    NeverSeen,
    /// History exists, but could not be read, or not far enough.
    Unknown,
}

/// For notes that are not in a folder: what they are about cannot be compared.
#[derive(Debug, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn versions(&self, _: &[SourceRef]) -> Vec<SourceVersion> {
        Vec::new()
    }

    fn trace(&self, notes: &[SourcedNote<'_>]) -> Traced {
        let unknown =
            |source: &SourceRef| TracedSource { path: source.as_str().to_owned(), status: SourceStatus::Unknown };
        let warning = "cannot compare notes with their sources: these notes are in a database, without the files around them; \
                       run `quipu stale` in a checkout";
        Traced {
            notes: notes.iter().map(|note| note.refs.iter().map(unknown).collect()).collect(),
            warnings: if notes.is_empty() { Vec::new() } else { vec![warning.to_owned()] },
        }
    }
}
