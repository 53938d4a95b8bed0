//! What is derived from memory, kept level with the store's log.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use super::links::LinkIndex;
use super::names::NameIndex;
use super::text::TextIndex;
use super::vectors::{VectorIndex, stored, text_hash};
use crate::memory::entity_types::EntityTypes;
use crate::memory::error::MemoryError;
use crate::memory::model::{Entity, EntityId, Observation, ObservationId};
use crate::ports::{
    ChangeNumber, EmbedError, Embedder, MemoryCounts, MemoryFailure, MemoryStore, Role, StoredVector, TextOwner,
};

/// Rows read at a time.
const BATCH: usize = 4096;

/// So many texts are looked at for each that is embedded: the first ones may be those of other processes.
const WIDER: usize = 16;

/// Projects whose members are cached: clients work on a few at a time.
const PROJECTS: usize = 64;

/// How long a call that needs all of memory waits while another thread reads it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many entities and observations the first read of memory has read, and how many there were at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadProgress {
    pub read: u64,
    pub of: u64,
}

impl fmt::Display for ReadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} entities and observations", self.read, self.of)
    }
}

/// The indexes as of one log entry.
#[derive(Default)]
pub(in crate::memory) struct DerivedIndexes {
    head: ChangeNumber,
    /// Whether everything was read once.
    is_whole: bool,
    /// Counts changes of relations.
    relations: u64,
    pub(in crate::memory) text: TextIndex,
    /// Shared with slow readers: a change meanwhile is made to a copy.
    pub(in crate::memory) names: Arc<NameIndex>,
    pub(in crate::memory) vectors: Arc<VectorIndex>,
    pub(in crate::memory) links: LinkIndex,
}

/// Keeps [`DerivedIndexes`] up to date with the log.
pub(in crate::memory) struct LogFollower {
    store: Arc<dyn MemoryStore>,
    embedder: Option<Arc<dyn Embedder>>,
    types: EntityTypes,
    derived: RwLock<DerivedIndexes>,
    /// Held by the thread that reads the store for them.
    reading: Mutex<()>,
    /// Whether a thread reads everything ahead of the first query.
    is_ahead: Mutex<bool>,
    read: Condvar,
    /// How far the first read is. Beside the indexes: it is reported while another thread changes these.
    progress: Mutex<ReadProgress>,
    members: Mutex<Members>,
}

/// The cached members of projects.
#[derive(Default)]
struct Members {
    /// As of this count of changes to relations.
    relations: u64,
    of: FxHashMap<EntityId, Arc<FxHashSet<EntityId>>>,
}

/// When this is dropped, also by a panic, queries no longer wait for a thread that reads ahead.
struct EndOfReadAhead<'a>(&'a LogFollower);

impl Drop for EndOfReadAhead<'_> {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

/// A read lock on the indexes.
pub(in crate::memory) type View<'a> = RwLockReadGuard<'a, DerivedIndexes>;

impl LogFollower {
    pub(in crate::memory) fn new(
        store: Arc<dyn MemoryStore>,
        embedder: Option<Arc<dyn Embedder>>,
        types: EntityTypes,
    ) -> Self {
        Self {
            store,
            embedder,
            types,
            derived: RwLock::default(),
            reading: Mutex::default(),
            is_ahead: Mutex::default(),
            read: Condvar::new(),
            progress: Mutex::default(),
            members: Mutex::default(),
        }
    }

