//! The running text of a note, without its Markdown, and its sentences.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a note that are read. A summary of more would take long, and a book is not a note.
const MAX_BYTES: usize = 200 << 10;

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
    let lines = plain.lines().flat_map(|line| line.split_sentence_bounds()).map(str::trim);
    let mut sentences: Vec<&str> = Vec::new();
    for sentence in lines.flat_map(cjk_sentences) {
        let letters = sentence.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
        if letters >= LEAST && sentence.chars().any(char::is_alphabetic) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Splits after the full stops of Chinese and Japanese, which the general rules leave together in some cases.
fn cjk_sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['。', '！', '？']).map(str::trim)
}

#[cfg(test)]
mod tests {
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
}
