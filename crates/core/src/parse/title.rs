//! The title of a note, by the vault's rule.

use super::Parsed;
use crate::model::VaultPath;

/// A source of titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TitleSource {
    /// The frontmatter's `title`.
    Frontmatter,
    /// The first H1.
    Heading,
    /// The file's name.
    FileName,
}

/// The sources of titles, in order. The file name is always the last one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TitleRule(pub Vec<TitleSource>);

impl Default for TitleRule {
    fn default() -> Self {
        Self(vec![TitleSource::Frontmatter, TitleSource::FileName])
    }
}

impl TitleRule {
    /// The title of a note. Never empty.
    pub fn title(&self, parsed: &Parsed, path: &VaultPath) -> String {
        let found = self.0.iter().find_map(|source| match source {
            TitleSource::Frontmatter => parsed.title.clone(),
            TitleSource::Heading => parsed.first_heading.clone(),
            TitleSource::FileName => Some(title_from_stem(path.stem())),
        });
        found.unwrap_or_else(|| title_from_stem(path.stem()))
    }
}

/// `ml-basics` becomes `Ml Basics`. Names with capitals are intended, and dates have no case: both stay unchanged.
fn title_from_stem(stem: &str) -> String {
    let is_lower_case = stem.chars().any(char::is_lowercase) && !stem.chars().any(char::is_uppercase);
    if !is_lower_case {
        return stem.to_owned();
    }
    let words = stem.split(|c: char| c.is_whitespace() || c == '-' || c == '_').filter(|word| !word.is_empty());
    let capitalised = words.map(|word| {
        let mut chars = word.chars();
        chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect::<String>()
    });
    capitalised.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn check(rule: &[TitleSource], path: &str, text: &str, expected: &str) {
        let title = TitleRule(rule.to_vec()).title(&parse(text), &VaultPath::parse(path).unwrap());
        assert_eq!(title, expected, "{path} {text:?}");
    }

    #[test]
    fn a_stem_becomes_a_title() {
        for (path, expected) in [
            ("ml-basics.md", "Ml Basics"),
            ("notes/snake_case__name.md", "Snake Case Name"),
            ("GraphCore.md", "GraphCore"),
            ("My-Note.md", "My-Note"),
            ("2024-01-01.md", "2024-01-01"),
            ("日本語_メモ.md", "日本語_メモ"),
            ("v1.2-notes.md", "V1.2 Notes"),
            ("élan.md", "Élan"),
            ("-.md", "-"),
        ] {
            check(&[], path, "", expected);
        }
    }

    #[test]
    fn title_rule_selects_the_first_source() {
        use TitleSource::{FileName, Frontmatter, Heading};
        let text = "---\ntitle: Front\n---\n# Head\n";
        check(&TitleRule::default().0, "a.md", text, "Front");
        check(&TitleRule::default().0, "a.md", "# Head\n", "A");
        check(&[Heading, Frontmatter], "a.md", text, "Head");
        check(&[Frontmatter, Heading, FileName], "a.md", "# Head\n", "Head");
        check(&[Heading], "a.md", "no heading", "A");
        check(&[FileName, Frontmatter], "a.md", text, "A");
    }
}
