//! An entry of `source_refs`: a file, a folder or a pattern, relative to the vault's root or the repository's.

use crate::model::{Note, PathError, Value, VaultPath};
use crate::quote::quoted;

/// At most this many references of one note are used.
const MAX_REFS: usize = 200;

/// A reference inside the root: never absolute, no `..`. The lookup decides whether it is a file, a folder or a pattern, since
/// `app/[id]/page.tsx` can be a file name or a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceRef(VaultPath);

impl SourceRef {
    /// Checks a reference. A leading `./` and a trailing `/` are removed.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut path = text.trim();
        while let Some(rest) = path.strip_prefix("./") {
            path = rest;
        }
        VaultPath::parse(path.trim_end_matches('/')).map(Self)
    }

    /// The reference as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The references of a note, from a list or one text. In the order written, without duplicates and invalid ones; parsing
/// warns of the latter.
pub fn source_refs(note: &Note) -> Vec<SourceRef> {
    let mut refs: Vec<SourceRef> = Vec::new();
    for text in note.property("source_refs").into_iter().flat_map(texts) {
        match SourceRef::parse(&text) {
            Ok(found) if refs.len() < MAX_REFS && !refs.contains(&found) => refs.push(found),
            _ => {}
        }
    }
    refs
}

/// Warnings about invalid `source_refs`.
pub fn unusable_refs(value: &Value) -> Vec<String> {
    let texts = texts(value);
    let mut warnings: Vec<String> = texts
        .iter()
        .filter_map(|text| Some((text, SourceRef::parse(text).err()?)))
        .map(|(text, error)| format!("source_refs: {} is ignored: {error}", quoted(text)))
        .take(10)
        .collect();
    let is_not_path = |value: &Value| matches!(value, Value::Map(_) | Value::List(_));
    let has_others = matches!(value, Value::List(items) if items.iter().any(is_not_path));
    if matches!(value, Value::Map(_)) {
        warnings.push("source_refs is ignored: it must be a list of paths".to_owned());
    } else if has_others {
        warnings.push("source_refs: entries that are not paths are ignored; it must be a list of paths".to_owned());
    }
    if texts.len() > MAX_REFS {
        warnings.push(format!("source_refs: only the first {MAX_REFS} of {} are used", texts.len()));
    }
    warnings
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().filter_map(Value::to_plain_text).collect(),
        Value::Null => Vec::new(),
        one => one.to_plain_text().into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_outside_the_root_are_rejected() {
        for text in ["../x", "/etc/passwd", "a/../../b", "~/x", "C:/x", "", " ", "./", "a\\b", "a\nb", "/"] {
            assert!(SourceRef::parse(text).is_err(), "{text:?}");
        }
        for (text, kept) in [
            ("./src/a.ts", "src/a.ts"),
            (" src/db/ ", "src/db"),
            ("src/**/*.rs", "src/**/*.rs"),
            ("app/[id]/page.tsx", "app/[id]/page.tsx"),
            (".github/workflows", ".github/workflows"),
        ] {
            assert_eq!(SourceRef::parse(text).map(|found| found.as_str().to_owned()), Ok(kept.to_owned()));
        }
    }

    #[test]
    fn invalid_references_are_reported() {
        let value = Value::List(vec![Value::Text("../secret".into()), Value::Text("ok.rs".into())]);
        assert_eq!(
            unusable_refs(&value),
            [
                "source_refs: \"../secret\" is ignored: the path has an empty, `.` or `..` part; it must stay inside the vault"
            ]
        );
        assert_eq!(unusable_refs(&Value::Map(Vec::new())).len(), 1);
        assert!(unusable_refs(&Value::Text("src/a.rs".into())).is_empty());
    }
}
