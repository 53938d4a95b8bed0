//! The text index: queues changes, feeds them to tantivy in batches, and commits before a search or when no changes come. The
//! catalog knows which texts a crash before the commit took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{RankedText, TextHits, TextQuery};

use super::damage::TextError;
use super::engine::{self, TantivyEngine};
use super::schema::{self, IndexFields};
use super::writer::{Documents, IndexPosition, SectionWriter, TextChange};
use quipu_own_folder::OwnFolder;

/// A commit in the background waits until nothing has changed for this long.
const QUIET: Duration = Duration::from_secs(1);
/// Tantivy's writer, with its threads and their memory, is closed when nothing has changed for this long. Longer than a merge takes:
/// closing waits for it, and the next change for both.
const IDLE: Duration = Duration::from_secs(30);
/// The pause after a failed commit in the background.
const RETRY: Duration = Duration::from_secs(30);
/// Queued text that the feeder passes on at once.
const FEED_BYTES: usize = 2 << 20;
/// Queued text at which `push` feeds tantivy itself, so that the queue stays bounded.
const FULL_BYTES: usize = 16 << 20;
/// Uncommitted text, held in memory and lost in a crash, at which a commit no longer waits.
const COMMIT_BYTES: usize = 48 << 20;

/// The open index, with the thread that feeds tantivy and commits.
pub(crate) struct SectionIndex {
    shared: Arc<SectionIndexState>,
    feeder: Option<JoinHandle<()>>,
}

struct SectionIndexState {
    /// Replaced when its files are found damaged.
    engine: Mutex<Arc<TantivyEngine>>,
    /// A description of the damage.
    damage: Mutex<Option<String>>,
    fields: IndexFields,
    /// Locked for a short time only; after `writer` if both are needed.
    inbox: Mutex<Inbox>,
    /// Wakes the feeder.
    pushed: Condvar,
    /// How long the feeder waits before it closes the writer.
    idle: Duration,
    writer: Mutex<SectionWriter>,
    /// The version of the inbox up to which searches see changes.
    visible: AtomicU64,
    /// The last committed list of changes.
    committed_seq: AtomicU64,
}

/// Queued changes.
#[derive(Default)]
struct Inbox {
    changes: Vec<TextChange>,
    bytes: usize,
    position: IndexPosition,
    /// Counts calls of `push`.
    version: u64,
    closing: bool,
}

/// The state of the inbox when it was emptied.
struct DrainedInbox {
    position: IndexPosition,
    version: u64,
}

impl SectionIndex {
    /// Opens or creates the index in the store's folder.
    pub(crate) fn open(store: &Arc<OwnFolder>) -> Result<Self, TextError> {
        Self::start(TantivyEngine::open(store)?, IDLE)
    }

    /// An empty index without files.
    pub(crate) fn in_memory() -> Result<Self, TextError> {
        Self::start(TantivyEngine::in_memory()?, IDLE)
    }

    /// Deletes the index in the store's folder. It must not be open.
    pub(crate) fn remove(store: &OwnFolder) -> std::io::Result<()> {
        engine::remove(store)
    }

