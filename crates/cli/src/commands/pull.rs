//! `quipu pull`: brings the changes of a graph into a folder.

use clap::Args;
use quipu_core::sync::{Side, SyncDirection, SyncOptions};

use super::output::Output;
use super::sync_folder::{SyncTarget, print};
use super::{Failure, Outcome, Shared};

/// Bring the changes of a graph of a team's database into a folder of notes.
///
/// Notes that were created, changed, moved or deleted in the graph since the last synchronization are created, changed, moved
/// or deleted in the folder, byte for byte. The graph is not changed. If both sides changed a note, the graph's version keeps
/// the name and the folder's version is stored beside it, as `note (conflict 2026-11-18 ada).md`. A note that was deleted in
/// the graph but changed in the folder is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu pull ~/notes --dry-run     list what would be done
  quipu pull ~/notes --graph team
  quipu pull --force               replace the folder's version of notes in conflict

Replaced and deleted files go to the trash of the folder; `quipu restore` brings them back.

JSON fields:
  {created, changed, moved, deleted, in_sync, waiting, conflicts: [{path, copy}],
   skipped: [{path, reason}], excluded: [{path, reason}]}
  waiting is the number of changes in the folder that `quipu push` would bring

The exit code is 1 if a note was in conflict or cannot be pulled; all others are pulled.")]
pub(crate) struct Pull {
    #[command(flatten)]
    target: SyncTarget,
    /// Replace the folder's version of notes that both sides changed.
    #[arg(long)]
    force: bool,
    /// List what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Pull {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let mut open = self.target.open(shared, output)?;
        let options = SyncOptions { force: self.force, dry_run: self.dry_run, ..open.options(SyncDirection::Pull) };
        let report = open.run_once(options)?;
        print(&report, Side::Folder, &open.name, (self.dry_run, self.json), output)
    }
}
