//! The part of a text that shows best why it matched, with the query's words marked.
//!
//! Counted in characters, cut between graphemes, compared ignoring case, width and Unicode form. Matching is a little wider than
//! in the index, so that a word found by its stem or as part of another is marked too.
//! Where no word matches as typed, similar words count: other accents, other endings, typing errors.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::edit_distance::edit_distance;
use super::words::is_ignored;
use crate::model::one_sigma;

const OPEN: &str = "<mark>";
const CLOSE: &str = "</mark>";
const ELLIPSIS: &str = "…";

/// Texts are scanned in pieces of about this many bytes, so that one long line costs no more than many short ones.
const PIECE: usize = 2048;
/// Bytes around the best piece to fill the snippet from.
const MARGIN: usize = 512;
/// More words of a query are not marked.
const MAX_WORDS: usize = 32;
/// Bytes of a text that are searched for similar words.
const NEARLY_BYTES: usize = 256 << 10;

/// About `max_chars` characters around the best match of a query's words, marks not counted; the text's beginning where
/// nothing matches. Line breaks become spaces.
pub fn snippet(text: &str, query: &str, max_chars: usize) -> String {
    around_best(text, query, max_chars, [OPEN, CLOSE])
}

/// Like [`snippet`], without marks.
pub fn excerpt(text: &str, query: &str, max_chars: usize) -> String {
    around_best(text, query, max_chars, [""; 2])
}

fn around_best(text: &str, query: &str, max_chars: usize, marks: [&str; 2]) -> String {
    let words = words_of(query);
    let region = with_margin(text, best_piece(text, &words));
    let cut_before = !text[..region.start].trim().is_empty();
    let cut_after = !text[region.end..].trim().is_empty();
    let line = GraphemeLine::new(&text[region]);
    let hits = line.hits(&words);
    line.show(&line.window(&hits, max_chars, cut_before, cut_after), &hits, marks, cut_before, cut_after)
}

/// The line of a text that has most of a query's words, or a part of it where it is very long; the first of several.
pub fn best_line(text: &str, query: &str) -> Range<usize> {
    best_piece(text, &words_of(query))
}

/// Whether a text has any of a query's words, in the way [`snippet`] marks them.
pub fn has_match(text: &str, query: &str) -> bool {
    let words = words_of(query);
    let region = with_margin(text, best_piece(text, &words));
    !GraphemeLine::new(&text[region]).hits(&words).is_empty()
}

/// The words of a query, folded, each once.
fn words_of(query: &str) -> Vec<String> {
    let folded: String = query.graphemes(true).map(fold).collect();
    let mut words: Vec<String> = Vec::new();
    for word in folded.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()) {
        if words.len() < MAX_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// A grapheme as it is compared.
fn fold(grapheme: &str) -> String {
    if grapheme.is_ascii() {
        return grapheme.to_ascii_lowercase();
    }
    // The vowels and the lengthening of Arabic are written or not.
    let is_read = |c: &char| !is_ignored(*c) && !matches!(c, '\u{640}' | '\u{64b}'..='\u{652}' | '\u{670}');
    let lower = grapheme.chars().filter(is_read).nfkc().flat_map(char::to_lowercase);
    lower.map(one_sigma).collect()
}

/// A folded word without its accents.
fn plain(word: &str) -> String {
    let bare = word.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>();
    bare.replace('ß', "ss")
}

/// Whether a word of a text is nearly one of the query: the same but for accents, its ending, or a typing error or two.
fn is_nearly(word: &str, of_text: &str) -> bool {
    let (word, of_text) = (plain(word), plain(of_text));
    let count = word.chars().count();
    let most_errors = if count < 4 { 0 } else { 1 + usize::from(count > 7) };
    count >= 3 && of_text.starts_with(stem(&word)) || edit_distance(&word, &of_text, most_errors).is_some()
}

/// Letters, digits, marks and pictures; not what separates words.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace() && !is_punctuation(c))
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{a9}' | '\u{ab}'..='\u{b4}' | '\u{b6}'..='\u{b9}' | '\u{bb}'..='\u{bf}' | '×' | '÷'
        | '\u{2000}'..='\u{206f}' | '\u{2190}'..='\u{22ff}' | '\u{2e00}'..='\u{2e7f}' | '\u{3000}'..='\u{3004}'
        | '\u{3008}'..='\u{3020}' | '\u{30fb}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{60c}' | '\u{61b}' | '\u{61f}')
}

