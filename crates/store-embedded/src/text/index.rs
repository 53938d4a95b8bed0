//! The text index: takes changes at once, feeds them to tantivy as they pile up, and commits when someone looks or when
//! it is quiet.
//!
//! Changes are kept in memory until they are committed, so a writer that fails (a full disk) is replaced and fed again;
//! what a crash takes, the catalog knows to be missing.

#![expect(clippy::disallowed_methods, reason = "removes the text index's own folder when it is damaged")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{TextHit, TextHits, TextQuery};
use tantivy::collector::TopDocs;
use tantivy::collector::sort_key::{SortBySimilarityScore, SortByStaticFastValue};
use tantivy::directory::RamDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, UserOperation};
use tantivy::query::Query;
use tantivy::{
    DocAddress, Index, IndexReader, IndexSettings, IndexWriter, Order, ReloadPolicy, Searcher, TantivyDocument, Term,
};

use super::directory::{UnsyncedDirectory, damaged_files};
use super::query::QueryWords;
use super::schema::{self, Fields, PLACE, key_and_section};
use super::tokenizer::{self, WordTokenizer};

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
/// For each of tantivy's threads; 15 MB is the least it takes.
const ARENA_BYTES: usize = 32 << 20;

/// How many more hits than wanted are taken, in search of ties.
const TIES: usize = 32;

/// How far the text index has come: the catalog's epoch and the last list of changes it has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub(crate) epoch: String,
    pub(crate) seq: u64,
}

/// One change for the text index.
pub(crate) enum TextChange {
    /// Forget everything.
    Clear,
    /// Forget a note.
    Forget(NoteKey),
    /// A note that is not in the index.
    Add(Documents),
}

/// A note's sections as documents.
pub(crate) struct Documents {
    documents: Vec<TantivyDocument>,
    bytes: usize,
}

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

/// What was taken from the inbox and is not committed.
#[derive(Default)]
struct Writer {
    /// Made at the first change, since it costs threads and memory that a reader has no need of.
    writer: Option<IndexWriter>,
    uncommitted: Vec<TextChange>,
    bytes: usize,
    /// How many of these the writer has.
    fed: usize,
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
        let payload = self.shared.index.load_metas().ok()?.payload?;
        let (epoch, seq) = payload.split_once(':')?;
        Some(Mark { epoch: epoch.to_owned(), seq: seq.parse().ok()? })
    }

    /// The last list of changes committed since the index was opened, 0 before that.
    pub(crate) fn committed_seq(&self) -> u64 {
        self.shared.committed_seq.load(Ordering::Acquire)
    }

    /// The documents for a note. Its ranges must lie in the text.
    pub(crate) fn documents(&self, key: NoteKey, note: &Note, text: &str) -> Documents {
        Documents { documents: self.shared.fields.documents(key.0, note, text), bytes: text.len() }
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
            // Ends merges that are under way, so that nothing is written behind the sync.
            lock(&self.shared.writer).writer = None;
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
        self.take_inbox(&mut writer);
        if writer.bytes >= COMMIT_BYTES {
            self.commit_taken(&mut writer)
        } else {
            writer.feed(&self.index, &self.fields)
        }
    }

    fn commit(&self) -> tantivy::Result<()> {
        let mut writer = lock(&self.writer);
        self.take_inbox(&mut writer);
        if self.visible.load(Ordering::Acquire) == writer.version {
            return Ok(());
        }
        self.commit_taken(&mut writer)
    }

    fn take_inbox(&self, writer: &mut Writer) {
        let mut inbox = lock(&self.inbox);
        writer.uncommitted.append(&mut inbox.changes);
        writer.bytes += std::mem::take(&mut inbox.bytes);
        writer.mark = inbox.mark.clone();
        writer.version = inbox.version;
    }

    fn commit_taken(&self, writer: &mut Writer) -> tantivy::Result<()> {
        writer.commit(&self.index, &self.fields)?;
        self.reader.reload()?;
        self.visible.store(writer.version, Ordering::Release);
        self.committed_seq.store(writer.mark.seq, Ordering::Release);
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

impl Writer {
    /// Gives tantivy what it does not have yet. A writer that fails is given up, and all is fed to the next one.
    fn feed(&mut self, index: &Index, fields: &Fields) -> tantivy::Result<()> {
        let outcome = self.try_feed(index, fields);
        if outcome.is_err() {
            self.writer = None;
            self.fed = 0;
        }
        outcome
    }

    fn try_feed(&mut self, index: &Index, fields: &Fields) -> tantivy::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(new_writer(index)?),
        };
        for change in &self.uncommitted[self.fed..] {
            match change {
                TextChange::Clear => {
                    writer.delete_all_documents()?;
                }
                TextChange::Forget(key) => {
                    writer.delete_term(Term::from_field_u64(fields.key, key.0.into()));
                }
                TextChange::Add(Documents { documents, .. }) => {
                    let operations: Vec<_> = documents.iter().cloned().map(UserOperation::Add).collect();
                    writer.run(operations)?;
                }
            }
            self.fed += 1;
        }
        Ok(())
    }

    fn commit(&mut self, index: &Index, fields: &Fields) -> tantivy::Result<()> {
        self.feed(index, fields)?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let outcome = writer.prepare_commit().and_then(|mut commit| {
            commit.set_payload(&format!("{}:{}", self.mark.epoch, self.mark.seq));
            commit.commit()
        });
        self.fed = 0;
        if let Err(error) = outcome {
            self.writer = None;
            return Err(error);
        }
        self.uncommitted.clear();
        self.bytes = 0;
        Ok(())
    }
}

