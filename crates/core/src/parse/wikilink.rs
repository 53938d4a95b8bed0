//! The parts of `[[target#heading|label]]`.

use std::ops::Range;

use crate::model::{Link, LinkSyntax, LinkType};

/// A wikilink and the range of its target in the given text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WikiLink {
    pub(super) link: Link,
    pub(super) target_range: Range<usize>,
}

/// Reads the text between the brackets. `None` if it names no note: it has a line break, or only an anchor in this note.
pub(super) fn read(inner: &str, syntax: LinkSyntax) -> Option<WikiLink> {
    if inner.contains(['\n', '\r']) {
        return None;
    }
    let (before_label, label) = match inner.split_once('|') {
        // In a table the bar is escaped by a backslash.
        Some((before, label)) => (before.strip_suffix('\\').unwrap_or(before), label.trim()),
        None => (inner, ""),
    };
    let (path, fragment) = before_label.split_once('#').unwrap_or((before_label, ""));
    let written = path.trim();
    if written.is_empty() {
        return None;
    }
    let start = path.len() - path.trim_start().len();
    let link_type = LinkType::from_name(label);
    let link = Link {
        syntax,
        target: written.replace('\\', "/"),
        fragment: non_empty(fragment.trim()),
        label: if link_type.is_some() { None } else { non_empty(label) },
        link_type: link_type.unwrap_or_default(),
    };
    Some(WikiLink { link, target_range: start..start + written.len() })
}

/// The target in the text between the brackets, if all of it is one link to a note.
pub(crate) fn wikilink_target(inner: &str) -> Option<&str> {
    let whole = Some(inner).filter(|inner| !inner.contains("[[") && !inner.contains("]]"))?;
    Some(&whole[read(whole, LinkSyntax::Wiki)?.target_range])
}

/// Whether `[[name]]` can link to a note of this name, in Quipu and in other programs.
///
/// Not with `[`, `]`, `|`, `#`, `^`, `\`, control characters, or white space at either end. Whether a certain position can
/// hold a link, for example between backticks, only [`rewrite_targets`](super::rewrite_targets) knows.
pub fn can_be_linked(name: &str) -> bool {
    // Quipu reads `^` in a target, but other programs take it for a block id.
    can_hold(name) && !name.contains('^')
}

/// Whether a target in a wikilink reads back unchanged.
pub(super) fn can_hold(target: &str) -> bool {
    !target.is_empty()
        && target.trim() == target
        && !target.contains(['[', ']', '|', '#', '\\'])
        && !target.contains(char::is_control)
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inner: &str, expected: Option<(&str, Option<&str>, Option<&str>, LinkType)>) {
        let found = read(inner, LinkSyntax::Wiki);
        let parts = found.as_ref().map(|wiki| {
            let link = &wiki.link;
            (link.target.as_str(), link.fragment.as_deref(), link.label.as_deref(), link.link_type)
        });
        assert_eq!(parts, expected, "{inner:?}");
        if let Some(wiki) = found {
            assert_eq!(inner[wiki.target_range].replace('\\', "/"), wiki.link.target);
        }
    }

    #[test]
    fn a_name_with_link_syntax_cannot_be_linked() {
        for name in
            ["a", "A & B", "日本 語", "v1.2 (final)", "50%", "a/b", "What? Why!", "it's", "C++", "$5", "a_b*c", "🎉"]
        {
            assert!(can_be_linked(name), "{name:?}");
        }
        for name in ["", " a", "a ", "C#", "a|b", "[[a", "a]]", "[a]", "a^b", "a\\b", "a\nb", "a\tb", "\0"] {
            assert!(!can_be_linked(name), "{name:?}");
        }
    }

    #[test]
    fn a_wikilink_has_up_to_three_parts() {
        use LinkType::{DependsOn, References};
        check("a", Some(("a", None, None, References)));
        check("  spaced  ", Some(("spaced", None, None, References)));
        check("a|b", Some(("a", None, Some("b"), References)));
        check("a\\|b", Some(("a", None, Some("b"), References)));
        check("a |", Some(("a", None, None, References)));
        check("a#h", Some(("a", Some("h"), None, References)));
        check("a#^block|b", Some(("a", Some("^block"), Some("b"), References)));
        check("a#h#i", Some(("a", Some("h#i"), None, References)));
        check("dir\\a.md", Some(("dir/a.md", None, None, References)));
        check("a|depends_on", Some(("a", None, None, DependsOn)));
        check("a|Depends_On", Some(("a", None, Some("Depends_On"), References)));
        check("日本 語#見出し", Some(("日本 語", Some("見出し"), None, References)));
        check("#h", None);
        check(" |b", None);
        check("a\nb", None);
    }
}
