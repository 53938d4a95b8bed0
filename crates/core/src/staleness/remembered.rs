//! What the index remembers of a note's sources, for where no history does: their content when the note's own bytes were
//! first seen.

use std::collections::BTreeMap;

use super::SourceRef;
use crate::model::{ContentHash, SourceVersion};
use crate::ports::{SinceThen, TracedSource};

/// What to remember of a note that has new bytes: its sources as they are now. A source that was seen under an earlier
/// version and is gone, but still named, stays: once seen is ever seen.
pub fn to_remember(refs: &[SourceRef], now: Vec<SourceVersion>, before: &[SourceVersion]) -> Vec<SourceVersion> {
    let mut remembered: BTreeMap<String, ContentHash> =
        now.into_iter().map(|version| (version.path, version.hash)).collect();
    for version in before {
        if refs.iter().any(|named| names(named, &version.path)) {
            remembered.entry(version.path.clone()).or_insert(version.hash);
        }
    }
    remembered.into_iter().map(|(path, hash)| SourceVersion { path, hash }).collect()
}

/// What became of sources since they were remembered. `now` has their content and the time of their last change.
pub fn since_remembered(
    refs: &[SourceRef],
    remembered: &[SourceVersion],
    now: &[(SourceVersion, i64)],
) -> Vec<TracedSource> {
    let then: BTreeMap<&str, ContentHash> =
        remembered.iter().map(|version| (version.path.as_str(), version.hash)).collect();
    let mut traced: BTreeMap<&str, SinceThen> =
        then.keys().map(|path| (*path, SinceThen::Gone { at_ns: None })).collect();
    for (version, modified_ns) in now {
        let since = match then.get(version.path.as_str()) {
            Some(hash) if *hash == version.hash => SinceThen::Same,
            _ => SinceThen::Changed { at_ns: *modified_ns },
        };
        traced.insert(&version.path, since);
    }
    for named in refs {
        let names_something =
            traced.keys().any(|path| names(named, path)) || named.as_str().contains(['*', '?', '[', '{']);
        if !names_something {
            traced.insert(named.as_str(), SinceThen::NeverSeen);
        }
    }
    // Of a pattern it is not known here what it names; one that is alone and names nothing is told.
    if traced.is_empty() {
        traced.extend(refs.iter().map(|named| (named.as_str(), SinceThen::NeverSeen)));
    }
    traced.into_iter().map(|(path, since)| TracedSource { path: path.to_owned(), since }).collect()
}

/// Whether a reference is this path or a folder above it.
fn names(named: &SourceRef, path: &str) -> bool {
    path.strip_prefix(named.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(texts: &[&str]) -> Vec<SourceRef> {
        texts.iter().map(|text| SourceRef::parse(text).unwrap()).collect()
    }

    fn version(path: &str, content: &str) -> SourceVersion {
        SourceVersion { path: path.to_owned(), hash: ContentHash::of(content.as_bytes()) }
    }

    #[test]
    fn each_source_is_compared_with_what_it_was() {
        let refs = refs(&["same.rs", "changed.rs", "gone.rs", "typo.rs", "src"]);
        let remembered =
            [version("same.rs", "1"), version("changed.rs", "1"), version("gone.rs", "1"), version("src/a.rs", "1")];
        let now = [
            (version("same.rs", "1"), 7),
            (version("changed.rs", "2"), 8),
            (version("src/a.rs", "1"), 9),
            (version("src/new.rs", "1"), 10),
        ];
        let traced = since_remembered(&refs, &remembered, &now);
        let expected = [
            ("changed.rs", SinceThen::Changed { at_ns: 8 }),
            ("gone.rs", SinceThen::Gone { at_ns: None }),
            ("same.rs", SinceThen::Same),
            ("src/a.rs", SinceThen::Same),
            ("src/new.rs", SinceThen::Changed { at_ns: 10 }),
            ("typo.rs", SinceThen::NeverSeen),
        ];
        assert_eq!(traced, expected.map(|(path, since)| TracedSource { path: path.to_owned(), since }));
    }

    #[test]
    fn a_pattern_that_names_nothing_is_told_when_it_is_alone() {
        let alone = since_remembered(&refs(&["src/*.rs"]), &[], &[]);
        assert_eq!(alone, [TracedSource { path: "src/*.rs".into(), since: SinceThen::NeverSeen }]);
        assert_eq!(since_remembered(&refs(&["src/*.rs", "a.rs"]), &[], &[(version("a.rs", ""), 1)]).len(), 1);
    }

    #[test]
    fn once_seen_is_ever_seen_while_it_is_named() {
        let before = [version("gone.rs", "1"), version("dropped.rs", "1"), version("here.rs", "1")];
        let now = vec![version("here.rs", "2")];
        let kept = to_remember(&refs(&["gone.rs", "here.rs"]), now, &before);
        assert_eq!(kept, [version("gone.rs", "1"), version("here.rs", "2")]);
    }
}
