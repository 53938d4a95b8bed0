//! The text index: takes changes at once, feeds them to tantivy as they pile up, and commits when someone looks or when
//! it is quiet. What a crash takes before that, the catalog knows to be missing.

#![expect(clippy::disallowed_methods, reason = "removes the text index's own folder when it is damaged")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{TextHits, TextQuery};
use tantivy::directory::RamDirectory;
use tantivy::{Index, IndexReader, IndexSettings, ReloadPolicy};

use super::directory::{UnsyncedDirectory, damaged_files};
use super::query::QueryWords;
use super::ranking::best;
use super::schema::{self, Fields};
use super::tokenizer::{self, WordTokenizer};
use super::writer::{Documents, Mark, TextChange, Writer};

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
/// Why the folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextOpenError {
    /// Starting empty helps.
    #[error("{0}")]
    Damaged(String),
    /// It does not.
    #[error(transparent)]
    Failed(tantivy::TantivyError),
}

/// The open index, with the thread that feeds and commits.
pub(crate) struct TextIndex {
    shared: Arc<Shared>,
    feeder: Option<JoinHandle<()>>,
    /// `None` in memory.
    directory: Option<UnsyncedDirectory>,
}

struct Shared {
    index: Index,
    fields: Fields,
    reader: IndexReader,
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
    /// Opens the index in a folder, which is made where there is none.
    pub(crate) fn open(folder: &Path) -> Result<Self, TextOpenError> {
        std::fs::create_dir_all(folder).map_err(|error| TextOpenError::Failed(error.into()))?;
        let directory = UnsyncedDirectory::open(folder).map_err(|error| TextOpenError::Failed(error.into()))?;
        let exists = Index::exists(&directory).map_err(|error| TextOpenError::Failed(error.into()))?;
        let (schema, fields) = schema::schema();
        if !exists {
            let index = Index::create(directory.clone(), schema, settings()).map_err(TextOpenError::Failed)?;
            return Self::start(index, fields, Some(directory)).map_err(TextOpenError::Failed);
        }
        let index = Index::open(directory.clone()).map_err(sort_out)?;
        if index.schema() != schema {
            return Err(TextOpenError::Damaged("its fields are those of another version of Quipu".to_owned()));
        }
        if !directory.is_synced()
            && let Some(file) = damaged_files(&index).map_err(sort_out)?.first()
        {
            return Err(TextOpenError::Damaged(format!("{} is damaged", file.display())));
        }
        Self::start(index, fields, Some(directory)).map_err(sort_out)
    }

    /// An empty index that lasts as long as it is open.
    pub(crate) fn in_memory() -> tantivy::Result<Self> {
        let (schema, fields) = schema::schema();
        let index = Index::create(RamDirectory::create(), schema, settings())?;
        Self::start(index, fields, None)
    }

    /// Removes the folder. It must not be open.
    pub(crate) fn remove_folder(folder: &Path) -> std::io::Result<()> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn start(index: Index, fields: Fields, directory: Option<UnsyncedDirectory>) -> tantivy::Result<Self> {
        index.tokenizers().register(tokenizer::NAME, WordTokenizer);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(0)
            .num_warming_threads(1)
            .try_into()?;
        let shared = Arc::new(Shared {
            index,
            fields,
            reader,
            inbox: Mutex::default(),
            news: Condvar::new(),
            writer: Mutex::default(),
            visible: AtomicU64::new(0),
            committed_seq: AtomicU64::new(0),
        });
        let feeder = std::thread::Builder::new().name("text-index".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.feed_until_closed()
        })?;
        Ok(Self { shared, feeder: Some(feeder), directory })
    }

    /// How far the index had come when it was last committed; `None` where that is unknown.
    pub(crate) fn committed(&self) -> Option<Mark> {
        Mark::from_payload(&self.shared.index.load_metas().ok()?.payload?)
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
        let mut inbox = lock(&self.shared.inbox);
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
    pub(crate) fn search(&self, query: &TextQuery) -> tantivy::Result<TextHits> {
        self.shared.catch_up()?;
        let searcher = self.shared.reader.searcher();
        let limit = query.limit.min(usize::try_from(searcher.num_docs()).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(TextHits::default());
        }
        for (matched, level) in QueryWords::understand(&query.text).levels(&self.shared.fields) {
            let hits = best(&searcher, &*level, limit)?;
            if !hits.is_empty() {
                return Ok(TextHits { hits, matched });
            }
        }
        Ok(TextHits::default())
    }

    /// How many sections are in the index.
    pub(crate) fn sections(&self) -> tantivy::Result<u64> {
        self.shared.catch_up()?;
        Ok(self.shared.reader.searcher().num_docs())
    }

    /// What tantivy's checksums find wrong, as sentences.
    pub(crate) fn check(&self) -> tantivy::Result<Vec<String>> {
        self.shared.catch_up()?;
        let sentence = |file: std::path::PathBuf| format!("The text index is damaged in {}.", file.display());
        Ok(damaged_files(&self.shared.index)?.into_iter().map(sentence).collect())
    }
}

