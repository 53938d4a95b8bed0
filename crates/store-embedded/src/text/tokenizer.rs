//! The tokenizer for indexing; [`super::query`] parses queries.
//!
//! The parts of a compound have the position of the whole. A run of characters without spaces yields, at each character, that
//! character and the pair that it begins: a query of two or more characters searches for pairs, a query of one for the
//! character. (A single character could be found as a prefix of pairs, but without a useful score.)
//!
//! A text may begin with the mark of its language; then each word is followed by its stem at the same position.

use std::hash::BuildHasher;

use quipu_core::search::words::{self, Word, WordKind, folded, parts, run_chars};
use rustc_hash::{FxBuildHasher, FxHashSet};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::language::{Language, Stems};

/// Its name in the schema.
pub(super) const NAME: &str = "words";

/// Different terms of one text that are indexed: each costs hundreds of bytes while the text is indexed, and no text that
/// people read has that many.
const MAX_TERMS: usize = 300_000;

/// A shorter text cannot have more terms than that.
const COUNTED_BYTES: usize = if cfg!(test) { 1000 } else { 1 << 20 };

#[derive(Clone, Default)]
pub(super) struct WordTokenizer;

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        // The mark is not a word character, so it need not be removed.
        let stems = text.chars().next().and_then(Language::from_mark).map(Language::stemmer);
        let terms = (text.len() > COUNTED_BYTES).then(FxHashSet::default);
        WordStream { words: Box::new(words::words(text)), stems, tokens: Vec::new(), next: 0, position: 0, terms }
    }
}

pub(super) struct WordStream<'t> {
    words: Box<dyn Iterator<Item = Word<'t>> + 't>,
    stems: Option<Stems>,
    /// The tokens of the current word.
    tokens: Vec<Token>,
    next: usize,
    /// The position of the next word.
    position: usize,
    /// Hashes of the terms so far, of a long text.
    terms: Option<FxHashSet<u64>>,
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        self.next += 1;
        if self.next < self.tokens.len() {
            return true;
        }
        self.next = 0;
        self.tokens.clear();
        // All terms of a word may be beyond the limit.
        while self.tokens.is_empty() {
            let Some(word) = self.words.next() else { return false };
            match word.kind {
                WordKind::Plain => self.push_word(word, parts(word.text)),
                WordKind::Emoji => self.push_word(word, Vec::new()),
                WordKind::Run => self.push_run(word),
            }
        }
        true
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.next]
    }
}

impl WordStream<'_> {
    fn push_word(&mut self, word: Word<'_>, parts: Vec<(usize, &str)>) {
        self.push_with_stem(word.start, word.text);
        for (at, part) in parts {
            self.push_with_stem(word.start + at, part);
        }
        self.position += 1;
    }

    fn push_with_stem(&mut self, start: usize, text: &str) {
        let word = folded(text);
        let stem = self.stems.as_ref().and_then(|stems| stems.stem(&word));
        self.push(start, start + text.len(), word);
        if let Some(stem) = stem {
            self.push(start, start + text.len(), stem);
        }
    }

    fn push_run(&mut self, word: Word<'_>) {
        let chars = run_chars(word.text);
        for (index, (c, range)) in chars.iter().enumerate() {
            self.push(word.start + range.start, word.start + range.end, c.to_string());
            if let Some((next, next_range)) = chars.get(index + 1) {
                self.push(word.start + range.start, word.start + next_range.end, [*c, *next].iter().collect());
            }
            self.position += 1;
        }
    }

    fn push(&mut self, offset_from: usize, offset_to: usize, text: String) {
        if let Some(terms) = &mut self.terms {
            let term = FxBuildHasher.hash_one(&text);
            if terms.len() < MAX_TERMS {
                terms.insert(term);
            } else if !terms.contains(&term) {
                return;
            }
        }
        self.tokens.push(Token { offset_from, offset_to, position: self.position, text, position_length: 1 });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(text: &str) -> Vec<(usize, String)> {
        let mut tokenizer = WordTokenizer;
        let mut stream = tokenizer.token_stream(text);
        let mut tokens = Vec::new();
        stream.process(&mut |token| tokens.push((token.position, token.text.clone())));
        tokens
    }

    #[test]
    fn parts_of_a_compound_have_the_position_of_the_whole() {
        let expected = [(0, "getuser"), (0, "get"), (0, "user"), (1, "snake"), (2, "case")];
        assert_eq!(tokens("getUser snake_case"), expected.map(|(position, text)| (position, text.to_owned())));
    }

    #[test]
    fn further_terms_of_a_text_with_very_many_are_not_indexed() {
        // Letters alone: a word with digits has parts.
        let letter = |digit: char| char::from(b'a' + digit.to_digit(10).unwrap() as u8);
        let word = |number: usize| format!("{number:06}").chars().map(letter).collect::<String>();
        let text: Vec<String> = (0..MAX_TERMS + 10).map(word).collect();
        let found = tokens(&format!("{} {}", text.join(" "), word(1)));
        let different: FxHashSet<&str> = found.iter().map(|(_, term)| term.as_str()).collect();
        assert_eq!(different.len(), MAX_TERMS);
        assert_eq!(found.last().unwrap().1, word(1), "known terms are indexed everywhere");
    }

    #[test]
    fn stems_have_the_position_of_their_word() {
        let text = format!("{}Running HTTPServers fast", Language::from_code("en").unwrap().mark());
        let expected = [(0, "running"), (0, "run"), (1, "httpservers"), (1, "httpserver"), (1, "http"), (1, "servers")];
        let expected = expected.into_iter().chain([(1, "server"), (2, "fast")]);
        assert_eq!(tokens(&text), expected.map(|(position, text)| (position, text.to_owned())).collect::<Vec<_>>());
    }

    #[test]
    fn run_without_spaces_yields_characters_and_pairs() {
        let expected = [(0, "go"), (1, "検"), (1, "検索"), (2, "索"), (3, "x")];
        assert_eq!(tokens("Go検索x"), expected.map(|(position, text)| (position, text.to_owned())));
    }

    proptest! {
        #[test]
        fn tokens_are_ordered_ranges_of_the_text(text in "[a-zA-Z0-9_ .:'é\u{301}日本ｶﾞก็👍🏽\u{200d}\u{0}\\PC]{0,60}") {
            let mut tokenizer = WordTokenizer;
            let mut stream = tokenizer.token_stream(&text);
            let mut last = 0;
            stream.process(&mut |token| {
                assert!(token.offset_from < token.offset_to, "{token:?}");
                assert!(text.get(token.offset_from..token.offset_to).is_some(), "{token:?}");
                assert!(!token.text.is_empty(), "{token:?}");
                assert!(token.position >= last, "{token:?}");
                last = token.position;
            });
        }
    }
}
