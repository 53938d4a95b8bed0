//! Parses the bytes of a file into a note.

use std::borrow::Cow;

use super::{TitleRule, parse};
use crate::model::{Note, VaultPath};
use crate::ports::FileContent;

/// Parses a file, and returns its text with the note: the note's ranges point into it.
///
/// Invalid UTF-8 becomes `U+FFFD` in the text, with a warning; the file keeps its bytes.
pub fn read_note(path: &VaultPath, content: &FileContent, title_rule: &TitleRule) -> (Note, String) {
    let decoding_warning = std::str::from_utf8(&content.bytes).err().map(|error| {
        let at = error.valid_up_to();
        format!("it is not valid UTF-8 (first at byte {at}); invalid bytes are shown as \u{FFFD}")
    });
    let text = decode(content.bytes.clone());
    let parsed = parse(&text);
    let note = Note {
        path: path.clone(),
        id: path.note_id(),
        stat: content.stat,
        hash: content.hash,
        title: title_rule.title(&parsed, path),
        tags: parsed.tags,
        aliases: parsed.aliases,
        properties: parsed.properties,
        links: parsed.links,
        sections: parsed.sections,
        body_start: parsed.body_start,
        counts: parsed.counts,
        warnings: decoding_warning.into_iter().chain(parsed.warnings).collect(),
        // Filled in by the index, which reads the other files.
        sources: Vec::new(),
    };
    (note, text)
}

/// A file's bytes as text; invalid UTF-8 becomes `U+FFFD`.
pub fn decode(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The bytes as text of the same length: each byte that is not part of valid UTF-8 becomes one control character.
pub(crate) fn same_length_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{1a}'));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ContentHash, FileStat};

    fn read(bytes: &[u8]) -> (Note, String) {
        let stat = FileStat { modified_ns: 1, size: bytes.len() as u64 };
        let content = FileContent { bytes: bytes.to_vec(), stat, hash: ContentHash::of(bytes) };
        read_note(&VaultPath::parse("Dir/some-note.md").unwrap(), &content, &TitleRule::default())
    }

    #[test]
    fn a_file_becomes_a_note() {
        let (note, text) = read(b"---\ntags: [a]\nstatus: done\n---\n# H\n[[b]] #c\n");
        assert_eq!((note.id.as_str(), note.title.as_str()), ("dir/some-note.md", "Some Note"));
        assert_eq!(note.tags.iter().map(|tag| tag.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(note.links[0].target, "b");
        assert_eq!(&text[note.body_start..], "# H\n[[b]] #c\n");
        assert!(note.warnings.is_empty());
    }

    #[test]
    fn invalid_utf8_is_replaced_with_a_warning() {
        let (note, text) = read(b"---\ntitle: T\n---\nab\xFFcd [[x]]");
        assert_eq!((note.title.as_str(), note.links.len()), ("T", 1));
        assert!(text.ends_with("ab\u{FFFD}cd [[x]]"));
        assert_eq!(note.warnings, ["it is not valid UTF-8 (first at byte 19); invalid bytes are shown as \u{FFFD}"]);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_body() {
        let (note, text) = read("\u{FEFF}# H".as_bytes());
        assert_eq!((&text[note.body_start..], text.len()), ("# H", 6));
        let (note, _) = read("\u{FEFF}---\ntitle: T\n---\n".as_bytes());
        assert_eq!(note.title, "T");
    }
}
