//! What is derived from memory, kept level with the store's log.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use super::links::LinkIndex;
use super::names::NameIndex;
use super::text::TextIndex;
use super::vectors::{VectorIndex, stored, text_hash};
use crate::memory::entity_types::EntityTypes;
use crate::memory::model::{Entity, EntityId, Observation, ObservationId};
use crate::ports::{ChangeNumber, EmbedError, Embedder, MemoryFailure, MemoryStore, Role, StoredVector, TextOwner};

/// Rows read at a time.
const BATCH: usize = 4096;

/// So many texts are looked at for each that is embedded: the first ones may be those of other processes.
const WIDER: usize = 16;

/// Projects whose members are cached: clients work on a few at a time.
const PROJECTS: usize = 64;

/// The indexes as of one log entry.
#[derive(Default)]
pub(in crate::memory) struct DerivedIndexes {
    head: ChangeNumber,
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
    /// `None` until the first query.
    derived: RwLock<Option<DerivedIndexes>>,
    members: Mutex<Members>,
}

/// The cached members of projects.
#[derive(Default)]
struct Members {
    /// As of this count of changes to relations.
    relations: u64,
    of: FxHashMap<EntityId, Arc<FxHashSet<EntityId>>>,
}

/// A read lock on the indexes.
pub(in crate::memory) struct View<'a>(RwLockReadGuard<'a, Option<DerivedIndexes>>);

impl std::ops::Deref for View<'_> {
    type Target = DerivedIndexes;

    fn deref(&self) -> &DerivedIndexes {
        self.0.as_ref().expect("a view is created only after the indexes are built")
    }
}

impl LogFollower {
    pub(in crate::memory) fn new(
        store: Arc<dyn MemoryStore>,
        embedder: Option<Arc<dyn Embedder>>,
        types: EntityTypes,
    ) -> Self {
        Self { store, embedder, types, derived: RwLock::default(), members: Mutex::default() }
    }

    /// The indexes, with at least every change that was applied before the call.
    pub(in crate::memory) fn view(&self) -> Result<View<'_>, MemoryFailure> {
        let head = self.store.head()?;
        loop {
            let derived = self.derived.read();
            if derived.as_ref().is_some_and(|derived| derived.head >= head) {
                return Ok(View(derived));
            }
            drop(derived);
            let mut derived = self.derived.write();
            match &mut *derived {
                Some(derived) => self.catch_up(derived)?,
                none => *none = Some(self.build()?),
            }
        }
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
    ) -> Result<Arc<FxHashSet<EntityId>>, MemoryFailure> {
        let relations = self.view()?.relations;
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
        let wanted = self.view()?.vectors.wanted(limit.saturating_mul(WIDER));
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
        let Some(derived) = derived.as_mut() else { return Embedded::default() };
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
        let is_other = |derived: &DerivedIndexes| !derived.vectors.is_of(dimensions);
        let is_news = self.derived.read().as_ref().is_some_and(is_other);
        if is_news {
            let mut derived = self.derived.write();
            derived.iter_mut().for_each(|derived| Arc::make_mut(&mut derived.vectors).settle_dimensions(dimensions));
        }
    }

    fn texts(&self, owners: &[TextOwner]) -> Result<Vec<Option<String>>, MemoryFailure> {
        let text = |owner: &TextOwner| match owner {
            TextOwner::Entity(id) => Ok(self.store.entities(&[*id])?.pop().flatten().map(|entity| entity.as_text())),
            TextOwner::Observation(id) => Ok(self.store.observations(&[*id])?.pop().flatten().map(|seen| seen.text)),
        };
        owners.iter().map(text).collect()
    }

    fn build(&self) -> Result<DerivedIndexes, MemoryFailure> {
        let mut derived = DerivedIndexes { head: self.store.head()?, ..DerivedIndexes::default() };
        let mut after = EntityId(0);
        loop {
            let entities = self.store.entities_after(after, BATCH)?;
            let Some(last) = entities.last() else { break };
            after = last.id;
            self.take_entities(&mut derived, &entities);
        }
        let mut after = ObservationId(0);
        loop {
            let observations = self.store.observations_after(after, BATCH)?;
            let Some(last) = observations.last() else { break };
            after = last.id;
            self.take_observations(&mut derived, &observations);
        }
        if let Some(embedder) = &self.embedder {
            let index = Arc::make_mut(&mut derived.vectors);
            let mut after = None;
            loop {
                let vectors = self.store.vectors_after(embedder.space(), after, BATCH)?;
                let Some((last, _)) = vectors.last() else { break };
                after = Some(*last);
                for (owner, vector) in &vectors {
                    index.put(*owner, vector);
                }
            }
        }
        // Changes during the read may be included in part; they are applied again.
        self.catch_up(&mut derived)?;
        Ok(derived)
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
