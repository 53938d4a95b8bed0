//! Byte-level byte-pair encoding, as the model was trained with.
//!
//! Our own, since the model's 50,000 merges are loaded into one hash map in a millisecond; the general library reads 1.3 MB of
//! JSON for 200 ms. Special tokens such as `<s>` in a text are plain text here, so a note cannot forge them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::asset::ModelAsset;
use super::pieces::pieces;

const START: u16 = 0;
const END: u16 = 2;

/// No token is longer, so the first bytes of a text are enough for a number of tokens.
const LONGEST_TOKEN: usize = 128;

pub(super) struct Tokenizer {
    bytes: &'static [u16],
    /// The left token, the right one, and the merged one, in the order of merging.
    merges: &'static [[u16; 3]],
    /// The index in `merges` of a pair of neighbours.
    ranks: FxHashMap<(u16, u16), u32>,
}

impl Tokenizer {
    pub(super) fn new(asset: &ModelAsset) -> Self {
        let merges: &[[u16; 3]] = asset.numbers("merges");
        let ranks = (0..).zip(merges).map(|(rank, [left, right, _])| ((*left, *right), rank)).collect();
        Self { bytes: asset.numbers("bytes"), merges, ranks }
    }

    /// The tokens of a text between the start and end tokens, at most `limit` in all. A long text is not read to its end.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<u16> {
        self.encode_by(text, limit, |piece, tokens| self.encode_piece(piece.as_bytes(), tokens))
    }

    /// Like [`Self::encode`], with the caller's function for the tokens of a piece, which may cache those of common words.
    pub(super) fn encode_by(
        &self,
        text: &str,
        limit: usize,
        mut encode_piece: impl FnMut(&str, &mut Vec<u16>),
    ) -> Vec<u16> {
        let mut tokens = vec![START];
        for piece in pieces(&text[..text.floor_char_boundary(limit * LONGEST_TOKEN)]) {
            if tokens.len() >= limit - 1 {
                break;
            }
            encode_piece(piece, &mut tokens);
        }
        tokens.truncate(limit - 1);
        tokens.push(END);
        tokens
    }

    /// Merges the pair of the lowest rank, the leftmost among equals, until no neighbours can be merged.
    pub(super) fn encode_piece(&self, piece: &[u8], tokens: &mut Vec<u16>) {
        let mut parts = TokenList::new(piece.iter().map(|byte| self.bytes[usize::from(*byte)]));
        let mut waiting: BinaryHeap<Reverse<(u32, usize)>> =
            (0..piece.len()).filter_map(|at| self.candidate(&parts, at)).collect();
        while let Some(Reverse((rank, at))) = waiting.pop() {
            let [left, right, joined] = self.merges[rank as usize];
            // One of the two may have been merged with another neighbour meanwhile.
            if parts.pair(at) != Some((left, right)) {
                continue;
            }
            parts.join(at, joined);
            waiting.extend(self.candidate(&parts, at));
            waiting.extend(parts.before(at).and_then(|before| self.candidate(&parts, before)));
        }
        tokens.extend(parts.remaining());
    }

    fn candidate(&self, parts: &TokenList, at: usize) -> Option<Reverse<(u32, usize)>> {
        let rank = self.ranks.get(&parts.pair(at)?)?;
        Some(Reverse((*rank, at)))
    }
}

/// The tokens of a piece during merging: a doubly linked list, since a piece may be long.
struct TokenList(Vec<TokenNode>);

struct TokenNode {
    /// `None` once it was merged with the one before it.
    token: Option<u16>,
    before: Option<usize>,
    after: Option<usize>,
}

impl TokenList {
    fn new(tokens: impl ExactSizeIterator<Item = u16>) -> Self {
        let count = tokens.len();
        let part = |(at, token): (usize, u16)| TokenNode {
            token: Some(token),
            before: at.checked_sub(1),
            after: Some(at + 1).filter(|after| *after < count),
        };
        Self(tokens.enumerate().map(part).collect())
    }

    /// A token and the one after it.
    fn pair(&self, at: usize) -> Option<(u16, u16)> {
        let part = &self.0[at];
        Some((part.token?, self.0[part.after?].token?))
    }

    fn before(&self, at: usize) -> Option<usize> {
        self.0[at].before
    }

    /// Merges a token with the one after it.
    fn join(&mut self, at: usize, joined: u16) {
        self.0[at].token = Some(joined);
        if let Some(merged) = self.0[at].after {
            self.0[merged].token = None;
            self.0[at].after = self.0[merged].after;
            if let Some(next) = self.0[merged].after {
                self.0[next].before = Some(at);
            }
        }
    }

    fn remaining(&self) -> impl Iterator<Item = u16> {
        self.0.iter().filter_map(|part| part.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_their_longest_known_tokens() {
        let tokenizer = Tokenizer::new(&ModelAsset::model());
        assert_eq!(tokenizer.encode("", 512), [0, 2]);
        assert_eq!(tokenizer.encode("Hello world", 512), [0, 31414, 232, 2]);
    }

    #[test]
    fn special_tokens_in_a_text_are_plain_text() {
        let tokenizer = Tokenizer::new(&ModelAsset::model());
        let tokens = tokenizer.encode("<s>", 512);
        assert!(tokens.len() > 3 && !tokens[1..tokens.len() - 1].contains(&START), "{tokens:?}");
    }

    #[test]
    fn long_text_is_truncated_and_ends_with_the_end_token() {
        let tokenizer = Tokenizer::new(&ModelAsset::model());
        for text in ["word ".repeat(1000), "x".repeat(1_000_000), "漢字".repeat(100_000)] {
            let tokens = tokenizer.encode(&text, 512);
            assert!(tokens.len() <= 512);
            assert_eq!((tokens[0], tokens[tokens.len() - 1]), (START, END));
        }
    }
}
