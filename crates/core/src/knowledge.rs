//! An open vault: the entry point of the domain for every front end. Operations are implemented in their own modules.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::index::{
    ChangeListener, FileBatch, IndexError, IndexReport, Indexer, IndexerPorts, Moves, Progress, Snapshot,
};
use crate::memory::Memory;
use crate::model::{ContentHash, Note, NoteKey, VaultPath, Warning};
use crate::parse::{TitleRule, decode, parse, text_start};
use crate::ports::{
    Clock, FileContent, NoteStore, RankedText, ShownNotes, Sources, StoreError, TextHit, TextHits, TextModel,
    TextQuery, TrashedFile, VaultError, VaultFiles, WriteError,
};
use crate::search::{LineIndex, Meaning};
use crate::session::Session;
use crate::warnings::WarningLog;

/// How long a search waits to rebuild a corrupt text index.
const REBUILD_PATIENCE: Duration = Duration::from_secs(10);

/// The failed action when another thread is rebuilding the text index for longer.
const REBUILDING: &str = "search the index: its text index is being rebuilt; retry in a few seconds";

/// An open vault.
pub struct Knowledge {
    pub(crate) vault: Arc<dyn VaultFiles>,
    pub(crate) indexer: Indexer,
    pub(crate) lines: LineIndex,
    pub(crate) meaning: Option<Meaning>,
    pub(crate) text_model: Option<Arc<dyn TextModel>>,
    pub(crate) sources: Arc<dyn Sources>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stale_after_ns: i64,
    pub(crate) memory: Option<Arc<Memory>>,
    /// Moves of notes that memory's links have yet to follow. Locked while they do.
    pub(crate) unfollowed: Mutex<Vec<Moves>>,
    pub(crate) store: Arc<dyn NoteStore>,
    /// What other servers showed to the same clients.
    pub(crate) shown_notes: Option<Arc<dyn ShownNotes>>,
    warnings: Arc<WarningLog>,
}

/// The parts of a vault.
pub struct Parts {
    /// The user's files.
    pub vault: Arc<dyn VaultFiles>,
    /// The index between runs.
    pub store: Arc<dyn NoteStore>,
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
    /// The snapshot that contains the note.
    pub snapshot: Arc<Snapshot>,
    pub key: NoteKey,
    /// The whole file, decoded.
    pub text: String,
    /// Other files that the given id or path can mean, if it matches none exactly.
    pub others: Vec<VaultPath>,
    /// The version of the file that `text` is.
    pub hash: ContentHash,
}

impl ReadNote {
    /// The note's metadata, as indexed.
    pub fn note(&self) -> &Note {
        self.snapshot.note(self.key)
    }

    /// Its text after the frontmatter and the blank lines that follow it.
    pub fn body(&self) -> &str {
        &self.text[text_start(self.text.as_bytes())..]
    }
}

impl Knowledge {
    /// The default of [`Parts::stale_after`].
    pub const STALE_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// Creates a vault. Nothing is read before [`Knowledge::start`].
    pub fn new(parts: Parts) -> Self {
        let warnings = Arc::new(WarningLog::default());
        let Parts { vault, store, clock, sources, title_rule, stale_after } = parts;
        let ports =
            IndexerPorts { vault: vault.clone(), store: store.clone(), clock: clock.clone(), sources: sources.clone() };
        Self {
            indexer: Indexer::new(ports, title_rule, warnings.clone()),
            lines: LineIndex::default(),
            meaning: None,
            text_model: None,
            sources,
            clock,
            memory: None,
            unfollowed: Mutex::default(),
            stale_after_ns: i64::try_from(stale_after.as_nanos()).unwrap_or(i64::MAX),
            vault,
            store,
            shown_notes: None,
            warnings,
        }
    }

    /// For a graph that other servers serve as well: a write is checked against what any of them showed to its client. It is
    /// started by [`Knowledge::start_in_steps`].
    #[must_use]
    pub fn among_servers(self, shown_notes: Arc<dyn ShownNotes>) -> Self {
        self.indexer.expect_steps();
        Self { shown_notes: Some(shown_notes), ..self }
    }

    /// Whether the notes are files of a folder, to which commands of the shell can be applied.
    pub fn is_of_folder(&self) -> bool {
        self.shown_notes.is_none()
    }

    /// Records for the other servers what a client was shown since the last time.
    pub fn record_shown(&self, session: &Session) -> Result<(), VaultError> {
        let Some(shown_notes) = &self.shown_notes else { return Ok(()) };
        let unrecorded = session.unrecorded();
        if !unrecorded.is_empty() {
            shown_notes.record(&session.client(), &unrecorded)?;
            session.mark_recorded(&unrecorded);
        }
        Ok(())
    }

