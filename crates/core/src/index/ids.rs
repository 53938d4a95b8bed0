//! The id of each file, and the files that a caller's spelling matches. Decided here only.
//!
//! An id is a path in lower case. Of files whose paths differ only in case one owns that id: the one spelled so, else the
//! first in byte order. Each of the others has its exact path as its id, so every file has an id of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::snapshot::{Snapshot, SnapshotEntry};
use super::writer::StagedNote;
use crate::model::{Note, NoteId, NoteKey, VaultPath, fold};

/// The files of paths that differ only in case, under their path in lower case: the owner of that id first, then in byte
/// order. A path that no other file shares is not here.
pub(super) type CaseVariants = FxHashMap<NoteId, Vec<NoteKey>>;

/// The sort key of files with one lowercased path: the owner of the id comes first.
pub(super) fn claim(entries: &[Option<SnapshotEntry>], key: NoteKey) -> (&NoteId, bool, &VaultPath) {
    let note = &entries[key.slot()].as_ref().expect("only slots in use are ordered").note;
    (&note.id, note.path.as_str() != note.id.as_str(), &note.path)
}

/// The first of a group keeps the lowercased path as its id; the others get their exact paths.
pub(super) fn assign_ids(entries: &mut [Option<SnapshotEntry>], group: &[NoteKey]) {
    for key in group.iter().skip(1) {
        set_id(entries, *key, NoteId::exact);
    }
}

/// Sets the id of a file from its path.
pub(super) fn set_id(entries: &mut [Option<SnapshotEntry>], key: NoteKey, id_of: impl FnOnce(&VaultPath) -> NoteId) {
    let Some(entry) = entries.get_mut(key.slot()).and_then(Option::as_mut) else { return };
    let id = id_of(&entry.note.path);
    if entry.note.id != id {
        entry.note = Arc::new(Note { id, ..(*entry.note).clone() });
    }
}

/// The id of a file in use.
pub(super) fn id(entries: &[Option<SnapshotEntry>], key: NoteKey) -> &NoteId {
    &entries[key.slot()].as_ref().expect("only slots in use are ordered").note.id
}

/// The lowercased paths at which files are added, removed or respelled, and the slots of those added.
pub(super) fn moved_ids(before: &Snapshot, staged: &[StagedNote]) -> BTreeMap<NoteId, Vec<NoteKey>> {
    let mut moved: BTreeMap<NoteId, Vec<NoteKey>> = BTreeMap::new();
    for (key, now) in staged {
        let (old, new) = (before.get(*key).map(|note| &note.path), now.as_ref().map(|note| &note.path));
        if old != new {
            if let Some(path) = old {
                moved.entry(path.note_id()).or_default();
            }
            if let Some(path) = new {
                moved.entry(path.note_id()).or_default().push(*key);
            }
        }
    }
    moved
}

/// Removes files from the order of ids.
pub(super) fn take_out<'k>(
    order: &mut Vec<NoteKey>,
    entries: &[Option<SnapshotEntry>],
    keys: impl Iterator<Item = &'k NoteKey>,
) {
    for key in keys {
        let at = order.binary_search_by(|other| id(entries, *other).cmp(id(entries, *key)));
        order.remove(at.expect("a slot in use is ordered"));
    }
}

/// Inserts files into the order of ids.
pub(super) fn put_in(order: &mut Vec<NoteKey>, entries: &[Option<SnapshotEntry>], keys: &[NoteKey]) {
    for key in keys {
        let at = order.partition_point(|other| id(entries, *other) < id(entries, *key));
        order.insert(at, *key);
    }
}

/// The files that now have a lowercased path, of those that had it and those that were added; the owner of the id first.
/// Sets their ids.
pub(super) fn with_new_ids(
    entries: &mut [Option<SnapshotEntry>],
    known: &[NoteKey],
    came: &[NoteKey],
    lowercased: &NoteId,
) -> Vec<NoteKey> {
    let mut group = [known, came].concat();
    group.retain(|key| entries[key.slot()].as_ref().is_some_and(|entry| entry.note.path.note_id() == *lowercased));
    group.sort_unstable();
    group.dedup();
    for key in &group {
        set_id(entries, *key, VaultPath::note_id);
    }
    group.sort_by(|a, b| claim(entries, *a).cmp(&claim(entries, *b)));
    assign_ids(entries, &group);
    group
}

