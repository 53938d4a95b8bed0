//! Keeps memory's links to a renamed or moved note: by its new name where that resolves, else by a tie to its path.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Ties;
use crate::Knowledge;
use crate::index::{Moves, RenamePreview, Snapshot, name_hashes};
use crate::memory::{Memory, MemoryError, NoteLink};
use crate::model::{Link, Note, NoteKey, VaultPath, Warning};
use crate::ports::NoteTie;

/// Ties to remove and to add.
#[derive(Default)]
pub(crate) struct Repointed {
    removed: Vec<NoteTie>,
    added: Vec<NoteTie>,
}

impl Repointed {
    /// The change that undoes this one.
    pub(crate) fn reversed(self) -> Self {
        Self { removed: self.added, added: self.removed }
    }

    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

impl Knowledge {
    /// The ties that keep memory's links through a rename. They may be written before it: a tie to a missing note is ignored.
    pub(crate) fn ties_for_rename(&self, preview: &mut RenamePreview<'_>) -> Result<Repointed, MemoryError> {
        let Some(memory) = &self.memory else { return Ok(Repointed::default()) };
        let (snapshot, renamed) = (preview.snapshot, preview.renamed);
        let keys: Vec<NoteKey> = renamed.notes.keys().copied().chain(renamed.lost_aliases()).collect();
        let moved: FxHashMap<VaultPath, VaultPath> =
            keys.iter().map(|key| (path_of(snapshot, *key), preview.note_then(*key).path.clone())).collect();
        let notes = keys.iter().map(|key| snapshot.note(*key)).chain(renamed.notes.values());
        let links = candidates(memory, notes, moved.keys())?;
        let by_name = preview.resolve_from_root(&links.iter().map(|link| &link.link).collect::<Vec<&Link>>());
        let path_then = |key: NoteKey| preview.note_then(key).path.clone();
        let by_name = by_name.into_iter().map(|(now, then)| (now, then.map(path_then)));
        let new_paths: FxHashSet<&VaultPath> = renamed.notes.values().map(|note| &note.path).collect();
        let stays = |path: &VaultPath| new_paths.contains(path) || snapshot.find_exact(path).is_some();
        Ok(repointed(&links, &Ties::of(memory, &links)?, snapshot, by_name, &moved, stays))
    }

    /// Records in the history what other programs did to notes, and keeps memory's links to files that were moved. A second
    /// thread waits here until that is done.
    pub(crate) fn follow_changes(&self) {
        let mut unfollowed = self.unfollowed.lock();
        let outside = self.indexer.take_outside();
        let moves = self.indexer.take_moves();
        let paths = moves.iter().flat_map(|moves| &moves.to).map(|(from, to)| (from.clone(), to.clone()));
        let mut paths: Vec<(VaultPath, VaultPath)> = paths.collect();
        paths.sort();
        unfollowed.extend(moves);
        // Not while memory is still being read: a wait for it would hold up the index and every write.
        let is_read = |memory: &Arc<Memory>| memory.wait_read(Duration::ZERO).is_ok();
        if self.memory.as_ref().is_none_or(is_read) {
            unfollowed.drain(..).for_each(|moves| self.follow_moves(&moves));
        }
        self.record_outside(outside, &paths);
    }

    /// Keeps memory's links to files that were moved.
    fn follow_moves(&self, moves: &Moves) {
        let followed = self.ties_after(moves).map(|ties| self.repoint_links(&ties));
        if let Err(error) = followed {
            self.warn_lost(&error.to_string());
        }
    }

    fn ties_after(&self, moves: &Moves) -> Result<Repointed, MemoryError> {
        let Some(memory) = &self.memory else { return Ok(Repointed::default()) };
        let Moves { before, to } = moves;
        let now = self.snapshot();
        let note_at =
            |snapshot: &Snapshot, path: &VaultPath| snapshot.find_exact(path).map(|key| snapshot.note(key).clone());
        let notes = to.iter().flat_map(|(from, to)| [note_at(before, from), note_at(&now, to)]).flatten();
        let links = candidates(memory, &notes.collect::<Vec<Note>>(), to.keys())?;
        if links.is_empty() {
            return Ok(Repointed::default());
        }
        let written = || links.iter().map(|link| &link.link);
        let (after, then) = self.indexer.resolve_from_root(written());
        let then = then.into_iter().map(|key| key.map(|key| path_of(&after, key)));
        let by_name = before.resolve_from_root(written()).into_iter().zip(then);
        let stays = |path: &VaultPath| after.find_exact(path).is_some();
        Ok(repointed(&links, &Ties::of(memory, &links)?, before, by_name, to, stays))
    }

    /// Removes and adds ties. A failure is a warning: the note is renamed anyway.
    pub(crate) fn repoint_links(&self, ties: &Repointed) {
        let Some(memory) = self.memory.as_ref().filter(|_| !ties.is_empty()) else { return };
        if let Err(failure) = memory.store().repoint_links(&ties.removed, &ties.added) {
            self.warn_lost(&failure.to_string());
        }
    }

    pub(crate) fn warn_lost(&self, error: &str) {
        let message = format!("{error}; links in memory to a note that was just renamed may be broken");
        self.warn(Warning { path: ".quipu/memory.db".into(), message });
    }
}

/// The links that may resolve to one of these notes by name, or are tied to one of these paths.
fn candidates<'a>(
    memory: &Memory,
    notes: impl IntoIterator<Item = &'a Note>,
    tied_to: impl Iterator<Item = &'a VaultPath>,
) -> Result<Vec<NoteLink>, MemoryError> {
    let hashes: FxHashSet<u64> = notes.into_iter().flat_map(name_hashes).collect();
    let ties = tied_to.map(|path| memory.store().ties_to(path)).collect::<Result<Vec<_>, _>>()?;
    memory.links_like_with_deleted(&hashes, &ties.concat())
}

/// The ties that keep each link's target. `by_name` has the target by name alone: before, and its path after.
fn repointed(
    links: &[NoteLink],
    ties: &Ties,
    before: &Snapshot,
    by_name: impl Iterator<Item = (Option<NoteKey>, Option<VaultPath>)>,
    moved: &FxHashMap<VaultPath, VaultPath>,
    stays: impl Fn(&VaultPath) -> bool,
) -> Repointed {
    let mut repointed = Repointed::default();
    for (link, (named, named_then)) in links.iter().zip(by_name) {
        let Some(meant) = ties.target(link, before).or(named).map(|key| path_of(before, key)) else { continue };
        let wanted = moved.get(&meant).cloned().unwrap_or(meant);
        let tie = ties.get(link);
        if !stays(&wanted) || tie.is_some_and(|tie| tie.path == wanted) {
            continue;
        }
        let (owner, target) = (link.owner, link.link.target.clone());
        let is_needed = named_then.as_ref() != Some(&wanted);
        repointed.removed.extend(tie.cloned());
        repointed.added.extend(is_needed.then_some(NoteTie { owner, target, path: wanted }));
    }
    repointed
}

fn path_of(snapshot: &Snapshot, key: NoteKey) -> VaultPath {
    snapshot.note(key).path.clone()
}
