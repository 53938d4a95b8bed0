//! The list of a note's passages in its catalog row: the hash of each text and its section.

use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{NoteChange, PassageHash};
use quipu_core::search::passages;

const PASSAGE_BYTES: usize = 20;

/// One passage of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListedPassage {
    pub(crate) section: u32,
    pub(crate) hash: PassageHash,
}

/// The passages of a note in the catalog.
pub(crate) struct NotePassages {
    pub(crate) key: NoteKey,
    /// When its file last changed.
    pub(crate) modified_ns: i64,
    pub(crate) passages: Vec<ListedPassage>,
}

/// The passages of the note in each change. The ranges must have been checked.
pub(crate) fn passages_of(changes: &[NoteChange<'_>]) -> Vec<Vec<ListedPassage>> {
    let of = |change: &NoteChange<'_>| match *change {
        NoteChange::Put { note, text, .. } => list(note, text),
        NoteChange::Touch { .. } | NoteChange::Remove { .. } => Vec::new(),
    };
    changes.iter().map(of).collect()
}

fn list(note: &Note, text: &str) -> Vec<ListedPassage> {
    let listed = passages(note, text).into_iter().map(|passage| ListedPassage {
        section: u32::try_from(passage.section).expect("a file of less than 4 GiB has fewer than 2^32 sections"),
        hash: passage.hash(),
    });
    listed.collect()
}

pub(crate) fn encode(passages: &[ListedPassage]) -> Vec<u8> {
    passages.iter().flat_map(|passage| passage.section.to_le_bytes().into_iter().chain(passage.hash.0)).collect()
}

/// `None` if the bytes are no list of passages.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<ListedPassage>> {
    let (passages, rest) = bytes.as_chunks::<PASSAGE_BYTES>();
    let passage = |bytes: &[u8; PASSAGE_BYTES]| {
        let (section, hash) = bytes.split_first_chunk()?;
        Some(ListedPassage { section: u32::from_le_bytes(*section), hash: PassageHash(hash.try_into().ok()?) })
    };
    rest.is_empty().then(|| passages.iter().map(passage).collect::<Option<_>>())?
}
