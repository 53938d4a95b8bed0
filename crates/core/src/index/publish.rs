//! From staged changes to the next snapshot: pure, but for the writer's tables that it keeps in step.
//!
//! Two ways that give the same: everything anew, or only what a small change can have touched.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::indexer::{Touched, Writer};
use super::kept_links::Targets;
use super::resolve::Resolver;
use super::snapshot::{Entry, Snapshot};
use super::sync::Staged;
use super::tables::Unchanged;
use crate::graph::Graph;
use crate::model::{Note, NoteId, NoteKey, VaultPath, hash_of_target};

/// The snapshot after some changes.
pub(super) fn publish(writer: &mut Writer, before: &Snapshot, staged: Vec<Staged>) -> Snapshot {
    // Amending costs by the change, rebuilding by the vault: they meet at about a fiftieth of it.
    if staged.len() > 64 + before.files().len() / 50 {
        rebuilt(writer, before, staged)
    } else {
        amended(writer, before, staged)
    }
}

/// Everything resolved anew: the first time, and when much has changed.
fn rebuilt(writer: &mut Writer, before: &Snapshot, staged: Vec<Staged>) -> Snapshot {
    let (mut entries, ..) = before.parts();
    writer.wanted = None;
    writer.touched = Touched::All;
    for (key, note) in staged {
        put(&mut entries, key, note);
    }
    let (order, shadowed) = ordered(&entries);
    let resolver = writer.resolver.insert(resolver_of(&entries, &shadowed));
    entries.par_iter_mut().flatten().for_each(|entry| entry.targets = resolver.resolve_all(&entry.note));
    assembled(entries, order, shadowed)
}

/// The notes that a store remembered, with what their links meant.
pub(super) fn remembered(
    writer: &mut Writer,
    notes: Vec<(NoteKey, Note)>,
    mut links: FxHashMap<NoteKey, Targets>,
) -> Snapshot {
    let mut entries = Vec::new();
    writer.touched = Touched::All;
    for (key, note) in notes {
        put(&mut entries, key, Some(note));
        if let Some((entry, targets)) = entries[key.slot()].as_mut().zip(links.remove(&key)) {
            entry.targets = targets.into();
        }
    }
    let (order, shadowed) = ordered(&entries);
    assembled(entries, order, shadowed)
}

/// All files by id and path, and those whose id belongs to another file.
fn ordered(entries: &[Option<Entry>]) -> (Vec<NoteKey>, FxHashSet<NoteKey>) {
    let mut order: Vec<NoteKey> =
        (0..entries.len()).filter(|slot| entries[*slot].is_some()).map(NoteKey::of_slot).collect();
    order.par_sort_unstable_by(|a, b| place(entries, *a).cmp(&place(entries, *b)));
    let shadowed =
        order.windows(2).filter(|pair| id(entries, pair[0]) == id(entries, pair[1])).map(|pair| pair[1]).collect();
    (order, shadowed)
}

fn assembled(entries: Vec<Option<Entry>>, order: Vec<NoteKey>, shadowed: FxHashSet<NoteKey>) -> Snapshot {
    let row_of = |slot| row(&entries, &shadowed, NoteKey::of_slot(slot));
    let rows: Vec<Vec<NoteKey>> = (0..entries.len()).into_par_iter().map(row_of).collect();
    Snapshot::new(entries, order, shadowed, Graph::new(&rows))
}

/// Lets every note that owns its id answer to its names.
pub(super) fn resolver_of(entries: &[Option<Entry>], shadowed: &FxHashSet<NoteKey>) -> Resolver {
    let owner = |slot: usize| {
        let key = NoteKey::of_slot(slot);
        entries[slot].as_ref().filter(|_| !shadowed.contains(&key)).map(|entry| &*entry.note)
    };
    Resolver::new(&(0..entries.len()).map(owner).collect::<Vec<_>>())
}

