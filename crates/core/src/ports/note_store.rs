//! The index between runs: derived from the files, and may be deleted at any time.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::model::{FileStat, Note, NoteKey};

/// Notes to which a search is limited.
pub type NoteSet = FxHashSet<NoteKey>;

/// Stores the catalog of notes and the text index as one.
///
/// Everything here can be rebuilt from the vault, so a store that is damaged, of another format or of another
/// `fingerprint` starts empty instead of failing.
pub trait NoteStore: Send + Sync {
    /// Everything stored by earlier runs with this fingerprint (the parser's version and the settings that affect
    /// parsing). Called once, before anything else.
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError>;

    /// The only method that changes notes. All changes or none, visible to every later call; they survive a kill of the
    /// process. A power cut may lose the newest changes: the vault still has them.
    ///
    /// A touch or a removal of an unknown key does nothing: its put may have failed before, for example on a full disk,
    /// and must not make every later batch fail.
    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError>;

    /// Replaces the stored targets of all links, for the next [`NoteStore::load`]. The bytes contain a fingerprint of the
    /// notes they belong to, so they may be older than the notes.
    fn store_links(&self, links: &[u8]) -> Result<(), StoreError>;

    /// Stores a segment of the line index, replacing an earlier one. The bytes contain the versions of the notes they are of,
    /// so they may be older than the notes. A store that does not outlive the process need not keep them.
    fn store_lines(&self, segment: u32, bytes: &[u8]) -> Result<(), StoreError>;

    /// The bytes last given to [`NoteStore::store_lines`]; `None` if they are missing or damaged.
    fn lines(&self, segment: u32) -> Result<Option<Vec<u8>>, StoreError>;

    /// The sections that match best, best first, ties by key and section. Sections that tie with the last one within the
    /// limit are included, since the caller may order ties differently. Scores depend on the present notes only, not on
    /// earlier changes. Sees every change applied before.
    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError>;

    /// The sections with any of the words, to be combined with other rankings; limit and order as in
    /// [`NoteStore::search_text`].
    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError>;

    /// The notes whose text was lost because the text index was found corrupt while open: the caller puts them again.
    /// Until then a search fails: an empty result would be wrong.
    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError>;

    /// Ends the failure of searches after [`NoteStore::text_lost`]: the caller has put again what it can. The next load
    /// names what is still missing (for example a file that cannot be read).
    fn accept_loss(&self);

    /// Rewrites the files of the store, so that nothing of removed or replaced texts is left in free space. The text of every
    /// note is lost then, see [`NoteStore::text_lost`], and so are the segments of the line index.
    fn scrub(&self) -> Result<(), StoreError>;

    /// Checks for damage; each finding is a sentence. Slow: reads everything.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// What a store has from earlier runs.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In no particular order, keys unique.
    pub notes: Vec<(NoteKey, Note)>,
    /// Notes of the list above whose text did not reach the text index before a crash: to be put again.
    pub text_missing: Vec<NoteKey>,
    /// The argument of the last [`NoteStore::store_links`].
    pub links: Option<Vec<u8>>,
}

/// One change of the catalog.
#[derive(Debug, Clone, Copy)]
pub enum NoteChange<'a> {
    /// A new note, or a new version of one.
    Put {
        key: NoteKey,
        note: &'a Note,
        /// The file's whole text; the note's section ranges point into it.
        text: &'a str,
    },
    /// Same bytes, another time.
    Touch { key: NoteKey, stat: FileStat },
    /// The note is deleted. Its slot may be reused, also later in the same list.
    Remove { key: NoteKey },
}

/// A search by words.
#[derive(Debug, Clone, Default)]
pub struct TextQuery {
    /// As typed.
    pub text: String,
    /// At most this many sections, except for ties.
    pub limit: usize,
    /// Only sections of these notes; `None` means all. Applied before the limit.
    pub among: Option<Arc<NoteSet>>,
}

/// The result of a search by words.
#[derive(Debug, Default)]
pub struct TextHits {
    /// Best first.
    pub hits: Vec<TextHit>,
    /// How far the query was relaxed.
    pub matched: TextMatch,
    /// How many sections match at that level, including those beyond the limit.
    pub total: usize,
}

/// A ranking by words.
#[derive(Debug, Default)]
pub struct RankedText {
    /// Best first.
    pub hits: Vec<TextHit>,
    /// The highest possible score: that of a section with every word at its best.
    pub most: f32,
}

/// One section found.
#[derive(Debug, Clone, PartialEq)]
pub struct TextHit {
    pub key: NoteKey,
    /// Its index in the note's sections.
    pub section: usize,
    /// BM25; comparable within one result only.
    pub score: f32,
}

/// How strictly a query was matched. A strict AND that finds nothing is the most frequent complaint of users, so the
/// query is relaxed step by step, and the result says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextMatch {
    /// The words occur together as typed.
    #[default]
    Phrase,
    /// Every word occurs, except some that most sections contain.
    AllWords,
    /// Every word occurs, but words unknown in the vault were replaced by similar ones or by longer words containing them.
    Similar,
    /// Some word occurs.
    AnyWord,
}

/// Why a store failed. The message reaches clients, so it names the action only; the cause is in `source`, for logs and the
/// command line.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct StoreError {
    /// The action, to follow "cannot": "load the index", "search the index".
    pub action: &'static str,
    /// The cause, with paths and the backend's message.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreError {
    /// Wraps a backend's error with the action that failed.
    pub fn new(action: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { action, source: source.into() }
    }
}
