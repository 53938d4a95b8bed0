//! `quipu push`: brings the changes of a folder into a graph.

use clap::Args;
use quipu_core::sync::{Side, SyncDirection, SyncOptions};

use super::output::Output;
use super::sync_folder::{SyncTarget, print};
use super::{Failure, Outcome, Shared};

/// Bring the changes of a folder of notes into a graph of a team's database.
///
/// Notes that were created, changed, moved or deleted in the folder since the last synchronization are created, changed, moved
/// or deleted in the graph, byte for byte. The folder is not changed. A note that was changed on both sides is left as it is
/// and listed. A note that was deleted here but changed in the graph is kept. The first run deletes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu push ~/notes --dry-run     list what would be done
  quipu push ~/notes --graph team
  quipu push --force               replace the graph's version of notes in conflict

Only notes are pushed; images and other files stay in the folder. The state of the last
synchronization is recorded in .quipu/ of the folder. Replaced versions are in the history
of the graph.

JSON fields:
  {created, changed, moved, deleted, in_sync, waiting, conflicts: [{path, copy}],
   skipped: [{path, reason}], excluded: [{path, reason}]}
  waiting is the number of changes in the graph that `quipu pull` would bring

The exit code is 1 if a note is in conflict or cannot be pushed; all others are pushed.")]
pub(crate) struct Push {
    #[command(flatten)]
    target: SyncTarget,
    /// Replace the graph's version of notes that both sides changed.
    #[arg(long)]
    force: bool,
    /// List what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Push {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let mut open = self.target.open(shared, output)?;
        let options = SyncOptions { force: self.force, dry_run: self.dry_run, ..open.options(SyncDirection::Push) };
        let report = open.run_once(options)?;
        print(&report, Side::Graph, &open.name, (self.dry_run, self.json), output)
    }
}
