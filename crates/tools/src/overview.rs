//! How much there is in a vault and its memory, and what is odd: what a person looks at first.

use std::time::Duration;

use quipu_core::model::Warning;
use serde::{Deserialize, Serialize};

use crate::registry::Registry;
use crate::tool_error::ToolError;
use crate::truncate::{MAX_WARNING, truncate};

/// Warnings that are given in words; the rest is counted.
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
    /// Of memory.
    pub entities: u64,
    /// Of memory.
    pub observations: u64,
    /// Of memory.
    pub relations: u64,
    /// Passages with a vector.
    pub embedded: usize,
    /// Passages.
    pub to_embed: usize,
    /// The first of them, in order of path.
    pub warnings: Vec<String>,
    /// All of them, broken links included.
    pub warnings_total: usize,
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
            let broken = snapshot.broken_links(key).map(|link| {
                overview.broken_links += 1;
                format!("broken link to {:?}", link.target)
            });
            let messages: Vec<String> = note.warnings.iter().cloned().chain(broken).collect();
            overview.warnings_total += messages.len();
            let room = WARNINGS.saturating_sub(overview.warnings.len());
            overview.warnings.extend(
                messages.into_iter().take(room).map(|message| {
                    truncate(&Warning { path: note.path.to_string(), message }.to_string(), MAX_WARNING)
                }),
            );
        }
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

    /// Whether the vault has been read.
    pub fn is_indexed(&self) -> bool {
        self.knowledge.wait_ready(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Harness;

    #[test]
    fn overview_counts_links_orphans_and_warnings() {
        let harness = Harness::new("//- a.md\n[[b]] [[nowhere]]\n//- b.md\n//- alone.md\n---\ntags: [x\n---\n");
        let overview = harness.registry.overview().unwrap();
        assert_eq!((overview.notes, overview.links, overview.broken_links, overview.orphans), (3, 1, 1, 1));
        assert_eq!(overview.warnings_total, 2);
        assert_eq!(overview.warnings[0], "\"a.md\": broken link to \"nowhere\"");
    }
}
