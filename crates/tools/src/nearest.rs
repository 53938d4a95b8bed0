//! "Did you mean": the known word nearest to a mistyped one.

/// Longer input is not a typo, and the comparison takes time proportional to both lengths.
const LONGEST: usize = 64;

/// Less similar words are not suggested.
const LIKE_ENOUGH: f64 = 0.7;

/// The known word that was probably meant: one is a prefix of the other, or they share most letters. Case, spaces, hyphens
/// and underscores are ignored.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let word = plain(word);
    if word.len() > LONGEST {
        return None;
    }
    let rate = |name: &'a str| {
        let known = plain(name);
        let starts_alike = word.len() >= 3 && (known.starts_with(&word) || word.starts_with(&known));
        (starts_alike, strsim::jaro(&word, &known), name)
    };
    let best = known.into_iter().map(rate).max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.filter(|(starts_alike, likeness, _)| *starts_alike || *likeness > LIKE_ENOUGH).map(|(.., name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_get_a_suggestion() {
        let names = ["id", "limit", "include_content", "maxResults", "heading"];
        for (typed, meant) in [
            ("limits", Some("limit")),
            ("lmiit", Some("limit")),
            ("includeContent", Some("include_content")),
            ("max_results", Some("maxResults")),
            ("include", Some("include_content")),
            ("header", Some("heading")),
            ("node_id", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
        }
        assert_eq!(nearest("limit", []), None);
        assert_eq!(nearest(&"limit".repeat(100), names), None);
    }
}