    /// Adds to a session what other servers showed to its client.
    pub(crate) fn learn_shown(&self, session: &Session, paths: &[&VaultPath]) -> Result<(), VaultError> {
        let Some(shown_notes) = &self.shown_notes else { return Ok(()) };
        for (path, recorded) in paths.iter().zip(shown_notes.shown(&session.client(), paths)?) {
            session.learn(path, recorded);
        }
        Ok(())
    }

    /// With a language model for suggestions.
    pub fn with_text_model(self, model: Arc<dyn TextModel>) -> Self {
        Self { text_model: Some(model), ..self }
    }

    /// Loads the saved index and applies what changed since. Calls may come in meanwhile; see [`Knowledge::wait_ready`].
    pub fn start(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<IndexReport, IndexError> {
        let report = self.indexer.start(progress);
        self.follow_changes();
        self.finish_redactions();
        report
    }

    /// Like [`Knowledge::start`], for a vault of which nothing is saved and every read is a round trip: see
    /// [`Indexer::start_in_steps`].
    pub fn start_in_steps(&self) -> Result<IndexReport, IndexError> {
        let report = self.indexer.start_in_steps()?;
        if report.unreadable == 0 {
            self.follow_changes();
            self.finish_redactions();
        }
        Ok(report)
    }

    /// Until [`Knowledge::start_in_steps`] has read the vault, indexes the notes that a call names before the others, so that none of
    /// them is reported as missing. Texts that are no path or id of a note are ignored.
    pub fn index_first(&self, named: &[&str]) -> Result<(), IndexError> {
        if !self.indexer.is_stepping() {
            return Ok(());
        }
        let snapshot = self.snapshot();
        let unknown = named.iter().filter(|spelled| snapshot.lookup(spelled).is_empty());
        let paths: Vec<VaultPath> = unknown.filter_map(|spelled| VaultPath::parse(spelled).ok()).collect();
        let found = self.vault.find_notes(&paths)?;
        if !found.is_empty() {
            self.apply(&FileBatch::Files(found), &|_| {})?;
        }
        Ok(())
    }

    /// Builds the tables that the first change needs. Worth calling after the start of a server.
    pub fn prepare_for_changes(&self) {
        self.indexer.prepare_for_changes();
    }

    /// Stores the resolved links for the next start; `false` if that has to wait. For idle times and the end of the process.
    pub fn store_links(&self) -> Result<bool, StoreError> {
        self.indexer.store_links()
    }

    /// Whether [`Knowledge::start`] found a saved index, so that most notes are not new.
    pub fn was_saved(&self) -> bool {
        self.indexer.was_saved()
    }

    /// Calls the listener for every change of notes from now on, including changes by other programs.
    pub fn on_change(&self, listener: ChangeListener) {
        self.indexer.on_change(listener);
    }

    /// Waits until [`Knowledge::start`] is done; `false` on timeout, or if it panicked.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        self.indexer.wait_ready(timeout)
    }

    /// Whether [`Knowledge::start`] panicked: the vault is not indexed, and will not be.
    pub fn has_panicked(&self) -> bool {
        self.indexer.has_panicked()
    }

    /// Applies changed files to the index, then lets the history and memory's links follow.
    pub fn apply(&self, batch: &FileBatch, progress: &(dyn Fn(Progress) + Sync)) -> Result<IndexReport, IndexError> {
        let report = self.indexer.apply(batch, progress);
        self.follow_changes();
        report
    }

