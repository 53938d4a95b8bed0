//! Byte-level byte-pair encoding, as the model was trained with.
//!
//! Our own, since the model's 50,000 merges fit one hash map that is ready in a millisecond; the general library reads 1.3 MB of
//! JSON for 200 ms. Marks such as `<s>` in a text are plain text here: nobody's note can forge one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::asset::Asset;
use super::pieces::pieces;

const START: u16 = 0;
const END: u16 = 2;

/// No token is longer than 128 bytes, so what a model reads at most lies within the first bytes of a text.
const LONGEST_TOKEN: usize = 128;

pub(super) struct Tokenizer {
    bytes: &'static [u16],
    /// Left, right, and what they become; what is joined first comes first.
    merges: &'static [[u16; 3]],
    /// A pair of neighbours to its place in `merges`.
    ranks: FxHashMap<(u16, u16), u32>,
}

impl Tokenizer {
    pub(super) fn new(asset: &Asset) -> Self {
        let merges: &[[u16; 3]] = asset.numbers("merges");
        let ranks = (0..).zip(merges).map(|(rank, [left, right, _])| ((*left, *right), rank)).collect();
        Self { bytes: asset.numbers("bytes"), merges, ranks }
    }

    /// The tokens of a text between the two marks, `limit` in all at most. A long text is not read to its end.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<u16> {
        self.encode_by(text, limit, |piece, tokens| self.encode_piece(piece.as_bytes(), tokens))
    }

    /// The same with the caller's way to the tokens of a piece: one that remembers those of common words is faster.
    pub(super) fn encode_by(
        &self,
        text: &str,
        limit: usize,
        mut encode_piece: impl FnMut(&str, &mut Vec<u16>),
    ) -> Vec<u16> {
        let mut tokens = vec![START];
        for piece in pieces(beginning(text, limit * LONGEST_TOKEN)) {
            if tokens.len() >= limit - 1 {
                break;
            }
            encode_piece(piece, &mut tokens);
        }
        tokens.truncate(limit - 1);
        tokens.push(END);
        tokens
    }

    /// Joins the pair of the lowest rank, the leftmost of equals, until no neighbours can be joined.
    pub(super) fn encode_piece(&self, piece: &[u8], tokens: &mut Vec<u16>) {
        let mut parts = Parts::new(piece.iter().map(|byte| self.bytes[usize::from(*byte)]));
        let mut waiting: BinaryHeap<Reverse<(u32, usize)>> =
            (0..piece.len()).filter_map(|at| self.candidate(&parts, at)).collect();
        while let Some(Reverse((rank, at))) = waiting.pop() {
            let [left, right, joined] = self.merges[rank as usize];
            // One of the two may have been joined with another neighbour since.
            if parts.pair(at) != Some((left, right)) {
                continue;
            }
            parts.join(at, joined);
            waiting.extend(self.candidate(&parts, at));
            waiting.extend(parts.before(at).and_then(|before| self.candidate(&parts, before)));
        }
        tokens.extend(parts.remaining());
    }

    fn candidate(&self, parts: &Parts, at: usize) -> Option<Reverse<(u32, usize)>> {
        let rank = self.ranks.get(&parts.pair(at)?)?;
        Some(Reverse((*rank, at)))
    }
}

/// The tokens of a piece while they are joined: a list linked both ways, for a piece may be long.
struct Parts(Vec<Part>);

struct Part {
    /// Nothing once the part was joined to the one before it.
    token: Option<u16>,
    before: Option<usize>,
    after: Option<usize>,
}

impl Parts {
    fn new(tokens: impl ExactSizeIterator<Item = u16>) -> Self {
        let count = tokens.len();
        let part = |(at, token): (usize, u16)| Part {
            token: Some(token),
            before: at.checked_sub(1),
            after: Some(at + 1).filter(|after| *after < count),
        };
        Self(tokens.enumerate().map(part).collect())
    }

    /// A part and the one after it.
    fn pair(&self, at: usize) -> Option<(u16, u16)> {
        let part = &self.0[at];
        Some((part.token?, self.0[part.after?].token?))
    }

    fn before(&self, at: usize) -> Option<usize> {
        self.0[at].before
    }

    /// Makes one part of a part and the one after it.
    fn join(&mut self, at: usize, joined: u16) {
        self.0[at].token = Some(joined);
        if let Some(gone) = self.0[at].after {
            self.0[gone].token = None;
            self.0[at].after = self.0[gone].after;
            if let Some(next) = self.0[gone].after {
                self.0[next].before = Some(at);
            }
        }
    }

    fn remaining(&self) -> impl Iterator<Item = u16> {
        self.0.iter().filter_map(|part| part.token)
    }
}

/// As many whole characters as fit.
fn beginning(text: &str, most_bytes: usize) -> &str {
    let mut end = most_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_their_longest_known_parts() {
        let tokenizer = Tokenizer::new(&Asset::model());
        assert_eq!(tokenizer.encode("", 512), [0, 2]);
        assert_eq!(tokenizer.encode("Hello world", 512), [0, 31414, 232, 2]);
    }

    #[test]
    fn marks_within_a_text_are_text() {
        let tokenizer = Tokenizer::new(&Asset::model());
        let tokens = tokenizer.encode("<s>", 512);
        assert!(tokens.len() > 3 && !tokens[1..tokens.len() - 1].contains(&START), "{tokens:?}");
    }

    #[test]
    fn a_long_text_is_cut_and_ends_with_the_mark() {
        let tokenizer = Tokenizer::new(&Asset::model());
        for text in ["word ".repeat(1000), "x".repeat(1_000_000), "漢字".repeat(100_000)] {
            let tokens = tokenizer.encode(&text, 512);
            assert!(tokens.len() <= 512);
            assert_eq!((tokens[0], tokens[tokens.len() - 1]), (START, END));
        }
    }
}
