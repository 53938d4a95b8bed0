//! The text index: takes changes at once, feeds them to tantivy as they pile up, and commits when someone looks or when
//! it is quiet. What a crash takes before that, the catalog knows to be missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{RankedText, TextHits, TextQuery};

use super::damage::TextError;
use super::engine::{self, Engine};
use super::schema::{self, Fields};
use super::writer::{Documents, Mark, TextChange, Writer};
use crate::own_folder::OwnFolder;

/// How long nothing must change before a commit that no one waits for.
const QUIET: Duration = Duration::from_secs(1);
/// After a failed commit that no one waited for.
const RETRY: Duration = Duration::from_secs(30);
/// Waiting text that is worth waking the feeder for.
const FEED_BYTES: usize = 2 << 20;
/// Waiting text that makes the one who brings more wait, too.
const FULL_BYTES: usize = 16 << 20;
/// Text that may be lost to a crash, and is held in memory, before a commit is due though it is not quiet.
const COMMIT_BYTES: usize = 48 << 20;

/// The open index, with the thread that feeds and commits.
pub(crate) struct TextIndex {
    shared: Arc<Shared>,
    feeder: Option<JoinHandle<()>>,
}

struct Shared {
    /// Replaced when its files turn out to be damaged.
    engine: Mutex<Arc<Engine>>,
    /// What was found damaged in it.
    damage: Mutex<Option<String>>,
    fields: Fields,
    /// Held shortly. Taken after `writer` where both are needed.
    inbox: Mutex<Inbox>,
    /// Wakes the feeder.
    news: Condvar,
    writer: Mutex<Writer>,
    /// The version of the inbox that searches see.
    visible: AtomicU64,
    /// The list of changes that is safely committed.
    committed_seq: AtomicU64,
}

/// What waits to be fed.
#[derive(Default)]
struct Inbox {
    changes: Vec<TextChange>,
    bytes: usize,
    mark: Mark,
    /// Counts what came in.
    version: u64,
    closing: bool,
}

/// How far the inbox had come when it was emptied.
struct Taken {
    mark: Mark,
    version: u64,
}

impl TextIndex {
    /// Opens the index in the store's folder; it is made where there is none.
    pub(crate) fn open(store: &Arc<OwnFolder>) -> Result<Self, TextError> {
        Self::start(Engine::open(store)?)
    }

    /// An empty index that lasts as long as it is open.
    pub(crate) fn in_memory() -> Result<Self, TextError> {
        Self::start(Engine::in_memory()?)
    }

    /// Removes the index from the store's folder. It must not be open.
    pub(crate) fn remove(store: &OwnFolder) -> std::io::Result<()> {
        engine::remove(store)
    }

