//! How much there is in a vault and its memory, and what is odd: what a person looks at first.

use quipu_core::model::Warning;
use serde::{Deserialize, Serialize};

use crate::registry::Registry;
use crate::tool_error::ToolError;
use crate::truncate::{MAX_WARNING, truncate};

/// Warnings of one kind that are given in words; the rest is counted.
const WARNINGS: usize = 200;

/// Counts of everything, and the first warnings.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Files.
    pub notes: usize,
    /// Edges between notes.
    pub links: usize,
    /// Links that no note answers to.
    pub broken_links: usize,
    /// Notes without an edge.
    pub orphans: usize,
    /// Entities in memory.
    pub entities: u64,
    /// Observations in memory.
    pub observations: u64,
    /// Relations in memory.
    pub relations: u64,
    /// Passages with a vector.
    pub embedded: usize,
    /// Passages.
    pub to_embed: usize,
    /// By kind, the most frequent first.
    pub warnings: Vec<WarningGroup>,
    /// All of them, broken links included.
    pub warnings_total: usize,
}

/// The warnings of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningGroup {
    /// The topic of the warnings.
    pub kind: WarningTopic,
    /// How many there are.
    pub total: usize,
    /// The first of them, in order of path.
    pub first: Vec<String>,
}

/// What a warning is about, by what a person does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningTopic {
    /// No note answers to the link.
    BrokenLink,
    /// The frontmatter is not read as its author means it.
    Frontmatter,
    /// The note is larger than what is read of one.
    Limit,
    /// Anything else.
    Other,
}

impl WarningTopic {
    /// The kind of a warning of the parser.
    fn of(message: &str) -> Self {
        if message.contains("frontmatter") || message.contains("YAML") {
            Self::Frontmatter
        } else if message.contains("split the note") {
            Self::Limit
        } else {
            Self::Other
        }
    }
}

impl Overview {
    fn warn(&mut self, kind: WarningTopic, path: &str, message: impl FnOnce() -> String) {
        self.warnings_total += 1;
        let place = self.warnings.iter().position(|group| group.kind == kind).unwrap_or(self.warnings.len());
        if place == self.warnings.len() {
            self.warnings.push(WarningGroup { kind, total: 0, first: Vec::new() });
        }
        let group = &mut self.warnings[place];
        group.total += 1;
        if group.first.len() < WARNINGS {
            let warning = Warning { path: path.to_owned(), message: message() };
            group.first.push(truncate(&warning.to_string(), MAX_WARNING));
        }
    }
}

impl Overview {
    /// Adds a warning about the server itself, before those of notes.
    pub fn warn_first(&mut self, message: String) {
        self.warnings_total += 1;
        let place = self.warnings.iter().position(|group| group.kind == WarningTopic::Other);
        let mut group = match place {
            Some(place) => self.warnings.remove(place),
            None => WarningGroup { kind: WarningTopic::Other, total: 0, first: Vec::new() },
        };
        group.total += 1;
        group.first.insert(0, message);
        group.first.truncate(WARNINGS);
        self.warnings.insert(0, group);
    }
}

impl Registry {
    /// The vault and its memory at this moment.
    pub fn overview(&self) -> Result<Overview, ToolError> {
        let snapshot = self.knowledge.snapshot();
        let graph = snapshot.graph();
        let mut overview = Overview { notes: snapshot.files().len(), ..Overview::default() };
        for key in snapshot.files() {
            let note = snapshot.note(key);
            overview.links += graph.out(key).len();
            overview.orphans += usize::from(graph.out(key).is_empty() && graph.incoming(key).is_empty());
            let path = note.path.as_str();
            for message in &note.warnings {
                overview.warn(WarningTopic::of(message), path, || message.clone());
            }
            for link in snapshot.broken_links(key) {
                overview.broken_links += 1;
                overview.warn(WarningTopic::BrokenLink, path, || format!("broken link to {:?}", link.target));
            }
        }
        overview.warnings.sort_by_key(|group| std::cmp::Reverse(group.total));
        if let Some(Ok(coverage)) = self.knowledge.coverage() {
            (overview.embedded, overview.to_embed) = (coverage.embedded, coverage.passages);
        }
        if let Ok(memory) = &self.memory {
            let counts = memory.store().counts()?;
            (overview.entities, overview.observations, overview.relations) =
                (counts.entities, counts.observations, counts.relations);
        }
        Ok(overview)
    }
}

#[cfg(test)]
mod tests {
    use super::{Overview, WARNINGS, WarningGroup, WarningTopic};
    use crate::testing::Harness;

    #[test]
    fn overview_counts_links_orphans_and_warnings() {
        let harness = Harness::new("//- a.md\n[[b]] [[nowhere]]\n//- b.md\n//- alone.md\n---\ntags: [x\n---\n");
        let overview = harness.registry.overview().unwrap();
        assert_eq!((overview.notes, overview.links, overview.broken_links, overview.orphans), (3, 1, 1, 1));
        assert_eq!(overview.warnings_total, 2);
        assert_eq!(overview.warnings[1].kind, WarningTopic::Frontmatter);
        let broken = "\"a.md\": broken link to \"nowhere\"".to_owned();
        assert_eq!(
            overview.warnings[0],
            WarningGroup { kind: WarningTopic::BrokenLink, total: 1, first: vec![broken] }
        );
    }

    /// A vault may have more broken links than anyone reads; their number is still reported.
    #[test]
    fn warnings_of_a_kind_are_all_counted_and_the_first_listed() {
        let links: String = (0..WARNINGS + 7).map(|n| format!("[[none {n}]]\n")).collect();
        let harness = Harness::new(&format!("//- a.md\n{links}//- z.md\n---\ntags: [x\n---\n"));
        let overview = harness.registry.overview().unwrap();
        let counts: Vec<_> =
            overview.warnings.iter().map(|group| (group.kind, group.total, group.first.len())).collect();
        let expected = [(WarningTopic::BrokenLink, WARNINGS + 7, WARNINGS), (WarningTopic::Frontmatter, 1, 1)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn warning_about_the_server_is_the_first() {
        let mut overview = Overview::default();
        for number in 0..=WARNINGS {
            overview.warn(WarningTopic::Other, "a.md", || number.to_string());
            overview.warn(WarningTopic::BrokenLink, "a.md", || number.to_string());
        }
        overview.warn_first("it is out of date".to_owned());
        let first = &overview.warnings[0];
        assert_eq!(
            (first.first[0].as_str(), first.first.len(), first.total),
            ("it is out of date", WARNINGS, WARNINGS + 2)
        );
        assert_eq!(overview.warnings_total, 2 * WARNINGS + 3);
    }
}
