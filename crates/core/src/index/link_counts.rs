//! Counts of resolved and broken links.

use super::snapshot::Snapshot;

/// With fewer links than this, no advice is given.
const MANY_LINKS: usize = 50;

/// Advice is given when fewer than one link in so many resolves.
const FEWEST_RESOLVED: usize = 10;

/// Links, each target counted once for each note and syntax. Attachments are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Links to a note.
    pub resolved: usize,
    /// Links to no note.
    pub broken: usize,
}

impl Snapshot {
    /// Counts the links of all files.
    pub fn link_counts(&self) -> LinkCounts {
        let mut counts = LinkCounts::default();
        for key in self.files() {
            counts.resolved += self.distinct_links(key).filter(|link| link.target.is_some()).count();
            counts.broken += self.broken_links(key).count();
        }
        counts
    }
}

impl LinkCounts {
    /// Advice for a vault with many links of which almost none resolves: it was probably opened at the wrong folder.
    pub fn advice(self) -> Option<String> {
        let Self { resolved, broken } = self;
        let total = resolved + broken;
        (total >= MANY_LINKS && resolved * FEWEST_RESOLVED < total).then(|| {
            format!(
                "only {resolved} of {total} links resolve; if the vault is a part of a larger site or vault, open the folder \
                 that its links start from"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_given_when_many_links_and_almost_none_resolve() {
        for (resolved, broken, is_told) in
            [(0, 49, false), (0, 50, true), (9, 91, true), (10, 90, false), (0, 0, false)]
        {
            assert_eq!(LinkCounts { resolved, broken }.advice().is_some(), is_told, "{resolved} {broken}");
        }
    }
}
