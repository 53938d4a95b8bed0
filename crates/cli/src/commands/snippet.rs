//! The line of a section that best matches a query.

use std::ops::Range;

use quipu_core::search::{best_line, excerpt};

/// Characters of a line that are shown.
const WIDTH: usize = 110;

/// Number, from 1, and text of the first line with most of the query's words, else of the first line that is not blank.
/// A long line is cut around the words.
pub(crate) fn snippet(text: &str, section: Range<usize>, query: &str) -> (usize, String) {
    let line = best_line(&text[section.clone()], query);
    let (start, end) = (section.start + line.start, section.start + line.end);
    (text[..start].matches('\n').count() + 1, excerpt(&text[start..end], query, WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_most_words_is_the_snippet() {
        let text = "## Ice\n\nThe vane moves.\nThe CUPS froze at night.\nThe cups are cups.\n";
        assert_eq!(snippet(text, 7..text.len(), "cups froze"), (4, "The CUPS froze at night.".into()));
        assert_eq!(snippet(text, 7..text.len(), "freezing nights"), (4, "The CUPS froze at night.".into()));
        assert_eq!(snippet(text, 7..text.len(), "absent"), (3, "The vane moves.".into()));
        assert_eq!(snippet(text, 7..7, "cups"), (2, String::new()));
    }

    #[test]
    fn a_long_line_is_cut_around_the_word_and_never_inside_a_grapheme() {
        let line = format!("{}霜 {}", "e\u{301}".repeat(200), "👨‍👩‍👧".repeat(200));
        let (_, cut) = snippet(&line, 0..line.len(), "霜");
        assert!(cut.starts_with("…e\u{301}") && cut.ends_with("👨‍👩‍👧…") && cut.contains('霜'), "{cut}");
        assert!(cut.chars().count() <= WIDTH, "{cut}");
    }
}