/// Only the changed notes, and the notes whose links may now mean something else, resolved anew.
fn amended(writer: &mut Writer, before: &Snapshot, staged: Vec<Staged>) -> Snapshot {
    let (mut entries, mut order, mut shadowed) = before.parts();
    let Writer { resolver, wanted, touched: told, .. } = writer;
    let resolver = resolver.get_or_insert_with(|| resolver_of(&entries, &shadowed));
    let wanted = wanted.get_or_insert_with(|| wanted_by(&entries));
    no_longer_wanted(wanted, &entries, &staged);
    let mut unchanged = Unchanged::by(&staged, before);
    let mut stale: FxHashSet<NoteKey> = FxHashSet::default();
    let mut touched: Vec<u64> = Vec::new();
    let changed: Vec<NoteKey> = staged.iter().map(|(key, _)| *key).collect();

    for (key, note) in staged {
        if let Some(old) = entries.get(key.slot()).and_then(Option::as_ref).map(|entry| entry.note.clone()) {
            let at = order.partition_point(|other| place(&entries, *other) < (&old.id, &old.path));
            let at = at + order[at..].iter().position(|other| *other == key).expect("a slot in use is ordered");
            order.remove(at);
            shadowed.remove(&key);
            if let Some(heir) = order.get(at).copied().filter(|heir| *id(&entries, *heir) == old.id) {
                stale.insert(heir);
            }
        }
        for hash in note.iter().flat_map(target_hashes) {
            wanted.entry(hash).or_default().push(key);
        }
        let added = note.as_ref().map(|note| (note.id.clone(), note.path.clone()));
        put(&mut entries, key, note);
        if let Some((id, path)) = added {
            let at = order.partition_point(|other| place(&entries, *other) < (&id, &path));
            order.insert(at, key);
            stale.extend(order.get(at + 1).copied());
        }
        stale.insert(key);
    }

    // Whether a file owns its id depends on its neighbours in the order only.
    for key in &stale {
        if let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) {
            let at = order.partition_point(|other| place(&entries, *other) < (&entry.note.id, &entry.note.path));
            let owned_by_other = at > 0 && *id(&entries, order[at - 1]) == entry.note.id;
            if owned_by_other {
                shadowed.insert(*key)
            } else {
                shadowed.remove(key)
            };
        }
        touched.extend(answer_to_names(resolver, &entries, &shadowed, *key));
    }
    stale.extend(touched.iter().filter_map(|hash| wanted.get(hash)).flatten());

    let mut rows = Vec::new();
    let mut stale: Vec<NoteKey> = stale.into_iter().collect();
    stale.sort_unstable();
    for key in stale {
        if let Some(entry) = entries[key.slot()].as_mut() {
            entry.targets = resolver.resolve_all(&entry.note);
        }
        rows.push((key, row(&entries, &shadowed, key)));
    }
    if let Touched::These(told) = told {
        told.extend(rows.iter().map(|(key, _)| *key));
    }
    unchanged.links = rows.iter().all(|(key, row)| before.graph().out(*key) == row);
    Snapshot::new(entries, order, shadowed, before.graph().with_rows(rows)).with_tables_of(
        before,
        unchanged,
        changed.into_iter(),
    )
}

/// Lets a slot's note answer to its names, or to none when it is gone or another file owns its id. Returns the hashes under
/// which links may now mean something else.
fn answer_to_names(
    resolver: &mut Resolver,
    entries: &[Option<Entry>],
    shadowed: &FxHashSet<NoteKey>,
    key: NoteKey,
) -> Vec<u64> {
    match entries.get(key.slot()).and_then(Option::as_ref).filter(|_| !shadowed.contains(&key)) {
        Some(entry) => resolver.insert(key, &entry.note),
        None => resolver.remove(key),
    }
}

/// Under the hash of a link's target, the notes with such a link.
pub(super) fn wanted_by(entries: &[Option<Entry>]) -> FxHashMap<u64, Vec<NoteKey>> {
    let hashes = |entry: &Option<Entry>| entry.as_ref().map(|entry| target_hashes(&entry.note)).unwrap_or_default();
    let hashes: Vec<FxHashSet<u64>> = entries.par_iter().map(hashes).collect();
    let mut wanted: FxHashMap<u64, Vec<NoteKey>> = FxHashMap::default();
    for (slot, hashes) in hashes.into_iter().enumerate() {
        for hash in hashes {
            wanted.entry(hash).or_default().push(NoteKey::of_slot(slot));
        }
    }
    wanted
}

/// Takes out what the changed notes wanted. All at once: a hub is wanted by many, and its list is walked but once.
fn no_longer_wanted(wanted: &mut FxHashMap<u64, Vec<NoteKey>>, entries: &[Option<Entry>], staged: &[Staged]) {
    let mut gone: FxHashMap<u64, FxHashSet<NoteKey>> = FxHashMap::default();
    for (key, _) in staged {
        if let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) {
            for hash in target_hashes(&entry.note) {
                gone.entry(hash).or_default().insert(*key);
            }
        }
    }
    for (hash, keys) in gone {
        if let Some(sources) = wanted.get_mut(&hash) {
            sources.retain(|source| !keys.contains(source));
        }
    }
}

fn target_hashes(note: &Note) -> FxHashSet<u64> {
    note.links.iter().map(|link| hash_of_target(&link.target)).collect()
}

/// A note's distinct targets in order of appearance, itself left out.
fn row(entries: &[Option<Entry>], shadowed: &FxHashSet<NoteKey>, key: NoteKey) -> Vec<NoteKey> {
    let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) else { return Vec::new() };
    if shadowed.contains(&key) {
        return Vec::new();
    }
    let mut seen = FxHashSet::from_iter([key]);
    entry.targets.iter().flatten().copied().filter(|target| seen.insert(*target)).collect()
}

fn put(entries: &mut Vec<Option<Entry>>, key: NoteKey, note: Option<Note>) {
    if entries.len() <= key.slot() {
        entries.resize_with(key.slot() + 1, || None);
    }
    entries[key.slot()] = note.map(|note| Entry { note: Arc::new(note), targets: Arc::default() });
}

fn place(entries: &[Option<Entry>], key: NoteKey) -> (&NoteId, &VaultPath) {
    let note = &entries[key.slot()].as_ref().expect("only slots in use are ordered").note;
    (&note.id, &note.path)
}

fn id(entries: &[Option<Entry>], key: NoteKey) -> &NoteId {
    place(entries, key).0
}
