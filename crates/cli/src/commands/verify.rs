//! `quipu verify`: checks that memory is intact.

use clap::Args;
use serde_json::json;

use super::database::GraphOption;
use super::output::{Line, Output, counted};
use super::{Failure, Outcome, Shared};
use crate::compose::OpenMode;

/// Check that memory is intact: every page, every reference, and the log.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu verify
  quipu verify --graph team   check the memory of a graph in a database
  quipu verify --json

JSON fields:
  {sound, findings, entities, observations, relations, changes}

The exit code is 1 when there is a problem. `quipu doctor` checks the notes and their index.")]
pub(crate) struct Verify {
    #[command(flatten)]
    graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = self.graph.memory(shared, OpenMode::Existing)?;
        let store = open.memory.store();
        let findings = store.check()?;
        let outcome = if findings.is_empty() { Outcome::Fine } else { Outcome::Negative };
        if outcome == Outcome::Negative && !self.json {
            for finding in &findings {
                output.line(&Line::new().yellow("problem: ").plain(finding.as_str()))?;
            }
            return Ok(outcome);
        }
        // The rows of a corrupt file cannot be counted.
        let (counts, changes) = match outcome {
            Outcome::Fine => (store.counts()?, store.head()?.0),
            Outcome::Negative => Default::default(),
        };
        if self.json {
            output.json(&json!({
                "sound": findings.is_empty(),
                "findings": findings,
                "entities": counts.entities,
                "observations": counts.observations,
                "relations": counts.relations,
                "changes": changes,
            }))?;
            return Ok(outcome);
        }
        output.line(&Line::new().plain(format!(
            "memory is intact: {}, {}, {}, {}",
            counted(counts.entities, "entity", "entities"),
            counted(counts.observations, "observation", "observations"),
            counted(counts.relations, "relation", "relations"),
            counted(changes, "change", "changes")
        )))?;
        Ok(outcome)
    }
}
