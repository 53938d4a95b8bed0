//! Applies batches of changed files to the index and publishes the next snapshot. One batch at a time.
//!
//! One way, no call back: `plan` finds the files to read, `read` reads and parses them, `writer` saves the notes to the
//! store, `publish` resolves links and makes the snapshot.

mod first_pass;

use std::sync::atomic::AtomicBool;
use std::sync::{self, Arc, MutexGuard, TryLockError};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use rayon::prelude::*;

use first_pass::IndexStart;

use super::changes::{ChangeListener, ChangeListeners, SnapshotDiff};
use super::moves::Moves;
use super::outside::OutsideBatch;
use super::plan::{CHUNK, FileBatch, FileToRead, ReadPlan, unreadable};
use super::publish::publish;
use super::read::{NoteReader, ReadOutcome, WrittenFile};
use super::resolve::Resolver;
use super::saved_links;
use super::snapshot::Snapshot;
use super::writer::{ChangedNotes, StagedNote, Writer, WrittenNotes};
use crate::model::{ContentHash, FileStat, Link, Note, NoteKey, VaultPath, Warning};
use crate::parse::{TitleRule, read_note};
use crate::ports::{Clock, FileContent, NoteStore, Sources, StoreError, VaultError, VaultFiles};
use crate::warnings::WarningLog;

/// Pause between two attempts to take the writer's lock.
const LOCK_RETRY: Duration = Duration::from_millis(2);

/// How long a read waits for a batch in progress before it uses the last snapshot.
const BATCH_WAIT: Duration = Duration::from_millis(100);

/// Partial results of a long pass are published this often.
const PUBLISH_EVERY_NS: i64 = 5_000_000_000;

/// Changes by other programs that wait to be recorded.
const MAX_OUTSIDE_BATCHES: usize = 1000;

/// Why the index could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The vault cannot be read.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps a snapshot of the vault up to date.
pub struct Indexer {
    reader: NoteReader,
    store: Arc<dyn NoteStore>,
    clock: Arc<dyn Clock>,
    warnings: Arc<WarningLog>,
    current: ArcSwap<Snapshot>,
    /// The standard library's lock: its poison marks a state that a panic may have left inconsistent.
    writer: sync::Mutex<Writer>,
    /// Moves by other programs that memory's links have yet to follow.
    moves: Mutex<Vec<Moves>>,
    /// What other programs did to notes, for the history.
    outside: Mutex<Vec<OutsideBatch>>,
    /// Whether [`Indexer::start_in_steps`] has yet to read the vault.
    is_stepping: AtomicBool,
    /// Whether the first pass found a saved index.
    was_saved: AtomicBool,
    first_pass: (Mutex<IndexStart>, Condvar),
    listeners: ChangeListeners,
}

/// The ports an indexer uses.
pub struct IndexerPorts {
    /// The notes' files.
    pub vault: Arc<dyn VaultFiles>,
    /// The saved index.
    pub store: Arc<dyn NoteStore>,
    pub clock: Arc<dyn Clock>,
    /// The files that notes are about.
    pub sources: Arc<dyn Sources>,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexReport {
    /// New notes.
    pub added: usize,
    /// Notes with new bytes.
    pub changed: usize,
    /// Notes that were removed.
    pub removed: usize,
    /// Files and folders that could not be read.
    pub unreadable: usize,
    /// Notes in the vault now.
    pub total: usize,
    /// Notes that the store failed to write: they are served, and read again at the next start.
    pub unsaved: usize,
}

/// How far a pass is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Files read.
    pub done: usize,
    /// Files to read.
    pub total: usize,
}

impl Indexer {
    /// An empty indexer; [`Indexer::start`] makes it ready.
    pub fn new(ports: IndexerPorts, title_rule: TitleRule, warnings: Arc<WarningLog>) -> Self {
        let IndexerPorts { vault, store, clock, sources } = ports;
        Self {
            reader: NoteReader { vault, sources, title_rule },
            store,
            clock,
            warnings,
            current: ArcSwap::default(),
            writer: sync::Mutex::default(),
            moves: Mutex::default(),
            outside: Mutex::default(),
            is_stepping: AtomicBool::new(false),
            was_saved: AtomicBool::new(false),
            first_pass: (Mutex::new(IndexStart::Pending), Condvar::new()),
            listeners: ChangeListeners::default(),
        }
    }

