//! Applies edits to the bytes of a note. Bytes outside an edit stay as they are, valid UTF-8 or not.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use rustc_hash::FxHashSet;

use super::find::{self, EditProblem};
use super::{Edit, Position};
use crate::model::Tag;
use crate::parse::{self, FrontmatterEdit, OutlineHeading, SpliceError};

/// A note after its edits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AppliedEdits {
    pub(crate) bytes: Vec<u8>,
    /// What an edit could not do, without being wrong.
    pub(crate) warnings: Vec<String>,
}

/// Why an edit cannot be applied.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It does not fit the text.
    Place(EditProblem),
    /// The frontmatter cannot be edited.
    Frontmatter(SpliceError),
}

impl From<EditProblem> for Refused {
    fn from(problem: EditProblem) -> Self {
        Self::Place(problem)
    }
}

/// The longest note that a replacement may make: below what a vault reads.
const MAX_RESULT_BYTES: usize = 16 << 20;

/// Applies edits in order, each to the result of the one before. On an error, its number from 1 comes with it.
pub(crate) fn apply_edits(bytes: &[u8], edits: &[Edit]) -> Result<AppliedEdits, (usize, Refused)> {
    let mut applied = AppliedEdits { bytes: bytes.to_vec(), warnings: Vec::new() };
    for (index, edit) in edits.iter().enumerate() {
        applied.bytes = apply(&applied.bytes, edit, &mut applied.warnings).map_err(|error| (index + 1, error))?;
    }
    Ok(applied)
}

fn apply(bytes: &[u8], edit: &Edit, warnings: &mut Vec<String>) -> Result<Vec<u8>, Refused> {
    // Positions in this text are positions in the bytes.
    let text = &*parse::same_length_text(bytes);
    Ok(match edit {
        Edit::Append { text } => with_lines(bytes, bytes.len()..bytes.len(), text),
        Edit::Prepend { text } => {
            let (start, problem) = parse::top_of_text(bytes).map_err(|reason| EditProblem(reason.to_owned()))?;
            warnings.extend(problem.map(|problem| format!("{problem}; the text was added below it")));
            with_lines(bytes, start..start, text)
        }
        Edit::Insert { heading, position, text: new } => {
            let section = find::heading_to_edit(text, heading)?;
            let at = match position {
                Position::Before => section.range.start,
                Position::Start => section.text_start,
                Position::End => without_blank_end(bytes, section.text_start..section.own_end).end,
                Position::After => section.range.end,
            };
            with_lines(bytes, at..at, new)
        }
        Edit::ReplaceSection { heading, text: new } => {
            let section = find::heading_to_edit(text, heading)?;
            let new = without_heading(new, &section);
            with_lines(bytes, replaced_part(bytes, section.text_start..section.range.end, new), new)
        }
        Edit::DeleteSection { heading } => with_lines(bytes, find::heading_to_edit(text, heading)?.range, ""),
        Edit::Replace { old, new, count } => replace(bytes, old, new, *count)?,
        Edit::SetProperty { key, value } => splice(bytes, FrontmatterEdit::Set(key.clone(), value.clone()))?,
        Edit::RemoveProperty { key } => {
            let removed = splice(bytes, FrontmatterEdit::Remove(key.clone()))?;
            if removed == bytes {
                warnings.push(find::missing_property(text, key));
            }
            removed
        }
        Edit::AddTags { tags } => {
            let present: Vec<Tag> = parse::frontmatter_tags_of(text).iter().map(|tag| Tag::new(tag)).collect();
            let known: FxHashSet<&str> = present.iter().map(|tag| tag.folded.as_str()).collect();
            let is_new = |tag: &Tag| !known.contains(tag.folded.as_str());
            let added = parse::distinct_tags(tags, usize::MAX).into_iter().filter(is_new);
            let names = present.iter().cloned().chain(added).map(|tag| tag.name);
            warnings.extend(find::tags_with_space(tags));
            splice(bytes, FrontmatterEdit::Tags(names.collect()))?
        }
        Edit::RemoveTags { tags } => remove_tags(bytes, text, tags, warnings)?,
        Edit::SetTask { text: wanted, done } => {
            let task = find::task(text, wanted, *done)?;
            // A cancelled task counts as done and can still be ticked.
            let is_set = if *done { task.state.eq_ignore_ascii_case(&'x') } else { !task.done };
            let mark = if *done { b"x" } else { b" " };
            if is_set { bytes.to_vec() } else { replaced(bytes, task.mark, mark) }
        }
    })
}

