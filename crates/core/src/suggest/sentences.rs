//! The running text of a note, without its Markdown, and its sentences.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a note that are read. A summary of more would take long, and a book is not a note.
const MAX_BYTES: usize = 200 << 10;

/// Characters of a sentence; a longer one is cut. To find the end of a sentence, the rules look ahead from each character, possibly to
/// the end of the text they get, so that the whole of a long line would take time by the square of its length.
const MAX_SENTENCE: usize = 512;

/// The paragraphs and list items of a text, one a line: no code blocks, tables, headings, HTML or link targets.
pub fn plain_text(body: &str) -> String {
    running_text(body, true)
}

/// Like [`plain_text`], with or without code between backticks.
pub(super) fn running_text(body: &str, with_code: bool) -> String {
    let body = &body[..body.floor_char_boundary(MAX_BYTES)];
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    let options = options | Options::ENABLE_TASKLISTS | Options::ENABLE_WIKILINKS | Options::ENABLE_MATH;
    let mut plain = String::with_capacity(body.len());
    // How many of the open blocks are not running text.
    let mut skipped = 0_usize;
    for event in Parser::new_ext(body, options) {
        match event {
            Event::Start(
                Tag::CodeBlock(_) | Tag::Heading { .. } | Tag::Table(_) | Tag::Image { .. } | Tag::HtmlBlock,
            ) => {
                skipped += 1;
            }
            Event::End(TagEnd::CodeBlock | TagEnd::Heading(_) | TagEnd::Table | TagEnd::Image | TagEnd::HtmlBlock) => {
                skipped = skipped.saturating_sub(1);
            }
            Event::Start(Tag::Item) | Event::End(TagEnd::Paragraph | TagEnd::Item) if !plain.ends_with('\n') => {
                plain.push('\n');
            }
            // A separator: the words around it are not one name.
            Event::Code(_) if skipped == 0 && !with_code => plain.push_str(" ; "),
            Event::Text(text) | Event::Code(text) if skipped == 0 => plain.push_str(&text),
            Event::SoftBreak | Event::HardBreak if skipped == 0 => plain.push(' '),
            _ => {}
        }
    }
    plain
}

/// The sentences of a plain text. A line break ends a sentence too.
pub fn sentences(plain: &str) -> Vec<&str> {
    // Fewer letters say nothing by themselves: "See also:", "1.".
    const LEAST: usize = 12;
    let lines = plain.lines().flat_map(split_line).map(str::trim);
    let mut sentences: Vec<&str> = Vec::new();
    for sentence in lines.flat_map(cjk_sentences) {
        let letters = sentence.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
        if letters >= LEAST && sentence.chars().any(char::is_alphabetic) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Splits a line into its sentences; one that is too long is cut at a space if it has one in its second half.
fn split_line(line: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), line);
    while let Some((end, _)) = rest.char_indices().nth(MAX_SENTENCE) {
        found.extend(rest[..end].split_sentence_bounds());
        // The last one may go on behind this piece.
        let last = found.pop().unwrap_or_default();
        let mut after = end - last.len();
        if after == 0 {
            after = last.rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
            found.push(&rest[..after]);
        }
        rest = &rest[after..];
    }
    found.extend(rest.split_sentence_bounds());
    found
}

/// Splits after the full stops of Chinese and Japanese, which the general rules leave together in some cases.
fn cjk_sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['。', '！', '？']).map(str::trim)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn markdown_is_removed() {
        let body = "# Title\n\nA **bold** [link](x.md) and [[note|label]].\n\n- item `code`\n\n```\nlet x;\n```\n\n|a|\n|-|\n|b|\n";
        assert_eq!(plain_text(body), "A bold link and label.\nitem code\n");
    }

    #[test]
    fn sentences_end_at_stops_and_lines() {
        let text =
            "The first sentence. The second one!\nA third without a stop\n放射よけは白い箱です。通風がよい。\nNo.";
        let expected = [
            "The first sentence.",
            "The second one!",
            "A third without a stop",
            "放射よけは白い箱です。",
            "通風がよい。",
        ];
        assert_eq!(sentences(text), expected);
    }

    #[test]
    fn sentences_of_a_long_line_are_whole_up_to_the_limit() {
        let line = "The station measures rain and wind. Does it, e.g. in 1999, freeze? ".repeat(100);
        let direct: Vec<&str> = line.split_sentence_bounds().map(str::trim).collect();
        assert_eq!(sentences(&line), direct);
        let endless = "word ".repeat(1_000);
        let cut = sentences(&endless);
        assert!(cut.len() < 25 && cut.iter().all(|part| part.chars().count() <= MAX_SENTENCE), "{}", cut.len());
        assert_eq!(cut.join(" "), endless.trim_end());
        assert_eq!(sentences(&"雨".repeat(1_200)).concat(), "雨".repeat(1_200));
    }

    #[test]
    fn time_for_a_line_without_an_end_of_a_sentence_is_linear() {
        for behind in [")", " ", ") ", "1", "A ab.)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))"] {
            let line = format!("A ab.{}", behind.repeat(100_000 / behind.len()));
            let started = Instant::now();
            sentences(&line);
            // More than a minute if it is quadratic.
            assert!(started.elapsed() < Duration::from_secs(6), "{behind:?}: {:?}", started.elapsed());
        }
    }
}
