//! The text of a new note.

use super::{FrontmatterEdit, SpliceError, frontmatter, splice_frontmatter, tags};

/// The text of a new note. Title and tags go into frontmatter, which is omitted if both are missing; frontmatter in the
/// content is kept, and its tags come first. The content is written unchanged.
pub fn new_note_text(title: Option<&str>, tags: &[String], content: &str) -> Result<String, SpliceError> {
    let title = title.map(|title| FrontmatterEdit::Title(title.to_owned()));
    let tags = (!tags.is_empty()).then(|| {
        let (front, _) = frontmatter::read(content);
        let all = front.tags.iter().chain(tags).map(String::as_str);
        FrontmatterEdit::Tags(tags::distinct(all, usize::MAX).into_iter().map(|tag| tag.name).collect())
    });
    let edits: Vec<_> = title.into_iter().chain(tags).collect();
    let bytes = splice_frontmatter(content.as_bytes(), &edits)?;
    Ok(String::from_utf8(bytes).expect("edits are valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_note_has_frontmatter_only_with_title_or_tags() {
        let some = ["a".to_owned()];
        for (title, tags, content, expected) in [
            (None, &[][..], "text", "text"),
            (Some("T"), &some[..], "text", "---\ntitle: T\ntags:\n  - a\n---\ntext"),
            (Some("T"), &[][..], "---\nx: 1\n---\ntext\n", "---\nx: 1\ntitle: T\n---\ntext\n"),
            (None, &some[..], "", "---\ntags:\n  - a\n---\n"),
            (None, &some[..], "---\ntags: [x] # c\n---\ntext", "---\ntags: [x, a] # c\n---\ntext"),
            (None, &some[..], "---\ntags: ['#A', x]\n---\n", "---\ntags: ['#A', x]\n---\n"),
        ] {
            assert_eq!(new_note_text(title, tags, content).as_deref(), Ok(expected));
        }
        assert!(new_note_text(Some("T"), &[], "---\na: b: c\n---\n").is_err());
    }
}
