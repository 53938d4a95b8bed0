//! What the index remembers between runs: derived from the files, and may be deleted at any time.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::model::{FileStat, Note, NoteKey};

/// Keeps the catalog of notes and the text index as one.
///
/// Everything here can be rebuilt from the vault, so a store that finds itself damaged, of another format or of another
/// `fingerprint` starts empty rather than failing.
pub trait NoteStore: Send + Sync {
    /// Everything kept by earlier runs with this fingerprint (the parser's version and the settings that shape a note).
    /// Called once, before anything else.
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError>;

    /// The one write door. All changes or none, seen by every later call, kept through a kill of the process. A power
    /// cut may take the newest changes: the vault still has them.
    ///
    /// A touch or a removal under a key that the store does not know does nothing: its put may have failed before, on a
    /// full disk for one, and must not take every later list with it.
    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError>;

    /// Keeps what every link means for the next [`NoteStore::load`], instead of what was kept before. The bytes say
    /// themselves which notes they are of, so they may outlive these.
    fn keep_links(&self, links: &[u8]) -> Result<(), StoreError>;

    /// The sections that match best, best first, ties by key and section; those that tie with the last of the limit are
    /// given too, since whoever asks may have another order for ties. Scores depend on the notes alone, not on what was
    /// changed before. Sees every change applied before.
    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError>;

    /// The sections with any of some words, to be weighed against other findings; as many, and in the order, as by
    /// [`NoteStore::search_text`].
    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError>;

    /// The notes whose text was lost while the store was open, because its text index turned out to be damaged: to be put
    /// again. Until they are, a search fails: to find nothing would be a lie.
    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError>;

    /// Everything was put again that can be: searches answer from what there is. What is still missing (a file that cannot
    /// be read) is named by the next load.
    fn accept_loss(&self);

    /// Looks for damage; each finding is a sentence. Slow: reads everything.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// What a store remembered.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In no particular order, keys unique.
    pub notes: Vec<(NoteKey, Note)>,
    /// Notes of the list above whose text did not reach the text index before a crash: to be put again.
    pub text_missing: Vec<NoteKey>,
    /// What [`NoteStore::keep_links`] was last given, if anything.
    pub links: Option<Vec<u8>>,
}

/// One change of the catalog.
#[derive(Debug, Clone, Copy)]
pub enum NoteChange<'a> {
    /// A new note, or a new version of one.
    Put {
        /// Its slot.
        key: NoteKey,
        /// What is known of it.
        note: &'a Note,
        /// The file's whole text; the note's section ranges point into it.
        text: &'a str,
    },
    /// Same bytes, another time.
    Touch {
        /// Its slot.
        key: NoteKey,
        /// The new stat.
        stat: FileStat,
    },
    /// Gone. The slot may be used again, also later in the same list.
    Remove {
        /// Its slot.
        key: NoteKey,
    },
}

/// A search by words.
#[derive(Debug, Clone, Default)]
pub struct TextQuery {
    /// As typed.
    pub text: String,
    /// At most this many sections, but for ties.
    pub limit: usize,
    /// Only in these notes, where it is given. Applied before the limit.
    pub among: Option<Arc<FxHashSet<NoteKey>>>,
}

/// The outcome of a search by words.
#[derive(Debug, Default)]
pub struct TextHits {
    /// Best first.
    pub hits: Vec<TextHit>,
    /// How far the query had to be relaxed to find them.
    pub matched: TextMatch,
    /// How many sections match at that level, beyond the limit too.
    pub total: usize,
}

/// A ranking by words.
#[derive(Debug, Default)]
pub struct RankedText {
    /// Best first.
    pub hits: Vec<TextHit>,
    /// What a section with every word at its best would score: the scale of the scores above.
    pub most: f32,
}

/// One section found.
#[derive(Debug, Clone, PartialEq)]
pub struct TextHit {
    /// Its note.
    pub key: NoteKey,
    /// Its index in the note's sections.
    pub section: usize,
    /// BM25; comparable within one answer only.
    pub score: f32,
}

/// How strictly a query was taken. Users complain most of a strict AND that finds nothing, so it is relaxed step by step,
/// and said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextMatch {
    /// The words stand together as typed.
    #[default]
    Phrase,
    /// Every word occurs, but for some that most sections have.
    AllWords,
    /// Every word occurs, but some are not in the vault and were taken for similar ones, or for parts of longer ones.
    Similar,
    /// Some word occurs.
    AnyWord,
}

/// Why a store failed. Its own words say no more than what could not be done, since they reach clients; why is in its
/// source, for logs and the command line.
#[derive(Debug, thiserror::Error)]
#[error("the index could not be {action}")]
pub struct StoreError {
    /// What could not be done, to end a sentence: "loaded", "updated", "searched", "checked".
    pub action: &'static str,
    /// What went wrong, with paths and the backend's words.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreError {
    /// Wraps a backend's error with what could not be done.
    pub fn new(action: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { action, source: source.into() }
    }
}
