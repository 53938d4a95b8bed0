//! The edit distance of two words, for typing errors.

/// The letters to insert, delete, replace or swap with a neighbour to turn one word into the other; `None` if more than
/// `most`.
pub fn edit_distance(a: &str, b: &str, most: usize) -> Option<usize> {
    // Most words differ by more in length alone.
    let is_near = a.chars().count().abs_diff(b.chars().count()) <= most;
    is_near.then(|| strsim::osa_distance(a, b)).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_typing_error_counts_one() {
        for (a, b, expected) in [
            ("search", "search", Some(0)),
            ("serach", "search", Some(1)),
            ("serch", "search", Some(1)),
            ("seearch", "search", Some(1)),
            ("saarch", "search", Some(1)),
            ("kubrnets", "kubernetes", Some(2)),
            ("sear", "search", Some(2)),
            ("sea", "search", None),
            ("", "ab", Some(2)),
            ("abcdef", "uvwxyz", None),
        ] {
            assert_eq!(edit_distance(a, b, 2), expected, "{a} / {b}");
            assert_eq!(edit_distance(b, a, 2), expected, "{b} / {a}");
        }
    }
}
