//! Between memory and notes: which notes an entity speaks of, and which entities speak of a note. Neither of the two rooms
//! sees the other; they meet here, above both.
//!
//! A `[[link]]` in a description or an observation means what it would mean in a note at the top of the vault. The agent's
//! text is never rewritten: a link whose note got another name is tied to it instead (see `following`). A tie counts as
//! long as its note is there; else, and for all other links, names decide at the moment of asking, so a link to a note
//! that is yet to be written becomes true when it is.

mod following;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::Knowledge;
use crate::index::{Snapshot, name_hashes};
use crate::memory::{Entity, EntityDetail, EntityId, Memory, MemoryError, NoteLink};
use crate::model::NoteKey;
use crate::ports::{MemoryFailure, NoteTie, TextOwner};

/// The notes that an entity speaks of, in the vault as it was at that moment.
pub struct LinkedNotes {
    /// The vault.
    pub snapshot: Arc<Snapshot>,
    /// Each note once, in the order of the texts, with the target of the first link to it as written.
    pub notes: Vec<(NoteKey, String)>,
}

impl Knowledge {
    /// The same vault, with the memory whose links lead into it.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<Memory>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The notes that the texts of an entity link to; `None` where they link to nothing at all.
    pub fn linked_notes(&self, detail: &EntityDetail) -> Result<Option<LinkedNotes>, MemoryError> {
        let links = detail.links();
        let Some(memory) = self.memory.as_ref().filter(|_| !links.is_empty()) else { return Ok(None) };
        self.catch_up();
        let (snapshot, meant) = self.meanings(memory, &links)?;
        let mut seen = FxHashSet::default();
        let notes = links.into_iter().zip(meant).filter_map(|(link, meant)| Some((meant?, link.link.target)));
        Ok(Some(LinkedNotes { notes: notes.filter(|(key, _)| seen.insert(*key)).collect(), snapshot }))
    }

    /// At most `limit` entities whose texts link to a note of a snapshot, in order of id, and how many there are in all.
    /// None where there is no memory.
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
        let (now, meant) = self.meanings(memory, &links)?;
        let is_meant = |meant: Option<NoteKey>| meant.is_some_and(|meant| now.note(meant).path == note.path);
        let speaking = links.iter().zip(meant).filter(|(_, meant)| is_meant(*meant)).map(|(link, _)| link.entity);
        let mut ids: Vec<EntityId> = speaking.collect();
        ids.sort_unstable();
        ids.dedup();
        let count = ids.len();
        ids.truncate(limit);
        Ok((memory.store().entities(&ids)?.into_iter().flatten().collect(), count))
    }

    /// A move that a reader may have seen already is followed before its links are asked for.
    fn catch_up(&self) {
        self.indexer.wait_for_batch();
        self.follow_moves();
    }

    /// What links of memory mean now.
    fn meanings(
        &self,
        memory: &Memory,
        links: &[NoteLink],
    ) -> Result<(Arc<Snapshot>, Vec<Option<NoteKey>>), MemoryFailure> {
        let ties = Ties::of(memory, links)?;
        let (snapshot, by_name) = self.indexer.resolve_from_root(links.iter().map(|link| &link.link));
        let meant = links.iter().zip(by_name).map(|(link, by_name)| ties.target(link, &snapshot).or(by_name)).collect();
        Ok((snapshot, meant))
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

    /// The note that a link is tied to, if it is there.
    fn target(&self, link: &NoteLink, snapshot: &Snapshot) -> Option<NoteKey> {
        snapshot.find_exact(&self.get(link)?.path)
    }
}
