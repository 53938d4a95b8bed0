//! Shows embedded notes in place: `![[x]]`, `![[x#heading]]` and `![[x#^block]]` become the text they stand for.

use quipu_core::index::Snapshot;
use quipu_core::model::{LinkSyntax, NoteKey};
use quipu_core::notes::find_section;
use quipu_core::parse::{LinkSite, link_sites};
use quipu_core::{ReadNote, quoted};
use rustc_hash::FxHashMap;

use crate::tool::Call;
use crate::truncate::{beginning, truncate};

/// Characters that embedded notes add to an answer.
const MAX_ADDED: usize = 20_000;

/// Embedded notes that one answer reads: those without text add nothing to its length.
const MAX_EMBEDDED: usize = 200;

/// Embedded notes may embed others, so deep.
const MAX_DEPTH: usize = 3;

/// A part of a note's text with its embedded notes in place, together at most `max_chars` characters, and how many bytes of
/// `content` it covers. Attachments, broken embeds and cycles stay as written.
pub(crate) fn with_embeds(call: &Call<'_>, read: &ReadNote, content: &str, max_chars: usize) -> (String, usize) {
    let mut resolver = EmbedResolver {
        call,
        snapshot: &read.snapshot,
        embedded_by: FxHashMap::default(),
        open: vec![read.key],
        room: 0,
        to_read: MAX_EMBEDDED,
        left: 0,
    };
    let mut resolved = String::with_capacity(content.len());
    let (mut passed, mut room, mut to_add) = (0, max_chars, MAX_ADDED);
    // What is left of `room` at a position: embeds that stay as written are many, and each character is counted once.
    let (mut counted, mut left) = (0, max_chars);
    for site in embeds(content) {
        if site.range.start < passed {
            continue;
        }
        left = left.saturating_sub(content[counted..site.range.start].chars().count());
        counted = site.range.start;
        if left == 0 {
            break;
        }
        resolver.room = to_add.min(left);
        let Some(text) = resolver.embedded(&site.link.target, site.link.fragment.as_deref()) else { continue };
        resolved.push_str(&content[passed..site.range.start]);
        resolved.push_str(&text);
        to_add -= to_add.min(left) - resolver.room;
        room = left.saturating_sub(text.chars().count());
        (passed, counted, left) = (site.range.end, site.range.end, room);
    }
    let rest = beginning(&content[passed..], room);
    resolved.push_str(rest);
    if resolver.left > 0 {
        let path = quoted(read.note().path.as_str());
        call.warn(format!("{path}: {} embedded notes are not shown in full; read them by their id", resolver.left));
    }
    (resolved, passed + rest.len())
}

/// By their start, so that of two that are nested the outer one is first.
fn embeds(content: &str) -> Vec<LinkSite> {
    let mut sites = link_sites(content);
    sites.retain(|site| site.link.syntax == LinkSyntax::Embed);
    sites.sort_by_key(|site| site.range.start);
    sites
}

struct EmbedResolver<'c> {
    call: &'c Call<'c>,
    snapshot: &'c Snapshot,
    /// For each note that was shown, the notes that it embeds, by the target as written.
    embedded_by: FxHashMap<NoteKey, FxHashMap<&'c str, NoteKey>>,
    /// The notes that are being shown, outermost first.
    open: Vec<NoteKey>,
    /// Characters that embedded notes may still add.
    room: usize,
    /// Embedded notes that may still be read.
    to_read: usize,
    /// Embedded notes that were left out or cut.
    left: usize,
}

impl EmbedResolver<'_> {
    fn resolve(&mut self, content: &str) -> String {
        let mut resolved = String::with_capacity(content.len());
        let mut passed = 0;
        for site in embeds(content) {
            if site.range.start < passed {
                continue;
            }
            let Some(text) = self.embedded(&site.link.target, site.link.fragment.as_deref()) else { continue };
            resolved.push_str(&content[passed..site.range.start]);
            resolved.push_str(&text);
            passed = site.range.end;
        }
        resolved.push_str(&content[passed..]);
        resolved
    }

    /// The text of an embedded note or of its section; `None` if it stays as written.
    fn embedded(&mut self, target: &str, fragment: Option<&str>) -> Option<String> {
        let source = *self.open.last()?;
        let snapshot = self.snapshot;
        let embedded = self.embedded_by.entry(source).or_insert_with(|| {
            let embeds = snapshot.links(source).filter(|resolved| resolved.link.syntax == LinkSyntax::Embed);
            embeds.filter_map(|resolved| Some((resolved.link.target.as_str(), resolved.target?))).collect()
        });
        let key = *embedded.get(target)?;
        if self.open.contains(&key) || self.open.len() > MAX_DEPTH || self.room == 0 || self.to_read == 0 {
            self.left += 1;
            return None;
        }
        self.to_read -= 1;
        let body = self.call.knowledge.bodies(self.snapshot, &[key]).pop().flatten()?;
        let part = match fragment {
            Some(fragment) => part_of(&body, fragment),
            None => Some(body.as_str()),
        };
        let Some(text) = part else {
            self.left += 1;
            return None;
        };
        let shown = truncate(text.trim_end(), self.room);
        if shown.len() < text.trim_end().len() {
            self.left += 1;
        }
        self.room -= shown.chars().count().min(self.room);
        self.open.push(key);
        let resolved = self.resolve(&shown);
        self.open.pop();
        Some(resolved)
    }
}

/// The section of a heading, or the block with an id: `^id` at the end of a line, or on a line of its own below the block.
fn part_of<'b>(body: &'b str, fragment: &str) -> Option<&'b str> {
    let Some(id) = fragment.strip_prefix('^') else {
        let path = fragment.split('#').collect::<Vec<_>>().join(" > ");
        return Some(&body[find_section(body, &path).ok()?.range]);
    };
    let mark = format!("^{id}");
    let (mut block, mut start) = (0, 0);
    // The same for all empty lines in a row, so it is looked up once for them.
    let mut is_mark_below = None;
    for line in body.split_inclusive('\n') {
        let (text, end) = (line.trim(), start + line.trim_end().len());
        if is_list_item(text) {
            block = start;
        }
        if let Some(before) = text.strip_suffix(mark.as_str())
            && (before.is_empty() || before.ends_with(char::is_whitespace))
        {
            return Some(body[block..end - mark.len()].trim_end());
        }
        start += line.len();
        let ends_block = match text.is_empty() {
            true => !*is_mark_below.get_or_insert_with(|| body[start..].trim_start().starts_with(mark.as_str())),
            false => {
                is_mark_below = None;
                text.starts_with('#')
            }
        };
        if ends_block {
            block = start;
        }
    }
    None
}

fn is_list_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "));
    is_numbered || ["- ", "* ", "+ "].iter().any(|marker| line.starts_with(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_across_any_number_of_empty_lines() {
        let empty = "\n".repeat(1_000_000);
        assert_eq!(part_of(&format!("one\n\ntwo\n{empty}^a\n"), "^a"), Some("two"));
        assert_eq!(part_of(&format!("one ^a\n{empty}two ^b\n"), "^b"), Some("two"));
        assert_eq!(part_of(&format!("one\n{empty}two\n"), "^a"), None);
    }
}
