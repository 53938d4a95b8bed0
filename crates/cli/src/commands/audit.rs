//! `quipu audit`: the log of memory, newest first.

use clap::Args;
use quipu_core::ports::ChangeNumber;

use super::database::GraphOption;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared, change};
use crate::compose::OpenMode;

/// List the changes to memory, each with its client, its tool, and what it changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu audit                     list the newest twenty changes
  quipu audit --limit 500 --json  list more changes, for a script
  quipu audit --before 120        list changes before change 120
  quipu audit --graph team        list the changes of a graph in a database

JSON fields:
  [{change, at, client, tool, undoes, undone_by, steps: [{before, after}]}], newest first;
  before is null for a created item, after for a deleted one")]
pub(crate) struct Audit {
    /// Show at most this many changes.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Show only changes before this one.
    #[arg(long, value_name = "CHANGE", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
    #[command(flatten)]
    graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = self.graph.memory(shared, OpenMode::Existing)?;
        let before = ChangeNumber(self.before.unwrap_or(i64::MAX));
        let changes = open.memory.store().log_before(before, self.limit as usize)?;
        if self.json {
            output.json(&changes.iter().map(change::to_json).collect::<Vec<_>>())?;
            return Ok(Outcome::Fine);
        }
        if changes.is_empty() {
            let nothing = match self.before {
                Some(before) => format!("no change has a number below {before}"),
                None => "memory has no changes yet".to_owned(),
            };
            output.aside(&Line::new().plain(nothing));
        }
        for entry in &changes {
            let heading = Line::new().bold(entry.number.0.to_string()).plain(format!("  {}", change::heading(entry)));
            output.line(&heading)?;
            for line in change::lines(entry) {
                output.line(&Line::new().plain(format!("    {line}")))?;
            }
        }
        Ok(Outcome::Fine)
    }
}