/// The new text of a section without the section's own heading: clients often repeat it, and it stays anyway.
fn without_heading<'t>(new: &'t str, section: &OutlineHeading) -> &'t str {
    let repeated = parse::outline(new).into_iter().next();
    let is_repeated = |first: &OutlineHeading| {
        first.level == section.level && first.text == section.text && new[..first.range.start].trim().is_empty()
    };
    repeated.filter(is_repeated).map_or(new, |first| &new[first.text_start..])
}

fn splice(bytes: &[u8], edit: FrontmatterEdit) -> Result<Vec<u8>, Refused> {
    parse::splice_frontmatter(bytes, &[edit]).map_err(Refused::Frontmatter)
}

fn remove_tags(bytes: &[u8], text: &str, tags: &[String], warnings: &mut Vec<String>) -> Result<Vec<u8>, Refused> {
    let removed: FxHashSet<String> = tags.iter().map(|tag| Tag::new(tag).folded).collect();
    let present = parse::frontmatter_tags_of(text);
    let kept: Vec<&String> = present.iter().filter(|tag| !removed.contains(&Tag::new(tag).folded)).collect();
    warnings.extend(find::inline_tags_left(text, &removed));
    if kept.len() == present.len() {
        return Ok(bytes.to_vec());
    }
    let names = parse::distinct_tags(kept, usize::MAX).into_iter().map(|tag| tag.name);
    splice(bytes, FrontmatterEdit::Tags(names.collect()))
}

/// Replaces every occurrence of a text, if there are `count`. In a file with CRLF, `\n` also stands for the line break.
fn replace(bytes: &[u8], old: &str, new: &str, count: usize) -> Result<Vec<u8>, Refused> {
    let start = parse::text_start(bytes);
    let newline = parse::newline(bytes);
    let occurrences = |text: &str| -> Vec<Range<usize>> {
        let found = memmem::find_iter(&bytes[start..], text.as_bytes());
        found.map(|at| start + at..start + at + text.len()).collect()
    };
    let mut found = occurrences(old);
    if found.is_empty() {
        found = occurrences(&with_newlines(old, newline));
    }
    if found.len() != count {
        return Err(find::wrong_count(bytes, start, old, &found, count).into());
    }
    let new = with_newlines(new, newline);
    // Other edits add no more than the request has; this one multiplies it.
    let length = bytes.len().saturating_add(count.saturating_mul(new.len()));
    if length > MAX_RESULT_BYTES {
        let limit = MAX_RESULT_BYTES;
        return Err(
            EditProblem(format!("the note would have up to {length} bytes, more than the limit of {limit}")).into()
        );
    }
    let mut result = Vec::with_capacity(length);
    let mut passed = 0;
    for range in found {
        result.extend_from_slice(&bytes[passed..range.start]);
        result.extend_from_slice(new.as_bytes());
        passed = range.end;
    }
    result.extend_from_slice(&bytes[passed..]);
    Ok(result)
}

/// A text with the line breaks of the file it goes into.
fn with_newlines<'t>(text: &'t str, newline: &str) -> Cow<'t, str> {
    if newline == "\n" || text.contains('\r') { Cow::Borrowed(text) } else { text.replace('\n', newline).into() }
}

/// The lines of a section that a new text replaces. Blank lines at both ends stay, unless the text brings its own.
fn replaced_part(bytes: &[u8], section: Range<usize>, new: &str) -> Range<usize> {
    let text = without_blank_end(bytes, section.clone());
    let end = if new.ends_with("\n\n") || new.ends_with("\r\n\r\n") { section.end } else { text.end };
    let blank = text.clone().take_while(|at| bytes[*at].is_ascii_whitespace()).count();
    let line = bytes[text.start..text.start + blank].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let own_start = new.is_empty() || new.starts_with(['\n', '\r']);
    let start = if own_start || text.is_empty() { text.start } else { text.start + line };
    start..end
}

