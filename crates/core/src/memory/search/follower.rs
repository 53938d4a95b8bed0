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
use crate::ports::{ChangeNumber, EmbedError, Embedder, MemoryFailure, MemoryStore, Role, TextOwner};

/// Rows read at a time.
const BATCH: usize = 4096;

/// Projects whose members are kept: clients work on a few at a time.
const PROJECTS: usize = 64;

/// Everything derived, as of one log entry.
#[derive(Default)]
pub(in crate::memory) struct Derived {
    head: ChangeNumber,
    /// Counts the times that relations changed.
    relations: u64,
    pub(in crate::memory) text: TextIndex,
    /// Shared with whoever looks at them for seconds: a change meanwhile is made to a copy, and waits for nobody.
    pub(in crate::memory) names: Arc<NameIndex>,
    pub(in crate::memory) vectors: Arc<VectorIndex>,
    pub(in crate::memory) links: LinkIndex,
}

/// Keeps [`Derived`] level with the log.
pub(in crate::memory) struct Follower {
    store: Arc<dyn MemoryStore>,
    embedder: Option<Arc<dyn Embedder>>,
    types: EntityTypes,
    /// `None` until somebody asks.
    derived: RwLock<Option<Derived>>,
    members: Mutex<Members>,
}

/// The members of the projects that were asked for.
#[derive(Default)]
struct Members {
    /// As of this count of changes to relations.
    relations: u64,
    of: FxHashMap<EntityId, Arc<FxHashSet<EntityId>>>,
}

/// A look at everything derived.
pub(in crate::memory) struct View<'a>(RwLockReadGuard<'a, Option<Derived>>);

impl std::ops::Deref for View<'_> {
    type Target = Derived;

    fn deref(&self) -> &Derived {
        self.0.as_ref().expect("a view is given out only once there is something to see")
    }
}

impl Follower {
    pub(in crate::memory) fn new(
        store: Arc<dyn MemoryStore>,
        embedder: Option<Arc<dyn Embedder>>,
        types: EntityTypes,
    ) -> Self {
        Self { store, embedder, types, derived: RwLock::default(), members: Mutex::default() }
    }

    /// Everything derived, with at least every change that was applied before the call.
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

    /// The cosine of texts that have nothing to do with each other.
    pub(in crate::memory) fn unrelated(&self) -> f32 {
        self.embedder.as_ref().map_or(0.0, |embedder| embedder.unrelated())
    }

    /// The vector of a query; `None` without an embedder, or when it fails: words then go alone.
    pub(in crate::memory) fn embed(&self, role: Role, text: &str) -> Option<Vec<f32>> {
        let embedder = self.embedder.as_ref()?;
        let vector = embedder.embed(role, &[text]).ok()?.pop()?;
        let is_other = |derived: &Derived| !derived.vectors.is_of(vector.len());
        let is_news = self.derived.read().as_ref().is_some_and(is_other);
        if is_news {
            let mut derived = self.derived.write();
            derived.iter_mut().for_each(|derived| Arc::make_mut(&mut derived.vectors).settle_dimensions(vector.len()));
        }
        Some(vector)
    }

    /// The members of a project, gathered anew when a relation has changed.
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

    /// Makes some of the vectors that are missing and keeps them.
    pub(in crate::memory) fn embed_some(&self, limit: usize) -> Result<Embedded, VectorError> {
        let Some(embedder) = &self.embedder else { return Ok(Embedded::default()) };
        let wanted = self.view()?.vectors.wanted(limit);
        if wanted.is_empty() {
            return Ok(Embedded::default());
        }
        let texts = self.texts(&wanted)?;
        let texts: Vec<(TextOwner, &str)> =
            wanted.iter().zip(&texts).filter_map(|(owner, text)| Some((*owner, text.as_deref()?))).collect();
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
        self.store.put_vectors(embedder.space(), &made)?;
        let mut derived = self.derived.write();
        let Some(derived) = derived.as_mut() else { return Ok(Embedded::default()) };
        let index = Arc::make_mut(&mut derived.vectors);
        if let Some(vector) = vectors.iter().flatten().next() {
            index.settle_dimensions(vector.len());
        }
        let before = index.pending();
        for (owner, vector) in &made {
            index.put(*owner, vector);
        }
        refused.iter().for_each(|owner| index.set_aside(*owner));
        // Whoever is gone without a word in the log yet will be dropped with it.
        Ok(Embedded { done: before - index.pending(), missing: index.pending() })
    }

    fn texts(&self, owners: &[TextOwner]) -> Result<Vec<Option<String>>, MemoryFailure> {
        let text = |owner: &TextOwner| match owner {
            TextOwner::Entity(id) => Ok(self.store.entities(&[*id])?.pop().flatten().map(|entity| entity.as_text())),
            TextOwner::Observation(id) => Ok(self.store.observations(&[*id])?.pop().flatten().map(|seen| seen.text)),
        };
        owners.iter().map(text).collect()
    }

    fn build(&self) -> Result<Derived, MemoryFailure> {
        let mut derived = Derived { head: self.store.head()?, ..Derived::default() };
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
        // What was changed during the reading may be half in; it is looked at again.
        self.catch_up(&mut derived)?;
        Ok(derived)
    }

    fn catch_up(&self, derived: &mut Derived) -> Result<(), MemoryFailure> {
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

    fn take_entities(&self, derived: &mut Derived, entities: &[Entity]) {
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

    fn take_observations(&self, derived: &mut Derived, observations: &[Observation]) {
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

/// What became of some vectors that were missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Embedded {
    /// How many are missing no more: made, or of texts that none can be made of.
    pub done: usize,
    /// How many still are.
    pub missing: usize,
}

/// Why vectors could not be made. Words still find everything.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MemoryFailure),
}
