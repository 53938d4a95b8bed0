//! Reads a note's text in parts, so that a client can read a text of any length before it rewrites it.

use quipu_core::ReadNote;
use schemars::JsonSchema;
use serde::Serialize;

use crate::tool::Call;
use crate::truncate::{ONE_NOTE, beginning, kept, truncate};

/// The part of the text that an answer contains.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Truncated {
    offset: usize,
    /// Null at the end of the text.
    next_offset: Option<usize>,
    total_chars: usize,
}

/// The requested part of a note's text, recorded as shown to the client, and its position unless it is the whole text.
/// Without offset and length it is the beginning, with a suffix where it is cut.
pub(crate) fn part(
    call: &Call<'_>,
    read: &ReadNote,
    offset: Option<usize>,
    max_chars: Option<usize>,
) -> (String, Option<Truncated>) {
    let body = read.body();
    let total = body.chars().count();
    let start = offset.unwrap_or_default().min(total);
    if let Some(offset) = offset.filter(|offset| *offset > total) {
        call.warn(format!("`offset` {offset} is past the end: the text has {total} characters"));
    }
    let from = body.char_indices().nth(start).map_or("", |(at, _)| &body[at..]);
    let (content, shown) = if offset.is_none() && max_chars.is_none() {
        (truncate(from, ONE_NOTE), kept(from, ONE_NOTE))
    } else {
        let max_chars = max_chars.unwrap_or(ONE_NOTE);
        // A grapheme longer than a part is split: an empty part would stop the reader.
        let part = Some(beginning(from, max_chars)).filter(|part| !part.is_empty());
        let part = part.unwrap_or_else(|| from.char_indices().nth(max_chars).map_or(from, |(at, _)| &from[..at]));
        (part.to_owned(), part)
    };
    let end = start + shown.chars().count();
    call.knowledge.show_part(call.session, read, start..end);
    let is_all = start == 0 && end == total;
    let next_offset = (end < total).then_some(end);
    (content, (!is_all).then_some(Truncated { offset: start, next_offset, total_chars: total }))
}
