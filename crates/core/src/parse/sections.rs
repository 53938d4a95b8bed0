//! Splits a body into sections at its top-level H2 and H3 headings, never inside a code fence, a quote or a list.

use super::markdown::ParsedHeading;
use crate::model::Section;

/// Splits the body that starts at `body_start`. The first section is the preamble, even if empty.
pub(super) fn split(text: &str, body_start: usize, headings: Vec<ParsedHeading>) -> Vec<Section> {
    let body = &text[body_start..];
    let mut sections = vec![Section { heading: None, level: 0, range: body_start..text.len(), text_start: body_start }];
    for heading in headings.into_iter().filter(|heading| matches!(heading.level, 2 | 3)) {
        let start = body_start + line_start(body, heading.range.start);
        if let Some(previous) = sections.last_mut() {
            previous.range.end = start;
        }
        sections.push(Section {
            heading: Some(heading.text),
            level: heading.level,
            range: start..text.len(),
            text_start: body_start + next_line(body, heading.range.end),
        });
    }
    sections
}

/// A heading may be indented by up to three spaces.
pub(super) fn line_start(body: &str, at: usize) -> usize {
    body[..at].trim_end_matches([' ', '\t']).len()
}

/// The position after the line break of a heading, which the parser's range may include.
fn next_line(body: &str, end: usize) -> usize {
    if body[..end].ends_with(['\n', '\r']) && !body[end..].starts_with('\n') {
        return end;
    }
    let Some(at) = memchr::memchr2(b'\n', b'\r', &body.as_bytes()[end..]).map(|at| end + at) else {
        return body.len();
    };
    if body[at..].starts_with("\r\n") { at + 2 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    /// Each section as `level|heading|text below the heading`.
    fn check(text: &str, expected: &[&str]) {
        let parsed = parse(text);
        let shown: Vec<_> = parsed
            .sections
            .iter()
            .map(|section| {
                let heading = section.heading.as_deref().unwrap_or("-");
                format!("{}|{heading}|{}", section.level, &text[section.text_start..section.range.end])
            })
            .collect();
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn sections_start_at_second_and_third_level_headings() {
        check("", &["0|-|"]);
        check("text", &["0|-|text"]);
        check("## A", &["0|-|", "2|A|"]);
        check("# T\nx\n## A\na\n### B\nb\n#### C\nc", &["0|-|# T\nx\n", "2|A|a\n", "3|B|b\n#### C\nc"]);
        check("x\n\nA\n---\na\n", &["0|-|x\n\n", "2|A|a\n"]);
        check("x\r\n\r\n## A ##\r\na\r\n", &["0|-|x\r\n\r\n", "2|A|a\r\n"]);
        check("x\n\nTwo\nlines\n---\na\n", &["0|-|x\n\n", "2|Two lines|a\n"]);
        check("  ## A\na", &["0|-|", "2|A|a"]);
        check("##\na", &["0|-|", "2||a"]);
        check("---\nt: 1\n---\n## A\na", &["0|-|", "2|A|a"]);
    }

    #[test]
    fn only_top_level_headings_start_sections() {
        check("```\n## A\n```\n", &["0|-|```\n## A\n```\n"]);
        check("> ## A\n", &["0|-|> ## A\n"]);
        check("- ## A\n", &["0|-|- ## A\n"]);
        check("<div>\n## A\n</div>\n", &["0|-|<div>\n## A\n</div>\n"]);
        check("    ## A\n", &["0|-|    ## A\n"]);
        check("~~~\n```\n~~~\n## B\n", &["0|-|~~~\n```\n~~~\n", "2|B|"]);
    }

    #[test]
    fn a_heading_is_its_visible_text() {
        check("## A *b* `c` [d](e.md) [[f|g]] $x$ \\# <b>h</b>\n", &["0|-|", "2|A b c d g x # h|"]);
    }
}
