//! Judges the staleness of a note by the status of its sources.

use crate::ports::{SourceStatus, TracedSource};

/// Whether a note can still be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Staleness {
    /// No source has changed since the note last changed.
    Fresh,
    /// A source changed recently.
    PossiblyStale,
    /// A source changed long ago, or was deleted.
    Stale,
    /// Unknown: the note names no source, or one that never existed, or the history could not be read.
    Untracked,
}

impl Staleness {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::PossiblyStale => "possibly_stale",
            Self::Stale => "stale",
            Self::Untracked => "untracked",
        }
    }
}

/// A note's staleness, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freshness {
    pub staleness: Staleness,
    /// The sources that changed, by path.
    pub stale_sources: Vec<StaleSource>,
    /// References to files that never existed, most often misspelt.
    pub never_seen: Vec<String>,
    /// Sources that could not be compared.
    pub unknown: Vec<String>,
}

/// A source that changed after its note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleSource {
    /// Its path as in `source_refs`.
    pub path: String,
    pub change: SourceChange,
    /// When, if known: nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// The verdict on the note by this source: stale or possibly stale.
    pub staleness: Staleness,
}

/// A change of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceChange {
    /// New content, or a new file.
    Modified,
    /// The file was deleted.
    Deleted,
}

impl Freshness {
    /// The freshness of a note without sources.
    pub fn untracked() -> Self {
        Self { staleness: Staleness::Untracked, stale_sources: Vec::new(), never_seen: Vec::new(), unknown: Vec::new() }
    }
}

/// Judges a note by its sources; the worst source decides. A change younger than `grace_ns` makes it possibly stale only:
/// the author had little time to update it.
pub fn judge(sources: &[TracedSource], now_ns: i64, grace_ns: i64) -> Freshness {
    let mut stale_sources = Vec::new();
    let (mut never_seen, mut unknown) = (Vec::new(), Vec::new());
    for source in sources {
        let (change, since_ns, staleness) = match source.status {
            SourceStatus::Same => continue,
            SourceStatus::NeverSeen => {
                never_seen.push(source.path.clone());
                continue;
            }
            SourceStatus::Unknown => {
                unknown.push(source.path.clone());
                continue;
            }
            SourceStatus::Changed { at_ns } => {
                let is_young = now_ns.saturating_sub(at_ns) < grace_ns;
                let staleness = if is_young { Staleness::PossiblyStale } else { Staleness::Stale };
                (SourceChange::Modified, Some(at_ns), staleness)
            }
            SourceStatus::Deleted { at_ns } => (SourceChange::Deleted, at_ns, Staleness::Stale),
        };
        stale_sources.push(StaleSource { path: source.path.clone(), change, since_ns, staleness });
    }
    let staleness = if stale_sources.iter().any(|stale| stale.staleness == Staleness::Stale) {
        Staleness::Stale
    } else if !stale_sources.is_empty() {
        Staleness::PossiblyStale
    } else if sources.is_empty() || !never_seen.is_empty() || !unknown.is_empty() {
        // No source is known to have changed, but some could not be compared.
        Staleness::Untracked
    } else {
        Staleness::Fresh
    };
    Freshness { staleness, stale_sources, never_seen, unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;
    const NOW: i64 = 1_000 * DAY;

    #[test]
    fn the_worst_source_decides() {
        use SourceStatus::{Changed, Deleted, NeverSeen, Same, Unknown};
        use Staleness::{Fresh, PossiblyStale, Stale, Untracked};
        let ago = |days: i64| Changed { at_ns: NOW - days * DAY };
        for (sources, expected) in [
            (vec![], Untracked),
            (vec![Same], Fresh),
            (vec![Same, Same], Fresh),
            (vec![NeverSeen], Untracked),
            (vec![Same, NeverSeen], Untracked),
            (vec![Same, Unknown], Untracked),
            (vec![ago(1), Unknown], PossiblyStale),
            (vec![Same, ago(6)], PossiblyStale),
            (vec![ago(7)], Stale),
            (vec![Changed { at_ns: NOW - 7 * DAY + 1 }], PossiblyStale),
            (vec![ago(-1)], PossiblyStale),
            (vec![ago(1), ago(30)], Stale),
            (vec![ago(1), NeverSeen], PossiblyStale),
            (vec![Deleted { at_ns: Some(NOW) }], Stale),
            (vec![Deleted { at_ns: None }, NeverSeen], Stale),
        ] {
            let named: Vec<TracedSource> = sources
                .iter()
                .enumerate()
                .map(|(at, status)| TracedSource { path: at.to_string(), status: *status })
                .collect();
            assert_eq!(judge(&named, NOW, 7 * DAY).staleness, expected, "{sources:?}");
        }
    }

    #[test]
    fn stale_sources_have_path_and_time() {
        let source = |path: &str, status| TracedSource { path: path.to_owned(), status };
        let freshness = judge(
            &[
                source("a.rs", SourceStatus::Same),
                source("b.rs", SourceStatus::Changed { at_ns: NOW - DAY }),
                source("c.rs", SourceStatus::Deleted { at_ns: None }),
                source("d.rs", SourceStatus::NeverSeen),
                source("e.rs", SourceStatus::Unknown),
            ],
            NOW,
            7 * DAY,
        );
        let stale =
            |path: &str, change, since_ns, staleness| StaleSource { path: path.into(), change, since_ns, staleness };
        assert_eq!(
            freshness.stale_sources,
            [
                stale("b.rs", SourceChange::Modified, Some(NOW - DAY), Staleness::PossiblyStale),
                stale("c.rs", SourceChange::Deleted, None, Staleness::Stale),
            ]
        );
        assert_eq!((freshness.never_seen, freshness.unknown), (vec!["d.rs".to_owned()], vec!["e.rs".to_owned()]));
    }
}