    /// The vault as last published.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Applies changed files: read, parse, save, resolve, publish, announce.
    pub fn apply(&self, batch: &FileBatch, progress: &(dyn Fn(Progress) + Sync)) -> Result<IndexReport, IndexError> {
        // Before the lock: listing a big vault takes long, and a saved file must not wait for it.
        let listing = matches!(batch, FileBatch::All).then(|| self.reader.vault.list()).transpose()?;
        let mut writer = self.writer();
        let before = self.snapshot();
        let plan = match listing {
            Some(listing) => ReadPlan::for_older_listing(&*self.reader.vault, &writer, &before, listing),
            None => ReadPlan::new(&*self.reader.vault, &writer, &before, batch)?,
        };
        let report = self.execute(&mut writer, plan, progress);
        self.detect_outside(&writer, &before, true);
        self.detect_moves(&mut writer, &before);
        self.announce(&mut writer, &before);
        Ok(report)
    }

    /// Applies files that this process has just written, without reading them back.
    pub(crate) fn apply_written(&self, writer: &mut Writer, files: Vec<WrittenFile>) {
        let before = self.snapshot();
        let mut changes = WrittenNotes::default();
        let key_of = |file: &WrittenFile| before.find_exact(file.renamed_from.as_ref().unwrap_or(&file.path));
        let keys: Vec<Option<NoteKey>> = files.iter().map(key_of).collect();
        for (WrittenFile { path, content, .. }, key) in files.into_iter().zip(keys.iter().copied()) {
            // Another note that the index still has at this path was deleted by another program, or the write would have
            // failed.
            let others =
                before.with_lowercased(&path.note_id()).iter().copied().filter(|other| !keys.contains(&Some(*other)));
            changes.removed.extend(others.filter(|other| {
                let other = &before.note(*other).path;
                *other == path || matches!(self.reader.vault.read(other), Ok(None))
            }));
            match content {
                None => changes.removed.extend(key),
                Some(content) => {
                    let (note, text) = self.reader.parse(&before, &path, &content, key);
                    changes.read.push((key.unwrap_or_else(|| writer.take_key()), note, text));
                }
            }
        }
        changes.removed.sort_unstable();
        changes.removed.dedup();
        let staged = self.save(writer, &before, changes);
        self.publish(writer, staged);
        self.announce(writer, &before);
    }

    /// Writes the texts again that the store has lost; `false` when another batch holds the writer for too long.
    pub(crate) fn refill(&self, patience: Duration) -> bool {
        let Some(mut writer) = self.writer_within(patience) else { return false };
        // Another thread may have done it meanwhile.
        let lost = self.store.text_lost().unwrap_or_default();
        if !lost.is_empty() {
            writer.unsaved.extend(lost);
            let before = self.snapshot();
            match self.reader.vault.list() {
                Ok(listing) => {
                    let plan = ReadPlan::for_listing(&writer, &before, listing);
                    let unreadable = self.execute(&mut writer, plan, &|_| {}).unreadable;
                    // Texts that the store did not take are still lost, and a search must keep failing.
                    if self.store.text_lost().is_ok_and(|lost| lost.len() <= unreadable) {
                        self.store.accept_loss();
                    }
                }
                Err(error) => self.warnings.push(Warning { path: ".".into(), message: error.to_string() }),
            }
            self.detect_moves(&mut writer, &before);
            self.announce(&mut writer, &before);
        }
        true
    }

    /// Reads, saves and publishes. The caller announces the result once: until all files are read, a link to a later one
    /// would be reported as broken.
    fn execute(&self, writer: &mut Writer, plan: ReadPlan, progress: &(dyn Fn(Progress) + Sync)) -> IndexReport {
        let before = self.snapshot();
        let mut report = IndexReport { unreadable: plan.unlisted, ..IndexReport::default() };
        let mut staged: Vec<StagedNote> = Vec::new();
        let mut published_ns = self.clock.now_ns();
        let mut done = 0;
        for chunk in plan.read.chunks(CHUNK) {
            let batches = chunk.par_chunks(self.reader.vault.batch_size());
            let outcomes = batches.flat_map_iter(|files| self.reader.read(&before, writer, files)).collect();
            let changes = self.changes(writer, &before, chunk, outcomes, &mut report);
            staged.extend(self.save(writer, &before, changes));
            done += chunk.len();
            progress(Progress { done, total: plan.read.len() });
            if self.clock.now_ns() - published_ns > PUBLISH_EVERY_NS {
                self.publish(writer, std::mem::take(&mut staged));
                published_ns = self.clock.now_ns();
            }
        }
        report.removed += plan.removed.len();
        let changes = WrittenNotes { removed: plan.removed, ..WrittenNotes::default() };
        staged.extend(self.save(writer, &before, changes));
        plan.warnings.into_iter().for_each(|warning| self.warnings.push(warning));
        self.publish(writer, staged);
        report.total = self.snapshot().files().len();
        report.unsaved = if writer.store_is_lost { report.total } else { writer.unsaved.len() };
        report
    }