    /// The indexes, with at least every change that was applied before the call. Fails if another thread reads for too long.
    pub(in crate::memory) fn view(&self) -> Result<View<'_>, MemoryError> {
        let until = Instant::now() + PATIENCE;
        self.expect_read(PATIENCE)?;
        let head = self.store.head()?;
        let still_read = || MemoryError::StillRead(*self.progress.lock());
        loop {
            let derived = self.derived.try_read_until(until).ok_or_else(still_read)?;
            if derived.is_whole && derived.head >= head {
                return Ok(derived);
            }
            drop(derived);
            let alone = self.reading.try_lock_until(until).ok_or_else(still_read)?;
            self.read_on(&alone)?;
        }
    }

    /// Like [`Self::view`], for a thread that no client waits for.
    fn view_in_background(&self) -> Result<View<'_>, MemoryFailure> {
        let head = self.store.head()?;
        loop {
            let derived = self.derived.read();
            if derived.is_whole && derived.head >= head {
                return Ok(derived);
            }
            drop(derived);
            self.read_on(&self.reading.lock())?;
        }
    }

    /// Like [`Self::view`]; while a thread reads everything ahead, what it has read so far.
    pub(in crate::memory) fn view_so_far(&self) -> Result<View<'_>, MemoryError> {
        if *self.is_ahead.lock() {
            let derived = self.derived.read();
            if !derived.is_whole {
                return Ok(derived);
            }
        }
        self.view()
    }

    /// From now on, queries need not wait for the first read, which [`Self::read_ahead`] does.
    pub(in crate::memory) fn expect_read_ahead(&self) {
        let is_whole = self.derived.read().is_whole;
        *self.is_ahead.lock() = !is_whole;
    }

    /// Reads everything ahead of the first query. If that fails, the first query does.
    pub(in crate::memory) fn read_ahead(&self) -> Result<(), MemoryFailure> {
        let _end = EndOfReadAhead(self);
        self.view_in_background().map(drop)
    }

    /// Reads everything, if that was not done yet. Fails if another thread reads for too long.
    pub(in crate::memory) fn read_first(&self) -> Result<(), MemoryError> {
        if self.derived.read().is_whole { Ok(()) } else { self.view().map(drop) }
    }

    /// Queries no longer wait for a thread that reads ahead.
    fn end_wait(&self) {
        *self.is_ahead.lock() = false;
        self.read.notify_all();
    }

    /// Waits for a thread that reads ahead; after a while, how far it is.
    pub(in crate::memory) fn wait_read(&self, patience: Duration) -> Result<(), ReadProgress> {
        let until = Instant::now() + patience;
        let mut is_ahead = self.is_ahead.lock();
        while *is_ahead {
            if self.read.wait_until(&mut is_ahead, until).timed_out() && *is_ahead {
                return Err(*self.progress.lock());
            }
        }
        Ok(())
    }

    /// Like [`Self::wait_read`], for a call that needs all of memory.
    pub(in crate::memory) fn expect_read(&self, patience: Duration) -> Result<(), MemoryError> {
        self.wait_read(patience).map_err(MemoryError::StillRead)
    }

    /// The model's cosine of unrelated texts.
    pub(in crate::memory) fn unrelated(&self) -> f32 {
        self.embedder.as_ref().map_or(0.0, |embedder| embedder.unrelated())
    }

    /// The vector of a text; `None` without an embedder or when it fails: then only words are searched.
    pub(in crate::memory) fn embed(&self, role: Role, text: &str) -> Option<Vec<f32>> {
        let embedder = self.embedder.as_ref()?;
        let vector = embedder.embed(role, &[text]).ok()?.pop()?;
        self.settle_dimensions(vector.len());
        Some(vector)
    }

    /// The members of a project, gathered again after a relation changed.
    pub(in crate::memory) fn members(
        &self,
        project: EntityId,
        gather: impl FnOnce() -> Result<FxHashSet<EntityId>, MemoryFailure>,
    ) -> Result<Arc<FxHashSet<EntityId>>, MemoryError> {
        let relations = self.view_so_far()?.relations;
        let mut members = self.members.lock();
        if members.relations != relations {
            *members = Members { relations, ..Members::default() };
        }
        if let Some(known) = members.of.get(&project) {
            return Ok(known.clone());
        }
        if members.of.len() >= PROJECTS {
            members.of.clear();
        }
        let ids = Arc::new(gather()?);
        members.of.insert(project, ids.clone());
        Ok(ids)
    }

    /// Creates and stores some missing vectors, or takes those that another process has stored.
    pub(in crate::memory) fn embed_some(&self, limit: usize) -> Result<Embedded, VectorError> {
        let Some(embedder) = &self.embedder else { return Ok(Embedded::default()) };
        let space = embedder.space();
        let wanted = self.view_in_background()?.vectors.wanted(limit.saturating_mul(WIDER));
        if wanted.is_empty() {
            return Ok(Embedded::default());
        }
        let owners: Vec<TextOwner> = wanted.iter().map(|(owner, _)| *owner).collect();
        let fetched = self.take_vectors(&self.store.vectors_of(space, &owners)?, &[]);
        if fetched.done > 0 {
            return Ok(fetched);
        }
        let hashes: Vec<i64> = wanted.iter().map(|(_, hash)| *hash).collect();
        let claimed = self.store.claim_texts(space, &hashes, limit)?;
        let mut mine = wanted;
        mine.retain(|(_, hash)| claimed.contains(hash));
        mine.truncate(limit);
        if mine.is_empty() {
            return Ok(Embedded { elsewhere: fetched.missing, ..fetched });
        }
        let owners: Vec<TextOwner> = mine.iter().map(|(owner, _)| *owner).collect();
        // What was stored between the first look and the claim.
        let fetched = self.take_vectors(&self.store.vectors_of(space, &owners)?, &[]);
        if fetched.done > 0 {
            return Ok(fetched);
        }
        let texts = self.texts(&owners)?;
        let texts: Vec<(TextOwner, &str)> =
            owners.iter().zip(&texts).filter_map(|(owner, text)| Some((*owner, text.as_deref()?))).collect();
        let passages: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
        let vectors = embedder.embed_passages(&passages)?;
        let mut made = Vec::new();
        let mut refused = Vec::new();
        for ((owner, text), vector) in texts.iter().zip(&vectors) {
            match vector {
                Some(vector) => made.push((*owner, stored(vector, text_hash(text)))),
                None => refused.push(*owner),
            }
        }
        self.store.put_vectors(space, &made)?;
        if let Some(vector) = vectors.iter().flatten().next() {
            self.settle_dimensions(vector.len());
        }
        Ok(self.take_vectors(&made, &refused))
    }

    /// Adds vectors to the index, and sets texts aside that cannot be embedded.
    fn take_vectors(&self, made: &[(TextOwner, StoredVector)], refused: &[TextOwner]) -> Embedded {
        let mut derived = self.derived.write();
        let before = derived.vectors.pending();
        if !made.is_empty() || !refused.is_empty() {
            let index = Arc::make_mut(&mut derived.vectors);
            for (owner, vector) in made {
                index.put(*owner, vector);
            }
            refused.iter().for_each(|owner| index.set_aside(*owner));
        }
        // Texts deleted meanwhile are dropped when their log entry is followed.
        let missing = derived.vectors.pending();
        Embedded { done: before - missing, missing, elsewhere: 0 }
    }

    /// Forgets the vectors of another model under the same name.
    fn settle_dimensions(&self, dimensions: usize) {
        let is_news = !self.derived.read().vectors.is_of(dimensions);
        if is_news {
            Arc::make_mut(&mut self.derived.write().vectors).settle_dimensions(dimensions);
        }
    }

    fn texts(&self, owners: &[TextOwner]) -> Result<Vec<Option<String>>, MemoryFailure> {
        let text = |owner: &TextOwner| match owner {
            TextOwner::Entity(id) => Ok(self.store.entities(&[*id])?.pop().flatten().map(|entity| entity.as_text())),
            TextOwner::Observation(id) => Ok(self.store.observations(&[*id])?.pop().flatten().map(|seen| seen.text)),
        };
        owners.iter().map(text).collect()
    }

    /// Applies the changes since the last read, or reads everything.
    fn read_on(&self, _alone: &MutexGuard<'_, ()>) -> Result<(), MemoryFailure> {
        if !self.derived.read().is_whole {
            return self.read_all();
        }
        self.catch_up(&mut self.derived.write())
    }

    /// Reads everything. The indexes are locked for a batch at a time, so that queries can see what has been read.
    fn read_all(&self) -> Result<(), MemoryFailure> {
        let head = self.store.head()?;
        let MemoryCounts { entities, observations, .. } = self.store.counts()?;
        *self.progress.lock() = ReadProgress { read: 0, of: entities + observations };
        // What was cached for relations during an earlier read that failed is out of date.
        let relations = self.derived.read().relations + 1;
        *self.derived.write() = DerivedIndexes { head, relations, ..DerivedIndexes::default() };
        let mut after = EntityId(0);
        loop {
            let entities = self.store.entities_after(after, BATCH)?;
            let Some(last) = entities.last() else { break };
            after = last.id;
            self.take_entities(&mut self.derived.write(), &entities);
            self.progress.lock().read += entities.len() as u64;
        }
        let mut after = ObservationId(0);
        loop {
            let observations = self.store.observations_after(after, BATCH)?;
            let Some(last) = observations.last() else { break };
            after = last.id;
            self.take_observations(&mut self.derived.write(), &observations);
            self.progress.lock().read += observations.len() as u64;
        }
        if let Some(embedder) = &self.embedder {
            let mut after = None;
            loop {
                let vectors = self.store.vectors_after(embedder.space(), after, BATCH)?;
                let Some((last, _)) = vectors.last() else { break };
                after = Some(*last);
                let mut derived = self.derived.write();
                let index = Arc::make_mut(&mut derived.vectors);
                for (owner, vector) in &vectors {
                    index.put(*owner, vector);
                }
            }
        }
        // Changes during the read may be included in part; they are applied again.
        let mut derived = self.derived.write();
        self.catch_up(&mut derived)?;
        derived.is_whole = true;
        drop(derived);
        self.end_wait();
        Ok(())
    }

    fn catch_up(&self, derived: &mut DerivedIndexes) -> Result<(), MemoryFailure> {
        let touched = self.store.changed_since(derived.head)?;
        for ids in touched.entities.chunks(BATCH) {
            let found = self.store.entities(ids)?;
            for id in ids.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(id, _)| *id) {
                derived.text.drop_entity(id);
                Arc::make_mut(&mut derived.names).drop(id);
                derived.links.drop(TextOwner::Entity(id));
                Arc::make_mut(&mut derived.vectors).drop(TextOwner::Entity(id));
            }
            self.take_entities(derived, &found.into_iter().flatten().collect::<Vec<_>>());
        }
        for ids in touched.observations.chunks(BATCH) {
            let found = self.store.observations(ids)?;
            for id in ids.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(id, _)| *id) {
                derived.text.drop_observation(id);
                derived.links.drop(TextOwner::Observation(id));
                Arc::make_mut(&mut derived.vectors).drop(TextOwner::Observation(id));
            }
            self.take_observations(derived, &found.into_iter().flatten().collect::<Vec<_>>());
        }
        derived.relations += u64::from(!touched.relations.is_empty());
        derived.head = touched.head;
        Ok(())
    }

    fn take_entities(&self, derived: &mut DerivedIndexes, entities: &[Entity]) {
        derived.text.put_entities(entities, &self.types);
        for entity in entities {
            Arc::make_mut(&mut derived.names).put(entity);
            let description = entity.description.as_deref().unwrap_or_default();
            derived.links.put(TextOwner::Entity(entity.id), entity.id, description);
            if self.embedder.is_some() {
                let hash = text_hash(&entity.as_text());
                Arc::make_mut(&mut derived.vectors).expect(TextOwner::Entity(entity.id), entity.id, hash);
            }
        }
    }

    fn take_observations(&self, derived: &mut DerivedIndexes, observations: &[Observation]) {
        derived.text.put_observations(observations);
        for seen in observations {
            derived.links.put(TextOwner::Observation(seen.id), seen.entity, &seen.text);
        }
        if self.embedder.is_some() {
            for seen in observations {
                Arc::make_mut(&mut derived.vectors).expect(
                    TextOwner::Observation(seen.id),
                    seen.entity,
                    text_hash(&seen.text),
                );
            }
        }
    }
}

/// The result of a round of embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Embedded {
    /// How many are no longer missing: created, fetched, or of texts that cannot be embedded.
    pub done: usize,
    /// How many are still missing.
    pub missing: usize,
    /// How many of these are to be waited for, because other processes compute them.
    pub elsewhere: usize,
}

/// Why vectors could not be created. Search by words still works.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MemoryFailure),
}
