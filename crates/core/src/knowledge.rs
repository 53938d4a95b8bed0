//! One vault, open: the single thing a front door holds. It composes; the verbs live in their own rooms.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::index::{FileBatch, IndexError, IndexReport, Indexer, IndexerPorts, Listener, Progress, Snapshot};
use crate::memory::Memory;
use crate::model::{ContentHash, Note, NoteKey, VaultPath, Warning};
use crate::parse::{TitleRule, decode, parse, text_start};
use crate::ports::{
    Clock, Kept, NoteStore, RankedText, Sources, StoreError, TextHit, TextHits, TextQuery, VaultError, VaultFiles,
    WriteError,
};
use crate::search::{Lines, Meaning};
use crate::session::Session;
use crate::warnings::WarningLog;

/// How long a search waits for its turn to fill a damaged text index again.
const REFILL_PATIENCE: Duration = Duration::from_secs(10);

/// What a search could not do when somebody else is at that for longer.
const REFILLING: &str = "searched, since its words are being read again; try again in a moment";

/// A vault that can be asked and written.
pub struct Knowledge {
    pub(crate) vault: Arc<dyn VaultFiles>,
    pub(crate) indexer: Indexer,
    pub(crate) lines: Lines,
    pub(crate) meaning: Option<Meaning>,
    pub(crate) sources: Arc<dyn Sources>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stale_after_ns: i64,
    pub(crate) memory: Option<Arc<Memory>>,
    /// Held while links of memory are brought along with moved notes.
    pub(crate) following: Mutex<()>,
    store: Arc<dyn NoteStore>,
    warnings: Arc<WarningLog>,
}

/// What a vault is made of.
pub struct Parts {
    /// The user's files.
    pub vault: Arc<dyn VaultFiles>,
    /// What is remembered between runs.
    pub store: Arc<dyn NoteStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The files that notes are about.
    pub sources: Arc<dyn Sources>,
    /// Where titles come from.
    pub title_rule: TitleRule,
    /// How long a note may lag behind its sources before it counts as stale.
    pub stale_after: Duration,
}

/// A note with its text, both of the same version.
pub struct ReadNote {
    /// The vault as it was then.
    pub snapshot: Arc<Snapshot>,
    /// Which note.
    pub key: NoteKey,
    /// The whole file, decoded.
    pub text: String,
    /// The other files that what was asked for can mean, when it was spelled exactly as none of them.
    pub others: Vec<VaultPath>,
    /// Of its bytes.
    pub(crate) hash: ContentHash,
}

impl ReadNote {
    /// What is known of it.
    pub fn note(&self) -> &Note {
        self.snapshot.note(self.key)
    }

    /// Its text behind the frontmatter and the blank lines that set it off.
    pub fn body(&self) -> &str {
        &self.text[text_start(self.text.as_bytes())..]
    }
}

impl Knowledge {
    /// How long a note may lag behind its sources, unless it is set otherwise.
    pub const STALE_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// Composes a vault. Nothing is read before [`Knowledge::start`].
    pub fn new(parts: Parts) -> Self {
        let warnings = Arc::new(WarningLog::default());
        let Parts { vault, store, clock, sources, title_rule, stale_after } = parts;
        let ports =
            IndexerPorts { vault: vault.clone(), store: store.clone(), clock: clock.clone(), sources: sources.clone() };
        Self {
            indexer: Indexer::new(ports, title_rule, warnings.clone()),
            lines: Lines::default(),
            meaning: None,
            sources,
            clock,
            memory: None,
            following: Mutex::default(),
            stale_after_ns: i64::try_from(stale_after.as_nanos()).unwrap_or(i64::MAX),
            vault,
            store,
            warnings,
        }
    }

