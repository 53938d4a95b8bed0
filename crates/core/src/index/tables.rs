//! What reads share of one state of the vault, made when first asked for.
//!
//! To make them all takes a quarter of a second at 100,000 notes, and most writes change none: each is made of little of
//! what a note has. So a snapshot takes over those of the one before that would come out the same, made already or not.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::Snapshot;
use super::names::{NameHashes, NameTable, names_of};
use super::writer::StagedNote;
use crate::model::{ContentHash, Note, NoteKey};

/// A table that several snapshots may share. Whichever of them makes it makes the same.
type Table<T> = Arc<OnceLock<T>>;

/// The tables of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Of each slot in use its place in the order of files.
    pub(super) places: Table<Vec<u32>>,
    /// The notes whose path is not in the composed form, under that form.
    pub(super) decomposed: Table<FxHashMap<String, Vec<NoteKey>>>,
    /// Of each slot its rank.
    pub(super) ranks: Table<Vec<f64>>,
    /// Under each folded tag, places in the order of files.
    pub(super) tags: Table<BTreeMap<String, Vec<u32>>>,
    /// Under each folded area its files, in order.
    pub(super) areas: Table<FxHashMap<String, Vec<NoteKey>>>,
    pub(super) names: Table<NameTable>,
    pub(super) exact_names: ExactNames,
    /// Of each content that names sources, the first note with it.
    pub(super) sourced: Table<FxHashMap<ContentHash, NoteKey>>,
}

/// Which files have a name. Made of all names only now and then: what was made before, with the files that changed since,
/// says as much, because every file found is compared with the name. So the search after a write does not wait for it.
#[derive(Debug, Default, Clone)]
pub(super) struct ExactNames {
    pub(super) hashes: Table<NameHashes>,
    /// Files whose names may have changed since the hashes were made.
    pub(super) changed: Vec<NoteKey>,
}

/// Changed files beyond which the hashes are made again.
const MANY_CHANGED: usize = 256;

/// What a change left as it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unchanged {
    /// Which files there are, and so which id each has.
    files: bool,
    tags: bool,
    areas: bool,
    names: bool,
    /// Which notes link to which.
    pub(super) links: bool,
}

impl Unchanged {
    /// By these changes, but for the links: those have to be resolved to know.
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
    /// Those of the state before that still hold; the others are yet to be made.
    ///
    /// `changed` are the files whose names may differ.
    pub(super) fn still_of(before: &Self, unchanged: Unchanged, changed: impl Iterator<Item = NoteKey>) -> Self {
        fn still<T>(holds: bool, table: &Table<T>) -> Table<T> {
            if holds { table.clone() } else { Table::default() }
        }
        let mut exact_names = before.exact_names.clone();
        if !unchanged.names {
            exact_names.changed.extend(changed);
            // Hashes that are not made yet would be made of the later names, and miss some of the earlier.
            if exact_names.changed.len() > MANY_CHANGED || exact_names.hashes.get().is_none() {
                exact_names = ExactNames::default();
            }
        }
        Self {
            exact_names,
            places: still(unchanged.files, &before.places),
            decomposed: still(unchanged.files, &before.decomposed),
            ranks: still(unchanged.files && unchanged.links, &before.ranks),
            tags: still(unchanged.tags, &before.tags),
            areas: still(unchanged.areas, &before.areas),
            names: still(unchanged.names, &before.names),
            // By content, which every change changes.
            sourced: Table::default(),
        }
    }
}
