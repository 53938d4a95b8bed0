//! From what became of a note's sources to how far the note can be trusted. Pure.

use crate::ports::{SinceThen, TracedSource};

/// How far a note can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Staleness {
    /// Every source is as it was when the note last changed.
    Fresh,
    /// A source changed, not long ago.
    PossiblyStale,
    /// A source changed long ago, or is gone.
    Stale,
    /// Nobody can say: no sources are named, or one that nobody has ever seen, or history could not be asked.
    Untracked,
}

impl Staleness {
    /// The word for it.
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
    /// How far it can be trusted.
    pub staleness: Staleness,
    /// The sources that speak against it, by path.
    pub offenders: Vec<Offender>,
    /// References that name nothing and never did, as far as anybody knows: most often misspelt.
    pub never_seen: Vec<String>,
    /// Sources of which it could not be found out whether they changed.
    pub unknown: Vec<String>,
}

/// A source that changed behind its note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// Which, as the note's reader would write it.
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// When, where that is known: nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// What that makes of the note: stale, or possibly so.
    pub staleness: Staleness,
}

/// What happened to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Other content, or it has appeared.
    Modified,
    /// It is gone.
    Deleted,
}

impl Freshness {
    /// Of a note that names no sources.
    pub fn untracked() -> Self {
        Self { staleness: Staleness::Untracked, offenders: Vec::new(), never_seen: Vec::new(), unknown: Vec::new() }
    }
}

/// Judges a note by its sources. A change counts for less while it is younger than `grace_ns`: there was hardly time to
/// follow it. The worst source decides.
pub fn judge(sources: &[TracedSource], now_ns: i64, grace_ns: i64) -> Freshness {
    let mut offenders = Vec::new();
    let (mut never_seen, mut unknown) = (Vec::new(), Vec::new());
    for source in sources {
        let (change, since_ns, staleness) = match source.since {
            SinceThen::Same => continue,
            SinceThen::NeverSeen => {
                never_seen.push(source.path.clone());
                continue;
            }
            SinceThen::Unknown => {
                unknown.push(source.path.clone());
                continue;
            }
            SinceThen::Changed { at_ns } => {
                let is_young = now_ns.saturating_sub(at_ns) < grace_ns;
                let staleness = if is_young { Staleness::PossiblyStale } else { Staleness::Stale };
                (Change::Modified, Some(at_ns), staleness)
            }
            SinceThen::Gone { at_ns } => (Change::Deleted, at_ns, Staleness::Stale),
        };
        offenders.push(Offender { path: source.path.clone(), change, since_ns, staleness });
    }
    let staleness = if offenders.iter().any(|offender| offender.staleness == Staleness::Stale) {
        Staleness::Stale
    } else if !offenders.is_empty() {
        Staleness::PossiblyStale
    } else if sources.is_empty() || !never_seen.is_empty() || !unknown.is_empty() {
        // Not every source is as it was, and none is known to have changed.
        Staleness::Untracked
    } else {
        Staleness::Fresh
    };
    Freshness { staleness, offenders, never_seen, unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;
    const NOW: i64 = 1_000 * DAY;

    #[test]
    fn the_worst_source_decides() {
        use SinceThen::{Changed, Gone, NeverSeen, Same, Unknown};
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
            (vec![Gone { at_ns: Some(NOW) }], Stale),
            (vec![Gone { at_ns: None }, NeverSeen], Stale),
        ] {
            let named: Vec<TracedSource> = sources
                .iter()
                .enumerate()
                .map(|(at, since)| TracedSource { path: at.to_string(), since: *since })
                .collect();
            assert_eq!(judge(&named, NOW, 7 * DAY).staleness, expected, "{sources:?}");
        }
    }

    #[test]
    fn the_offenders_are_named_with_the_time() {
        let source = |path: &str, since| TracedSource { path: path.to_owned(), since };
        let freshness = judge(
            &[
                source("a.rs", SinceThen::Same),
                source("b.rs", SinceThen::Changed { at_ns: NOW - DAY }),
                source("c.rs", SinceThen::Gone { at_ns: None }),
                source("d.rs", SinceThen::NeverSeen),
                source("e.rs", SinceThen::Unknown),
            ],
            NOW,
            7 * DAY,
        );
        let offender =
            |path: &str, change, since_ns, staleness| Offender { path: path.into(), change, since_ns, staleness };
        assert_eq!(
            freshness.offenders,
            [
                offender("b.rs", Change::Modified, Some(NOW - DAY), Staleness::PossiblyStale),
                offender("c.rs", Change::Deleted, None, Staleness::Stale),
            ]
        );
        assert_eq!((freshness.never_seen, freshness.unknown), (vec!["d.rs".to_owned()], vec!["e.rs".to_owned()]));
    }
}
