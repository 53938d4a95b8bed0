//! How far two words are apart by slips of the finger.

/// How many letters must be put in, left out, changed or exchanged with their neighbour to make one word of the other, if
/// that is at most so many.
pub fn slips(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, other) in b.iter().enumerate() {
            let changed = last[j] + usize::from(letter != other);
            row[j + 1] = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == *other {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|slips| *slips <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_slip_counts_one() {
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
            let chars = |word: &str| word.chars().collect::<Vec<char>>();
            assert_eq!(slips(&chars(a), &chars(b), 2), expected, "{a} / {b}");
            assert_eq!(slips(&chars(b), &chars(a), 2), expected, "{b} / {a}");
        }
    }
}
