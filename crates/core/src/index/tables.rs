//! Tables that reads of one snapshot share, built at the first question.
//!
//! Building all takes a quarter of a second at 100,000 notes, and most writes change none of them. So a snapshot shares those
//! with its predecessor that the change did not affect, built or not.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::Snapshot;
use super::names::{NameHashes, NameTable, names_of};
use super::writer::StagedNote;
use crate::model::{ContentHash, Note, NoteKey};
use crate::query::Columns;

/// A table that several snapshots may share; each would build the same.
type Table<T> = Arc<OnceLock<T>>;

/// The tables of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The place of each slot in the order of files.
    pub(super) places: Table<Vec<u32>>,
    /// The notes whose path is not in composed Unicode form, by that form.
    pub(super) decomposed: Table<FxHashMap<String, Vec<NoteKey>>>,
    /// The PageRank of each slot.
    pub(super) ranks: Table<Vec<f64>>,
    /// By folded tag, places in the order of files.
    pub(super) tags: Table<BTreeMap<String, Vec<u32>>>,
    /// By folded area, its files in order.
    pub(super) areas: Table<FxHashMap<String, Vec<NoteKey>>>,
    pub(super) names: Table<NameTable>,
    pub(super) exact_names: ExactNames,
    /// The values of fields that queries asked for.
    pub(super) columns: Columns,
    /// By the hash of a note that names sources, the first such note.
    pub(super) sourced: Table<FxHashMap<ContentHash, NoteKey>>,
}

/// Which files have a name. Rebuilt only now and then: the older hashes and the files changed since are enough, because every
/// file found is compared with the name. So a search after a write does not wait for a rebuild.
#[derive(Debug, Default, Clone)]
pub(super) struct ExactNames {
    pub(super) hashes: Table<NameHashes>,
    /// Files whose names may have changed since the hashes were built.
    pub(super) changed: Vec<NoteKey>,
}

/// Changed files beyond which the hashes are rebuilt.
const MANY_CHANGED: usize = 256;

/// The properties of notes that a change did not affect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unchanged {
    /// The set of files, and so their ids.
    files: bool,
    tags: bool,
    areas: bool,
    names: bool,
    /// Which notes link to which.
    pub(super) links: bool,
}

/// The notes that a change may have affected.
pub(super) struct ChangedSlots {
    /// Notes whose names may differ.
    pub(super) names: Vec<NoteKey>,
    /// Notes of which anything may differ: text, links, or the notes that link to them.
    pub(super) fields: Vec<NoteKey>,
}

impl Unchanged {
    /// Compares staged changes with a snapshot. `links` is set later, once links are resolved.
    pub(super) fn by(staged: &[StagedNote], before: &Snapshot) -> Self {
        let same = |is_same: &dyn Fn(&Note, &Note) -> bool| {
            staged.iter().all(|(key, now)| match (before.get(*key), now) {
                (Some(before), Some(now)) => before.path == now.path && is_same(before, now),
                _ => false,
            })
        };
        Self {
            files: same(&|_, _| true),
            tags: same(&|before, now| before.tags == now.tags),
            areas: same(&|before, now| before.area() == now.area()),
            names: same(&|before, now| names_of(before).eq(names_of(now))),
            links: false,
        }
    }
}

impl Tables {
    /// The earlier tables that are still valid; the others are empty.
    pub(super) fn still_of(before: &Self, unchanged: Unchanged, changed: ChangedSlots) -> Self {
        let ChangedSlots { names, fields } = changed;
        fn still<T>(holds: bool, table: &Table<T>) -> Table<T> {
            if holds { table.clone() } else { Table::default() }
        }
        let mut exact_names = before.exact_names.clone();
        if !unchanged.names {
            exact_names.changed.extend(names);
            // Hashes that are not built yet would be built from the later names and miss earlier ones.
            if exact_names.changed.len() > MANY_CHANGED || exact_names.hashes.get().is_none() {
                exact_names = ExactNames::default();
            }
        }
        Self {
            exact_names,
            columns: before.columns.after(&fields),
            places: still(unchanged.files, &before.places),
            decomposed: still(unchanged.files, &before.decomposed),
            ranks: still(unchanged.files && unchanged.links, &before.ranks),
            tags: still(unchanged.tags, &before.tags),
            areas: still(unchanged.areas, &before.areas),
            names: still(unchanged.names, &before.names),
            // By content, so every change affects it.
            sourced: Table::default(),
        }
    }
}
