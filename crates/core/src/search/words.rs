//! What counts as a word, the same for a text and for a query.
//!
//! A word is a run of letters and digits, whatever joins it to the next (`_`, `::`, `.`, `/`, `'`): the pieces of
//! `snake_case` stand side by side, so the whole is found as a phrase. Scripts that are written without spaces have no
//! words; they come as runs, to be cut into pairs of characters.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::model::one_sigma;

/// Longer words are cut: people do not type them, and base64 must not fill the dictionary.
const MAX_WORD_CHARS: usize = 64;

/// One word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'t> {
    pub kind: WordKind,
    /// Where it starts in the text.
    pub start: usize,
    /// As written.
    pub text: &'t str,
}

/// The sorts of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// Letters and digits.
    Plain,
    /// Characters of scripts without spaces between words.
    Run,
    /// One picture.
    Emoji,
}

/// The words of a text, in order.
pub fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let mut chars = text[from..].char_indices().map(|(at, c)| (from + at, c, class(c)));
        let (start, first, kind) = chars.by_ref().find_map(|(at, c, class)| match class {
            Class::Word(kind) => Some((at, c, kind)),
            Class::Joining | Class::Separator => None,
        })?;
        let goes_on = |class: Class| match class {
            Class::Joining => true,
            // Pictures stand alone: no one leaves spaces between them.
            Class::Word(next) => next == kind && kind != WordKind::Emoji,
            Class::Separator => false,
        };
        let end = chars
            .take_while(|(_, _, class)| goes_on(*class))
            .last()
            .map_or(start + first.len_utf8(), |(at, c, _)| at + c.len_utf8());
        from = end;
        Some(Word { kind, start, text: &text[start..end] })
    })
}

/// A word or a part of one in the form that is compared: case, width and normal form do not count, accents do.
pub fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text[..text.len().min(MAX_WORD_CHARS)].to_ascii_lowercase();
    }
    text.chars()
        .filter(|c| !is_ignored(*c))
        .nfkc()
        .flat_map(char::to_lowercase)
        .map(one_sigma)
        .take(MAX_WORD_CHARS)
        .collect()
}

/// The pieces of a compound such as `camelCase`, `HTTPServer` or `E0382`, with where they start in the word; none where
/// it is of one piece.
pub fn parts(word: &str) -> Vec<(usize, &str)> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_plain || word.chars().nth(MAX_WORD_CHARS).is_some() {
        return Vec::new();
    }
    let humps = split_where(word, |before, here, after| {
        here.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && after.is_some_and(char::is_lowercase))
    });
    let mut parts = Vec::new();
    for (start, hump) in humps {
        let pieces = split_where(hump, |before, here, _| before.is_numeric() != here.is_numeric());
        // More than one change between letters and digits is a hash or a key, and its pieces mean nothing.
        if pieces.len() == 2 {
            parts.extend(pieces.into_iter().map(|(at, piece)| (start + at, piece)));
        } else {
            parts.push((start, hump));
        }
    }
    if parts.len() == 1 { Vec::new() } else { parts }
}

/// One character of a run, folded, with where it stands in the run.
///
/// A mark that is written as a character of its own has been drawn into the one before it where Unicode has one for both.
pub fn run_chars(run: &str) -> Vec<(char, std::ops::Range<usize>)> {
    let mut folded = Vec::with_capacity(run.len() / 3);
    let mut from = 0;
    while let Some(first) = run[from..].chars().next() {
        let rest = from + first.len_utf8();
        let end = run[rest..].char_indices().find(|(_, c)| !composes(*c)).map_or(run.len(), |(at, _)| rest + at);
        let cluster = run[from..end].chars().filter(|c| !is_ignored(*c));
        folded.extend(cluster.nfkc().map(|c| (c, from..end)));
        from = end;
    }
    folded
}

fn split_where(word: &str, is_edge: impl Fn(char, char, Option<char>) -> bool) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut chars = word.char_indices().peekable();
    let mut before = None;
    while let Some((at, here)) = chars.next() {
        if is_combining_mark(here) || is_ignored(here) {
            continue;
        }
        if before.is_some_and(|before| is_edge(before, here, chars.peek().map(|(_, after)| *after))) {
            pieces.push((start, &word[start..at]));
            start = at;
        }
        before = Some(here);
    }
    pieces.push((start, &word[start..]));
    pieces
}

#[derive(Clone, Copy)]
enum Class {
    Word(WordKind),
    /// Continues a word and starts none.
    Joining,
    Separator,
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { Class::Word(WordKind::Plain) } else { Class::Separator };
    }
    if is_ignored(c) {
        Class::Joining
    } else if is_unspaced(c) {
        Class::Word(WordKind::Run)
    } else if is_emoji(c) {
        Class::Word(WordKind::Emoji)
    } else if c.is_alphanumeric() {
        Class::Word(WordKind::Plain)
    } else if is_combining_mark(c) {
        Class::Joining
    } else {
        Class::Separator
    }
}

