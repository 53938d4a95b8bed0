//! One note's text in parts, so that a text of any length can be read whole, and then be rewritten.

use quipu_core::ReadNote;
use schemars::JsonSchema;
use serde::Serialize;

use crate::tool::Call;
use crate::truncate::{ONE_NOTE, beginning, kept, truncate};

/// Which part of a text was shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Truncated {
    offset: usize,
    /// Where the next part starts; null at the end.
    next_offset: Option<usize>,
    total_chars: usize,
}

/// The part of a note's text that was asked for, counted as shown to the client; and where it lies, unless it is all.
/// Without an offset and a length it is the beginning, with a suffix where it was cut.
pub(crate) fn part(
    call: &Call<'_>,
    read: &ReadNote,
    offset: Option<usize>,
    max_chars: Option<usize>,
) -> (String, Option<Truncated>) {
    let body = read.body();
    let total = body.chars().count();
    let start = offset.unwrap_or_default().min(total);
    let from = body.char_indices().nth(start).map_or("", |(at, _)| &body[at..]);
    let (content, shown) = if offset.is_none() && max_chars.is_none() {
        (truncate(from, ONE_NOTE), kept(from, ONE_NOTE))
    } else {
        let max_chars = max_chars.unwrap_or(ONE_NOTE);
        // A grapheme longer than a part is torn, else reading would not go on.
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
