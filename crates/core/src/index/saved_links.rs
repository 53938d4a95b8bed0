//! The resolved links, saved for the next start, which need not resolve them while the notes are the same.
//!
//! They begin with a fingerprint of all notes, so links that were resolved among other notes are never used.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::snapshot::Snapshot;
use crate::model::{Note, NoteKey};

/// To be raised when the rules of resolution or the format change.
const VERSION: u8 = 3;

/// Stands for a broken link.
const BROKEN: u32 = u32::MAX;

type Fingerprint = [u8; 17];

/// The targets of each note's links, in their order.
pub(super) type Targets = Vec<Option<NoteKey>>;

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

/// The targets of the links of these notes; `None` when the bytes are of other notes or damaged.
pub(super) fn decode(bytes: &[u8], notes: &[(NoteKey, Note)]) -> Option<FxHashMap<NoteKey, Targets>> {
    let by_reference: Vec<(NoteKey, &Note)> = notes.iter().map(|(key, note)| (*key, note)).collect();
    let rest = bytes.strip_prefix(&fingerprint(&by_reference)[..])?;
    let links: FxHashMap<NoteKey, usize> = notes.iter().map(|(key, note)| (*key, note.links.len())).collect();
    let mut numbers = rest.chunks_exact(4).map(|number| u32::from_le_bytes(number.try_into().expect("four bytes")));
    let mut targets = FxHashMap::with_capacity_and_hasher(notes.len(), rustc_hash::FxBuildHasher);
    while let Some(key) = numbers.next() {
        let count = numbers.next()? as usize;
        if links.get(&NoteKey(key)) != Some(&count) {
            return None;
        }
        let decoded = numbers.by_ref().take(count).map(|target| Some(NoteKey(target)).filter(|_| target != BROKEN));
        let decoded: Targets = decoded.collect();
        if decoded.len() != count || decoded.iter().flatten().any(|target| !links.contains_key(target)) {
            return None;
        }
        targets.insert(NoteKey(key), decoded);
    }
    (targets.len() == notes.len()).then_some(targets)
}

/// A hash of the version and of all notes, in any order.
fn fingerprint(notes: &[(NoteKey, &Note)]) -> Fingerprint {
    let of_note = |(key, note): &(NoteKey, &Note)| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&key.0.to_le_bytes()).update(&note.hash.0).update(note.path.as_str().as_bytes());
        let hash = hasher.finalize();
        u128::from_le_bytes(hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))
    };
    let sum = notes.par_iter().with_min_len(512).map(of_note).reduce(|| 0, u128::wrapping_add);
    let mut fingerprint = [VERSION; 17];
    fingerprint[1..].copy_from_slice(&sum.to_le_bytes());
    fingerprint
}
