//! A vault in one string: `//- notes/a.md` starts a file, whose text follows.

/// The files of a fixture in order. Headers are not part of a file's text.
///
/// # Panics
/// If text comes before the first header, since it would be lost.
pub fn files(fixture: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in fixture.split_inclusive('\n') {
        match (line.strip_prefix("//- "), files.last_mut()) {
            (Some(path), _) => files.push((path.trim_end().to_owned(), String::new())),
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => assert!(line.trim().is_empty(), "a fixture starts with a `//- path` line, not {line:?}"),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_separate_files() {
        let files = files("\n//- a.md\n# A\n\n//- deep/B c.md\n//- empty.md\n");
        let expected = [("a.md", "# A\n\n"), ("deep/B c.md", ""), ("empty.md", "")];
        assert_eq!(files, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }
}
