//! A file's text to a note's parts. Never fails: odd input is data plus a warning.

use crate::model::{Link, Section, Tag, Value};

/// Changes whenever the same text would give other parts, so that kept notes are read anew.
pub const PARSER_VERSION: u32 = 1;

/// The parts of one file's text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The frontmatter's title, where it counts: a non-empty string or a number.
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
    /// They cover the body without gap or overlap; at least one.
    pub sections: Vec<Section>,
    /// Where the body starts.
    pub body_start: usize,
    /// What was odd.
    pub warnings: Vec<String>,
}

/// Reads a file's text.
pub fn parse(text: &str) -> Parsed {
    Parsed {
        sections: vec![Section { heading: None, level: 0, range: 0..text.len(), text_start: 0 }],
        ..Parsed::default()
    }
}
