//! Files that another program moved: gone from one place and come at another with the same bytes, at about the same time.
//!
//! Not always in one look: a client may ask for the new place, or for the old one, before the watcher has told of both.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::snapshot::Snapshot;
use crate::model::{ContentHash, NoteKey, VaultPath};

/// A place that was left and one that was taken belong together for so long.
const TOGETHER_NS: i64 = 10_000_000_000;

/// More than this many at once are no single file on its way.
const MAX_KEPT: usize = 64;

/// Notes that were moved, and the vault as it was when they still had their old names.
pub(crate) struct Moves {
    pub(crate) before: Arc<Snapshot>,
    pub(crate) to: FxHashMap<VaultPath, VaultPath>,
}

/// Places lately left and taken whose other half is yet to be seen.
#[derive(Default)]
pub(super) struct Halves {
    left: Vec<Left>,
    taken: Vec<Taken>,
}

struct Left {
    before: Arc<Snapshot>,
    path: VaultPath,
    hash: ContentHash,
    seen_ns: i64,
}

struct Taken {
    path: VaultPath,
    hash: ContentHash,
    seen_ns: i64,
}

impl Halves {
    /// The moves that the way from one snapshot to the next, by these notes, makes whole.
    ///
    /// Where several files have the same bytes, equal file names tell which went where; an empty file may be any.
    pub(super) fn recognise(
        &mut self,
        before: &Arc<Snapshot>,
        after: &Snapshot,
        keys: &[NoteKey],
        now_ns: i64,
    ) -> Vec<Moves> {
        self.left.retain(|left| {
            let is_back = before.find_exact(&left.path).is_some() || after.find_exact(&left.path).is_some();
            !is_back && now_ns - left.seen_ns <= TOGETHER_NS
        });
        self.taken.retain(|taken| {
            let is_there = after.find_exact(&taken.path).is_some_and(|key| after.note(key).hash == taken.hash);
            is_there && now_ns - taken.seen_ns <= TOGETHER_NS
        });
        let left = only_in(before, after, keys).map(|(path, hash)| Left {
            before: before.clone(),
            path,
            hash,
            seen_ns: now_ns,
        });
        self.left.extend(left);
        self.taken.extend(only_in(after, before, keys).map(|(path, hash)| Taken { path, hash, seen_ns: now_ns }));
        let moves = self.matched();
        if self.left.len() > MAX_KEPT {
            self.left.clear();
        }
        if self.taken.len() > MAX_KEPT {
            self.taken.clear();
        }
        moves
    }

    /// Takes out the halves that belong together.
    fn matched(&mut self) -> Vec<Moves> {
        if self.left.is_empty() || self.taken.is_empty() {
            return Vec::new();
        }
        let mut taken: FxHashMap<ContentHash, Vec<Taken>> = FxHashMap::default();
        for one in self.taken.drain(..) {
            taken.entry(one.hash).or_default().push(one);
        }
        let mut moves: Vec<Moves> = Vec::new();
        let mut note = |left: Left, to: VaultPath| match moves.last_mut() {
            Some(last) if Arc::ptr_eq(&last.before, &left.before) => drop(last.to.insert(left.path, to)),
            _ => moves.push(Moves { to: FxHashMap::from_iter([(left.path, to)]), before: left.before }),
        };
        let mut nameless: Vec<Left> = Vec::new();
        for left in self.left.drain(..) {
            let places = taken.entry(left.hash).or_default();
            let mut namesakes = (0..places.len()).filter(|at| places[*at].path.file_name() == left.path.file_name());
            match (namesakes.next(), namesakes.next()) {
                (Some(at), None) => note(left, places.swap_remove(at).path),
                _ => nameless.push(left),
            }
        }
        let mut alike: FxHashMap<ContentHash, usize> = FxHashMap::default();
        nameless.iter().for_each(|left| *alike.entry(left.hash).or_default() += 1);
        let nothing = ContentHash::of(b"");
        for left in nameless {
            let places = taken.entry(left.hash).or_default();
            if places.len() == 1 && alike[&left.hash] == 1 && left.hash != nothing {
                note(left, places.remove(0).path);
            } else {
                self.left.push(left);
            }
        }
        self.taken = taken.into_values().flatten().collect();
        moves
    }
}

/// The files of one snapshot whose path the other does not have.
fn only_in(one: &Snapshot, other: &Snapshot, keys: &[NoteKey]) -> impl Iterator<Item = (VaultPath, ContentHash)> {
    let notes = keys.iter().filter_map(|key| one.get(*key));
    notes.filter(|note| other.find_exact(&note.path).is_none()).map(|note| (note.path.clone(), note.hash))
}