    /// Sorts what was read into changes, with a key for each new note.
    fn changes(
        &self,
        writer: &mut Writer,
        before: &Snapshot,
        files: &[FileToRead],
        outcomes: Vec<ReadOutcome>,
        report: &mut IndexReport,
    ) -> WrittenNotes {
        let mut changes = WrittenNotes::default();
        for (file, outcome) in files.iter().zip(outcomes) {
            match outcome {
                ReadOutcome::Unchanged { key, stat } => changes.unchanged.push((key, stat)),
                ReadOutcome::Read { note, text } => {
                    match file.key {
                        Some(key) if before.note(key).hash == note.hash => {}
                        Some(_) => report.changed += 1,
                        None => report.added += 1,
                    }
                    changes.read.push((file.key.unwrap_or_else(|| writer.take_key()), *note, text));
                }
                ReadOutcome::Missing => changes.removed.extend(file.key),
                ReadOutcome::Unreadable(error) => {
                    report.unreadable += 1;
                    self.warnings.push(unreadable(&file.path, &error));
                }
            }
        }
        report.removed += changes.removed.len();
        changes
    }

    /// Saves changes. The store only speeds up the next start and finds words, so its failure is a warning.
    fn save(&self, writer: &mut Writer, before: &Snapshot, changes: WrittenNotes) -> Vec<StagedNote> {
        if let Err(error) = writer.save(&*self.store, before, &changes, self.clock.now_ns()) {
            let message = format!("{error}; notes are safe and served, but a search for words may miss the newest");
            self.warnings.push(Warning { path: ".quipu/index".into(), message });
        }
        changes.into_staged(before).collect()
    }

    /// Makes staged changes visible, links resolved.
    fn publish(&self, writer: &mut Writer, staged: Vec<StagedNote>) {
        if !staged.is_empty() {
            writer.links_are_saved = false;
            self.current.store(Arc::new(publish(writer, &self.snapshot(), staged)));
        }
    }

    /// Queues what other programs did to notes, for [`Indexer::take_outside`].
    fn detect_outside(&self, writer: &Writer, before: &Arc<Snapshot>, was_complete: bool) {
        let after = self.snapshot();
        if !Arc::ptr_eq(before, &after) {
            let keys = writer.touched_keys(before, &after);
            let batch = OutsideBatch::new(before, &after, &keys, was_complete);
            self.outside.lock().extend(batch);
        }
    }

    /// Queues the moves by other programs that a batch completed, for [`Indexer::take_moves`].
    fn detect_moves(&self, writer: &mut Writer, before: &Arc<Snapshot>) {
        let after = self.snapshot();
        if !Arc::ptr_eq(before, &after) {
            let keys = writer.touched_keys(before, &after);
            let moves = writer.move_detector.detect(before, &after, &keys, self.clock.now_ns());
            self.moves.lock().extend(moves);
        }
    }

    /// Reports the changes since `before` to the warning log and the listeners.
    fn announce(&self, writer: &mut Writer, before: &Snapshot) {
        let after = self.snapshot();
        let keys = writer.touched_keys(before, &after);
        writer.touched = ChangedNotes::default();
        // A link to a note of a later step would be reported as broken.
        if !self.is_stepping() {
            self.warnings.log_changes(before, &after, &keys);
        }
        if !keys.is_empty() {
            self.listeners.notify(&SnapshotDiff::new(before, &after, &keys));
        }
    }

    /// Saves the resolved links, which the next start then need not resolve; `false` while a batch is applied, or before the
    /// first pass is over: the links would be outdated at once.
    pub fn store_links(&self) -> Result<bool, StoreError> {
        let is_done = |writer: &Writer| writer.links_are_saved || writer.store_is_lost;
        if !self.wait_ready(Duration::ZERO) {
            return Ok(false);
        }
        let snapshot = match self.writer_within(Duration::ZERO) {
            Some(writer) if is_done(&writer) => return Ok(true),
            Some(_) => self.snapshot(),
            None => return Ok(false),
        };
        // Without the lock, which saved files wait for.
        let links = saved_links::encode(&snapshot);
        let Some(mut writer) = self.writer_within(Duration::ZERO) else { return Ok(false) };
        if !is_done(&writer) && Arc::ptr_eq(&snapshot, &self.snapshot()) {
            self.store.store_links(&links)?;
            writer.links_are_saved = true;
        }
        Ok(is_done(&writer))
    }

