//! Search by meaning: the embedder, the vector store, and the creation of missing vectors.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::passages::{Passage, passages};
use crate::Knowledge;
use crate::index::{HubMetric, Progress, Snapshot};
use crate::model::{Note, NoteKey, VaultPath};
use crate::parse::decode;
use crate::ports::{Coverage, EmbedError, Embedder, Grade, MissingVector, PassageHash, StoreError, VectorStore};

/// Passages that a thread takes at a time, at most.
const BATCH: usize = 8;

/// Shares of a round for each thread, at least.
const SHARES: usize = 4;

/// Passages that a thread takes at a time for the coarse encoder: a tenth of a second of work, one transaction of the store.
const COARSE_BATCH: usize = 256;

/// The most threads with a coarse encoder: each caches up to 40 MB.
const COARSE_THREADS: usize = 4;

/// Notes that get their full vectors before others because notes link to them.
const LINKED_FIRST: usize = 1000;

/// The pause before passages that could not be read are retried while the index does not change.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// The parts of search by meaning. A vault without them searches by words alone.
pub struct Meaning {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(super) vectors: Arc<dyn VectorStore>,
    is_alone: bool,
    skipped: Mutex<Skipped>,
    /// Held during a pass of the coarse encoder, so that two threads do not do the same work.
    coarse_pass: Mutex<()>,
}

/// Passages that the others do not wait for.
#[derive(Default)]
struct Skipped {
    /// The embedder refused their texts, and would again.
    refused: FxHashSet<PassageHash>,
    /// Their files were not what the index knew: they were being saved, or are unreadable.
    unread: FxHashSet<PassageHash>,
    /// The index as it was then; the next one may know the files.
    index: Weak<Snapshot>,
    /// When the first of them was not read: a file may come back as the index knows it, which leaves that as it is.
    since: Option<Instant>,
    /// The notes of that index with the most links to them, most first.
    linked: Vec<NoteKey>,
}

impl Skipped {
    /// Has passages read again where that may help.
    fn read_again(&mut self, snapshot: &Arc<Snapshot>) {
        let is_known = Weak::ptr_eq(&self.index, &Arc::downgrade(snapshot));
        if !is_known {
            let hubs = snapshot.hubs(HubMetric::InDegree, LINKED_FIRST).into_iter();
            self.linked = hubs.filter(|(_, links)| *links > 0.0).map(|(key, _)| key).collect();
        }
        if !is_known || self.since.is_some_and(|since| since.elapsed() >= READ_AGAIN) {
            self.unread.clear();
            (self.index, self.since) = (Arc::downgrade(snapshot), None);
        }
    }

    fn has(&self, hash: PassageHash) -> bool {
        self.refused.contains(&hash) || self.unread.contains(&hash)
    }

    fn len(&self) -> usize {
        self.refused.len() + self.unread.len()
    }
}

/// Why passages could not be embedded.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingFailed {
    /// The embedder failed.
    #[error(transparent)]
    Embedder(#[from] EmbedError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How much of the machine to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// This thread alone.
    OneThread,
    /// Every core, when a user waits.
    EveryCore,
}

/// The result of one round of embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The number of passages that got a vector.
    Embedded(usize),
    /// Nothing is left to do, or only passages of files that are changing right now.
    Idle,
}

impl Meaning {
    /// Composes an embedder and a store of vectors.
    pub fn new(embedder: Arc<dyn Embedder>, vectors: Arc<dyn VectorStore>) -> Self {
        Self { embedder, vectors, is_alone: false, skipped: Mutex::default(), coarse_pass: Mutex::default() }
    }

    /// Whether notes are searched by meaning alone, with the cosine as their score.
    #[must_use]
    pub fn alone(self, is_alone: bool) -> Self {
        Self { is_alone, ..self }
    }
}

impl Knowledge {
    /// Adds search by meaning.
    #[must_use]
    pub fn with_meaning(mut self, meaning: Meaning) -> Self {
        self.meaning = Some(meaning);
        self
    }

    /// Whether it can be searched by meaning.
    pub fn has_meaning(&self) -> bool {
        self.meaning.is_some()
    }

    /// Whether notes are searched by meaning alone.
    pub fn searches_by_meaning_alone(&self) -> bool {
        self.meaning.as_ref().is_some_and(|meaning| meaning.is_alone)
    }

    /// Whether passages get a coarse vector at once, by [`Knowledge::embed_coarse`].
    pub fn has_coarse_encoder(&self) -> bool {
        self.meaning.as_ref().is_some_and(|meaning| meaning.embedder.coarse_encoder().is_some())
    }

    /// The progress of embedding; `None` without an embedder.
    pub fn coverage(&self) -> Option<Result<Coverage, StoreError>> {
        self.meaning.as_ref().map(|meaning| meaning.vectors.coverage(meaning.embedder.space()))
    }

    /// Creates coarse vectors for all passages without a vector, on several threads; returns how many. Thousands a second, so that
    /// search by meaning works as soon as notes are indexed. Does nothing without a coarse encoder.
    ///
    /// `goes_on` gets the progress and may stop it. Passages of files that are changing right now are left for the next pass.
    pub fn embed_coarse(&self, goes_on: &(dyn Fn(Progress) -> bool + Sync)) -> Result<usize, EmbeddingFailed> {
        let Some(meaning) = &self.meaning else { return Ok(0) };
        if !self.has_coarse_encoder() {
            return Ok(0);
        }
        let space = meaning.embedder.space();
        let _pass = meaning.coarse_pass.lock();
        let missing = meaning.vectors.missing(space, Grade::COARSE, None, usize::MAX)?;
        let (done, total) = (AtomicUsize::new(0), missing.len());
        let made = on_threads(
            cores().min(COARSE_THREADS),
            &missing.chunks(COARSE_BATCH).collect::<Vec<_>>(),
            || meaning.embedder.coarse_encoder(),
            |encoder, share| {
                let Some(encoder) = encoder else { return Ok(Vec::new()) };
                if !goes_on(Progress { done: done.load(Ordering::Relaxed), total }) {
                    return Ok(Vec::new());
                }
                let texts =
                    self.texts_of(&self.snapshot(), share).into_iter().filter_map(|(hash, text)| Some((hash, text?)));
                let vectors: Vec<_> = texts.map(|(hash, text)| (hash, encoder.encode(&text))).collect();
                meaning.vectors.put_vectors(space, Grade::COARSE, &vectors)?;
                done.fetch_add(share.len(), Ordering::Relaxed);
                Ok::<_, StoreError>(vec![vectors.len()])
            },
        )?;
        Ok(made.into_iter().sum())
    }

