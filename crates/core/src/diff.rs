//! The difference between two versions of a text, as a unified diff.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

/// Unchanged lines around a change. Lines of notes are whole paragraphs, so one is enough to find the place.
const CONTEXT_LINES: usize = 1;

/// The limit for finding the shortest diff. After it the diff is correct, but may be longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The unified diff of two texts, without file names; empty if they are equal.
pub fn unified_diff(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(before, after);
    diff.unified_diff().context_radius(CONTEXT_LINES).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_have_signs_and_line_numbers() {
        let before = "one\ntwo\nthree\nfour\nfive\r\nsix";
        let after = "one\ntwo\nTHREE\nfour\nfive\r\nsix\n";
        let diff = "@@ -2,5 +2,5 @@\n two\n-three\n+THREE\n four\n five\r\n-six\n\\ No newline at end of file\n+six\n";
        assert_eq!(unified_diff(before, after), diff);
        assert_eq!(unified_diff(before, before), "");
    }
}