/// Invisible characters inside words: soft hyphen, joiners, byte order mark, variation selectors.
pub(super) fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

/// Han, Kana, Hangul, Bopomofo, Thai, Lao, Khmer, Myanmar. Hangul has spaces, but its words carry endings.
fn is_unspaced(c: char) -> bool {
    let in_block = matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{2fdf}' | '\u{3000}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ffdc}'
        | '\u{1b000}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}');
    // Radicals and squared words are symbols to Unicode, but stand for characters.
    let is_symbol_of_characters = || matches!(c, '\u{2e80}'..='\u{2fdf}' | '\u{3200}'..='\u{33ff}');
    in_block && (c.is_alphanumeric() || is_combining_mark(c) || is_symbol_of_characters())
}

/// A Chinese character, in any language that writes with them.
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{231a}' | '\u{231b}' | '\u{2328}' | '\u{23cf}' | '\u{23e9}'..='\u{23fa}')
}

/// Whether it may be drawn into the character before it: marks, the half-width sound marks, and the later letters of a
/// Korean syllable written out.
fn composes(c: char) -> bool {
    is_ignored(c) || is_combining_mark(c) || matches!(c, '\u{ff9e}' | '\u{ff9f}' | '\u{1160}'..='\u{11ff}')
}

/// A folded word without the accents of Latin letters: `café` is `cafe`. In other scripts a mark makes another letter.
pub fn unaccented(word: String) -> String {
    if word.is_ascii() {
        return word;
    }
    let mut is_latin = false;
    let is_kept = |c: &char| {
        let is_mark = is_combining_mark(*c);
        is_latin = if is_mark { is_latin } else { c.is_ascii_alphabetic() };
        !(is_mark && is_latin)
    };
    word.nfd().filter(is_kept).nfc().collect::<String>().replace('ß', "ss")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(texts("Fix E0382: don't move!"), ["Fix", "E0382", "don", "t", "move"]);
        assert_eq!(texts("snake_case a::b src/lib.rs"), ["snake", "case", "a", "b", "src", "lib", "rs"]);
        assert_eq!(texts("naïve cafe\u{301} हिन्दी"), ["naïve", "cafe\u{301}", "हिन्दी"]);
        assert_eq!(texts(" \u{301} … — ::"), [""; 0]);
    }

    #[test]
    fn scripts_without_spaces_are_runs_and_emoji_single_words() {
        assert_eq!(texts("Rust言語の設計、検索"), ["Rust", "言語の設計", "検索"]);
        assert_eq!(texts("ok👍🏽🚀"), ["ok", "👍", "🏽", "🚀"]);
        assert_eq!(texts("ภาษาไทย ကခ។ភាសា"), ["ภาษาไทย", "ကခ", "ភាសា"]);
    }

    #[test]
    fn only_latin_letters_lose_their_accents() {
        for (word, bare) in
            [("café", "cafe"), ("straße", "strasse"), ("ångström", "angstrom"), ("й", "й"), ("が", "が")]
        {
            assert_eq!(unaccented(word.to_owned()), bare);
        }
    }

    #[test]
    fn case_width_and_normal_form_do_not_count_and_accents_do() {
        assert_eq!(folded("Ｒｕｓｔ"), "rust");
        assert_eq!(folded("CAFE\u{301}"), folded("café"));
        assert_ne!(folded("cafe"), folded("café"));
        assert_eq!(folded("ΟΔΟΣ"), folded("οδος"));
        let chars = |run| run_chars(run).into_iter().map(|(c, _)| c).collect::<String>();
        assert_eq!(chars("ﾃﾞｰﾀ"), "データ");
        assert_eq!(chars("か\u{3099}"), "が");
        assert_eq!(chars("\u{1112}\u{1161}\u{11ab}"), "한");
    }

    #[test]
    fn compounds_have_parts() {
        let parts = |word| parts(word).into_iter().map(|(_, part)| part).collect::<Vec<_>>();
        assert_eq!(parts("camelCase"), ["camel", "Case"]);
        assert_eq!(parts("HTTPServer2"), ["HTTP", "Server", "2"]);
        assert_eq!(parts("E0382"), ["E", "0382"]);
        assert_eq!(parts("10ms"), ["10", "ms"]);
        assert_eq!(parts("Word"), [""; 0]);
        assert_eq!(parts("WORD"), [""; 0]);
        assert_eq!(parts("a3f9b2"), [""; 0]);
        assert_eq!(parts("7\u{200d}"), [""; 0], "a joiner is no part");
    }

    #[test]
    fn a_very_long_word_is_cut() {
        assert_eq!(folded(&"x".repeat(10_000)).len(), MAX_WORD_CHARS);
        assert_eq!(folded(&"é".repeat(10_000)).chars().count(), MAX_WORD_CHARS);
        assert!(parts(&"xY".repeat(10_000)).is_empty());
    }
}
