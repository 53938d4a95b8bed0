//! Tags: `#tags` in running text, and the items of a frontmatter list.

use std::ops::Range;

use rustc_hash::FxHashSet;
use unicode_normalization::char::is_combining_mark;

use crate::model::{Tag, Value};

/// The tags of a frontmatter value: a list of scalars, or one text split on commas and spaces.
pub(super) fn frontmatter_tags(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().filter_map(Value::to_plain_text).collect(),
        scalar => {
            let text = scalar.to_plain_text().unwrap_or_default();
            text.split([',', ' ', '\t', '\n']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        }
    }
}

/// The first `limit` tags, without duplicates: the first spelling wins.
pub(crate) fn distinct(names: impl IntoIterator<Item = impl AsRef<str>>, limit: usize) -> Vec<Tag> {
    let mut seen = FxHashSet::default();
    let tags = names.into_iter().map(|name| Tag::new(name.as_ref()));
    tags.filter(|tag| !tag.name.is_empty() && seen.insert(tag.folded.clone())).take(limit).collect()
}

/// The names of the `#tags` in a range of running text, as ranges of the body.
pub(super) fn inline_tags(body: &str, text: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut passed = text.start;
    let mut in_path = false;
    memchr::memchr_iter(b'#', &body.as_bytes()[text.clone()]).filter_map(move |at| {
        let sign = text.start + at;
        // Each byte is read once, however many `#` there are.
        let since = &body[passed..sign];
        let (is_new_word, word) = since.rfind(ends_word).map_or((false, since), |at| (true, &since[at..]));
        in_path = word.contains('/') || in_path && !is_new_word;
        passed = sign;
        if in_path || !may_precede_tag(&body[..sign]) {
            return None;
        }
        let name = sign + 1..sign + 1 + name_length(&body[sign + 1..text.end])?;
        // The slashes of a tag do not start a path.
        passed = name.end;
        Some(name)
    })
}

/// Whether a tag may follow this text: at the start of a line, after white space, and after punctuation that is not part
/// of a word, path or other syntax. Excluded are closing brackets (`f(x)#y`), `:` for colours (`fill:#ddd`), and `{` for
/// `{#anchors}`.
fn may_precede_tag(before: &str) -> bool {
    // An underscore is emphasis, or part of a word.
    let before = before.trim_end_matches('_');
    match before.chars().next_back() {
        None => true,
        Some('(') => !before.ends_with("]("),
        Some('[') => !before.ends_with("[[") && !before.ends_with("[\\["),
        Some(c) if c.is_ascii() => c.is_ascii_whitespace() || "\"'*~,;!?|<>".contains(c),
        Some(c) => !is_tag_char(c),
    }
}

/// White space, and punctuation of scripts without white space between words.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || !c.is_ascii() && !is_tag_char(c)
}

/// The length of the tag name at the start of a text.
fn name_length(text: &str) -> Option<usize> {
    let end = text.find(|c| !is_tag_char(c)).unwrap_or(text.len());
    let name = text[..end].trim_end_matches('/');
    let names_something = name.chars().any(|c| !matches!(c, '-' | '_' | '/'));
    let only_digits = name.chars().all(char::is_numeric);
    (names_something && !only_digits).then_some(name.len())
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
        let found: Vec<_> = inline_tags(text, 0..text.len()).map(|tag| &text[tag]).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn inline_tags_end_where_a_word_ends() {
        check("#a and #b-c_d/e, #f.", &["a", "b-c_d/e", "f"]);
        check("x#no ##no #", &[]);
        check("#1984 #y1984 #1984-05", &["y1984", "1984-05"]);
        check("#日本語。 #日本語、text　#全角", &["日本語", "日本語", "全角"]);
        check("#café #cafe\u{301} #हिन्दी", &["café", "cafe\u{301}", "हिन्दी"]);
        check("#🎉 #a🎉b #👩‍💻x #→", &["🎉", "a🎉b", "👩‍💻x"]);
        check("#a/ #/ #-- #a//", &["a", "a"]);
        check("#tag#other", &["tag"]);
    }

    #[test]
    fn a_tag_may_stand_next_to_punctuation() {
        check("(#two) [#three] \"#four\" '#five' ,#x;#y|#z|", &["two", "three", "four", "five", "x", "y", "z"]);
        check("*#a* **#b** _#c **_#d ~~#e~~ (_#f", &["a", "b", "c", "d", "e", "f"]);
        check("「#タグ」、#二つ。#三つ（#四つ）“#five” —#six", &["タグ", "二つ", "三つ", "四つ", "five", "six"]);
        check("#a/b,#c #d/e、#f 和/洋、#g", &["a/b", "c", "d/e", "f", "g"]);
        check("a#b foo/#b &#123; ## \\#no C# #123 (#12) a_#b 日本#no ・#no é#no 1#no", &[]);
        check("https://x.org/?#a https://x.org/(#b) ../c,#d x=#fff $#e %#f .#g @#h", &[]);
        check("[a](#b c) [[#here \\[\\[#here {#anchor} f(x)#y [x]#y {x}#y fill:#ddd {{#if x}} ##b", &[]);
    }

    #[test]
    fn the_first_spelling_of_a_tag_wins() {
        let tags = distinct(["#Rust", "rust", "", "#", "b", "c"], 2);
        assert_eq!(tags.iter().map(|tag| tag.name.as_str()).collect::<Vec<_>>(), ["Rust", "b"]);
    }
}