/// Scripts written without spaces, in which a word is any stretch of characters.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The piece of a text that has most of the words; the first of several.
fn best_piece(text: &str, words: &[String]) -> Range<usize> {
    let has = |folded: &str, word: &str| folded.contains(word) || folded.contains(stem(word));
    let (count, piece) = piece_with_most(text, words, has);
    if count > 0 {
        return piece;
    }
    let has_nearly = |folded: &str, word: &str| folded.split(|c| !is_word(c)).any(|of_text| is_nearly(word, of_text));
    piece_with_most(&text[..text.floor_char_boundary(NEARLY_BYTES)], words, has_nearly).1
}

fn piece_with_most(text: &str, words: &[String], has: impl Fn(&str, &str) -> bool) -> (usize, Range<usize>) {
    let mut best: Option<(usize, Range<usize>)> = None;
    for piece in pieces(text) {
        let part = &text[piece.clone()];
        if part.trim().is_empty() {
            continue;
        }
        let folded: String =
            if part.is_ascii() { part.to_ascii_lowercase() } else { part.graphemes(true).map(fold).collect() };
        let count = words.iter().filter(|word| has(&folded, word)).count();
        if best.as_ref().is_none_or(|(most, _)| count > *most) {
            best = Some((count, piece));
            if count == words.len() {
                break;
            }
        }
    }
    best.unwrap_or_default()
}

fn with_margin(text: &str, piece: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(piece.start.saturating_sub(MARGIN));
    start..text.ceil_char_boundary(piece.end.saturating_add(MARGIN))
}

/// Lines, and parts of very long ones.
fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= text.len() {
            return None;
        }
        let most = text.ceil_char_boundary(from + PIECE);
        let end = text[from..most].find('\n').map_or(most, |at| from + at + 1);
        let piece = from..end;
        from = end;
        Some(piece)
    })
}

/// The beginning that a word shares with its other forms, roughly.
fn stem(word: &str) -> &str {
    let count = word.chars().count();
    if count < 5 || word.contains(is_unspaced) {
        return word;
    }
    let kept = count - (count / 3).min(3);
    word.char_indices().nth(kept).map_or(word, |(at, _)| &word[..at])
}

/// A text as graphemes, whitespace drawn together.
struct GraphemeLine<'t> {
    shown: Vec<&'t str>,
    folded: String,
    /// Where each grapheme starts in `folded`, and where the last one ends.
    starts: Vec<usize>,
}

/// A stretch of graphemes to be marked, and which word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MarkedRange {
    start: usize,
    end: usize,
    word: usize,
}

impl<'t> GraphemeLine<'t> {
    fn new(text: &'t str) -> Self {
        let mut line = Self { shown: Vec::new(), folded: String::new(), starts: Vec::new() };
        for grapheme in text.trim().graphemes(true) {
            let is_space = grapheme.chars().all(char::is_whitespace);
            if is_space && line.shown.last() == Some(&" ") {
                continue;
            }
            line.starts.push(line.folded.len());
            let shown = if is_space { " " } else { grapheme };
            line.shown.push(shown);
            line.folded.push_str(&fold(shown));
        }
        line.starts.push(line.folded.len());
        line
    }

