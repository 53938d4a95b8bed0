//! Links of memory after a note has got another name: each that meant the note still does, by name or by a tie.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Ties;
use crate::Knowledge;
use crate::index::{Moves, RenamePreview, Snapshot, name_hashes};
use crate::memory::{Memory, MemoryError, NoteLink};
use crate::model::{Link, Note, NoteKey, VaultPath, Warning};
use crate::ports::NoteTie;

/// Ties to be taken away and to be made.
#[derive(Default)]
pub(crate) struct Retied {
    gone: Vec<NoteTie>,
    made: Vec<NoteTie>,
}

impl Retied {
    /// What takes it back.
    pub(crate) fn reversed(self) -> Self {
        Self { gone: self.made, made: self.gone }
    }

    fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.made.is_empty()
    }
}

impl Knowledge {
    /// The ties that keep links of memory true through a rename. They may be made before it: a tie to a note that is not
    /// there counts for nothing.
    pub(crate) fn ties_through(&self, preview: &mut RenamePreview<'_>) -> Result<Retied, MemoryError> {
        let Some(memory) = &self.memory else { return Ok(Retied::default()) };
        let (snapshot, old, new) = (preview.snapshot, preview.note().clone(), preview.renamed.clone());
        let moved = FxHashMap::from_iter([(old.path.clone(), new.path.clone())]);
        let links = candidates(memory, [&old, &new], moved.keys())?;
        let by_name = preview.resolve_from_root(&links.iter().map(|link| &link.link).collect::<Vec<&Link>>());
        let path_then = |key: NoteKey| if key == preview.key { new.path.clone() } else { path_of(snapshot, key) };
        let by_name = by_name.into_iter().map(|(now, then)| (now, then.map(path_then)));
        let stays = |path: &VaultPath| *path == new.path || snapshot.find_exact(path).is_some();
        Ok(retied(&links, &Ties::of(memory, &links)?, snapshot, by_name, &moved, stays))
    }

    /// Keeps links of memory true after files were moved by another program.
    pub(crate) fn follow_moves(&self) {
        // Whoever comes second waits until the first is done, and finds the ties made.
        let _alone = self.following.lock();
        for moves in self.indexer.take_moves() {
            let followed = self.ties_after(&moves).map(|ties| self.repoint_links(&ties));
            if let Err(error) = followed {
                self.warn_lost(&error.to_string());
            }
        }
    }

    fn ties_after(&self, moves: &Moves) -> Result<Retied, MemoryError> {
        let Some(memory) = &self.memory else { return Ok(Retied::default()) };
        let Moves { before, to } = moves;
        let now = self.snapshot();
        let note_at =
            |snapshot: &Snapshot, path: &VaultPath| snapshot.find_exact(path).map(|key| snapshot.note(key).clone());
        let notes = to.iter().flat_map(|(from, to)| [note_at(before, from), note_at(&now, to)]).flatten();
        let links = candidates(memory, &notes.collect::<Vec<Note>>(), to.keys())?;
        if links.is_empty() {
            return Ok(Retied::default());
        }
        let written = || links.iter().map(|link| &link.link);
        let (after, then) = self.indexer.resolve_from_root(written());
        let then = then.into_iter().map(|key| key.map(|key| path_of(&after, key)));
        let by_name = before.resolve_from_root(written()).into_iter().zip(then);
        let stays = |path: &VaultPath| after.find_exact(path).is_some();
        Ok(retied(&links, &Ties::of(memory, &links)?, before, by_name, to, stays))
    }

    /// Makes and takes away ties. A failure is told: the note is renamed all the same.
    pub(crate) fn repoint_links(&self, ties: &Retied) {
        let Some(memory) = self.memory.as_ref().filter(|_| !ties.is_empty()) else { return };
        if let Err(failure) = memory.store().repoint_links(&ties.gone, &ties.made) {
            self.warn_lost(&failure.to_string());
        }
    }

    pub(crate) fn warn_lost(&self, error: &str) {
        let message = format!("{error}; links in memory to a note that was just renamed may no longer lead to it");
        self.warn(Warning { path: ".quipu/memory.db".into(), message });
    }
}

/// The links that mean any of these notes, would by its name, or are tied to one of these places.
fn candidates<'a>(
    memory: &Memory,
    notes: impl IntoIterator<Item = &'a Note>,
    tied_to: impl Iterator<Item = &'a VaultPath>,
) -> Result<Vec<NoteLink>, MemoryError> {
    let hashes: FxHashSet<u64> = notes.into_iter().flat_map(name_hashes).collect();
    let ties = tied_to.map(|path| memory.store().ties_to(path)).collect::<Result<Vec<_>, _>>()?;
    memory.links_ever_like(&hashes, &ties.concat())
}

/// Which ties keep each link at the note it means. `by_name` has what names alone say: before, and the path after.
fn retied(
    links: &[NoteLink],
    ties: &Ties,
    before: &Snapshot,
    by_name: impl Iterator<Item = (Option<NoteKey>, Option<VaultPath>)>,
    moved: &FxHashMap<VaultPath, VaultPath>,
    stays: impl Fn(&VaultPath) -> bool,
) -> Retied {
    let mut retied = Retied::default();
    for (link, (named, named_then)) in links.iter().zip(by_name) {
        let Some(meant) = ties.target(link, before).or(named).map(|key| path_of(before, key)) else { continue };
        let wanted = moved.get(&meant).cloned().unwrap_or(meant);
        let tie = ties.get(link);
        if !stays(&wanted) || tie.is_some_and(|tie| tie.path == wanted) {
            continue;
        }
        let (owner, target) = (link.owner, link.link.target.clone());
        let is_needed = named_then.as_ref() != Some(&wanted);
        retied.gone.extend(tie.cloned());
        retied.made.extend(is_needed.then_some(NoteTie { owner, target, path: wanted }));
    }
    retied
}

fn path_of(snapshot: &Snapshot, key: NoteKey) -> VaultPath {
    snapshot.note(key).path.clone()
}
