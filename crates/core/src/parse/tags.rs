//! Tags: `#tags` in running text, and the items of a frontmatter list.

use rustc_hash::FxHashSet;
use unicode_normalization::char::is_combining_mark;

use crate::model::{Tag, Value};

/// The tags a frontmatter value names: a list of scalars, or one text split on commas and spaces.
pub(super) fn frontmatter_tags(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().filter_map(Value::to_plain_text).collect(),
        scalar => {
            let text = scalar.to_plain_text().unwrap_or_default();
            text.split([',', ' ', '\t', '\n']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        }
    }
}

/// Tags in the order given, each once: the first spelling wins.
pub(super) fn distinct(names: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Tag> {
    let mut seen = FxHashSet::default();
    let tags = names.into_iter().map(|name| Tag::new(name.as_ref()));
    tags.filter(|tag| !tag.name.is_empty() && seen.insert(tag.folded.clone())).collect()
}

/// The `#tags` in a stretch of running text, without `#`, and where each starts.
///
/// `before` is what stands in front of the stretch: a tag follows white space or starts a line.
pub(super) fn inline_tags(text: &str, before: Option<char>) -> impl Iterator<Item = (usize, &str)> {
    memchr::memchr_iter(b'#', text.as_bytes()).filter_map(move |at| {
        let previous = text[..at].chars().next_back().or(before);
        if previous.is_some_and(|c| !c.is_whitespace()) {
            return None;
        }
        let rest = &text[at + 1..];
        let end = rest.find(|c| !is_tag_char(c)).unwrap_or(rest.len());
        let tag = rest[..end].trim_end_matches('/');
        let names_something = tag.chars().any(|c| !matches!(c, '-' | '_' | '/'));
        let only_digits = tag.chars().all(char::is_numeric);
        (names_something && !only_digits).then_some((at, tag))
    })
}

/// Letters, digits and marks of any script, `_`, `-`, `/`, and emoji. Punctuation ends a tag, full-width or not.
fn is_tag_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    }
    c.is_alphanumeric() || is_combining_mark(c) || is_emoji_part(c) || matches!(c, '・' | '･')
}

/// Pictographs and what joins them: variation selector, joiner, keycap, flag letters.
fn is_emoji_part(c: char) -> bool {
    matches!(
        u32::from(c),
        0x200D | 0x20E3 | 0xFE0F | 0x2300..=0x23FF | 0x2600..=0x27BF | 0x2B00..=0x2BFF | 0x1F000..=0x1FAFF
            | 0xE0020..=0xE007F
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = inline_tags(text, None).map(|(_, tag)| tag).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn inline_tags_end_where_a_word_ends() {
        check("#a and #b-c_d/e, #f.", &["a", "b-c_d/e", "f"]);
        check("x#no ##no #", &[]);
        check("#1984 #y1984 #1984-05", &["y1984", "1984-05"]);
        check("#日本語。#no #日本語、text　#全角", &["日本語", "日本語", "全角"]);
        check("#café #cafe\u{301} #हिन्दी", &["café", "cafe\u{301}", "हिन्दी"]);
        check("#🎉 #a🎉b #👩‍💻x #→", &["🎉", "a🎉b", "👩‍💻x"]);
        check("#a/ #/ #-- #a//", &["a", "a"]);
        check("#tag#other", &["tag"]);
    }

    #[test]
    fn the_first_spelling_of_a_tag_wins() {
        let tags = distinct(["#Rust", "rust", "", "#", "b"]);
        assert_eq!(tags.iter().map(|tag| tag.name.as_str()).collect::<Vec<_>>(), ["Rust", "b"]);
    }
}
