//! Rewrites the lines of a frontmatter key. `splice` verifies the result by reading it again.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::SpliceError;
use super::frontmatter::{self, Block, newline, next_line};
use super::old_list::{ItemBytes, OldList};
use super::scalar::{self, QuoteStyle};
use super::yaml::{Mapping, ScalarSite, YamlEntry};
use crate::model::Value;

/// The new value of a key.
pub(super) enum NewValue<'v> {
    Text(&'v str),
    List(&'v [String]),
    /// The tags. Items that stay keep their bytes: `'#a'` and `2024` are the tags `a` and `2024`.
    Tags(&'v [String]),
    /// Any other value, as YAML on one line.
    Written(String, &'v Value),
}

/// Removes an entry with its lines.
pub(super) fn remove(text: &[u8], block: &Block, mapping: &Mapping, entry: &YamlEntry) -> Result<Vec<u8>, SpliceError> {
    let lines = EntryLines::of(text, block, mapping, entry)?;
    Ok([&text[..lines.start], &text[lines.end..]].concat())
}

/// Gives an entry a new value, in the style of the old one.
pub(super) fn replace(
    text: &[u8],
    block: &Block,
    mapping: &Mapping,
    entry: &YamlEntry,
    new: &NewValue<'_>,
) -> Result<Vec<u8>, SpliceError> {
    let lines = EntryLines::of(text, block, mapping, entry)?;
    let was_flow = entry.style.is_none() && text.get(lines.value.start) == Some(&b'[');
    Ok(match new {
        NewValue::Text(value) => {
            let style = entry.style.unwrap_or(QuoteStyle::Plain);
            with_value_after_key(text, &lines, &scalar::write(value, style, false))
        }
        NewValue::Written(value, _) => with_value_after_key(text, &lines, value),
        NewValue::List(items) if was_flow && lines.is_one_line() => {
            with_value_after_key(text, &lines, &flow_list(items))
        }
        NewValue::Tags(items) if was_flow && let Some(extended) = with_flow_items_added(text, block, entry, items) => {
            extended
        }
        NewValue::Tags(items) if was_flow && lines.is_one_line() => {
            let kept = kept_items(text, block, entry, items);
            with_value_after_key(text, &lines, &format!("[{}]", kept.join(", ")))
        }
        NewValue::List([]) | NewValue::Tags([]) => {
            let comments =
                OldList::read(text, block, &lines, entry).comment_lines(entry_indent(text, &lines) + 2, text);
            let (before, after) = (&text[..lines.end], &text[lines.end..]);
            [with_value_after_key(before, &lines, "[]").as_slice(), comments.as_bytes(), after].concat()
        }
        NewValue::List(items) => with_list_below_key(text, block, &lines, entry, (items, ItemBytes::AsText)),
        NewValue::Tags(items) => with_list_below_key(text, block, &lines, entry, (items, ItemBytes::Kept)),
    })
}

/// Adds an entry at the end of the frontmatter.
pub(super) fn append(
    text: &[u8],
    block: &Block,
    mapping: &Mapping,
    key: &str,
    new: &NewValue<'_>,
) -> Result<Vec<u8>, SpliceError> {
    if mapping.in_flow {
        return Err(SpliceError::Unsupported("it is written in braces"));
    }
    let indent = match mapping.entries.first() {
        Some(first) => entry_indent(text, &EntryLines::of(text, block, mapping, first)?),
        None => 0,
    };
    let entry = new_entry(key, new, indent, newline(text));
    Ok([&text[..block.yaml.end], entry.as_bytes(), &text[block.yaml.end..]].concat())
}

/// Inserts new frontmatter before the text, after a byte order mark.
pub(super) fn create(text: &[u8], key: &str, new: &NewValue<'_>) -> Vec<u8> {
    let newline = newline(text);
    let start = frontmatter::content_start(text);
    let block = format!("---{newline}{}---{newline}", new_entry(key, new, 0, newline));
    [&text[..start], block.as_bytes(), &text[start..]].concat()
}

/// Writes a value on the line of its key. A comment on that line stays.
fn with_value_after_key(text: &[u8], lines: &EntryLines, value: &str) -> Vec<u8> {
    let value = value.as_bytes();
    if lines.is_one_line() && !lines.value.is_empty() {
        [&text[..lines.value.start], value, &text[lines.value.end..]].concat()
    } else if lines.starts_after_colon() {
        [&text[..lines.colon_end], b" ", value, &text[lines.value.end..]].concat()
    } else {
        let comment = &text[lines.colon_end..value_line_start(text, lines)];
        [&text[..lines.colon_end], b" ", value, comment, &text[lines.end..]].concat()
    }
}

/// A list in brackets with items added at its end; `None` if an old item does not stay.
fn with_flow_items_added(text: &[u8], block: &Block, entry: &YamlEntry, items: &[String]) -> Option<Vec<u8>> {
    let added = items.get(entry.scalars.len()..)?;
    let is_kept = entry.scalars.iter().zip(items).all(|(scalar, item)| tag_of(scalar) == item);
    if !is_kept || !matches!(&entry.value, Value::List(items) if items.len() == entry.scalars.len()) {
        return None;
    }
    let value_start = block.yaml.start + entry.value_range.start;
    let at = entry.scalars.last().map_or(value_start + 1, |last| block.yaml.start + last.range.end);
    let mut written: Vec<String> = added.iter().map(|item| scalar::write(item, QuoteStyle::Plain, true)).collect();
    if !entry.scalars.is_empty() {
        written.insert(0, String::new());
    }
    Some([&text[..at], written.join(", ").as_bytes(), &text[at..]].concat())
}

/// The items as they are written in the old list, or as new ones.
fn kept_items(text: &[u8], block: &Block, entry: &YamlEntry, items: &[String]) -> Vec<String> {
    // The first of several equal ones.
    let old: FxHashMap<&str, &ScalarSite> = entry.scalars.iter().rev().map(|scalar| (tag_of(scalar), scalar)).collect();
    let written = |item: &String| match old.get(item.as_str()) {
        Some(scalar) => {
            let range = block.yaml.start + scalar.range.start..block.yaml.start + scalar.range.end;
            String::from_utf8_lossy(&text[range]).into_owned()
        }
        None => scalar::write(item, QuoteStyle::Plain, true),
    };
    items.iter().map(written).collect()
}

/// The tag that an item of a list is.
pub(super) fn tag_of(scalar: &ScalarSite) -> &str {
    scalar.text.trim_start_matches('#')
}

/// Writes a list on the lines below its key, indented like the old list. Comments in the old list stay, those of removed
/// items on their own lines.
fn with_list_below_key(
    text: &[u8],
    block: &Block,
    lines: &EntryLines,
    entry: &YamlEntry,
    (items, bytes): (&[String], ItemBytes),
) -> Vec<u8> {
    let newline = newline(text);
    let indent_below_key = entry_indent(text, lines) + 2;
    let old = OldList::read(text, block, lines, entry);
    if lines.starts_after_colon() {
        let (line_end, next_line) = line_end(text, lines.value.end);
        let comments = old.comment_lines(indent_below_key, text);
        let list = comments + &block_list(items, indent_below_key, newline);
        let comment = &text[lines.value.end..line_end];
        return [&text[..lines.colon_end], comment, newline.as_bytes(), list.as_bytes(), &text[next_line..]].concat();
    }
    let from = value_line_start(text, lines);
    let was_list = matches!(entry.value, Value::List(_));
    let indent = if was_list { indent_at(text, from) } else { indent_below_key };
    [&text[..from], old.with_items((items, bytes), indent, text).as_slice(), &text[lines.end..]].concat()
}

/// The lines of one entry in the file, in bytes.
pub(super) struct EntryLines {
    start: usize,
    /// After the colon.
    colon_end: usize,
    /// The end of the line with the colon, before its line break.
    first_line_end: usize,
    pub(super) value: Range<usize>,
    /// After the line break of the last line.
    pub(super) end: usize,
}

impl EntryLines {
    fn of(text: &[u8], block: &Block, mapping: &Mapping, entry: &YamlEntry) -> Result<Self, SpliceError> {
        let offset = block.yaml.start;
        let key_start = offset + entry.key_range.start;
        let key_end = offset + entry.key_range.end;
        let start = text[..key_start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let alone = text[start..key_start].iter().all(|byte| *byte == b' ');
        if mapping.in_flow || !alone {
            return Err(SpliceError::Unsupported("the key is not at the start of its line"));
        }
        let colon = text[key_end..].iter().position(|byte| !matches!(byte, b' ' | b'\t'));
        let colon_end = match colon.map(|at| key_end + at) {
            Some(at) if text[at] == b':' => at + 1,
            _ => return Err(SpliceError::Unsupported("the key is not followed by a colon")),
        };
        let value_range = offset + entry.value_range.start..offset + entry.value_range.end;
        let written = text[value_range.clone()].trim_ascii_end().len();
        let value = if written == 0 { colon_end..colon_end } else { value_range.start..value_range.start + written };
        let (first_line_end, _) = line_end(text, colon_end);
        let (_, end) = line_end(text, value.end);
        Ok(Self { start, colon_end, first_line_end, value, end })
    }

    fn is_one_line(&self) -> bool {
        self.starts_after_colon() && self.value.end <= self.first_line_end
    }

    fn starts_after_colon(&self) -> bool {
        self.value.start <= self.first_line_end
    }
}

/// The end of the line that contains `at`, before and after its line break.
pub(super) fn line_end(text: &[u8], at: usize) -> (usize, usize) {
    let next = next_line(text, at);
    let line = text[at..next].strip_suffix(b"\n").unwrap_or(&text[at..next]);
    (at + line.strip_suffix(b"\r").unwrap_or(line).len(), next)
}

/// The start of the first line of a value below its key.
fn value_line_start(text: &[u8], lines: &EntryLines) -> usize {
    text[..lines.value.start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn entry_indent(text: &[u8], lines: &EntryLines) -> usize {
    indent_at(text, lines.start)
}

fn indent_at(text: &[u8], line_start: usize) -> usize {
    text[line_start..].iter().take_while(|byte| **byte == b' ').count()
}

fn new_entry(key: &str, new: &NewValue<'_>, indent: usize, newline: &str) -> String {
    let margin = " ".repeat(indent);
    let key = scalar::write(key, QuoteStyle::Plain, false);
    match new {
        NewValue::Written(value, _) => format!("{margin}{key}: {value}{newline}"),
        NewValue::Text(text) => format!("{margin}{key}: {}{newline}", scalar::write(text, QuoteStyle::Plain, false)),
        NewValue::List([]) | NewValue::Tags([]) => format!("{margin}{key}: []{newline}"),
        NewValue::List(items) | NewValue::Tags(items) => {
            format!("{margin}{key}:{newline}{}", block_list(items, indent + 2, newline))
        }
    }
}

fn flow_list(items: &[String]) -> String {
    let items: Vec<_> = items.iter().map(|item| scalar::write(item, QuoteStyle::Plain, true)).collect();
    format!("[{}]", items.join(", "))
}

fn block_list(items: &[String], indent: usize, newline: &str) -> String {
    let margin = " ".repeat(indent);
    items.iter().map(|item| format!("{margin}- {}{newline}", scalar::write(item, QuoteStyle::Plain, false))).collect()
}