impl Snapshot {
    /// The notes that match an id or a path, in byte order of their paths: the file of that exact path; else every file that
    /// differs only in case; else in case and Unicode form.
    ///
    /// With several, a read returns the first and names the others, and a write is refused.
    pub fn lookup(&self, spelled: &str) -> Vec<NoteKey> {
        let same = self.with_lowercased(&NoteId::new(spelled));
        if let Some(exact) = same.iter().find(|key| self.note(**key).path.as_str() == spelled) {
            return vec![*exact];
        }
        let mut found = same.to_vec();
        if found.is_empty() {
            let folded = fold(spelled);
            found.extend(self.with_lowercased(&NoteId::new(&folded)));
            found.extend(self.decomposed().get(&folded).into_iter().flatten());
        }
        found.sort_by_key(|key| &self.note(*key).path);
        found.dedup();
        found
    }

    /// The file at an exact path.
    pub fn find_exact(&self, path: &VaultPath) -> Option<NoteKey> {
        self.with_lowercased(&path.note_id()).iter().copied().find(|key| self.note(*key).path == *path)
    }

    /// The files with this lowercased path, the owner of the id first.
    pub fn with_lowercased(&self, lowercased: &NoteId) -> &[NoteKey] {
        if let Some(group) = self.case_variants().get(lowercased) {
            return group;
        }
        match self.order().binary_search_by(|key| self.note(*key).id.cmp(lowercased)) {
            Ok(at) => &self.order()[at..=at],
            Err(_) => &[],
        }
    }

    /// The file that owns the lowercased id of this one, when another file does.
    pub fn case_twin(&self, key: NoteKey) -> Option<NoteKey> {
        // Most vaults have none, and this runs for every note.
        if self.case_variants().is_empty() {
            return None;
        }
        let owner = self.with_lowercased(&self.note(key).path.note_id()).first().copied();
        owner.filter(|owner| *owner != key)
    }

    /// The notes whose id starts with a prefix, ignoring case, by id.
    pub fn with_id_prefix(&self, prefix: &NoteId) -> Vec<NoteKey> {
        let start = self.order().partition_point(|key| self.note(*key).id < *prefix);
        let starts = |id: &NoteId| id.as_str().starts_with(prefix.as_str());
        let ids = self.order()[start..].iter().take_while(|key| starts(&self.note(**key).id));
        let variants = self.case_variants().iter().filter(|(lowercased, _)| starts(lowercased));
        let mut found: Vec<NoteKey> = ids.chain(variants.flat_map(|(_, group)| group)).copied().collect();
        found.sort_unstable_by_key(|key| &self.note(*key).id);
        found.dedup();
        found
    }

    /// Every file at an exact path or in the folder at it.
    pub fn files_below(&self, path: &VaultPath) -> Vec<NoteKey> {
        let mut found = self.with_id_prefix(&path.note_id());
        found.retain(|key| {
            let rest = self.note(*key).path.as_str().strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        found
    }

    /// The notes whose path is not in composed Unicode form, by that form. macOS creates such names.
    fn decomposed(&self) -> &FxHashMap<String, Vec<NoteKey>> {
        self.tables().decomposed.get_or_init(|| {
            let mut decomposed: FxHashMap<String, Vec<NoteKey>> = FxHashMap::default();
            for key in self.files().filter(|key| !self.note(*key).id.as_str().is_ascii()) {
                let path = &self.note(key).path;
                let folded = fold(path.as_str());
                if folded != path.note_id().as_str() {
                    decomposed.entry(folded).or_default().push(key);
                }
            }
            decomposed
        })
    }
}
