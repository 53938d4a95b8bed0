//! A reference as it is matched against paths: just so, as a folder above, or as a pattern of either.

use globset::{GlobBuilder, GlobMatcher};

/// Matches paths from the place where references are looked up.
pub(crate) struct Pattern {
    /// The reference as a plain path.
    pub(crate) plain: String,
    glob: Option<GlobMatcher>,
}

const MARKS: [char; 4] = ['*', '?', '[', '{'];

impl Pattern {
    /// A reference below a folder; the folder is empty or ends with a slash.
    pub(crate) fn new(folder: &str, reference: &str) -> Self {
        let glob = reference.contains(MARKS).then(|| {
            let pattern = format!("{}{reference}", globset::escape(folder));
            // What is no pattern can still be a name.
            GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(false).build().ok()
        });
        Self { plain: format!("{folder}{reference}"), glob: glob.flatten().map(|glob| glob.compile_matcher()) }
    }

    pub(crate) fn is_glob(&self) -> bool {
        self.glob.is_some()
    }

    /// The folder below which everything that matches lies; empty or ending with a slash.
    pub(crate) fn folder(&self) -> &str {
        let end = match &self.glob {
            Some(_) => self.plain.find(MARKS).unwrap_or(self.plain.len()),
            None => self.plain.len(),
        };
        self.plain[..end].rfind('/').map_or("", |slash| &self.plain[..=slash])
    }

    /// Whether a path is named: itself, or a folder it lies in.
    pub(crate) fn names(&self, path: &str) -> bool {
        if path.strip_prefix(&self.plain).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return true;
        }
        let Some(glob) = &self.glob else { return false };
        glob.is_match(path) || path.match_indices('/').any(|(at, _)| glob.is_match(&path[..at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_patterns() {
        for (reference, path, expected) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/a.rs.bak", false),
            ("src", "src/deep/a.rs", true),
            ("src", "srcs/a.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/deep/er/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("packages/*/src", "packages/x/src/a.ts", true),
            ("app/[id]/page.tsx", "app/[id]/page.tsx", true),
            ("app/[id]/page.tsx", "app/i/page.tsx", true),
            ("src/{a,b}.rs", "src/b.rs", true),
            ("src/[", "src/[", true),
        ] {
            assert_eq!(Pattern::new("", reference).names(path), expected, "{reference} {path}");
            let below = Pattern::new("do[c]s/", reference);
            assert_eq!(below.names(&format!("do[c]s/{path}")), expected, "{reference} {path} below a folder");
        }
        assert_eq!(Pattern::new("d/", "src/**/x").folder(), "d/src/");
        assert_eq!(Pattern::new("", "*.rs").folder(), "");
        assert_eq!(Pattern::new("", "src/a.rs").folder(), "src/");
    }
}