    /// The writer's state. After a panic it may be inconsistent, so it is rebuilt from the snapshot, which is immutable.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| self.restored(poisoned.into_inner()))
    }

    /// Like [`Self::writer`]; `None` when another thread holds it for longer, as a first pass over a big vault does.
    pub(crate) fn writer_within(&self, patience: Duration) -> Option<MutexGuard<'_, Writer>> {
        let mut waited = Duration::ZERO;
        loop {
            match self.writer.try_lock() {
                Ok(writer) => return Some(writer),
                Err(TryLockError::Poisoned(poisoned)) => return Some(self.restored(poisoned.into_inner())),
                Err(TryLockError::WouldBlock) if waited >= patience => return None,
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(LOCK_RETRY);
                    waited += LOCK_RETRY;
                }
            }
        }
    }

    fn restored<'a>(&self, mut writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        *writer = Writer::restored(&self.snapshot(), writer.store_is_lost);
        self.writer.clear_poison();
        writer
    }

    /// Builds the tables that the first change needs.
    pub fn prepare_for_changes(&self) {
        self.writer().link_tables(&self.snapshot());
    }

    /// The note that these bytes would be at this path.
    pub(crate) fn preview(&self, path: &VaultPath, bytes: &[u8]) -> Note {
        let stat = FileStat { modified_ns: self.clock.now_ns(), size: bytes.len() as u64 };
        let content = FileContent { hash: ContentHash::of(bytes), stat, bytes: bytes.to_vec() };
        read_note(path, &content, &self.reader.title_rule).0
    }

    /// Waits for a batch that is being applied, unless it takes long.
    pub(crate) fn wait_for_batch(&self) {
        drop(self.writer_within(BATCH_WAIT));
    }

    /// Adds moves to those that memory's links have yet to follow.
    pub(crate) fn queue_moves(&self, moves: Moves) {
        self.moves.lock().push(moves);
    }

    /// What other programs did to notes since the last call.
    pub(crate) fn take_outside(&self) -> Vec<OutsideBatch> {
        std::mem::take(&mut *self.outside.lock())
    }

    /// Adds what could not be recorded to what other programs did. The oldest is dropped where nothing can be recorded.
    pub(crate) fn queue_outside(&self, batch: OutsideBatch) {
        let mut outside = self.outside.lock();
        outside.push(batch);
        let excess = outside.len().saturating_sub(MAX_OUTSIDE_BATCHES);
        outside.drain(..excess);
    }

    /// The moves detected since the last call.
    pub(crate) fn take_moves(&self) -> Vec<Moves> {
        std::mem::take(&mut *self.moves.lock())
    }

    /// Resolves links that are in no note, as in a note at the vault's root; with the snapshot they were resolved in.
    pub(crate) fn resolve_from_root<'l>(
        &self,
        links: impl Iterator<Item = &'l Link>,
    ) -> (Arc<Snapshot>, Vec<Option<NoteKey>>) {
        self.resolve_with(|resolver| links.map(|link| resolver.resolve_from_root(link)).collect())
    }

    fn resolve_with<T>(&self, resolve: impl FnOnce(&Resolver) -> T) -> (Arc<Snapshot>, T) {
        match self.writer_within(BATCH_WAIT) {
            Some(mut writer) => {
                let snapshot = self.snapshot();
                let resolver = writer.resolver.get_or_insert_with(|| snapshot.resolver());
                let targets = resolve(resolver);
                (snapshot, targets)
            }
            // A batch may take long; a resolver for this one question takes part of a second in a big vault.
            None => {
                let snapshot = self.snapshot();
                let targets = resolve(&snapshot.resolver());
                (snapshot, targets)
            }
        }
    }

    /// Resolves the links of a note that may not be in the vault; with the snapshot they were resolved in.
    pub(crate) fn resolve_links_of(&self, note: &Note) -> (Arc<Snapshot>, Vec<Option<NoteKey>>) {
        self.resolve_with(|resolver| resolver.resolve_all(note).to_vec())
    }

    /// Calls a listener after every change from now on.
    pub fn on_change(&self, listener: ChangeListener) {
        self.listeners.add(listener);
    }
}