    fn start(engine: Engine) -> Result<Self, TextError> {
        let shared = Arc::new(Shared {
            engine: Mutex::new(Arc::new(engine)),
            damage: Mutex::default(),
            fields: schema::schema().1,
            inbox: Mutex::default(),
            news: Condvar::new(),
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

    /// How far the index had come when it was last committed; `None` where that is unknown.
    pub(crate) fn committed(&self) -> Option<Mark> {
        self.shared.engine().committed()
    }

    /// What was found damaged since the index was opened or started anew.
    pub(crate) fn damage(&self) -> Option<String> {
        self.shared.damage.lock().clone()
    }

    /// Starts empty in place of a damaged index. Changes that it had not committed are forgotten with it.
    pub(crate) fn start_anew(&self) -> Result<(), TextError> {
        let mut writer = self.shared.writer.lock();
        writer.abandon();
        let taken = self.shared.take_inbox(&mut writer);
        writer.abandon();
        let fresh = self.shared.engine().start_anew()?;
        *self.shared.engine.lock() = Arc::new(fresh);
        *self.shared.damage.lock() = None;
        self.shared.visible.store(taken.version, Ordering::Release);
        Ok(())
    }

    /// The last list of changes committed since the index was opened, 0 before that.
    pub(crate) fn committed_seq(&self) -> u64 {
        self.shared.committed_seq.load(Ordering::Acquire)
    }

    /// The documents for a note. Its ranges must lie in the text.
    pub(crate) fn documents(&self, key: NoteKey, note: &Note, text: &str) -> Documents {
        Documents::new(key, note, text, &self.shared.fields)
    }

    /// Takes changes in order; `mark` is how far the index has come with them. Every later search sees them.
    pub(crate) fn push(&self, changes: Vec<TextChange>, mark: Mark) {
        let mut inbox = self.shared.inbox.lock();
        inbox.bytes += changes.iter().map(TextChange::bytes).sum::<usize>();
        inbox.changes.extend(changes);
        inbox.mark = mark;
        inbox.version += 1;
        let is_full = inbox.bytes >= FULL_BYTES;
        drop(inbox);
        self.shared.news.notify_one();
        if is_full && let Err(error) = self.shared.feed() {
            // Nothing is lost: the changes are kept, and the next commit tries again and says so.
            tracing::warn!("the text index cannot be written: {error}");
        }
    }

    /// Searches, level by level.
    pub(crate) fn search(&self, query: &TextQuery) -> Result<TextHits, TextError> {
        self.ask(|engine| engine.search(query, &self.shared.fields))
    }

    /// Ranks by words.
    pub(crate) fn rank(&self, text: &str, limit: usize) -> Result<RankedText, TextError> {
        self.ask(|engine| engine.rank(text, limit, &self.shared.fields))
    }

    fn ask<Answer>(&self, question: impl Fn(&Engine) -> Result<Answer, TextError>) -> Result<Answer, TextError> {
        self.shared.catch_up()?;
        let engine = self.shared.engine();
        question(&engine).map_err(|error| {
            // Merges would change the files while they are asked.
            let mut writer = self.shared.writer.lock();
            let error = writer.finish().err().filter(|error| matches!(error, TextError::Damaged(_))).unwrap_or(error);
            self.shared.judge(&engine, error)
        })
    }

    /// How many sections are in the index.
    pub(crate) fn sections(&self) -> Result<u64, TextError> {
        self.shared.catch_up()?;
        Ok(self.shared.engine().sections())
    }

    /// What is wrong with the files, as sentences.
    pub(crate) fn check(&self) -> Result<Vec<String>, TextError> {
        let outcome = self.shared.catch_up().and_then(|()| {
            let mut writer = self.shared.writer.lock();
            // Merges would change the files while they are looked at.
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

impl Drop for TextIndex {
    fn drop(&mut self) {
        self.shared.inbox.lock().closing = true;
        self.shared.news.notify_one();
        if self.feeder.take().is_some_and(|feeder| feeder.join().is_err()) {
            tracing::error!("the text index's thread ended in a panic");
        }
        let finished = self.shared.catch_up().and_then(|()| {
            self.shared.writer.lock().finish()?;
            self.shared.engine().sync()
        });
        if let Err(error) = finished {
            tracing::warn!("the text index could not be finished and is completed at the next start: {error}");
        }
    }
}

impl Shared {
    /// Makes every change visible that came in before this call.
    fn catch_up(&self) -> Result<(), TextError> {
        self.refuse_damaged()?;
        if self.is_behind(&self.inbox.lock()) { self.commit() } else { Ok(()) }
    }

    fn is_behind(&self, inbox: &Inbox) -> bool {
        self.visible.load(Ordering::Acquire) < inbox.version
    }

    fn feed(&self) -> Result<(), TextError> {
        let mut writer = self.writer.lock();
        let taken = self.take_inbox(&mut writer);
        if writer.uncommitted_bytes() >= COMMIT_BYTES {
            return self.commit_taken(&mut writer, &taken);
        }
        self.refuse_damaged()?;
        let engine = self.engine();
        writer.feed(&engine.index, &self.fields).map_err(|error| self.judge(&engine, error))
    }

    fn commit(&self) -> Result<(), TextError> {
        let mut writer = self.writer.lock();
        let taken = self.take_inbox(&mut writer);
        let is_done = self.visible.load(Ordering::Acquire) == taken.version;
        if is_done { Ok(()) } else { self.commit_taken(&mut writer, &taken) }
    }

    fn take_inbox(&self, writer: &mut Writer) -> Taken {
        let mut inbox = self.inbox.lock();
        writer.take(&mut inbox.changes);
        inbox.bytes = 0;
        Taken { mark: inbox.mark.clone(), version: inbox.version }
    }

    fn commit_taken(&self, writer: &mut Writer, taken: &Taken) -> Result<(), TextError> {
        self.refuse_damaged()?;
        let engine = self.engine();
        let outcome = writer.commit(&engine.index, &self.fields, &taken.mark).and_then(|()| engine.reload());
        outcome.map_err(|error| self.judge(&engine, error))?;
        self.visible.store(taken.version, Ordering::Release);
        self.committed_seq.store(taken.mark.seq, Ordering::Release);
        Ok(())
    }

    fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine.lock())
    }

    /// Nothing is done with an index known to be damaged, until it is started anew.
    fn refuse_damaged(&self) -> Result<(), TextError> {
        self.damage.lock().clone().map_or(Ok(()), |reason| Err(TextError::Damaged(reason)))
    }

    /// Finds out whether an error comes from damage, and remembers it.
    fn judge(&self, engine: &Arc<Engine>, error: TextError) -> TextError {
        let error = engine.judge(error);
        // Another thread may have started anew meanwhile.
        if let TextError::Damaged(reason) = &error
            && Arc::ptr_eq(engine, &self.engine.lock())
        {
            *self.damage.lock() = Some(reason.clone());
        }
        error
    }

    /// The feeder's life.
    fn feed_until_closed(&self) {
        let mut patience = QUIET;
        let mut inbox = self.inbox.lock();
        while !inbox.closing {
            if !self.is_behind(&inbox) {
                self.news.wait(&mut inbox);
                continue;
            }
            let outcome = if inbox.bytes >= FEED_BYTES {
                drop(inbox);
                self.feed()
            } else {
                let version = inbox.version;
                self.news.wait_for(&mut inbox, patience);
                if inbox.closing || inbox.version != version {
                    continue;
                }
                drop(inbox);
                self.commit()
            };
            patience = QUIET;
            if let Err(error) = outcome {
                tracing::warn!("the text index cannot be written, trying again later: {error}");
                patience = RETRY;
            }
            inbox = self.inbox.lock();
        }
    }
}
