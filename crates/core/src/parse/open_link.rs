//! A link of the body between its start event, which has the destination, and its end event, which has its position.

use std::ops::Range;

use pulldown_cmark::{CowStr, LinkType as MarkdownLink};

use super::link_site::{LinkSite, TargetForm};
use super::markdown::WantedParts;
use super::{destination, wikilink};
use crate::model::{Link, LinkSyntax, LinkType};

/// A link without its end.
pub(super) struct OpenLink<'b> {
    pub(super) kind: MarkdownLink,
    pub(super) is_image: bool,
    pub(super) url: CowStr<'b>,
    /// The range of its definition, for a reference link.
    pub(super) definition: Option<Range<usize>>,
    pub(super) label: String,
    /// The end of its visible content.
    pub(super) content_end: usize,
}

impl OpenLink<'_> {
    /// The link, if its target is wanted.
    pub(super) fn close(self, body: &str, range: Range<usize>, wanted: WantedParts) -> Option<LinkSite> {
        if matches!(self.kind, MarkdownLink::WikiLink { .. }) {
            if wanted == WantedParts::OtherFiles {
                return None;
            }
            let syntax = if self.is_image { LinkSyntax::Embed } else { LinkSyntax::Wiki };
            let opening = 2 + usize::from(self.is_image);
            let inner = body.get(range.start + opening..range.end.checked_sub(2)?)?;
            let wiki = wikilink::read(inner, syntax)?;
            let start = range.start + opening;
            let target_range = start + wiki.target_range.start..start + wiki.target_range.end;
            return Some(LinkSite { link: wiki.link, range, target_range, form: TargetForm::Wiki });
        }
        let found = match wanted {
            WantedParts::Notes => destination::read(&self.url).filter(|found| !(self.is_image && found.is_page))?,
            WantedParts::OtherFiles => destination::read_other_file(&self.url)?,
        };
        // White space, `]` and `(` separate the visible content from the destination.
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

/// The length of the label of a definition `[label]: …`.
fn label_length(definition: &str) -> usize {
    let mut escaped = false;
    let closes = |byte: u8| {
        let closes = byte == b']' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    };
    definition.bytes().position(closes).unwrap_or(0)
}
