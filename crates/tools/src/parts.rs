//! Reads a note's text in parts: an outline, one section, a range of characters. So a client can read a text of any length
//! before it rewrites it, or only what it needs.

use std::ops::Range;

use quipu_core::notes::find_section;
use quipu_core::parse::{OutlineHeading, outline};
use quipu_core::{ReadNote, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer_size::{LIST_ROOM, fitting, json_chars};
use crate::embeds::with_embeds;
use crate::tool::Call;
use crate::tool_error::ToolError;
use crate::truncate::{ONE_NOTE, beginning, cut_name, kept, truncate};

/// Characters of an outline; the rest is for the tags and properties of the note.
const OUTLINE_ROOM: usize = LIST_ROOM - 12_000;
/// Characters of an outline beside a part of the text that fills the answer.
const MIN_OUTLINE: usize = 2_000;

/// The arguments for a part, shared by the tools that read one note.
#[derive(Default, Deserialize, JsonSchema)]
pub(crate) struct PartParams {
    /// Headings instead of the text, or beside a part.
    #[serde(default)]
    outline: bool,
    /// Only this heading or path of headings: "A > B".
    section: Option<String>,
    /// First character: truncated.next_offset.
    offset: Option<usize>,
    /// Maximum characters.
    #[schemars(range(min = 1, max = 50_000))]
    max_chars: Option<usize>,
    /// Show embedded notes (![[x]]) in place.
    #[allow(rustdoc::broken_intra_doc_links, reason = "the text of the schema, not of a page")]
    #[serde(default)]
    resolve_embeds: bool,
}

/// The part of the text that an answer contains.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Truncated {
    offset: usize,
    /// Null at the end of the text.
    next_offset: Option<usize>,
    total_chars: usize,
}

/// One heading of an outline.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Heading {
    heading: String,
    level: u8,
    /// Line of the file.
    line: usize,
    /// Characters of its section, subsections included.
    chars: usize,
}

/// The requested part of a note.
#[derive(Debug)]
pub(crate) struct Part {
    /// `None` where only the outline was requested.
    pub(crate) content: Option<String>,
    pub(crate) truncated: Option<Truncated>,
    pub(crate) outline: Option<Vec<Heading>>,
    /// The bytes of the note's text that it covers.
    pub(crate) covers: Range<usize>,
}

impl PartParams {
    /// Whether the whole text is requested.
    pub(crate) fn is_whole(&self) -> bool {
        !self.outline && !self.is_text_in_part()
    }

    fn is_text_in_part(&self) -> bool {
        self.section.is_some() || self.offset.is_some() || self.max_chars.is_some()
    }

    /// The whole text where no part is requested, else the part.
    pub(crate) fn read_whole_or_part(&self, call: &Call<'_>, read: &ReadNote) -> Result<Part, ToolError> {
        if !self.is_whole() {
            return self.read(call, read);
        }
        let content = if self.resolve_embeds {
            with_embeds(call, read, read.body(), usize::MAX).0
        } else {
            call.knowledge.show_whole(call.session, read);
            read.body().to_owned()
        };
        Ok(Part { content: Some(content), truncated: None, outline: None, covers: 0..read.text.len() })
    }

    /// The requested part; without section, offset and length the beginning of the text.
    pub(crate) fn read(&self, call: &Call<'_>, read: &ReadNote) -> Result<Part, ToolError> {
        let section = self.section.as_deref().map(|name| find_section(&read.text, name));
        let section = section.transpose().map_err(|problem| {
            ToolError::invalid(format!("cannot read a section of {}: {problem}", quoted(read.note().path.as_str())))
        })?;
        let body_start = read.text.len() - read.body().len();
        let range = section.map_or(body_start..read.text.len(), |section| section.range);
        let outline = |room: usize| self.outline.then(|| headings(call, read, &range, room));
        if self.outline && !self.is_text_in_part() {
            return Ok(Part { content: None, truncated: None, outline: outline(OUTLINE_ROOM), covers: 0..0 });
        }
        let part = part(call, read, &range, self);
        let room = OUTLINE_ROOM.saturating_sub(json_chars(&part.content)).max(MIN_OUTLINE);
        Ok(Part { outline: outline(room), ..part })
    }
}

