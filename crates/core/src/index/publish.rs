//! Makes the next snapshot from staged changes and updates the writer's tables. No I/O.
//!
//! Two ways with equal results: rebuild everything, or amend what a small change can affect.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ids::{CaseVariants, assign_ids, claim, id, moved_ids, put_in, set_id, take_out, with_new_ids};
use super::resolve::Resolver;
use super::saved_links::Targets;
use super::snapshot::{Snapshot, SnapshotEntry};
use super::tables::{ChangedSlots, Unchanged};
use super::writer::{ChangedNotes, StagedNote, Writer};
use crate::graph::LinkGraph;
use crate::model::{Note, NoteKey, VaultPath, hash_of_target};

/// The snapshot after some changes.
pub(super) fn publish(writer: &mut Writer, before: &Snapshot, staged: Vec<StagedNote>) -> Snapshot {
    // Amending costs by the size of the change, rebuilding by that of the vault; they are equal at about a fiftieth of it.
    if staged.len() > 64 + before.files().len() / 50 {
        rebuilt(writer, before, staged)
    } else {
        amended(writer, before, staged)
    }
}

/// Resolves every link: for the first snapshot, and when much has changed.
fn rebuilt(writer: &mut Writer, before: &Snapshot, staged: Vec<StagedNote>) -> Snapshot {
    let (mut entries, _, case_variants) = before.parts();
    writer.sources_by_target = None;
    writer.touched = ChangedNotes::All;
    for key in case_variants.values().flatten() {
        set_id(&mut entries, *key, VaultPath::note_id);
    }
    for (key, note) in staged {
        put(&mut entries, key, note);
    }
    let (order, case_variants) = ordered(&mut entries);
    let resolver = writer.resolver.insert(resolver_of(&entries));
    entries.par_iter_mut().flatten().for_each(|entry| entry.targets = resolver.resolve_all(&entry.note));
    assembled(entries, order, case_variants)
}

/// The snapshot of a saved index, with its resolved links.
pub(super) fn snapshot_of_saved(writer: &mut Writer, notes: Vec<(NoteKey, Note)>, links: &[Targets]) -> Snapshot {
    writer.touched = ChangedNotes::All;
    let mut entries: Vec<Option<SnapshotEntry>> = vec![None; links.len()];
    let entry = |(key, note): (NoteKey, Note)| {
        // Its id is its lowercased path, as stored.
        (key, SnapshotEntry { note: Arc::new(note), targets: links[key.slot()].clone() })
    };
    for (key, entry) in notes.into_par_iter().map(entry).collect::<Vec<_>>() {
        entries[key.slot()] = Some(entry);
    }
    let (order, case_variants) = ordered(&mut entries);
    assembled(entries, order, case_variants)
}

/// All files by id, and the groups of those whose paths differ only in case. Every file comes with its lowercased path as its
/// id; here those that must not share it get another.
fn ordered(entries: &mut [Option<SnapshotEntry>]) -> (Vec<NoteKey>, CaseVariants) {
    let mut order: Vec<NoteKey> =
        (0..entries.len()).filter(|slot| entries[*slot].is_some()).map(NoteKey::of_slot).collect();
    order.par_sort_unstable_by(|a, b| claim(entries, *a).cmp(&claim(entries, *b)));
    let groups = order.chunk_by(|a, b| id(entries, *a) == id(entries, *b)).filter(|group| group.len() > 1);
    let case_variants: CaseVariants = groups.map(|group| (id(entries, group[0]).clone(), group.to_vec())).collect();
    if !case_variants.is_empty() {
        for group in case_variants.values() {
            assign_ids(entries, group);
        }
        order.par_sort_unstable_by(|a, b| id(entries, *a).cmp(id(entries, *b)));
    }
    (order, case_variants)
}

fn assembled(entries: Vec<Option<SnapshotEntry>>, order: Vec<NoteKey>, case_variants: CaseVariants) -> Snapshot {
    let row_of = |slot| row(&entries, NoteKey::of_slot(slot));
    let rows: Vec<Vec<NoteKey>> = (0..entries.len()).into_par_iter().map(row_of).collect();
    Snapshot::new(entries, order, case_variants, LinkGraph::new(&rows))
}

/// A resolver over all notes.
pub(super) fn resolver_of(entries: &[Option<SnapshotEntry>]) -> Resolver {
    Resolver::new(&entries.iter().map(|entry| entry.as_ref().map(|entry| &*entry.note)).collect::<Vec<_>>())
}

