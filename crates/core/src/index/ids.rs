//! Which file has which id, and which file a caller's spelling means. Nothing else decides either.
//!
//! An id is a path in lower case. Of files whose paths differ only in case one owns that id: the one spelled so, else the
//! first in byte order. Each of the others has its exact path as its id, so every file has an id of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::snapshot::{Entry, Snapshot};
use super::writer::StagedNote;
use crate::model::{Note, NoteId, NoteKey, VaultPath, fold};

/// The files of paths that differ only in case, under their path in lower case: the owner of that id first, then in byte
/// order. A path that no other file shares is not here.
pub(super) type CaseVariants = FxHashMap<NoteId, Vec<NoteKey>>;

/// By this the files of one path in lower case are sorted: the owner of the id comes first.
pub(super) fn claim(entries: &[Option<Entry>], key: NoteKey) -> (&NoteId, bool, &VaultPath) {
    let note = &entries[key.slot()].as_ref().expect("only slots in use are ordered").note;
    (&note.id, note.path.as_str() != note.id.as_str(), &note.path)
}

/// Lets the first of a group keep the path in lower case as its id, and gives the others their exact paths.
pub(super) fn assign_ids(entries: &mut [Option<Entry>], group: &[NoteKey]) {
    for key in group.iter().skip(1) {
        set_id(entries, *key, NoteId::exact);
    }
}

/// Gives a file in use an id made of its path.
pub(super) fn set_id(entries: &mut [Option<Entry>], key: NoteKey, id_of: impl FnOnce(&VaultPath) -> NoteId) {
    let Some(entry) = entries.get_mut(key.slot()).and_then(Option::as_mut) else { return };
    let id = id_of(&entry.note.path);
    if entry.note.id != id {
        entry.note = Arc::new(Note { id, ..(*entry.note).clone() });
    }
}

/// The id of a file in use.
pub(super) fn id(entries: &[Option<Entry>], key: NoteKey) -> &NoteId {
    &entries[key.slot()].as_ref().expect("only slots in use are ordered").note.id
}

/// The paths in lower case at which files come, go or change their spelling, and the slots of those that come.
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

/// Takes files out of the order of ids.
pub(super) fn take_out<'k>(
    order: &mut Vec<NoteKey>,
    entries: &[Option<Entry>],
    keys: impl Iterator<Item = &'k NoteKey>,
) {
    for key in keys {
        let at = order.binary_search_by(|other| id(entries, *other).cmp(id(entries, *key)));
        order.remove(at.expect("a slot in use is ordered"));
    }
}

/// Puts files in their places in the order of ids.
pub(super) fn put_in(order: &mut Vec<NoteKey>, entries: &[Option<Entry>], keys: &[NoteKey]) {
    for key in keys {
        let at = order.partition_point(|other| id(entries, *other) < id(entries, *key));
        order.insert(at, *key);
    }
}

/// The files that now have a path in lower case, of those that had it and those that came; the owner of the id first. Each
/// has its id afterwards.
pub(super) fn with_new_ids(
    entries: &mut [Option<Entry>],
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
    /// The notes that a caller can mean by an id or a path, in byte order of their paths: the file spelled just so; else
    /// every file of that name but for case; else but for case and Unicode form.
    ///
    /// With more than one a read answers the first and names the others, and a write is refused.
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

    /// The file at a path, spelled just so.
    pub fn find_exact(&self, path: &VaultPath) -> Option<NoteKey> {
        self.with_lowercased(&path.note_id()).iter().copied().find(|key| self.note(*key).path == *path)
    }

    /// The files whose path is this in lower case, the owner of the id first.
    pub fn with_lowercased(&self, lowercased: &NoteId) -> &[NoteKey] {
        if let Some(group) = self.case_variants().get(lowercased) {
            return group;
        }
        match self.order().binary_search_by(|key| self.note(*key).id.cmp(lowercased)) {
            Ok(at) => &self.order()[at..=at],
            Err(_) => &[],
        }
    }

    /// The file that owns the lowercased id where this one, which differs from it only in case, could not have it.
    pub fn case_twin(&self, key: NoteKey) -> Option<NoteKey> {
        // Most vaults have none, and this is asked of every note.
        if self.case_variants().is_empty() {
            return None;
        }
        let owner = self.with_lowercased(&self.note(key).path.note_id()).first().copied();
        owner.filter(|owner| *owner != key)
    }

    /// The notes whose id starts with a prefix, whatever the case of either, by id.
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

    /// Every file at a path or in the folder of that name, spelled just so.
    pub fn files_below(&self, path: &VaultPath) -> Vec<NoteKey> {
        let mut found = self.with_id_prefix(&path.note_id());
        found.retain(|key| {
            let rest = self.note(*key).path.as_str().strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        found
    }

    /// The notes whose path is not in the composed form, under that form. macOS made many such names; elsewhere none.
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
