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

#[derive(Debug, Clone, Default)]
/// stub
pub struct TitleRule;
/// stub
pub fn decode(bytes: Vec<u8>) -> (String, Option<String>) {
    (String::from_utf8_lossy(&bytes).into_owned(), None)
}
/// stub
pub fn has_frontmatter(_text: &str) -> bool {
    false
}
/// stub
pub fn read_note(
    path: &crate::model::VaultPath,
    content: &crate::ports::FileContent,
    _rule: &TitleRule,
) -> (crate::model::Note, String) {
    let text = decode(content.bytes.clone()).0;
    let p = parse(&text);
    (
        crate::model::Note {
            path: path.clone(),
            id: path.note_id(),
            stat: content.stat,
            hash: content.hash,
            title: path.stem().to_owned(),
            tags: p.tags,
            aliases: p.aliases,
            properties: p.properties,
            links: p.links,
            sections: p.sections,
            body_start: 0,
            warnings: vec![],
        },
        text,
    )
}
#[derive(Debug, thiserror::Error)]
#[error("stub")]
/// stub
pub struct SpliceError;
/// stub
pub struct FrontmatterEdit;
impl FrontmatterEdit {
    /// stub
    pub fn title(_: &str) -> Self {
        Self
    }
    /// stub
    pub fn tags(_: &[String]) -> Self {
        Self
    }
}
/// stub
pub fn splice_frontmatter(text: &[u8], _e: &[FrontmatterEdit]) -> Result<Vec<u8>, SpliceError> {
    Ok(text.to_vec())
}
/// stub
pub fn new_note_text(_t: Option<&str>, _g: &[String], c: &str) -> Result<String, SpliceError> {
    Ok(c.to_owned())
}
/// stub
pub struct LinkSite {
    /** l */
    pub link: Link,
}
/// stub
pub fn rewrite_targets(text: &str, mut _f: impl FnMut(&LinkSite) -> Option<String>) -> Result<String, SpliceError> {
    Ok(text.to_owned())
}
