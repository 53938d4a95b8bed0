//! The resolved links, saved for the next start, which need not resolve them while the notes are the same.
//!
//! They begin with a fingerprint of all notes, so links that were resolved among other notes are never used.

use std::hash::BuildHasher;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxBuildHasher;

use super::snapshot::Snapshot;
use crate::model::{Note, NoteKey};

/// To be raised when the rules of resolution or the format change.
const VERSION: u8 = 4;

/// Stands for a broken link.
const BROKEN: u32 = u32::MAX;

type Fingerprint = [u8; 17];

/// The targets of a note's links, in their order.
pub(super) type Targets = Arc<[Option<NoteKey>]>;

/// The links of a snapshot as bytes: the fingerprint, then for each file its key, the count of its links, and the key of each
/// target.
pub(super) fn encode(snapshot: &Snapshot) -> Vec<u8> {
    let notes: Vec<(NoteKey, &Note)> = snapshot.files().map(|key| (key, snapshot.note(key))).collect();
    let mut bytes = fingerprint(&notes).to_vec();
    let mut push = |number: u32| bytes.extend_from_slice(&number.to_le_bytes());
    for (key, note) in notes {
        push(key.0);
        push(u32::try_from(note.links.len()).expect("a note has fewer than four billion links"));
        snapshot.links(key).for_each(|link| push(link.target.map_or(BROKEN, |target| target.0)));
    }
    bytes
}

/// The targets of the links of these notes by slot; `None` when the bytes are of other notes or damaged.
pub(super) fn decode(bytes: &[u8], notes: &[(NoteKey, Note)]) -> Option<Vec<Targets>> {
    let by_reference: Vec<(NoteKey, &Note)> = notes.iter().map(|(key, note)| (*key, note)).collect();
    let mut rest = bytes.strip_prefix(&fingerprint(&by_reference)[..])?;
    let slots = notes.iter().map(|(key, _)| key.slot() + 1).max().unwrap_or_default();
    // Of each slot that is in use, until its links are read.
    let mut expected: Vec<Option<usize>> = vec![None; slots];
    for (key, note) in notes {
        expected[key.slot()] = Some(note.links.len());
    }
    let is_used: Vec<bool> = expected.iter().map(Option::is_some).collect();
    let is_unknown = |target: &NoteKey| !is_used.get(target.slot()).copied().unwrap_or_default();
    let mut targets: Vec<Targets> = vec![Arc::default(); slots];
    while !rest.is_empty() {
        let (key, count) = (NoteKey(number(rest.get(..4)?)), number(rest.get(4..8)?) as usize);
        if expected.get_mut(key.slot())?.take()? != count {
            return None;
        }
        let (links, after) = rest[8..].split_at_checked(count * 4)?;
        let links = links.chunks_exact(4).map(number).map(|target| Some(NoteKey(target)).filter(|_| target != BROKEN));
        let links: Targets = links.collect();
        if links.iter().flatten().any(is_unknown) {
            return None;
        }
        (targets[key.slot()], rest) = (links, after);
    }
    expected.iter().all(Option::is_none).then_some(targets)
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// A hash of the version and of all notes, in any order.
fn fingerprint(notes: &[(NoteKey, &Note)]) -> Fingerprint {
    // Not a cryptographic hash, since every start waits for it: a program that can forge the links can forge the notes as well.
    let of_note = |(key, note): &(NoteKey, &Note)| {
        let half = |seed: u32| u128::from(FxBuildHasher.hash_one((seed, key.0, note.hash.0, note.path.as_str())));
        half(0) << 64 | half(1)
    };
    let sum = notes.par_iter().with_min_len(512).map(of_note).reduce(|| 0, u128::wrapping_add);
    let mut fingerprint = [VERSION; 17];
    fingerprint[1..].copy_from_slice(&sum.to_le_bytes());
    fingerprint
}
