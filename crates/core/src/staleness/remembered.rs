//! The versions of a note's sources that the index stores, for vaults without git history: their content when this version
//! of the note was first indexed.

use std::collections::BTreeMap;

use super::SourceRef;
use crate::model::{ContentHash, SourceVersion};
use crate::ports::{SourceStatus, TracedSource};

/// In place of the hash of a source that was not read: it is too large, or there was no time.
pub const NOT_READ: ContentHash = ContentHash([0; 32]);

/// In place of the hash of a reference that was not searched: it may name more files than are listed.
pub const NOT_SEARCHED: ContentHash = ContentHash([0xff; 32]);

/// The versions to store for a new version of a note: its sources now. A deleted source that the note still names keeps its
/// earlier version, so that it counts as deleted and not as misspelt.
pub fn to_remember(refs: &[SourceRef], now: Vec<SourceVersion>, before: &[SourceVersion]) -> Vec<SourceVersion> {
    let mut remembered: BTreeMap<String, ContentHash> =
        now.into_iter().map(|version| (version.path, version.hash)).collect();
    for version in before.iter().filter(|version| version.hash != NOT_SEARCHED) {
        if refs.iter().any(|named| names(named, &version.path)) {
            remembered.entry(version.path.clone()).or_insert(version.hash);
        }
    }
    remembered.into_iter().map(|(path, hash)| SourceVersion { path, hash }).collect()
}

/// The status of sources compared with the stored versions. `now` has their content and modification times.
pub fn since_remembered(
    refs: &[SourceRef],
    remembered: &[SourceVersion],
    now: &[(SourceVersion, i64)],
) -> Vec<TracedSource> {
    let then: BTreeMap<&str, ContentHash> =
        remembered.iter().map(|version| (version.path.as_str(), version.hash)).collect();
    let was_searched = remembered.iter().all(|version| version.hash != NOT_SEARCHED);
    let is_searched = now.iter().all(|(version, _)| version.hash != NOT_SEARCHED);
    let gone = |hash: ContentHash| match hash {
        NOT_SEARCHED => SourceStatus::Unknown,
        _ if !is_searched => SourceStatus::Unknown,
        _ => SourceStatus::Deleted { at_ns: None },
    };
    let mut traced: BTreeMap<&str, SourceStatus> = then.iter().map(|(path, hash)| (*path, gone(*hash))).collect();
    for (version, modified_ns) in now {
        let status = match (then.get(version.path.as_str()), version.hash) {
            (_, NOT_READ | NOT_SEARCHED) | (Some(&NOT_READ | &NOT_SEARCHED), _) => SourceStatus::Unknown,
            (Some(then), now) if *then == now => SourceStatus::Same,
            (None, _) if !was_searched => SourceStatus::Unknown,
            _ => SourceStatus::Changed { at_ns: *modified_ns },
        };
        traced.insert(&version.path, status);
    }
    for named in refs {
        let names_something =
            traced.keys().any(|path| names(named, path)) || named.as_str().contains(['*', '?', '[', '{']);
        if !names_something {
            traced.insert(named.as_str(), SourceStatus::NeverSeen);
        }
    }
    // Patterns are not matched here; if nothing else is named, a pattern without files is reported.
    if traced.is_empty() {
        traced.extend(refs.iter().map(|named| (named.as_str(), SourceStatus::NeverSeen)));
    }
    traced.into_iter().map(|(path, status)| TracedSource { path: path.to_owned(), status }).collect()
}

/// Whether a reference is this path or one of its folders.
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
    fn each_source_is_compared_with_its_stored_version() {
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
            ("changed.rs", SourceStatus::Changed { at_ns: 8 }),
            ("gone.rs", SourceStatus::Deleted { at_ns: None }),
            ("same.rs", SourceStatus::Same),
            ("src/a.rs", SourceStatus::Same),
            ("src/new.rs", SourceStatus::Changed { at_ns: 10 }),
            ("typo.rs", SourceStatus::NeverSeen),
        ];
        assert_eq!(traced, expected.map(|(path, status)| TracedSource { path: path.to_owned(), status }));
    }

    #[test]
    fn source_that_was_not_read_then_or_now_is_unknown() {
        let refs = refs(&["a.rs", "b.rs", "src/**"]);
        let not_read = |path: &str, hash| SourceVersion { path: path.to_owned(), hash };
        let status = |remembered: &[SourceVersion], now: &[SourceVersion]| -> Vec<(String, SourceStatus)> {
            let now: Vec<_> = now.iter().map(|version| (version.clone(), 7)).collect();
            since_remembered(&refs, remembered, &now).into_iter().map(|source| (source.path, source.status)).collect()
        };
        let expected = |statuses: [SourceStatus; 4]| -> Vec<(String, SourceStatus)> {
            ["a.rs", "b.rs", "src/**", "src/x.rs"].map(str::to_owned).into_iter().zip(statuses).collect()
        };
        let (all, unsearched) = ([version("a.rs", "1"), version("b.rs", "1")], not_read("src/**", NOT_SEARCHED));
        let new = version("src/x.rs", "1");
        let now = [version("a.rs", "1"), not_read("b.rs", NOT_READ), unsearched.clone(), new.clone()];
        let changed = SourceStatus::Changed { at_ns: 7 };
        let (same, unknown) = (SourceStatus::Same, SourceStatus::Unknown);
        assert_eq!(status(&all, &now), expected([same, unknown, unknown, changed]));
        let then = [version("a.rs", "1"), not_read("b.rs", NOT_READ), unsearched.clone()];
        assert_eq!(
            status(&then, &[&all[..], std::slice::from_ref(&new)].concat()),
            expected([same, unknown, unknown, unknown])
        );
        let with_new = [&all[..], &[new]].concat();
        assert_eq!(
            status(&with_new, &[&all[..], std::slice::from_ref(&unsearched)].concat()),
            expected([same, same, unknown, unknown])
        );
        assert_eq!(to_remember(&refs, Vec::new(), &[unsearched]), []);
    }

    #[test]
    fn a_pattern_without_files_is_reported_if_alone() {
        let alone = since_remembered(&refs(&["src/*.rs"]), &[], &[]);
        assert_eq!(alone, [TracedSource { path: "src/*.rs".into(), status: SourceStatus::NeverSeen }]);
        assert_eq!(since_remembered(&refs(&["src/*.rs", "a.rs"]), &[], &[(version("a.rs", ""), 1)]).len(), 1);
    }

    #[test]
    fn a_deleted_source_keeps_its_version_while_it_is_named() {
        let before = [version("gone.rs", "1"), version("dropped.rs", "1"), version("here.rs", "1")];
        let now = vec![version("here.rs", "2")];
        let kept = to_remember(&refs(&["gone.rs", "here.rs"]), now, &before);
        assert_eq!(kept, [version("gone.rs", "1"), version("here.rs", "2")]);
    }
}
