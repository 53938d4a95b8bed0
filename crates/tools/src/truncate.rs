//! Cuts texts to the lengths that answers allow.
//!
//! Lengths are Unicode scalar values and include the suffix. A cut moves back to a grapheme boundary, so that no
//! accent, flag or emoji is split.

use unicode_segmentation::GraphemeCursor;

/// The text of one note read by id.
pub(crate) const ONE_NOTE: usize = 10_000;
/// The text of a note in a list.
pub(crate) const LISTED: usize = 500;
/// The text of a neighbour of the note that was read.
pub(crate) const NEIGHBOUR: usize = 200;

/// One warning.
pub(crate) const MAX_WARNING: usize = 1000;

/// A given value in an error message.
const ECHOED: usize = 200;

/// A title, heading or tag: longer than any file name.
const NAME: usize = 300;

const SUFFIX: &str = "... [truncated]";

/// The text, or its beginning with a suffix: at most `max_chars` characters. There is no suffix where it does not fit.
pub fn truncate(text: &str, max_chars: usize) -> String {
    if text.char_indices().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let suffix = if max_chars < SUFFIX.len() { "" } else { SUFFIX };
    format!("{}{suffix}", beginning(text, max_chars - suffix.len()))
}

/// A title, heading or tag of a note, as every answer shows it.
pub(crate) fn cut_name(name: &str) -> String {
    truncate(name, NAME)
}

/// The part of a text that [`truncate`] keeps.
pub(crate) fn kept(text: &str, max_chars: usize) -> &str {
    if text.char_indices().nth(max_chars).is_none() {
        return text;
    }
    beginning(text, if max_chars < SUFFIX.len() { max_chars } else { max_chars - SUFFIX.len() })
}

/// At most this many characters from the beginning of a text, without a split grapheme.
pub(crate) fn beginning(text: &str, max_chars: usize) -> &str {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => &text[..grapheme_edge(text, at)],
        None => text,
    }
}

/// A given value for an error message: its beginning if it is long.
pub fn echoed(given: &str) -> String {
    truncate(given, ECHOED)
}

/// The last grapheme boundary at or before a character boundary.
fn grapheme_edge(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        // The cursor has the whole text, so it never fails for lack of context.
        _ => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    #[test]
    fn a_text_that_fits_is_unchanged() {
        assert_eq!(truncate("exactly twenty chars", 20), "exactly twenty chars");
        assert_eq!(truncate(&"é".repeat(500), LISTED), "é".repeat(500));
    }

    #[test]
    fn the_limit_counts_the_suffix() {
        let cut = truncate(&"é".repeat(501), LISTED);
        assert_eq!(cut.chars().count(), 500);
        assert_eq!(cut, format!("{}... [truncated]", "é".repeat(485)));
        assert_eq!(truncate("more than fits", 4), "more", "there is no room for the suffix");
    }

    #[test]
    fn a_cut_never_splits_a_grapheme() {
        let family = "👨‍👩‍👧";
        assert_eq!(truncate(&family.repeat(20), 18), "... [truncated]", "five characters do not fit in three");
        assert_eq!(truncate(&family.repeat(20), 20), format!("{family}... [truncated]"));
        assert_eq!(truncate(&"e\u{301}".repeat(20), 18), "e\u{301}... [truncated]");
        assert_eq!(truncate(&"🇯🇵".repeat(20), 20), "🇯🇵🇯🇵... [truncated]");
        assert_eq!(truncate(&"\r\n".repeat(20), 18), "\r\n... [truncated]");
    }

    proptest! {
        #[test]
        fn the_limit_holds_for_any_text(text in "\\PC{0,80}", max in 0..60_usize) {
            let cut = truncate(&text, max);
            prop_assert!(cut.chars().count() <= max);
            let kept = cut.strip_suffix(SUFFIX).unwrap_or(&cut);
            prop_assert!(text.starts_with(kept));
            prop_assert!(cut == text || text.grapheme_indices(true).any(|(at, _)| at == kept.len()));
        }
    }
}
