//! Matches paths against a reference: a file, a folder, or a glob pattern of either.

use globset::{GlobBuilder, GlobMatcher};

/// Matches paths relative to the root of references.
pub(crate) struct SourcePattern {
    /// The reference as a plain path.
    pub(crate) plain: String,
    glob: Option<GlobMatcher>,
}

const GLOB_CHARS: [char; 4] = ['*', '?', '[', '{'];

impl SourcePattern {
    /// A reference below a folder; the folder is empty or ends with a slash.
    pub(crate) fn new(folder: &str, reference: &str) -> Self {
        let glob = reference.contains(GLOB_CHARS).then(|| {
            let pattern = format!("{}{reference}", globset::escape(folder));
            // An invalid pattern can still be a file name.
            GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(false).build().ok()
        });
        Self { plain: format!("{folder}{reference}"), glob: glob.flatten().map(|glob| glob.compile_matcher()) }
    }

    pub(crate) fn is_glob(&self) -> bool {
        self.glob.is_some()
    }

    /// The common start of all matching paths: the folder before the first wildcard, or the whole path.
    pub(crate) fn start(&self) -> &str {
        if !self.is_glob() {
            return &self.plain;
        }
        let end = self.plain.find(GLOB_CHARS).unwrap_or(self.plain.len());
        self.plain[..end].rfind('/').map_or("", |slash| &self.plain[..=slash])
    }

    /// Whether the reference matches a path or one of its folders.
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
    fn references_match_files_folders_and_globs() {
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
            assert_eq!(SourcePattern::new("", reference).names(path), expected, "{reference} {path}");
            let below = SourcePattern::new("do[c]s/", reference);
            assert_eq!(below.names(&format!("do[c]s/{path}")), expected, "{reference} {path} below a folder");
        }
        assert_eq!(SourcePattern::new("d/", "src/**/x").start(), "d/src/");
        assert_eq!(SourcePattern::new("", "*.rs").start(), "");
        assert_eq!(SourcePattern::new("", "src/a.rs").start(), "src/a.rs");
    }
}