    /// The texts of passages; `None` where a file is not what the index knows.
    fn texts_of(&self, snapshot: &Snapshot, wanted: &[MissingVector]) -> Vec<(PassageHash, Option<String>)> {
        let keys: BTreeSet<NoteKey> = wanted.iter().map(|wanted| wanted.key).collect();
        let notes: Vec<(NoteKey, &Note)> = keys.into_iter().filter_map(|key| Some((key, snapshot.get(key)?))).collect();
        let paths: Vec<&VaultPath> = notes.iter().map(|(_, note)| &note.path).collect();
        let mut of_note: FxHashMap<NoteKey, Vec<Passage>> = FxHashMap::default();
        for ((key, note), content) in notes.into_iter().zip(self.vault.read_in_batches(&paths)) {
            if let Ok(Some(content)) = content
                && content.hash == note.hash
            {
                of_note.insert(key, passages(note, &decode(content.bytes)));
            }
        }
        let text_of = |wanted: &MissingVector| {
            let passage = of_note.get(&wanted.key).and_then(|passages| passages.get(wanted.passage));
            let passage = passage.filter(|passage| passage.hash() == wanted.hash);
            (wanted.hash, passage.map(|passage| passage.text.clone()))
        };
        wanted.iter().map(text_of).collect()
    }

    /// Embeds up to `limit` passages without a full vector: half of them of the most linked notes, the others of the newest
    /// files.
    pub fn embed_some(&self, limit: usize, effort: Effort) -> Result<Round, EmbeddingFailed> {
        let Some(meaning) = &self.meaning else { return Ok(Round::Idle) };
        let space = meaning.embedder.space();
        let mut skipped = meaning.skipped.lock();
        let snapshot = self.snapshot();
        skipped.read_again(&snapshot);
        let mut missing = Vec::new();
        for (of, limit) in [(Some(skipped.linked.as_slice()), limit.div_ceil(2)), (None, limit)] {
            let mut some = meaning.vectors.missing(space, Grade::FULL, of, limit - missing.len() + skipped.len())?;
            some.retain(|passage| {
                !skipped.has(passage.hash) && !missing.iter().any(|known: &MissingVector| known.hash == passage.hash)
            });
            some.truncate(limit - missing.len());
            missing.extend(some);
        }
        if missing.is_empty() {
            return Ok(Round::Idle);
        }
        let mut texts: Vec<(PassageHash, String)> = Vec::new();
        for (hash, text) in self.texts_of(&snapshot, &missing) {
            match text {
                Some(text) => texts.push((hash, text)),
                None => {
                    skipped.unread.insert(hash);
                    skipped.since.get_or_insert_with(Instant::now);
                }
            }
        }
        // Stores the vectors at once, and returns the texts that were refused.
        let embed = |texts: &[(PassageHash, String)]| {
            let together: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
            let made = meaning.embedder.embed_passages(&together)?;
            let made = texts.iter().map(|(hash, _)| *hash).zip(made);
            let (made, refused): (Vec<_>, Vec<_>) = made.partition(|(_, vector)| vector.is_some());
            let vectors: Vec<_> = made.into_iter().filter_map(|(hash, vector)| Some((hash, vector?))).collect();
            meaning.vectors.put_vectors(space, Grade::FULL, &vectors)?;
            Ok::<_, EmbeddingFailed>(refused.into_iter().map(|(hash, _)| hash).collect::<Vec<_>>())
        };
        let refused = match effort {
            _ if texts.is_empty() => Vec::new(),
            Effort::OneThread => embed(&texts)?,
            Effort::EveryCore => {
                // The longest first and several shares for each thread, so that all end at about the same time.
                texts.sort_by_key(|(_, text)| Reverse(text.len()));
                let share = (texts.len() / (cores() * SHARES)).clamp(1, BATCH);
                on_threads(cores(), &texts.chunks(share).collect::<Vec<_>>(), || (), |(), texts| embed(texts))?
            }
        };
        let embedded = texts.len() - refused.len();
        skipped.refused.extend(refused);
        Ok(Round::Embedded(embedded))
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processes batches, in no order, on threads of its own, each with its own tool. Not on the shared pool, which has to stay free
/// for reads and queries: a remote provider may block these threads for long.
fn on_threads<T: Sync, Tool, R: Send, E: Send>(
    threads: usize,
    shares: &[&[T]],
    tool: impl Fn() -> Tool + Sync,
    work: impl Fn(&mut Tool, &[T]) -> Result<Vec<R>, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let take = || {
        let (mut tool, mut done) = (tool(), Vec::new());
        while let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
            match work(&mut tool, share) {
                Ok(more) => done.extend(more),
                Err(error) => {
                    next.store(shares.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(shares.len())).map(|_| scope.spawn(take)).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok(joined.collect::<Result<Vec<_>, E>>()?.into_iter().flatten().collect())
    })
}
