//! The passages of a note that are embedded: a section, or a piece of a long one, with the note's title and the heading.

use std::ops::Range;

use crate::model::Note;
use crate::ports::PassageHash;

/// The most bytes of a piece: a few hundred tokens, which suits a small model.
const PIECE_BYTES: usize = 1200;

/// The most pieces of a section; the rest is found by words only.
const MAX_PIECES: usize = 64;

/// To be raised when the texts of passages change, so that old vectors are not used.
pub const PASSAGES_VERSION: u8 = 1;

/// One text to embed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub section: usize,
    /// The note's title, the section's heading, and the piece.
    pub text: String,
}

impl Passage {
    /// The hash of its text.
    pub fn hash(&self) -> PassageHash {
        let hash = blake3::hash(self.text.as_bytes());
        PassageHash(hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))
    }
}

/// The passages of a note, in the order of its sections. Sections without text have one if they have a heading.
///
/// The note's ranges must lie in the text.
pub fn passages(note: &Note, text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    for (index, section) in note.sections.iter().enumerate() {
        let body = text[section.text_start..section.range.end].trim();
        let heading = section.heading.as_deref().unwrap_or_default();
        if body.is_empty() && heading.is_empty() && note.sections.len() > 1 {
            continue;
        }
        for piece in pieces(body).take(MAX_PIECES) {
            let text = [note.title.as_str(), heading, &body[piece]];
            let text = text.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
            passages.push(Passage { section: index, text });
        }
    }
    passages
}

/// Splits a text into pieces at a blank line, else at the end of a line, of a sentence or at a space, in the second half of each.
fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let rest = &text[from..];
        if rest.len() <= PIECE_BYTES {
            start = None;
            return Some(from..text.len());
        }
        let most = rest.floor_char_boundary(PIECE_BYTES);
        let half = rest.floor_char_boundary(PIECE_BYTES / 2);
        let end = ["\n\n", "\n", "。", ". ", " "]
            .iter()
            .find_map(|mark| rest[half..most].rfind(mark).map(|at| half + at + mark.len()))
            .unwrap_or(most);
        start = Some(from + end).filter(|next| *next < text.len());
        Some(from..from + end)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_follow_each_other_and_leave_nothing_out(text in "[a-z。日 .\n]{0,5000}") {
            let mut at = 0;
            for piece in pieces(&text) {
                prop_assert_eq!(piece.start, at);
                prop_assert!(piece.len() <= PIECE_BYTES);
                at = piece.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
