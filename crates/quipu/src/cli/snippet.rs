//! The line of a section that shows best why it was found.

use std::ops::Range;

use quipu_core::model::fold;
use unicode_segmentation::UnicodeSegmentation;

/// Graphemes of a line that are shown.
const WIDTH: usize = 110;

/// The number, from 1, and the text of the line with most of the query's words: the first of them, else the first that
/// is not blank. A long line is cut around the first word.
pub(crate) fn snippet(text: &str, section: Range<usize>, query: &str) -> (usize, String) {
    let words: Vec<String> = query.split_whitespace().map(fold).collect();
    let first_number = text[..section.start].matches('\n').count() + 1;
    let mut best: Option<(usize, usize, &str)> = None;
    for (number, line) in (first_number..).zip(text[section].lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let folded = fold(line);
        let hits = words.iter().filter(|word| folded.contains(word.as_str())).count();
        if best.is_none_or(|(most, ..)| hits > most) {
            best = Some((hits, number, line));
        }
    }
    match best {
        Some((_, number, line)) => (number, cut_around(line.trim(), &words)),
        None => (first_number, String::new()),
    }
}

fn cut_around(line: &str, words: &[String]) -> String {
    let graphemes: Vec<&str> = line.graphemes(true).collect();
    if graphemes.len() <= WIDTH {
        return line.to_owned();
    }
    let starts_word = |at: usize| {
        let rest = fold(&graphemes[at..graphemes.len().min(at + WIDTH)].concat());
        words.iter().any(|word| rest.starts_with(word.as_str()))
    };
    let found = (0..graphemes.len()).find(|at| starts_word(*at)).unwrap_or(0);
    let start = found.saturating_sub(WIDTH / 3).min(graphemes.len() - WIDTH);
    let end = start + WIDTH;
    let before = if start > 0 { "…" } else { "" };
    let after = if end < graphemes.len() { "…" } else { "" };
    format!("{before}{}{after}", graphemes[start..end].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_most_words_speaks_for_its_section() {
        let text = "## Ice\n\nThe vane moves.\nThe CUPS froze at night.\nThe cups are cups.\n";
        assert_eq!(snippet(text, 7..text.len(), "cups froze"), (4, "The CUPS froze at night.".into()));
        assert_eq!(snippet(text, 7..text.len(), "absent"), (3, "The vane moves.".into()));
        assert_eq!(snippet(text, 7..7, "cups"), (2, String::new()));
    }

    #[test]
    fn a_long_line_is_cut_around_the_word_and_never_inside_a_grapheme() {
        let line = format!("{}霜 {}", "e\u{301}".repeat(200), "👨‍👩‍👧".repeat(200));
        let (_, cut) = snippet(&line, 0..line.len(), "霜");
        assert!(cut.starts_with("…e\u{301}") && cut.ends_with("👨‍👩‍👧…") && cut.contains('霜'), "{cut}");
        assert_eq!(cut.graphemes(true).count(), WIDTH + 2);
    }
}