/// Resolves only the changed notes, and the notes whose links may resolve differently now.
fn amended(writer: &mut Writer, before: &Snapshot, staged: Vec<StagedNote>) -> Snapshot {
    // A slot may have been released and used again: its last change counts.
    let staged: Vec<StagedNote> = staged.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
    let (mut entries, mut order, mut case_variants) = before.parts();
    let (resolver, sources) = writer.link_tables(before);
    remove_sources(sources, &entries, &staged);
    let mut unchanged = Unchanged::by(&staged, before);
    let changed: Vec<NoteKey> = staged.iter().map(|(key, _)| *key).collect();
    let mut stale: FxHashSet<NoteKey> = changed.iter().copied().collect();
    for (key, note) in &staged {
        for hash in note.iter().flat_map(target_hashes) {
            sources.entry(hash).or_default().push(*key);
        }
    }

    let moved = moved_ids(before, &staged);
    take_out(&mut order, &entries, moved.keys().flat_map(|lowercased| before.with_lowercased(lowercased)));
    for (key, note) in staged {
        let kept_id = note.as_ref().zip(before.get(key)).filter(|(note, old)| note.path == old.path);
        let kept_id = kept_id.map(|(_, old)| old.id.clone());
        put(&mut entries, key, note);
        if let Some(kept_id) = kept_id {
            set_id(&mut entries, key, |_| kept_id);
        }
    }
    for (lowercased, keys) in moved {
        let group = with_new_ids(&mut entries, before.with_lowercased(&lowercased), &keys, &lowercased);
        put_in(&mut order, &entries, &group);
        stale.extend(&group);
        case_variants.remove(&lowercased);
        if group.len() > 1 {
            case_variants.insert(lowercased, group);
        }
    }

    let mut renamed: Vec<u64> = Vec::new();
    for key in &stale {
        renamed.extend(match entries.get(key.slot()).and_then(Option::as_ref) {
            Some(entry) => resolver.insert(*key, &entry.note),
            None => resolver.remove(*key),
        });
    }
    stale.extend(renamed.iter().filter_map(|hash| sources.get(hash)).flatten());

    let mut rows = Vec::new();
    let mut stale: Vec<NoteKey> = stale.into_iter().collect();
    stale.sort_unstable();
    for key in stale {
        if let Some(entry) = entries[key.slot()].as_mut() {
            entry.targets = resolver.resolve_all(&entry.note);
        }
        rows.push((key, row(&entries, key)));
    }
    if let ChangedNotes::These(touched) = &mut writer.touched {
        touched.extend(rows.iter().map(|(key, _)| *key));
    }
    unchanged.links = rows.iter().all(|(key, row)| before.graph().out(*key) == row);
    let linked = rows.iter().flat_map(|(key, row)| before.graph().out(*key).iter().chain(row).chain([key]));
    let changed = ChangedSlots { names: changed, fields: linked.copied().collect() };
    Snapshot::new(entries, order, case_variants, before.graph().with_rows(rows))
        .with_tables_of(before, unchanged, changed)
}

/// By the hash of a link's target, the notes with such a link.
pub(super) fn sources_by_target(entries: &[Option<SnapshotEntry>]) -> FxHashMap<u64, Vec<NoteKey>> {
    let hashes =
        |entry: &Option<SnapshotEntry>| entry.as_ref().map(|entry| target_hashes(&entry.note)).unwrap_or_default();
    let hashes: Vec<FxHashSet<u64>> = entries.par_iter().map(hashes).collect();
    let mut sources: FxHashMap<u64, Vec<NoteKey>> = FxHashMap::default();
    for (slot, hashes) in hashes.into_iter().enumerate() {
        for hash in hashes {
            sources.entry(hash).or_default().push(NoteKey::of_slot(slot));
        }
    }
    sources
}

/// Removes the changed notes as sources of their old links. All in one step: the list of a much-linked target is long, and
/// is walked once.
fn remove_sources(
    sources_by_target: &mut FxHashMap<u64, Vec<NoteKey>>,
    entries: &[Option<SnapshotEntry>],
    staged: &[StagedNote],
) {
    let mut gone: FxHashMap<u64, FxHashSet<NoteKey>> = FxHashMap::default();
    for (key, _) in staged {
        if let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) {
            for hash in target_hashes(&entry.note) {
                gone.entry(hash).or_default().insert(*key);
            }
        }
    }
    for (hash, keys) in gone {
        if let Some(sources) = sources_by_target.get_mut(&hash) {
            sources.retain(|source| !keys.contains(source));
        }
    }
}

fn target_hashes(note: &Note) -> FxHashSet<u64> {
    note.links.iter().map(|link| hash_of_target(&link.target)).collect()
}

/// A note's distinct targets in order of appearance, without itself.
fn row(entries: &[Option<SnapshotEntry>], key: NoteKey) -> Vec<NoteKey> {
    let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) else { return Vec::new() };
    let mut seen = FxHashSet::from_iter([key]);
    entry.targets.iter().flatten().copied().filter(|target| seen.insert(*target)).collect()
}

/// Fills a slot. The note's id becomes its lowercased path.
fn put(entries: &mut Vec<Option<SnapshotEntry>>, key: NoteKey, note: Option<Note>) {
    if entries.len() <= key.slot() {
        entries.resize_with(key.slot() + 1, || None);
    }
    let note = note.map(|note| Note { id: note.path.note_id(), ..note });
    entries[key.slot()] = note.map(|note| SnapshotEntry { note: Arc::new(note), targets: Arc::default() });
}
