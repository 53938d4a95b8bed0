//! `quipu verify`: whether memory is whole.

use clap::Args;
use serde_json::json;

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};
use crate::compose::OpenMode;

/// Check memory: every page, every reference, and everything against the log.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu verify
  quipu verify --json

JSON fields:
  {sound, findings, entities, observations, relations, changes}

The exit code is 1 when something is wrong. `quipu doctor` checks the notes and their index.")]
pub(crate) struct Verify {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = VaultLocation::find(None, shared)?.memory(OpenMode::Existing)?;
        let store = open.memory.store();
        let findings = store.check()?;
        let outcome = if findings.is_empty() { Outcome::Fine } else { Outcome::Negative };
        if outcome == Outcome::Negative && !self.json {
            for finding in &findings {
                output.line(&Line::new().yellow("problem: ").plain(finding.as_str()))?;
            }
            return Ok(outcome);
        }
        // A damaged file cannot be counted.
        let (counts, changes) = match outcome {
            Outcome::Fine => (store.counts()?, store.head()?.0),
            Outcome::Negative | Outcome::Elsewhere(_) => Default::default(),
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
            "memory is whole: {} entities, {} observations, {} relations, {changes} changes",
            counts.entities, counts.observations, counts.relations
        )))?;
        Ok(outcome)
    }
}