impl Drop for TextIndex {
    fn drop(&mut self) {
        lock(&self.shared.inbox).closing = true;
        self.shared.news.notify_one();
        if self.feeder.take().is_some_and(|feeder| feeder.join().is_err()) {
            tracing::error!("the text index's thread ended in a panic");
        }
        let finished = self.shared.catch_up().and_then(|()| {
            lock(&self.shared.writer).finish()?;
            self.directory.as_ref().map_or(Ok(()), |directory| directory.sync(&self.shared.index))
        });
        if let Err(error) = finished {
            tracing::warn!("the text index could not be finished and is completed at the next start: {error}");
        }
    }
}

impl Shared {
    /// Makes every change visible that came in before this call.
    fn catch_up(&self) -> tantivy::Result<()> {
        if self.is_behind(&lock(&self.inbox)) { self.commit() } else { Ok(()) }
    }

    fn is_behind(&self, inbox: &Inbox) -> bool {
        self.visible.load(Ordering::Acquire) < inbox.version
    }

    fn feed(&self) -> tantivy::Result<()> {
        let mut writer = lock(&self.writer);
        let taken = self.take_inbox(&mut writer);
        if writer.uncommitted_bytes() >= COMMIT_BYTES {
            self.commit_taken(&mut writer, &taken)
        } else {
            writer.feed(&self.index, &self.fields)
        }
    }

    fn commit(&self) -> tantivy::Result<()> {
        let mut writer = lock(&self.writer);
        let taken = self.take_inbox(&mut writer);
        let is_done = self.visible.load(Ordering::Acquire) == taken.version;
        if is_done { Ok(()) } else { self.commit_taken(&mut writer, &taken) }
    }

    fn take_inbox(&self, writer: &mut Writer) -> Taken {
        let mut inbox = lock(&self.inbox);
        writer.take(&mut inbox.changes);
        inbox.bytes = 0;
        Taken { mark: inbox.mark.clone(), version: inbox.version }
    }

    fn commit_taken(&self, writer: &mut Writer, taken: &Taken) -> tantivy::Result<()> {
        writer.commit(&self.index, &self.fields, &taken.mark)?;
        self.reader.reload()?;
        self.visible.store(taken.version, Ordering::Release);
        self.committed_seq.store(taken.mark.seq, Ordering::Release);
        Ok(())
    }

    /// The feeder's life.
    fn feed_until_closed(&self) {
        let mut patience = QUIET;
        let mut inbox = lock(&self.inbox);
        while !inbox.closing {
            if !self.is_behind(&inbox) {
                inbox = self.news.wait(inbox).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let outcome = if inbox.bytes >= FEED_BYTES {
                drop(inbox);
                self.feed()
            } else {
                let version = inbox.version;
                inbox = self.news.wait_timeout(inbox, patience).unwrap_or_else(PoisonError::into_inner).0;
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
            inbox = lock(&self.inbox);
        }
    }
}

fn settings() -> IndexSettings {
    // Nothing is stored, so there is nothing to compress on a thread of its own.
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}

/// Tells a damaged index from a disk that does not let itself be read or written.
fn sort_out(error: tantivy::TantivyError) -> TextOpenError {
    use tantivy::directory::error::OpenReadError;
    let io = match &error {
        tantivy::TantivyError::IoError(error) => Some(error),
        tantivy::TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => Some(io_error),
        _ => None,
    };
    let starting_empty_fails_too = io
        .is_some_and(|io| matches!(io.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::StorageFull));
    if starting_empty_fails_too { TextOpenError::Failed(error) } else { TextOpenError::Damaged(error.to_string()) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a lock was held leaves counters and lists that are still true.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
