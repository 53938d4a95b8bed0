//! Links from memory to notes: the notes an entity links to, and the entities that link to a note. The modules `memory` and
//! `index` do not know each other.
//!
//! A `[[link]]` in a description or an observation resolves as in a note at the vault's root. The agent's text is never
//! rewritten: a link to a renamed note is tied to the note's path (see `repoint_links`). A tie counts while its note exists;
//! else names decide at the moment of the question, so a link to a note that does not exist yet resolves once it does.

mod repoint_links;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::Knowledge;
use crate::index::{Snapshot, name_hashes};
use crate::memory::{Entity, EntityDetail, EntityId, Memory, MemoryError, NoteLink};
use crate::model::NoteKey;
use crate::ports::{MemoryFailure, NoteTie, TextOwner};

/// The notes that an entity links to.
pub struct LinkedNotes {
    /// The vault they were found in.
    pub snapshot: Arc<Snapshot>,
    /// Each note once, in the order of the texts, with the target of the first link to it as written.
    pub notes: Vec<(NoteKey, String)>,
}

impl Knowledge {
    /// Adds the memory that links to the notes.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<Memory>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The notes that the texts of an entity link to; `None` when they have no links.
    pub fn linked_notes(&self, detail: &EntityDetail) -> Result<Option<LinkedNotes>, MemoryError> {
        let links = detail.links();
        let Some(memory) = self.memory.as_ref().filter(|_| !links.is_empty()) else { return Ok(None) };
        self.catch_up();
        let (snapshot, targets) = self.targets(memory, &links)?;
        let mut seen = FxHashSet::default();
        let notes = links.into_iter().zip(targets).filter_map(|(link, target)| Some((target?, link.link.target)));
        Ok(Some(LinkedNotes { notes: notes.filter(|(key, _)| seen.insert(*key)).collect(), snapshot }))
    }

    /// The first `limit` entities whose texts link to a note of a snapshot, by id, and the count of all. Empty without a
    /// memory.
    pub fn linking_entities(
        &self,
        snapshot: &Snapshot,
        key: NoteKey,
        limit: usize,
    ) -> Result<(Vec<Entity>, usize), MemoryError> {
        let Some(memory) = &self.memory else { return Ok((Vec::new(), 0)) };
        self.catch_up();
        let note = snapshot.note(key);
        let hashes = name_hashes(note).into_iter().collect();
        let links = memory.links_like(&hashes, &memory.store().ties_to(&note.path)?)?;
        let (now, targets) = self.targets(memory, &links)?;
        let is_target = |target: Option<NoteKey>| target.is_some_and(|target| now.note(target).path == note.path);
        let linking = links.iter().zip(targets).filter(|(_, target)| is_target(*target)).map(|(link, _)| link.entity);
        let mut ids: Vec<EntityId> = linking.collect();
        ids.sort_unstable();
        ids.dedup();
        let count = ids.len();
        ids.truncate(limit);
        Ok((memory.store().entities(&ids)?.into_iter().flatten().collect(), count))
    }

    /// Pairs of an entity and a note of this snapshot that its texts link to: sorted, without duplicates.
    pub fn notes_linked_from_memory(&self, snapshot: &Snapshot) -> Result<Vec<(EntityId, NoteKey)>, MemoryError> {
        let Some(memory) = &self.memory else { return Ok(Vec::new()) };
        self.catch_up();
        let links = memory.all_links()?;
        let (now, targets) = self.targets(memory, &links)?;
        let in_snapshot = |target: NoteKey| snapshot.find_exact(&now.note(target).path);
        let pairs = links.iter().zip(targets).filter_map(|(link, target)| Some((link.entity, in_snapshot(target?)?)));
        let mut pairs: Vec<(EntityId, NoteKey)> = pairs.collect();
        pairs.sort_unstable();
        pairs.dedup();
        Ok(pairs)
    }

    /// Repoints links to notes that were moved already, before their targets are asked for.
    fn catch_up(&self) {
        self.indexer.wait_for_batch();
        self.follow_changes();
    }

    /// The targets of memory's links now.
    fn targets(
        &self,
        memory: &Memory,
        links: &[NoteLink],
    ) -> Result<(Arc<Snapshot>, Vec<Option<NoteKey>>), MemoryFailure> {
        let ties = Ties::of(memory, links)?;
        let (snapshot, by_name) = self.indexer.resolve_from_root(links.iter().map(|link| &link.link));
        let targets =
            links.iter().zip(by_name).map(|(link, by_name)| ties.target(link, &snapshot).or(by_name)).collect();
        Ok((snapshot, targets))
    }
}

/// The ties of some links.
struct Ties(Vec<NoteTie>);

impl Ties {
    fn of(memory: &Memory, links: &[NoteLink]) -> Result<Self, MemoryFailure> {
        let mut owners: Vec<TextOwner> = links.iter().map(|link| link.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        Ok(Self(memory.store().ties_of(&owners)?.into_iter().flatten().collect()))
    }

    fn get(&self, link: &NoteLink) -> Option<&NoteTie> {
        let place = self.0.binary_search_by(|tie| (tie.owner, &*tie.target).cmp(&(link.owner, &*link.link.target)));
        place.ok().map(|place| &self.0[place])
    }

    /// The note that a link is tied to, if it exists.
    fn target(&self, link: &NoteLink, snapshot: &Snapshot) -> Option<NoteKey> {
        snapshot.find_exact(&self.get(link)?.path)
    }
}