impl TextChange {
    fn bytes(&self) -> usize {
        match self {
            Self::Clear | Self::Forget(_) => 0,
            Self::Add(documents) => documents.bytes,
        }
    }
}

fn new_writer(index: &Index) -> tantivy::Result<IndexWriter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = IndexWriterOptions::builder()
        .num_worker_threads(cores.min(2))
        .memory_budget_per_thread(ARENA_BYTES)
        .num_merge_threads(1)
        .build();
    let writer = index.writer_with_options(options)?;
    let mut merge_policy = LogMergePolicy::default();
    // Deleted sections count in BM25's statistics until they are merged away.
    merge_policy.set_del_docs_ratio_before_merge(0.3);
    writer.set_merge_policy(Box::new(merge_policy));
    Ok(writer)
}

fn settings() -> IndexSettings {
    // Nothing is stored, so there is nothing to compress on a thread of its own.
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}

/// The best sections: by score, ties by key and section.
fn best(searcher: &Searcher, query: &dyn Query, limit: usize) -> tantivy::Result<Vec<TextHit>> {
    // By score alone tantivy may skip what cannot win, but leaves out ties as it likes. So some more are taken: where the
    // last of these scores less than the last wanted, no tie was left out.
    let more = limit.saturating_add(TIES);
    let found = searcher.search(query, &TopDocs::with_limit(more).order_by_score())?;
    let is_complete = found.len() < more || found[more - 1].0 < found[limit - 1].0;
    let by_place = (SortByStaticFastValue::<u64>::for_field(PLACE), Order::Asc);
    let mut hits: Vec<(f32, u64)> = if is_complete {
        let place = |(score, address): (f32, DocAddress)| {
            let places = searcher.segment_reader(address.segment_ord).fast_fields().u64(PLACE)?;
            Ok(places.first(address.doc_id).map(|place| (score, place)))
        };
        found.into_iter().filter_map(|found| place(found).transpose()).collect::<tantivy::Result<_>>()?
    } else {
        let collector = TopDocs::with_limit(limit).order_by((SortBySimilarityScore, by_place));
        let found = searcher.search(query, &collector)?;
        found.into_iter().filter_map(|((score, place), _)| Some((score, place?))).collect()
    };
    hits.sort_by(|(score, place), (other_score, other_place)| {
        other_score.total_cmp(score).then_with(|| place.cmp(other_place))
    });
    hits.truncate(limit);
    let hit = |(score, place)| {
        let (key, section) = key_and_section(place);
        TextHit { key: NoteKey(key), section, score }
    };
    Ok(hits.into_iter().map(hit).collect())
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
