//! Byte-level byte-pair encoding, as the model was trained with.
//!
//! Our own, since the model's 50,000 merges fit one hash map that is ready in a millisecond; the general library reads 1.3 MB of
//! JSON for 200 ms. Marks such as `<s>` in a text are plain text here: nobody's note can forge one.

use rustc_hash::FxHashMap;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::asset::Asset;

const START: u16 = 0;
const END: u16 = 2;

pub(super) struct Tokenizer {
    bytes: &'static [u16],
    /// A pair of neighbours to its rank (less is joined first) and what it becomes.
    merges: FxHashMap<(u16, u16), (u32, u16)>,
}

impl Tokenizer {
    pub(super) fn new(asset: &Asset) -> Self {
        let merges = asset.numbers::<u16>("merges").chunks_exact(3);
        Self {
            bytes: asset.numbers("bytes"),
            merges: (0_u32..).zip(merges).map(|(rank, merge)| ((merge[0], merge[1]), (rank, merge[2]))).collect(),
        }
    }

    /// The tokens of a text between the two marks, `limit` in all at most. A long text is not read to its end.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<u16> {
        let mut tokens = vec![START];
        let mut rest = text;
        while !rest.is_empty() && tokens.len() < limit.saturating_sub(1) {
            let (piece, after) = rest.split_at(piece_length(rest));
            self.encode_piece(piece.as_bytes(), &mut tokens);
            rest = after;
        }
        tokens.truncate(limit.saturating_sub(1).max(1));
        tokens.push(END);
        tokens
    }

    /// Joins the pair of the lowest rank until none is left. A piece is cut at 512 bytes, so the quadratic walk stays short.
    fn encode_piece(&self, piece: &[u8], tokens: &mut Vec<u16>) {
        for part in piece.chunks(512) {
            let mut parts: Vec<u16> = part.iter().map(|byte| self.bytes[usize::from(*byte)]).collect();
            loop {
                let ranked = parts.windows(2).enumerate().filter_map(|(at, pair)| {
                    self.merges.get(&(pair[0], pair[1])).map(|(rank, joined)| (*rank, at, *joined))
                });
                let Some((rank, at, joined)) = ranked.min() else { break };
                let _ = rank;
                parts[at] = joined;
                parts.remove(at + 1);
            }
            tokens.extend(parts);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

fn class(c: char) -> Class {
    if c.is_ascii_alphabetic() {
        return Class::Letter;
    }
    if c.is_whitespace() {
        return Class::Space;
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter => Class::Letter,
        GeneralCategoryGroup::Number => Class::Number,
        _ => Class::Other,
    }
}

/// How many bytes the next piece has: an English contraction, a run of letters, of digits or of other signs with the space
/// before it, or white space but for the last before a word.
fn piece_length(text: &str) -> usize {
    for contraction in ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"] {
        if text.starts_with(contraction) {
            return contraction.len();
        }
    }
    let mut characters = text.chars();
    let first = characters.next().expect("the text is not empty");
    let second = characters.next();
    let run = |from: usize, wanted: Class| {
        text[from..].char_indices().find(|(_, c)| class(*c) != wanted).map_or(text.len(), |(at, _)| from + at)
    };
    match (class(first), second.map(class)) {
        (Class::Space, Some(next)) if first == ' ' && next != Class::Space => run(1, next),
        (Class::Space, _) => {
            let end = run(0, Class::Space);
            if end == text.len() {
                return end;
            }
            // The last white space goes with the word behind it, unless it is the only one.
            let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
            if end > last { end - last } else { end }
        }
        (wanted, _) => run(0, wanted),
    }
}