    fn start(engine: TantivyEngine, idle: Duration) -> Result<Self, TextError> {
        let shared = Arc::new(SectionIndexState {
            engine: Mutex::new(Arc::new(engine)),
            damage: Mutex::default(),
            fields: schema::schema().1,
            inbox: Mutex::default(),
            pushed: Condvar::new(),
            idle,
            writer: Mutex::default(),
            visible: AtomicU64::new(0),
            committed_seq: AtomicU64::new(0),
        });
        let feeder = std::thread::Builder::new().name("text-index".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.feed_until_closed()
        });
        let feeder = feeder.map_err(|error| TextError::Failed(error.into()))?;
        Ok(Self { shared, feeder: Some(feeder) })
    }

    /// The position of the last commit; `None` if it is unknown.
    pub(crate) fn committed(&self) -> Option<IndexPosition> {
        self.shared.engine().committed()
    }

    /// Damage found since the index was opened or reset.
    pub(crate) fn damage(&self) -> Option<String> {
        self.shared.damage.lock().clone()
    }

    /// Replaces a damaged index by an empty one. Uncommitted changes are dropped with it.
    pub(crate) fn reset(&self) -> Result<(), TextError> {
        let mut writer = self.shared.writer.lock();
        writer.abandon();
        let drained = self.shared.drain_inbox(&mut writer);
        writer.abandon();
        let fresh = self.shared.engine().reset()?;
        *self.shared.engine.lock() = Arc::new(fresh);
        *self.shared.damage.lock() = None;
        self.shared.visible.store(drained.version, Ordering::Release);
        Ok(())
    }

    /// The last list of changes committed since the index was opened, 0 before that.
    pub(crate) fn committed_seq(&self) -> u64 {
        self.shared.committed_seq.load(Ordering::Acquire)
    }

    /// The documents of a note, whose ranges must be inside the text.
    pub(crate) fn documents(&self, key: NoteKey, note: &Note, text: &str) -> Documents {
        Documents::new(key, note, text, &self.shared.fields)
    }

    /// Queues changes, which every later search sees; `position` is that of the index once it has them.
    pub(crate) fn push(&self, changes: Vec<TextChange>, position: IndexPosition) {
        let mut inbox = self.shared.inbox.lock();
        inbox.bytes += changes.iter().map(TextChange::bytes).sum::<usize>();
        inbox.changes.extend(changes);
        inbox.position = position;
        inbox.version += 1;
        let is_full = inbox.bytes >= FULL_BYTES;
        drop(inbox);
        self.shared.pushed.notify_one();
        if is_full && let Err(error) = self.shared.feed() {
            // The changes are kept, and the next commit tries again.
            tracing::warn!("cannot write the text index: {error}; the next commit retries");
        }
    }

    /// Searches with the strictest reading of a query that finds anything.
    pub(crate) fn search(&self, query: &TextQuery) -> Result<TextHits, TextError> {
        self.ask(|engine| engine.search(query, &self.shared.fields))
    }

    /// Ranks by words.
    pub(crate) fn rank(&self, text: &str, limit: usize) -> Result<RankedText, TextError> {
        self.ask(|engine| engine.rank(text, limit, &self.shared.fields))
    }

    fn ask<Answer>(&self, question: impl Fn(&TantivyEngine) -> Result<Answer, TextError>) -> Result<Answer, TextError> {
        self.shared.catch_up()?;
        let engine = self.shared.engine();
        question(&engine).map_err(|error| match error {
            TextError::Damaged(_) => self.shared.diagnose(&engine, error),
            TextError::Failed(_) => {
                // A merge would change the files while they are checked.
                let mut writer = self.shared.writer.lock();
                let finished = writer.finish().err().filter(|error| matches!(error, TextError::Damaged(_)));
                self.shared.diagnose(&engine, finished.unwrap_or(error))
            }
        })
    }

    /// How many sections are in the index.
    pub(crate) fn sections(&self) -> Result<u64, TextError> {
        self.shared.catch_up()?;
        Ok(self.shared.engine().sections())
    }

    /// Problems of the files, as sentences.
    pub(crate) fn check(&self) -> Result<Vec<String>, TextError> {
        let outcome = self.shared.catch_up().and_then(|()| {
            let mut writer = self.shared.writer.lock();
            // A merge would change the files while they are checked.
            writer.finish()?;
            self.shared.engine().findings()
        });
        let findings = match outcome {
            Err(TextError::Damaged(reason)) => vec![reason],
            outcome => outcome?,
        };
        Ok(findings.into_iter().map(|finding| format!("The text index is damaged: {finding}.")).collect())
    }
}

impl Drop for SectionIndex {
    fn drop(&mut self) {
        self.shared.inbox.lock().closing = true;
        self.shared.pushed.notify_one();
        if self.feeder.take().is_some_and(|feeder| feeder.join().is_err()) {
            tracing::error!("the thread of the text index panicked");
        }
        let finished = self.shared.catch_up().and_then(|()| self.shared.writer.lock().finish());
        if let Err(error) = finished {
            tracing::warn!("cannot finish the text index: {error}; the next start completes it");
        }
    }
}

impl SectionIndexState {
    /// Makes every queued change visible.
    fn catch_up(&self) -> Result<(), TextError> {
        self.refuse_damaged()?;
        if self.is_behind(&self.inbox.lock()) { self.commit() } else { Ok(()) }
    }

    fn is_behind(&self, inbox: &Inbox) -> bool {
        self.visible.load(Ordering::Acquire) < inbox.version
    }

    fn feed(&self) -> Result<(), TextError> {
        let mut writer = self.writer.lock();
        let drained = self.drain_inbox(&mut writer);
        if writer.uncommitted_bytes() >= COMMIT_BYTES {
            return self.commit_drained(&mut writer, &drained);
        }
        self.refuse_damaged()?;
        let engine = self.engine();
        writer.feed(&engine.index, &self.fields).map_err(|error| self.diagnose(&engine, error))
    }

