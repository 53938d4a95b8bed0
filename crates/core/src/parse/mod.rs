//! Parses the text of a file into the parts of a note. Never fails: invalid input becomes text plus a warning.
//!
//! Reading: `frontmatter` (with `yaml`), then `markdown` for the body. Writing is here too, since it must match reading
//! exactly: `splice` edits frontmatter, `rewrite` changes the targets of links; all other bytes stay.

mod comments;
mod destination;
mod frontmatter;
mod frontmatter_lines;
mod html;
mod link_site;
mod markdown;
mod new_note;
mod old_list;
mod open_link;
mod outline;
mod read_note;
mod rewrite;
mod scalar;
mod sections;
mod shortcode;
mod splice;
mod tags;
mod title;
mod wikilink;
mod yaml;

#[cfg(test)]
mod markdown_test;
#[cfg(test)]
mod properties_test;

pub use frontmatter::{frontmatter_tags_of, text_start, with_new_text};
pub(crate) use frontmatter::{newline, top_of_text};
pub use link_site::LinkSite;
pub use new_note::new_note_text;
pub use outline::{OutlineHeading, TaskItem, inline_tags, line_of, outline, tasks};
pub(crate) use read_note::same_length_text;
pub use read_note::{decode, read_note};
pub use rewrite::{RefusedTarget, Rewritten, rewrite_targets};
pub(crate) use rewrite::{rewrite_all_sites, rewrite_sites};
pub use splice::{FrontmatterEdit, SpliceError, splice_frontmatter};
pub(crate) use tags::distinct as distinct_tags;
pub use title::{TitleRule, TitleSource};
pub use wikilink::can_be_linked;
pub(crate) use wikilink::wikilink_target;

use std::ops::Range;

use crate::model::{Link, LinkSyntax, Section, Tag, TextCounts, Value};

/// Increased whenever the same text would give other parts, so that stored notes are parsed again.
pub const PARSER_VERSION: u32 = 9;

/// Limits for one note, far more than people write. In a generated file the rest stays text: each part takes many times
/// the memory of its bytes.
const MAX_TAGS: usize = 10_000;
const MAX_ALIASES: usize = 10_000;
const MAX_LINKS: usize = 50_000;
const MAX_HEADINGS: usize = 50_000;

/// Bytes of a body in which links, tags, headings and tasks are looked for.
const MAX_PARSED_BYTES: usize = 8 << 20;

/// The parts of one file's text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The frontmatter's title: a non-empty string or a number.
    pub title: Option<String>,
    /// The text of the first H1.
    pub first_heading: Option<String>,
    /// From the frontmatter, then from the text; no two equal when folded.
    pub tags: Vec<Tag>,
    /// From the frontmatter: `aliases` or `alias`, a list or one string.
    pub aliases: Vec<String>,
    /// Every frontmatter key but `title` and `tags`, in order.
    pub properties: Vec<(String, Value)>,
    /// In order of appearance; frontmatter links first.
    pub links: Vec<Link>,
    /// They cover the body without gap or overlap; the first is the preamble.
    pub sections: Vec<Section>,
    /// Where the body starts: after the frontmatter or a byte order mark.
    pub body_start: usize,
    /// The size of the text, and its tasks.
    pub counts: TextCounts,
    /// Problems in the text.
    pub warnings: Vec<String>,
}

/// Parses a file's text.
pub fn parse(text: &str) -> Parsed {
    let (front, body_start) = frontmatter::read(text);
    let body_text = &text[body_start..];
    let body = markdown::read(body_text);
    let inline_tags = body.tags.into_iter().map(|tag| &body_text[tag]);
    let mut tags = tags::distinct(front.tags.iter().map(String::as_str).chain(inline_tags), MAX_TAGS + 1);
    let mut links: Vec<Link> = front.sites.into_iter().chain(body.sites).map(|site| site.link).collect();
    let mut headings = body.headings;
    let tasks_done = body.tasks.iter().filter(|task| task.is_done()).count();
    let tasks_open = body.tasks.len() - tasks_done;
    let (chars, file_chars) = (text_chars(body_text, body_start), text.chars().count());
    let counts = TextCounts { chars, file_chars, tasks_open, tasks_done };
    let mut warnings = front.warnings;
    if markdown::parsed_part(body_text).len() < body_text.len() {
        let megabytes = MAX_PARSED_BYTES >> 20;
        warnings.push(format!(
            "links, tags, headings and tasks are looked for in its first {megabytes} MB only; split the note to use all"
        ));
    }
    cap(&mut tags, MAX_TAGS, "tags", &mut warnings);
    let mut aliases = front.aliases;
    cap(&mut aliases, MAX_ALIASES, "aliases", &mut warnings);
    cap(&mut links, MAX_LINKS, "links", &mut warnings);
    cap(&mut headings, MAX_HEADINGS, "headings", &mut warnings);
    let first_heading = headings.iter().find(|heading| heading.level == 1 && !heading.hidden);
    Parsed {
        title: front.title,
        first_heading: first_heading.map(|heading| heading.text.clone()).filter(|text| !text.is_empty()),
        tags,
        aliases,
        properties: front.properties,
        links,
        sections: sections::split(text, body_start, headings),
        body_start,
        counts,
        warnings,
    }
}

/// The characters of a body as [`text_start`] delimits it: blank lines after frontmatter do not count.
fn text_chars(body: &str, body_start: usize) -> usize {
    let has_frontmatter = body_start > '\u{FEFF}'.len_utf8();
    let text = if has_frontmatter { body.trim_start_matches(['\n', '\r']) } else { body };
    text.chars().count()
}

fn cap<T>(parts: &mut Vec<T>, limit: usize, name: &str, warnings: &mut Vec<String>) {
    if parts.len() > limit {
        parts.truncate(limit);
        parts.shrink_to_fit();
        warnings.push(format!(
            "it has more than {limit} {name}; only the first {limit} are used; split the note to use all"
        ));
    }
}

/// Whether one of some ranges, sorted and without overlap, contains a position.
fn covers(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.end <= at);
    ranges.get(next).is_some_and(|range| range.contains(&at))
}

/// The wikilinks of a text of memory: it has no frontmatter, and other kinds of links in it are text.
pub fn wikilinks(text: &str) -> Vec<Link> {
    if !text.contains("[[") {
        return Vec::new();
    }
    let links = markdown::read(text).sites.into_iter().map(|site| site.link);
    links.filter(|link| matches!(link.syntax, LinkSyntax::Wiki | LinkSyntax::Embed)).collect()
}

/// The links of a text with their positions, in the order of [`Parsed::links`].
pub fn link_sites(text: &str) -> Vec<LinkSite> {
    let (front, body_start) = frontmatter::read(text);
    let body = markdown::read(&text[body_start..]);
    let body_sites = body.sites.into_iter().map(|site| site.shifted(body_start));
    front.sites.into_iter().chain(body_sites).take(MAX_LINKS).collect()
}

/// The Markdown links and images of a text with a relative path to a file that is not a note.
pub(crate) fn other_file_sites(text: &str) -> Vec<LinkSite> {
    let (_, body_start) = frontmatter::read(text);
    markdown::other_file_sites(&text[body_start..]).into_iter().map(|site| site.shifted(body_start)).collect()
}