    /// The time, in nanoseconds since 1970.
    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.indexer.snapshot()
    }

    /// Reads a note by its id or path, with the present content of its file: an unindexed change is indexed first. If
    /// several files match, it returns the first; [`ReadNote::others`] names the others. The note counts as shown in part
    /// until [`Knowledge::show_whole`].
    pub fn read(&self, session: &Session, spelled: &str) -> Result<Option<ReadNote>, IndexError> {
        // Twice at most: a file that changes faster than it is indexed is returned as last read, and so is one that the
        // initial indexing has not reached.
        let indexing = !self.wait_ready(Duration::ZERO);
        if indexing {
            self.index_first(&[spelled])?;
        } else {
            self.index_exact(spelled)?;
        }
        for last in [indexing, true] {
            let snapshot = self.snapshot();
            let found = snapshot.lookup(spelled);
            let Some((key, others)) = found.split_first() else { return Ok(None) };
            let note = snapshot.note(*key);
            match self.vault.read(&note.path)? {
                Some(content) if last || note.hash == content.hash => {
                    session.show(&note.path, content.hash, false);
                    session.show_id(&note.path, &note.id);
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

    /// Indexes a new file with exactly this path: an exact path means that file, even if others match when case is
    /// ignored. A note in the index is not read again: the client would then count as having seen an edit.
    pub(crate) fn index_exact(&self, spelled: &str) -> Result<(), IndexError> {
        let Ok(path) = VaultPath::parse(spelled) else { return Ok(()) };
        // On a case-insensitive file system, a file can be opened by other spellings of its path.
        if self.snapshot().find_exact(&path).is_none()
            && self.vault.read(&path)?.is_some()
            && self.vault.find_any_case(&path)?.first() == Some(&path)
        {
            self.apply(&FileBatch::Paths(vec![path]), &|_| {})?;
        }
        Ok(())
    }

    /// Records that a client got all of a note's text, and may replace it.
    pub fn show_whole(&self, session: &Session, read: &ReadNote) {
        session.show(&read.note().path, read.hash, true);
    }

    /// Records that a client got these characters of a note's text, which counts as read once no gap is left.
    pub fn show_part(&self, session: &Session, read: &ReadNote, part: Range<usize>) {
        let total = read.body().chars().count();
        if part.start > 0 || part.end < total {
            // Other servers may have shown the other parts. If that is not known, the client has to read them again.
            let _ = self.learn_shown(session, &[&read.note().path]);
        }
        session.show_part(&read.note().path, read.hash, part, total);
    }

    /// The texts of several notes, for a list; `None` for a file that cannot be read. A changed file has its new text.
    ///
    /// They do not count as shown: a client that saw a few lines of a new version must not replace all of it.
    pub fn bodies(&self, snapshot: &Snapshot, keys: &[NoteKey]) -> Vec<Option<String>> {
        let paths: Vec<&VaultPath> = keys.iter().map(|key| &snapshot.note(*key).path).collect();
        let body = |content: Result<Option<FileContent>, VaultError>| {
            let text = decode(content.ok()??.bytes);
            Some(text[text_start(text.as_bytes())..].to_owned())
        };
        self.vault.read_in_batches(&paths).map(body).collect()
    }

    /// The texts of sections below their headings, for a list; `None` if the file or the section cannot be read. A changed
    /// file has its new text.
    pub fn section_texts(&self, snapshot: &Snapshot, places: &[(NoteKey, usize)]) -> Vec<Option<String>> {
        let paths: Vec<&VaultPath> = places.iter().map(|(key, _)| &snapshot.note(*key).path).collect();
        let text = |((key, section), content): (&(NoteKey, usize), Result<Option<FileContent>, VaultError>)| {
            let note = snapshot.note(*key);
            let content = content.ok()??;
            let is_known = content.hash == note.hash;
            let text = decode(content.bytes);
            let changed = (!is_known).then(|| parse(&text).sections);
            let section = changed.as_ref().unwrap_or(&note.sections).get(*section)?;
            Some(text[section.text_start..section.range.end].to_owned())
        };
        places.iter().zip(self.vault.read_in_batches(&paths)).map(text).collect()
    }

    /// The sections that match a query best, ties by the order of notes. A corrupt text index is rebuilt first.
    pub fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        let mut found = self.ask_text(|store| store.search_text(query))?;
        self.order(&mut found.hits, query.limit);
        Ok(found)
    }

    /// The sections with any of the words, to be combined with other rankings. A corrupt text index is rebuilt first.
    pub(crate) fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        let mut ranked = self.ask_text(|store| store.rank_text(text, limit))?;
        self.order(&mut ranked.hits, limit);
        Ok(ranked)
    }

    /// Sorts ties by the order of notes: the order of keys depends on earlier changes.
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
            Err(error) if !self.indexer.refill(REBUILD_PATIENCE) => Err(StoreError { action: REBUILDING, ..error }),
            Err(_) => question(&*self.store),
            found => found,
        }
    }

    /// Writes the texts again that the store has lost, as far as that is possible now; a search does the rest.
    pub(crate) fn refill(&self) {
        self.indexer.refill(REBUILD_PATIENCE);
    }

    /// Checks the index for damage.
    pub fn check_store(&self) -> Result<Vec<String>, StoreError> {
        self.store.check()
    }

    /// Warnings that this client has not got yet. `about`: the files that its call was about.
    pub fn warnings(&self, session: &Session, about: &BTreeSet<VaultPath>) -> Vec<String> {
        self.warnings.take(session, about)
    }

    /// A session for one command of a person: it gets warnings about the notes of the command, and not those about the rest of
    /// the vault, which `quipu doctor` lists.
    pub fn command_session(&self, client: &str) -> Session {
        let session = Session::named(client);
        self.warnings.skip(&session);
        session
    }

    /// Sends a warning to every client.
    pub fn warn(&self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// The files in the trash, newest first.
    pub fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.vault.trashed()
    }

    /// Restores a file from the trash, and indexes it.
    pub fn restore(&self, trashed: &TrashedFile) -> Result<(), RestoreError> {
        self.vault.restore(trashed)?;
        self.apply(&FileBatch::Paths(vec![trashed.path.clone()]), &|_| {})?;
        Ok(())
    }
}

/// Why a file could not be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It is restored, but could not be indexed.
    #[error(transparent)]
    Index(#[from] IndexError),
}
