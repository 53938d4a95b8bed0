//! Shows embedded notes in place: `![[x]]` and `![[x#heading]]` become the text they stand for.

use quipu_core::index::Snapshot;
use quipu_core::model::{Link, LinkSyntax, NoteKey};
use quipu_core::notes::find_section;
use quipu_core::parse::link_sites;
use quipu_core::{ReadNote, quoted};

use crate::tool::Call;
use crate::truncate::truncate;

/// Characters that embedded notes add to an answer.
const MAX_ADDED: usize = 20_000;

/// Embedded notes may embed others, so deep.
const MAX_DEPTH: usize = 3;

/// A part of a note's text with its embedded notes in place. Attachments, broken embeds and cycles stay as written.
pub(crate) fn with_embeds(call: &Call<'_>, read: &ReadNote, content: &str) -> String {
    let mut resolver = Resolver { call, snapshot: &read.snapshot, open: vec![read.key], room: MAX_ADDED, left: 0 };
    let resolved = resolver.resolve(content);
    if resolver.left > 0 {
        let path = quoted(read.note().path.as_str());
        call.warn(format!("{path}: {} embedded notes are not shown in full; read them by their id", resolver.left));
    }
    resolved
}

struct Resolver<'c> {
    call: &'c Call<'c>,
    snapshot: &'c Snapshot,
    /// The notes that are being shown, outermost first.
    open: Vec<NoteKey>,
    room: usize,
    /// Embedded notes that were left out or cut.
    left: usize,
}

impl Resolver<'_> {
    fn resolve(&mut self, content: &str) -> String {
        let mut resolved = String::with_capacity(content.len());
        let mut passed = 0;
        for site in link_sites(content).into_iter().filter(|site| site.link.syntax == LinkSyntax::Embed) {
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
        let is_it = |link: &Link| link.syntax == LinkSyntax::Embed && link.target == target;
        let key = self.snapshot.links(source).find(|resolved| is_it(resolved.link))?.target?;
        if self.open.contains(&key) || self.open.len() > MAX_DEPTH || self.room == 0 {
            self.left += 1;
            return None;
        }
        let body = self.call.knowledge.bodies(self.snapshot, &[key]).pop().flatten()?;
        let text = match fragment {
            Some(heading) => {
                let path = heading.split('#').collect::<Vec<_>>().join(" > ");
                &body[find_section(&body, &path).ok()?.range]
            }
            None => body.as_str(),
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