/// The headings within a range of the text that fit. A warning says when there are more.
fn headings(call: &Call<'_>, read: &ReadNote, range: &Range<usize>, room: usize) -> Vec<Heading> {
    let found = outline(&read.text).into_iter().filter(|heading| range.contains(&heading.range.start));
    let heading = |found: OutlineHeading| Heading {
        chars: read.text[found.range].chars().count(),
        heading: cut_name(&found.text),
        level: found.level,
        line: found.line,
    };
    let mut headings: Vec<Heading> = found.map(heading).collect();
    let total = headings.len();
    headings.truncate(fitting(&headings, room));
    if headings.len() < total {
        let path = quoted(read.note().path.as_str());
        call.warn(format!(
            "{path}: {} of its {total} headings are listed; give `section` for those below one",
            headings.len()
        ));
    }
    headings
}

/// Some characters of a text.
pub(crate) struct Cut<'t> {
    /// With a suffix where the beginning was requested and is cut.
    pub(crate) text: String,
    /// Without it.
    shown: &'t str,
    /// Its first character, and those of the whole text.
    start: usize,
    total: usize,
}

impl Cut<'_> {
    /// Its position, unless it is the whole text.
    pub(crate) fn truncated(&self) -> Option<Truncated> {
        Truncated::of(self.start..self.start + self.shown.chars().count(), self.total)
    }
}

impl Truncated {
    fn of(shown: Range<usize>, total: usize) -> Option<Self> {
        let next_offset = (shown.end < total).then_some(shown.end);
        let is_all = shown.start == 0 && next_offset.is_none();
        (!is_all).then_some(Self { offset: shown.start, next_offset, total_chars: total })
    }
}

/// The requested characters of a text; without offset and length the beginning, with a suffix where it is cut.
pub(crate) fn cut<'t>(call: &Call<'_>, text: &'t str, offset: Option<usize>, max_chars: Option<usize>) -> Cut<'t> {
    let total = text.chars().count();
    let start = offset.unwrap_or_default().min(total);
    if let Some(offset) = offset.filter(|offset| *offset > total) {
        call.warn(format!("`offset` {offset} is past the end: the text has {total} characters"));
    }
    let from = text.char_indices().nth(start).map_or("", |(at, _)| &text[at..]);
    if offset.is_none() && max_chars.is_none() {
        return Cut { text: truncate(from, ONE_NOTE), shown: kept(from, ONE_NOTE), start, total };
    }
    let max_chars = max_chars.unwrap_or(ONE_NOTE);
    // A grapheme longer than a part is split: an empty part would stop the reader.
    let part = Some(beginning(from, max_chars)).filter(|part| !part.is_empty());
    let shown = part.unwrap_or_else(|| from.char_indices().nth(max_chars).map_or(from, |(at, _)| &from[..at]));
    Cut { text: shown.to_owned(), shown, start, total }
}

/// The requested characters of a range of the text, recorded as shown to the client, and their position unless they are the
/// whole text. Without offset and length it is the beginning, with a suffix where it is cut.
fn part(call: &Call<'_>, read: &ReadNote, range: &Range<usize>, params: &PartParams) -> Part {
    let text = &read.text[range.clone()];
    let body_start = read.text.len() - read.body().len();
    // A section may start in the blank lines that do not count as text.
    let before = read.text.get(body_start..range.start).unwrap_or_default().chars().count();
    let Cut { text: content, shown, start, total } = cut(call, text, params.offset, params.max_chars);
    let (content, shown) = match (params.resolve_embeds, params.max_chars) {
        (false, _) => (content, shown),
        (true, None) => (with_embeds(call, read, &content, usize::MAX).0, shown),
        (true, Some(max_chars)) => {
            let (content, covered) = with_embeds(call, read, shown, max_chars);
            (content, &shown[..covered])
        }
    };
    let end = start + shown.chars().count();
    // A text with other notes in it must not be written back as this note's text.
    if !params.resolve_embeds {
        call.knowledge.show_part(call.session, read, before + start..before + end);
    }
    let truncated = Truncated::of(start..end, total);
    let covers_from = range.start + text.char_indices().nth(start).map_or(text.len(), |(at, _)| at);
    Part { content: Some(content), truncated, outline: None, covers: covers_from..covers_from + shown.len() }
}