    /// Loads the saved index and applies what changed since. Calls may come in meanwhile; see [`Knowledge::wait_ready`].
    pub fn start(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<IndexReport, IndexError> {
        let report = self.indexer.start(progress);
        self.follow_moves();
        report
    }

    /// Builds the tables that the first change needs. Worth calling after the start of a server.
    pub fn prepare_for_changes(&self) {
        self.indexer.prepare_for_changes();
    }

    /// Keeps for the next start what this one had to find out. Worth calling when there is nothing else to do, and at the end.
    pub fn keep(&self) -> Result<(), StoreError> {
        self.indexer.keep_links()
    }

    /// Has someone told of every change of the notes from now on, whoever makes it.
    pub fn on_change(&self, listener: Listener) {
        self.indexer.on_change(listener);
    }

    /// Waits for the end of [`Knowledge::start`]; `false` when it takes longer.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        self.indexer.wait_ready(timeout)
    }

    /// Applies changed files to the index, then lets memory's links follow moved notes.
    pub fn apply(&self, batch: &FileBatch, progress: &(dyn Fn(Progress) + Sync)) -> Result<IndexReport, IndexError> {
        let report = self.indexer.apply(batch, progress);
        self.follow_moves();
        report
    }

    /// The time, in nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// The vault at this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.indexer.snapshot()
    }

    /// A note by its id or path, as the file is now: a change that nobody told of is taken in first. Where several files
    /// match it is the first of them, and [`ReadNote::others`] names the rest. It counts as shown in part until
    /// [`Knowledge::show_whole`].
    pub fn read(&self, session: &Session, spelled: &str) -> Result<Option<ReadNote>, IndexError> {
        // Twice at most: a file that changes faster than it is read is answered as it was read last, and so is one that
        // the first pass over the vault has yet to reach.
        let indexing = !self.wait_ready(Duration::ZERO);
        if !indexing {
            self.take_in_exact(spelled)?;
        }
        for last in [indexing, true] {
            let snapshot = self.snapshot();
            let found = snapshot.lookup(spelled);
            let Some((key, others)) = found.split_first() else { return Ok(None) };
            let note = snapshot.note(*key);
            match self.vault.read(&note.path)? {
                Some(content) if last || note.hash == content.hash => {
                    session.show(&note.path, content.hash, false);
                    let others = others.iter().map(|other| snapshot.note(*other).path.clone()).collect();
                    let (text, hash) = (decode(content.bytes), content.hash);
                    return Ok(Some(ReadNote { text, hash, key: *key, others, snapshot }));
                }
                _ if last => return Ok(None),
                _ => self.apply(&FileBatch::Paths(vec![note.path.clone()]), &|_| {})?,
            };
        }
        Ok(None)
    }

    /// Takes in a file spelled just so that the index does not know yet: an exact spelling means that file, whatever other
    /// files it would mean without. A note that is known is left alone: taking in an edit of it here would pass for the
    /// client having seen it.
    pub(crate) fn take_in_exact(&self, spelled: &str) -> Result<(), IndexError> {
        let Ok(path) = VaultPath::parse(spelled) else { return Ok(()) };
        // Where the file system does not tell case apart, a file can be opened under names that are not its own.
        if self.snapshot().find_exact(&path).is_none()
            && self.vault.read(&path)?.is_some()
            && self.vault.find_any_case(&path)?.first() == Some(&path)
        {
            self.apply(&FileBatch::Paths(vec![path]), &|_| {})?;
        }
        Ok(())
    }

    /// Says that a client got all of a note's text, and may replace it.
    pub fn show_whole(&self, session: &Session, read: &ReadNote) {
        session.show(&read.note().path, read.hash, true);
    }

    /// Says that a client got these characters of a note's text, which counts as read once no gap is left.
    pub fn show_part(&self, session: &Session, read: &ReadNote, part: Range<usize>) {
        session.show_part(&read.note().path, read.hash, part, read.body().chars().count());
    }

    /// The text of several notes of one snapshot, for a list. A file that is gone or cannot be read has none; one that
    /// changed is given as it is now.
    ///
    /// None of them counts as shown: a client that saw a few lines of a new version must not write over all of it.
    pub fn bodies(&self, snapshot: &Snapshot, keys: &[NoteKey]) -> Vec<Option<String>> {
        let body = |key: &NoteKey| {
            let text = decode(self.vault.read(&snapshot.note(*key).path).ok()??.bytes);
            Some(text[text_start(text.as_bytes())..].to_owned())
        };
        keys.iter().map(body).collect()
    }

    /// The texts of some sections below their headings, for a list. One whose file is gone or has lost it has none; one
    /// that changed is given as it is now.
    pub fn section_texts(&self, snapshot: &Snapshot, places: &[(NoteKey, usize)]) -> Vec<Option<String>> {
        let text = |(key, section): &(NoteKey, usize)| {
            let note = snapshot.note(*key);
            let content = self.vault.read(&note.path).ok()??;
            let is_known = content.hash == note.hash;
            let text = decode(content.bytes);
            let changed = (!is_known).then(|| parse(&text).sections);
            let section = changed.as_ref().unwrap_or(&note.sections).get(*section)?;
            Some(text[section.text_start..section.range.end].to_owned())
        };
        places.iter().map(text).collect()
    }

    /// The sections that match some words best, ties by the order of notes. Where the text index turns out to be damaged it
    /// is filled again first.
    pub fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        let mut found = self.ask_text(|store| store.search_text(query))?;
        self.order(&mut found.hits, query.limit);
        Ok(found)
    }

    /// The sections with any of some words, to be weighed against others. Fills a damaged text index again first, too.
    pub(crate) fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        let mut ranked = self.ask_text(|store| store.rank_text(text, limit))?;
        self.order(&mut ranked.hits, limit);
        Ok(ranked)
    }

    /// Puts ties in the order of notes, since the keys that a store knows depend on what was there before.
    fn order(&self, hits: &mut Vec<TextHit>, limit: usize) {
        let snapshot = self.snapshot();
        let place = |key: NoteKey| snapshot.get(key).map_or(u32::MAX, |_| snapshot.place(key));
        hits.sort_by(|a, b| {
            let score = b.score.total_cmp(&a.score);
            score.then_with(|| (place(a.key), a.section).cmp(&(place(b.key), b.section)))
        });
        hits.truncate(limit);
    }

    fn ask_text<Answer>(
        &self,
        question: impl Fn(&dyn NoteStore) -> Result<Answer, StoreError>,
    ) -> Result<Answer, StoreError> {
        match question(&*self.store) {
            Err(error) if self.store.text_lost()?.is_empty() => Err(error),
            Err(error) if !self.indexer.refill(REFILL_PATIENCE) => Err(StoreError { action: REFILLING, ..error }),
            Err(_) => question(&*self.store),
            found => found,
        }
    }

    /// Looks for damage in the index.
    pub fn check_store(&self) -> Result<Vec<String>, StoreError> {
        self.store.check()
    }

    /// What this client has not been told yet. `about`: the files that its call was about.
    pub fn warnings(&self, session: &Session, about: &BTreeSet<VaultPath>) -> Vec<String> {
        self.warnings.take(session, about)
    }

    /// Tells every client something odd that was found outside the index.
    pub fn warn(&self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Versions that writes replaced or deleted, newest first.
    pub fn kept(&self) -> Result<Vec<Kept>, VaultError> {
        self.vault.kept()
    }

    /// Brings a kept version back, and into the index.
    pub fn restore(&self, kept: &Kept) -> Result<(), RestoreError> {
        self.vault.restore(kept)?;
        self.apply(&FileBatch::Paths(vec![kept.path.clone()]), &|_| {})?;
        Ok(())
    }
}

/// Why a version could not be brought back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It could not be put in place.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It is in place, and the index could not take it in.
    #[error(transparent)]
    Index(#[from] IndexError),
}