    /// Where the words stand, in order; no two overlap.
    fn hits(&self, words: &[String]) -> Vec<MarkedRange> {
        let mut all: Vec<MarkedRange> = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let mut found = self.find(word, number, true);
            if found.is_empty() {
                found = self.find(word, number, false);
            }
            if found.is_empty() && stem(word) != word {
                found = self.find(stem(word), number, true).into_iter().map(|hit| self.whole_word(hit)).collect();
            }
            if found.is_empty() && word.contains(is_unspaced) {
                let chars: Vec<char> = word.chars().collect();
                let pairs = chars.windows(2).map(|pair| pair.iter().collect::<String>());
                found = pairs.flat_map(|pair| self.find(&pair, number, false)).collect();
            }
            all.extend(found);
        }
        if all.is_empty() {
            all = self.nearly(words);
        }
        all.sort();
        let mut kept: Vec<MarkedRange> = Vec::new();
        for hit in all {
            match kept.last_mut() {
                Some(last) if hit.start < last.end => last.end = last.end.max(hit.end),
                _ => kept.push(hit),
            }
        }
        kept
    }

    /// Where a folded text stands: at the beginning of a word only, or anywhere.
    fn find(&self, folded: &str, word: usize, at_word: bool) -> Vec<MarkedRange> {
        let hit = |(at, _): (usize, &str)| {
            let start = self.starts.binary_search(&at).ok()?;
            // A skin tone or an accent of its own goes with what it is on.
            let end = self.starts.partition_point(|start| *start < at + folded.len());
            let before = self.folded[..at].chars().next_back();
            let after = self.folded[at + folded.len()..].chars().next();
            let joins = |c: Option<char>| c.is_some_and(|c| is_word(c) && !is_unspaced(c));
            let stands_alone = folded.contains(is_unspaced) || !(joins(before) || joins(after) && folded.len() < 3);
            (start < end && (stands_alone || !at_word)).then_some(MarkedRange { start, end, word })
        };
        self.folded.match_indices(folded).filter_map(hit).collect()
    }

    /// Where words stand that are nearly those of the query.
    fn nearly(&self, words: &[String]) -> Vec<MarkedRange> {
        let is_in_word: Vec<bool> = self.shown.iter().map(|grapheme| grapheme.chars().all(is_word)).collect();
        let mut hits = Vec::new();
        let mut end = 0;
        for stretch in is_in_word.chunk_by(|a, b| a == b) {
            let start = end;
            end += stretch.len();
            let of_text = &self.folded[self.starts[start]..self.starts[end]];
            let word = words.iter().position(|word| stretch[0] && is_nearly(word, of_text));
            hits.extend(word.map(|word| MarkedRange { start, end, word }));
        }
        hits
    }

    fn whole_word(&self, hit: MarkedRange) -> MarkedRange {
        let goes_on = |at: &usize| self.shown[*at].chars().all(is_word);
        let end = (hit.end..self.shown.len()).take_while(goes_on).last().map_or(hit.end, |last| last + 1);
        MarkedRange { end, ..hit }
    }

    fn chars(&self, range: Range<usize>) -> usize {
        self.shown[range].iter().map(|grapheme| grapheme.chars().count()).sum()
    }

    /// The graphemes to show: the stretch with most different words, with what fits around it.
    fn window(&self, hits: &[MarkedRange], max_chars: usize, cut_before: bool, cut_after: bool) -> Range<usize> {
        if !cut_before && !cut_after && self.chars(0..self.shown.len()) <= max_chars {
            return 0..self.shown.len();
        }
        let room = max_chars.saturating_sub(2);
        let mut best: Option<(usize, usize, Range<usize>)> = None;
        for (first, hit) in hits.iter().enumerate() {
            let fitting = hits[first..].iter().take_while(|last| self.chars(hit.start..last.end) <= room);
            let (mut seen, mut count, mut end) = (Vec::new(), 0, hit.start);
            for last in fitting {
                count += 1;
                end = last.end;
                if !seen.contains(&last.word) {
                    seen.push(last.word);
                }
            }
            if best.as_ref().is_none_or(|(words, hits, _)| (seen.len(), count) > (*words, *hits)) {
                best = Some((seen.len(), count, hit.start..end));
            }
        }
        let core = best.map_or(0..0, |(_, _, core)| core);
        // A match that does not fit is shown by its beginning.
        let mut end = core.end.max(core.start);
        let mut left = room - self.chars(core.start..end).min(room);
        let mut start = core.start;
        let lead = left / 3;
        let mut led = 0;
        while start > 0 && led + self.shown[start - 1].chars().count() <= lead {
            start -= 1;
            led += self.shown[start].chars().count();
        }
        // Not in the middle of a word, where there are words.
        let at_word = |start: usize| {
            let is_whole = if start == 0 { !cut_before } else { self.shown[start - 1] == " " };
            let space = (start..core.start).find(|at| !is_whole && self.shown[*at] == " ");
            space.map_or(start, |space| space + 1)
        };
        led -= self.chars(start..at_word(start));
        start = at_word(start);
        left -= led;
        while end < self.shown.len() && self.shown[end].chars().count() <= left {
            left -= self.shown[end].chars().count();
            end += 1;
        }
        if end == self.shown.len() && !cut_after {
            // The end is reached: what is left goes to the front.
            while start > 0 && self.shown[start - 1].chars().count() <= left {
                start -= 1;
                left -= self.shown[start].chars().count();
            }
            start = at_word(start);
        }
        start..end
    }

    fn show(
        &self,
        window: &Range<usize>,
        hits: &[MarkedRange],
        [open, close]: [&str; 2],
        cut_before: bool,
        cut_after: bool,
    ) -> String {
        let mut shown = String::new();
        if window.start > 0 || cut_before {
            shown.push_str(ELLIPSIS);
        }
        let mut at = window.start;
        for hit in hits.iter().filter(|hit| hit.start >= window.start && hit.end <= window.end) {
            shown.extend(self.shown[at..hit.start].iter().copied());
            shown.push_str(open);
            shown.extend(self.shown[hit.start..hit.end].iter().copied());
            shown.push_str(close);
            at = hit.end;
        }
        shown.extend(self.shown[at..window.end].iter().copied());
        if window.end < self.shown.len() || cut_after {
            shown.truncate(shown.trim_end().len());
            shown.push_str(ELLIPSIS);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_words_are_marked_in_any_script_and_form() {
        for (text, query, expected) in [
            ("The cups froze at night.", "FROZE cups", "The <mark>cups</mark> <mark>froze</mark> at night."),
            ("全文検索の設計を説明する。", "検索", "全文<mark>検索</mark>の設計を説明する。"),
            ("設計", "設", "<mark>設</mark>計"),
            ("Cafe\u{301} olé", "café", "<mark>Cafe\u{301}</mark> olé"),
            ("caf\u{e9}", "CAFE\u{301}", "<mark>caf\u{e9}</mark>"),
            ("ﾃﾞｰﾀ", "データ", "<mark>ﾃﾞｰﾀ</mark>"),
            ("ภาษาไทยง่าย", "ไทย", "ภาษา<mark>ไทย</mark>ง่าย"),
            ("مرحبا بالعالم", "بالعالم", "مرحبا <mark>بالعالم</mark>"),
            ("a 👨‍👩‍👧 family", "👨‍👩‍👧", "a <mark>👨‍👩‍👧</mark> family"),
            ("parse getUserName here", "user", "parse get<mark>User</mark>Name here"),
            ("concatenate a cat", "cat", "concatenate a <mark>cat</mark>"),
            ("it was indexing", "indexed", "it was <mark>indexing</mark>"),
            ("قال السَّلامُ عليكم", "السلام", "قال <mark>السَّلامُ</mark> عليكم"),
            ("ok 👍🏽 then", "👍", "ok <mark>👍🏽</mark> then"),
            ("the Fußball match", "fussball", "the <mark>Fußball</mark> match"),
            ("zwei Häuser am See", "haus", "zwei <mark>Häuser</mark> am See"),
            ("in Zürich", "zurich", "in <mark>Zürich</mark>"),
            ("ловил рыбу", "рыба", "ловил <mark>рыбу</mark>"),
            ("two universities", "unversities", "two <mark>universities</mark>"),
            ("a book on rice", "cook rice", "a book on <mark>rice</mark>"),
            ("nothing of it", "absent", "nothing of it"),
            ("two\n\n  lines", "lines", "two <mark>lines</mark>"),
            ("", "x", ""),
        ] {
            assert_eq!(snippet(text, query, 64), expected, "{query:?} in {text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_around_the_best_place() {
        let text = format!("alpha {} alpha beta gamma {}", "filler ".repeat(300), "tail ".repeat(300));
        let shown = snippet(&text, "beta alpha", 64);
        assert!(shown.contains("<mark>alpha</mark> <mark>beta</mark> gamma"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        let japanese = format!("{}検索{}", "あ".repeat(5000), "い".repeat(5000));
        let shown = snippet(&japanese, "検索", 64);
        assert!(shown.contains("あ<mark>検索</mark>い"), "{shown}");
        assert_eq!(shown.replace(OPEN, "").replace(CLOSE, "").chars().count(), 64);
    }

    proptest! {
        #[test]
        fn snippet_is_a_part_of_any_text(
            text in "[a-c検索 \n.é\u{301}👨\u{200d}👩ไท\u{e34}\\PC]{0,300}",
            query in "[a-c検索é\u{301} 👨]{0,8}",
        ) {
            let shown = snippet(&text, &query, 64);
            let plain = shown.replace(OPEN, "").replace(CLOSE, "");
            prop_assert!(plain.chars().count() <= 64, "{plain:?}");
            prop_assert_eq!(shown.matches(OPEN).count(), shown.matches(CLOSE).count());
            let inner = plain.trim_start_matches('…').trim_end_matches('…');
            let squeezed = GraphemeLine::new(&text).shown.concat();
            prop_assert!(squeezed.contains(inner.trim_matches('…')), "{inner:?} in {squeezed:?}");
        }

        #[test]
        fn contained_word_is_marked(before in "[x-z ]{0,200}", after in "[x-z ]{0,200}") {
            let shown = snippet(&format!("{before} needle {after}"), "Needle", 64);
            prop_assert!(shown.contains("<mark>needle</mark>"), "{shown:?}");
        }
    }
}
