//! The lines of a YAML list that is rewritten, with the item and the comment of each, so that no comment is lost.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::covers;
use super::frontmatter::{Block, newline};
use super::frontmatter_lines::{EntryLines, line_end, tag_of};
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
        // In the order of the text, so that each line looks up its own.
        let in_text = |scalar: &ScalarSite| offset + scalar.range.start..offset + scalar.range.end;
        let ranges: Vec<Range<usize>> = entry.scalars.iter().map(in_text).collect();
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
            let first = ranges.partition_point(|range| range.end <= start);
            let mut here = ranges[first..].iter().take_while(|range| range.start < line_end);
            let item = match (here.next(), here.next()) {
                (Some(range), None) if range.start >= start && range.end <= line_end => {
                    let is_item = text[start..range.start].trim_ascii() == b"-";
                    is_item.then(|| (entry.scalars[first].clone(), range.clone()))
                }
                _ => None,
            };
            let begins = |at: &usize| {
                text[*at] == b'#' && !covers(&ranges, *at) && (*at == start || text[at - 1].is_ascii_whitespace())
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
        let mut lines_of_tag: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (at, line) in self.lines.iter().enumerate() {
            if let Some((scalar, _)) = &line.item {
                lines_of_tag.entry(tag_of(scalar)).or_default().push(at);
            }
        }
        let mut passed = 0;
        for item in items {
            let lines = lines_of_tag.get(item.as_str()).map(Vec::as_slice).unwrap_or_default();
            let Some(at) = lines.get(lines.partition_point(|at| *at < passed)).copied() else {
                let line = format!("{margin}- {}{newline}", scalar::write(item, QuoteStyle::Plain, false));
                written.extend_from_slice(line.as_bytes());
                continue;
            };
            let line = &self.lines[at];
            self.lines[passed..at].iter().for_each(|line| written.extend_from_slice(&line.without_item(indent, text)));
            match bytes {
                ItemBytes::Kept => written.extend_from_slice(&text[line.range.clone()]),
                ItemBytes::AsText => written.extend_from_slice(&line.with_item(item, text)),
            }
            passed = at + 1;
        }
        self.lines[passed..].iter().for_each(|line| written.extend_from_slice(&line.without_item(indent, text)));
        written
    }
}

impl ListLine {
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
