//! Obsidian's `%%comments%%`, which are not part of Markdown.
//!
//! A comment inside a line ends in the same paragraph; one at the start of a line may span several. An unpaired mark is
//! text, so that `100%%` hides nothing.

use std::ops::Range;

use memchr::memmem;

use super::covers;

/// Pairs the marks in running text.
pub(super) struct Comments<'b> {
    body: &'b str,
    /// No mark anywhere, as in most notes.
    none: bool,
    block: usize,
    open: Option<OpenComment>,
    found: Vec<Range<usize>>,
}

struct OpenComment {
    at: usize,
    block: usize,
    opens_line: bool,
}

impl<'b> Comments<'b> {
    pub(super) fn new(body: &'b str) -> Self {
        let none = memmem::find(body.as_bytes(), b"%%").is_none();
        Self { body, none, block: 0, open: None, found: Vec::new() }
    }

    /// Starts the next paragraph, heading, list item or cell.
    pub(super) fn next_block(&mut self) {
        self.block += 1;
    }

    /// Adds a piece of running text, outside code, formulas and links.
    pub(super) fn text(&mut self, range: &Range<usize>) {
        if self.none {
            return;
        }
        for at in memmem::find_iter(&self.body.as_bytes()[range.clone()], b"%%") {
            let at = range.start + at;
            let before = &self.body[..at];
            if before.ends_with('\\') {
                continue;
            }
            match self.open.take() {
                Some(open) if open.opens_line || open.block == self.block => self.found.push(open.at..at + 2),
                _ => {
                    let line_start = before.trim_end_matches([' ', '\t', '>']);
                    let opens_line = line_start.is_empty() || line_start.ends_with('\n');
                    self.open = Some(OpenComment { at, block: self.block, opens_line });
                }
            }
        }
    }

    /// Whether a position is in a comment. Valid once all text was added.
    pub(super) fn hide(&self, at: usize) -> bool {
        covers(&self.found, at)
    }
}