    fn commit(&self) -> Result<(), TextError> {
        let mut writer = self.writer.lock();
        let drained = self.drain_inbox(&mut writer);
        let is_done = self.visible.load(Ordering::Acquire) == drained.version;
        if is_done { Ok(()) } else { self.commit_drained(&mut writer, &drained) }
    }

    fn drain_inbox(&self, writer: &mut SectionWriter) -> DrainedInbox {
        let mut inbox = self.inbox.lock();
        writer.take(&mut inbox.changes);
        inbox.bytes = 0;
        DrainedInbox { position: inbox.position.clone(), version: inbox.version }
    }

    fn commit_drained(&self, writer: &mut SectionWriter, drained: &DrainedInbox) -> Result<(), TextError> {
        self.refuse_damaged()?;
        let engine = self.engine();
        let outcome = writer.commit(&engine.index, &self.fields, &drained.position).and_then(|()| engine.reload());
        outcome.map_err(|error| self.diagnose(&engine, error))?;
        self.visible.store(drained.version, Ordering::Release);
        self.committed_seq.store(drained.position.seq, Ordering::Release);
        Ok(())
    }

    fn engine(&self) -> Arc<TantivyEngine> {
        Arc::clone(&self.engine.lock())
    }

    /// Fails while the index is known to be damaged, until it is reset.
    fn refuse_damaged(&self) -> Result<(), TextError> {
        self.damage.lock().clone().map_or(Ok(()), |reason| Err(TextError::Damaged(reason)))
    }

    /// Finds out whether an error comes from damage, and records the damage.
    fn diagnose(&self, engine: &Arc<TantivyEngine>, error: TextError) -> TextError {
        let error = engine.diagnose(error);
        // Another thread may have reset the index meanwhile.
        if let TextError::Damaged(reason) = &error
            && Arc::ptr_eq(engine, &self.engine.lock())
        {
            *self.damage.lock() = Some(reason.clone());
        }
        error
    }

    /// The loop of the feeding thread.
    fn feed_until_closed(&self) {
        let mut patience = QUIET;
        let mut inbox = self.inbox.lock();
        while !inbox.closing {
            if !self.is_behind(&inbox) {
                inbox = self.wait_for_changes(inbox);
                continue;
            }
            let outcome = if inbox.bytes >= FEED_BYTES {
                drop(inbox);
                self.feed()
            } else {
                let version = inbox.version;
                self.pushed.wait_for(&mut inbox, patience);
                if inbox.closing || inbox.version != version {
                    continue;
                }
                drop(inbox);
                self.commit()
            };
            patience = QUIET;
            if let Err(error) = outcome {
                tracing::warn!("cannot write the text index: {error}; retrying in {} seconds", RETRY.as_secs());
                patience = RETRY;
            }
            inbox = self.inbox.lock();
        }
    }

    /// Waits until something is pushed. The writer is closed meanwhile, if that takes long.
    fn wait_for_changes<'a>(&'a self, mut inbox: MutexGuard<'a, Inbox>) -> MutexGuard<'a, Inbox> {
        let version = inbox.version;
        if !self.pushed.wait_for(&mut inbox, self.idle).timed_out() {
            return inbox;
        }
        drop(inbox);
        if let Err(error) = self.writer.lock().finish() {
            tracing::warn!("cannot finish the text index: {error}");
        }
        inbox = self.inbox.lock();
        if inbox.version == version && !inbox.closing {
            self.pushed.wait(&mut inbox);
        }
        inbox
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use quipu_testkit::store_conformance::note;

    use super::*;

    #[test]
    fn an_idle_writer_is_closed_and_opened_by_the_next_change() {
        let index = SectionIndex::start(TantivyEngine::in_memory().unwrap(), Duration::from_millis(1)).unwrap();
        for seq in 1..=3 {
            let text = format!("word{seq}");
            let key = NoteKey(u32::try_from(seq).unwrap());
            let documents = index.documents(key, &note("n.md", &text), &text);
            index.push(vec![TextChange::Add(documents)], IndexPosition { epoch: "e".to_owned(), seq });
            let query = TextQuery { text, limit: 5, ..TextQuery::default() };
            assert_eq!(index.search(&query).unwrap().hits.len(), 1);
            let started = Instant::now();
            while index.shared.writer.lock().is_open() {
                assert!(started.elapsed() < Duration::from_secs(60), "the writer stays open");
                std::thread::yield_now();
            }
        }
        assert_eq!(index.sections().unwrap(), 3);
    }
}