/// A range of lines without the blank lines at its end.
fn without_blank_end(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = bytes[range.clone()].trim_ascii_end().len();
    if text == 0 {
        return range.start..range.start;
    }
    let rest = &bytes[range.start + text..range.end];
    let line_end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
    range.start..range.start + text + line_end
}

/// Puts lines in place of a range that starts at a line or at the end of the file. Line breaks are added where the new lines
/// would join the text around them, and blank lines where a paragraph would become part of a heading, or where the heading
/// below had one above.
fn with_lines(bytes: &[u8], range: Range<usize>, text: &str) -> Vec<u8> {
    let (before, after) = (&bytes[..range.start], &bytes[range.end..]);
    let newline = parse::newline(bytes);
    let mut lines = with_newlines(text, newline).into_owned();
    let is_at_line_start = matches!(before, [] | b"\xEF\xBB\xBF" | [.., b'\n' | b'\r']);
    if lines.is_empty() {
        let would_join = !range.is_empty() && ends_in_text(before) && starts_underlined(after);
        let glue = if would_join { newline } else { "" };
        return [before, glue.as_bytes(), after].concat();
    }
    if is_underline(first_line(lines.as_bytes())) && ends_in_text(before) {
        lines.insert_str(0, newline);
    }
    if !is_at_line_start {
        lines.insert_str(0, newline);
    }
    let is_line_end_wanted = !after.is_empty() || bytes.ends_with(b"\n");
    if is_line_end_wanted && !lines.ends_with('\n') {
        lines.push_str(newline);
    }
    let keeps_distance = after.starts_with(b"#") && ends_in_blank_line(before);
    let would_join = is_underline(first_line(after)) || starts_underlined(after);
    if (keeps_distance || would_join) && !ends_in_blank_line(lines.as_bytes()) {
        lines.push_str(newline);
    }
    [before, lines.as_bytes(), after].concat()
}

fn replaced(bytes: &[u8], range: Range<usize>, new: &[u8]) -> Vec<u8> {
    [&bytes[..range.start], new, &bytes[range.end..]].concat()
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

/// Whether a line below a paragraph makes it a heading.
fn is_underline(line: &[u8]) -> bool {
    !line.is_empty() && (line.iter().all(|byte| *byte == b'-') || line.iter().all(|byte| *byte == b'='))
}

/// Whether a text starts with a heading that is a line with an underline.
fn starts_underlined(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let heading = lines.next().is_some_and(|line| !line.is_empty() && !line.starts_with(b"#"));
    heading && lines.take_while(|line| !line.is_empty()).take(3).any(is_underline)
}

fn ends_in_text(text: &[u8]) -> bool {
    !text.trim_ascii_end().is_empty() && !ends_in_blank_line(text)
}

fn ends_in_blank_line(text: &[u8]) -> bool {
    let mut lines = text.rsplit(|byte| *byte == b'\n');
    lines.next().is_some_and(|rest| rest.trim_ascii().is_empty())
        && lines.next().is_some_and(|line| line.trim_ascii().is_empty())
}

impl Edit {
    /// The value of `op` in JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Append { .. } => "append",
            Self::Prepend { .. } => "prepend",
            Self::Insert { .. } => "insert",
            Self::ReplaceSection { .. } => "replace_section",
            Self::DeleteSection { .. } => "delete_section",
            Self::Replace { .. } => "replace",
            Self::SetProperty { .. } => "set_property",
            Self::RemoveProperty { .. } => "remove_property",
            Self::AddTags { .. } => "add_tags",
            Self::RemoveTags { .. } => "remove_tags",
            Self::SetTask { .. } => "set_task",
        }
    }
}

#[cfg(test)]
#[path = "apply_test.rs"]
mod tests;

#[cfg(test)]
#[path = "model_test.rs"]
mod model_test;
