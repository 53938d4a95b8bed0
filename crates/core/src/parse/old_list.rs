//! The lines of a YAML list that is rewritten, with the item and the comment of each, so that no comment is lost.

use std::ops::Range;

use super::frontmatter::{Block, newline};
use super::frontmatter_lines::{EntryLines, line_end, says_tag};
use super::scalar::{self, QuoteStyle, resolve_plain};
use super::yaml::{ScalarSite, YamlEntry};
use crate::model::Value;

/// A list before the edit.
pub(super) struct OldList {
    lines: Vec<ListLine>,
}

/// How an item that stays is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemBytes {
    /// As before.
    Kept,
    /// So that it reads as text.
    AsText,
}

struct ListLine {
    /// The line with its line break.
    range: Range<usize>,
    /// The scalar of `- item`, and its range.
    item: Option<(ScalarSite, Range<usize>)>,
    /// From its `#` to the end of the line.
    comment: Option<Range<usize>>,
}

impl OldList {
    /// Reads the lines of an entry's value, from the line on which the value starts.
    pub(super) fn read(text: &[u8], block: &Block, lines: &EntryLines, entry: &YamlEntry) -> Self {
        let offset = block.yaml.start;
        let scalars: Vec<(&ScalarSite, Range<usize>)> = entry
            .scalars
            .iter()
            .map(|scalar| (scalar, offset + scalar.range.start..offset + scalar.range.end))
            .collect();
        let mut read = Self { lines: Vec::new() };
        let mut start = lines.value.start;
        if lines.value.is_empty() {
            return read;
        }
        let line_start = text[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if text[line_start..start].iter().all(|byte| *byte == b' ') {
            start = line_start;
        }
        // The rest of the value's last line is kept by the caller, which writes the line of the key.
        let end = if start == line_start { lines.end } else { lines.value.end };
        while start < end {
            let (line_end, next) = line_end(text, start);
            let (line_end, next) = (line_end.min(end), next.min(end));
            let mut here = scalars.iter().filter(|(_, range)| range.start < line_end && range.end > start);
            let item = match (here.next(), here.next()) {
                (Some((scalar, range)), None) if range.start >= start && range.end <= line_end => {
                    let is_item = text[start..range.start].trim_ascii() == b"-";
                    is_item.then(|| ((*scalar).clone(), range.clone()))
                }
                _ => None,
            };
            let is_in_scalar = |at: usize| scalars.iter().any(|(_, range)| range.contains(&at));
            let begins = |at: &usize| {
                text[*at] == b'#' && !is_in_scalar(*at) && (*at == start || text[at - 1].is_ascii_whitespace())
            };
            let comment = (start..line_end).find(begins).map(|at| at..line_end);
            read.lines.push(ListLine { range: start..next, item, comment });
            start = next;
        }
        read
    }

    /// All comments, each on its own line.
    pub(super) fn comment_lines(&self, indent: usize, text: &[u8]) -> String {
        self.lines.iter().map(|line| line.comment_line(indent, text)).collect()
    }

    /// The lines for the new items; lines of unchanged items are kept.
    pub(super) fn with_items(&self, (items, bytes): (&[String], ItemBytes), indent: usize, text: &[u8]) -> Vec<u8> {
        let (margin, newline) = (" ".repeat(indent), newline(text));
        let mut written = Vec::new();
        let mut rest = self.lines.as_slice();
        for item in items {
            let Some(at) = rest.iter().position(|line| line.says(item)) else {
                let line = format!("{margin}- {}{newline}", scalar::write(item, QuoteStyle::Plain, false));
                written.extend_from_slice(line.as_bytes());
                continue;
            };
            let (passed, line) = (&rest[..at], &rest[at]);
            passed.iter().for_each(|line| written.extend_from_slice(&line.without_item(indent, text)));
            match bytes {
                ItemBytes::Kept => written.extend_from_slice(&text[line.range.clone()]),
                ItemBytes::AsText => written.extend_from_slice(&line.with_item(item, text)),
            }
            rest = &rest[at + 1..];
        }
        rest.iter().for_each(|line| written.extend_from_slice(&line.without_item(indent, text)));
        written
    }
}

impl ListLine {
    /// Whether its item is this one.
    fn says(&self, item: &str) -> bool {
        self.item.as_ref().is_some_and(|(scalar, _)| says_tag(scalar, item))
    }

    /// The line with its item as text.
    fn with_item(&self, item: &str, text: &[u8]) -> Vec<u8> {
        let line = text[self.range.clone()].to_vec();
        let Some((scalar, range)) = &self.item else { return line };
        let is_text =
            scalar.style != QuoteStyle::Plain || resolve_plain(&scalar.text) == Value::Text(scalar.text.clone());
        if is_text && scalar.text == item {
            return line;
        }
        let written = scalar::write(item, scalar.style, false);
        [&text[self.range.start..range.start], written.as_bytes(), &text[range.end..self.range.end]].concat()
    }

    /// The rest of the line without its item: a comment, or a line that had no item.
    fn without_item(&self, indent: usize, text: &[u8]) -> Vec<u8> {
        let line = &text[self.range.clone()];
        let is_blank = line.trim_ascii().is_empty();
        let is_comment = line.trim_ascii_start().starts_with(b"#");
        if is_blank || is_comment { line.to_vec() } else { self.comment_line(indent, text).into_bytes() }
    }

    fn comment_line(&self, indent: usize, text: &[u8]) -> String {
        let comment = self.comment.clone().map(|comment| String::from_utf8_lossy(&text[comment]).into_owned());
        comment.map_or_else(String::new, |comment| format!("{}{comment}{}", " ".repeat(indent), newline(text)))
    }
}
