//! A link of the body while it is being read: from its first event, where the destination is known, to its last, where
//! the place of that destination is.

use std::ops::Range;

use pulldown_cmark::{CowStr, LinkType as MarkdownLink};

use super::link_site::{LinkSite, TargetForm};
use super::{destination, wikilink};
use crate::model::{Link, LinkSyntax, LinkType};

/// A link whose end was not seen yet.
pub(super) struct OpenLink<'b> {
    pub(super) kind: MarkdownLink,
    pub(super) is_image: bool,
    pub(super) url: CowStr<'b>,
    /// Where its definition stands, for a reference link.
    pub(super) definition: Option<Range<usize>>,
    pub(super) label: String,
    /// Where the last thing inside ends.
    pub(super) content_end: usize,
}

impl OpenLink<'_> {
    /// The link, if it is one to a note.
    pub(super) fn close(self, body: &str, range: Range<usize>) -> Option<LinkSite> {
        if matches!(self.kind, MarkdownLink::WikiLink { .. }) {
            let syntax = if self.is_image { LinkSyntax::Embed } else { LinkSyntax::Wiki };
            let opening = 2 + usize::from(self.is_image);
            let inner = body.get(range.start + opening..range.end.checked_sub(2)?)?;
            let wiki = wikilink::read(inner, syntax)?;
            let start = range.start + opening;
            let target_range = start + wiki.target_range.start..start + wiki.target_range.end;
            return Some(LinkSite { link: wiki.link, range, target_range, form: TargetForm::Wiki });
        }
        let found = destination::read(&self.url).filter(|found| !(self.is_image && found.is_page))?;
        // Between what a link shows and its destination stand white space, `]` and `(`.
        let (from, opener) = match &self.definition {
            Some(definition) => (definition.start + label_length(&body[definition.clone()]), "]:"),
            None => (self.content_end.min(range.end), "]("),
        };
        let until = self.definition.as_ref().map_or(range.end, |definition| definition.end);
        let at = from + body.get(from..until)?.find(opener)? + opener.len();
        let (target_range, form) = destination::locate(body, at, &self.url);
        let label = self.label.trim();
        let link = Link {
            syntax: LinkSyntax::Markdown,
            target: found.path,
            fragment: found.fragment,
            label: (!label.is_empty()).then(|| label.to_owned()),
            link_type: LinkType::default(),
        };
        Some(LinkSite { link, range, target_range, form })
    }
}

/// Where the label of a definition `[label]: …` ends.
fn label_length(definition: &str) -> usize {
    let mut escaped = false;
    let closes = |byte: u8| {
        let closes = byte == b']' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    };
    definition.bytes().position(closes).unwrap_or(0)
}
