//! Moves by other programs: a file disappears at one path and appears at another with the same bytes, at about the same time.
//!
//! Both need not be seen in one batch: a client may ask for either path before the watcher has reported both.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::snapshot::Snapshot;
use crate::model::{ContentHash, NoteKey, VaultPath};

/// The longest time between disappearing and appearing.
const WINDOW_NS: i64 = 10_000_000_000;

/// With more unmatched files than this, a folder was added or removed and no single file is being moved.
const MAX_UNMATCHED: usize = 64;

/// Notes that were moved, by their old paths, and the last snapshot that has these.
pub(crate) struct Moves {
    pub(crate) before: Arc<Snapshot>,
    pub(crate) to: FxHashMap<VaultPath, VaultPath>,
}

/// Files that lately disappeared or appeared and are yet to be matched.
#[derive(Default)]
pub(super) struct MoveDetector {
    disappeared: Vec<(SeenFile, Arc<Snapshot>)>,
    appeared: Vec<SeenFile>,
}

struct SeenFile {
    path: VaultPath,
    hash: ContentHash,
    seen_ns: i64,
}

impl MoveDetector {
    /// The moves that a change of these notes, from one snapshot to the next, completes.
    ///
    /// Among several files with the same bytes, equal file names decide; empty files are matched by name only.
    pub(super) fn detect(
        &mut self,
        before: &Arc<Snapshot>,
        after: &Snapshot,
        keys: &[NoteKey],
        now_ns: i64,
    ) -> Vec<Moves> {
        self.disappeared.retain(|(old, _)| {
            let is_back = before.find_exact(&old.path).is_some() || after.find_exact(&old.path).is_some();
            !is_back && now_ns - old.seen_ns <= WINDOW_NS
        });
        self.appeared.retain(|new| {
            let is_there = after.find_exact(&new.path).is_some_and(|key| after.note(key).hash == new.hash);
            is_there && now_ns - new.seen_ns <= WINDOW_NS
        });
        self.disappeared.extend(only_in(before, after, keys, now_ns).map(|old| (old, before.clone())));
        self.appeared.extend(only_in(after, before, keys, now_ns));
        let moves = self.take_matches();
        if self.disappeared.len() > MAX_UNMATCHED {
            self.disappeared.clear();
        }
        if self.appeared.len() > MAX_UNMATCHED {
            self.appeared.clear();
        }
        moves
    }

    fn take_matches(&mut self) -> Vec<Moves> {
        if self.disappeared.is_empty() || self.appeared.is_empty() {
            return Vec::new();
        }
        let mut appeared: FxHashMap<ContentHash, Vec<SeenFile>> = FxHashMap::default();
        for new in self.appeared.drain(..) {
            appeared.entry(new.hash).or_default().push(new);
        }
        let mut moves: Vec<Moves> = Vec::new();
        let mut add = |old: SeenFile, before: Arc<Snapshot>, to: VaultPath| match moves.last_mut() {
            Some(last) if Arc::ptr_eq(&last.before, &before) => drop(last.to.insert(old.path, to)),
            _ => moves.push(Moves { to: FxHashMap::from_iter([(old.path, to)]), before }),
        };
        let mut other_name = Vec::new();
        for (old, before) in self.disappeared.drain(..) {
            let new = appeared.entry(old.hash).or_default();
            let mut same_name = (0..new.len()).filter(|index| new[*index].path.file_name() == old.path.file_name());
            match (same_name.next(), same_name.next()) {
                (Some(index), None) => add(old, before, new.swap_remove(index).path),
                _ => other_name.push((old, before)),
            }
        }
        let mut copies: FxHashMap<ContentHash, usize> = FxHashMap::default();
        other_name.iter().for_each(|(old, _)| *copies.entry(old.hash).or_default() += 1);
        let empty = ContentHash::of(b"");
        for (old, before) in other_name {
            let new = appeared.entry(old.hash).or_default();
            if new.len() == 1 && copies[&old.hash] == 1 && old.hash != empty {
                add(old, before, new.remove(0).path);
            } else {
                self.disappeared.push((old, before));
            }
        }
        self.appeared = appeared.into_values().flatten().collect();
        moves
    }
}

/// The files of one snapshot whose paths the other does not have.
fn only_in(one: &Snapshot, other: &Snapshot, keys: &[NoteKey], seen_ns: i64) -> impl Iterator<Item = SeenFile> {
    let notes = keys.iter().filter_map(|key| one.get(*key));
    let missing = notes.filter(|note| other.find_exact(&note.path).is_none());
    missing.map(move |note| SeenFile { path: note.path.clone(), hash: note.hash, seen_ns })
}
