//! `quipu mirror`: keeps a folder and a graph equal while it runs.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use clap::Args;
use quipu_core::index::FileBatch;
use quipu_core::model::VaultPath;
use quipu_core::sync::{BaseChange, BaseLog, Side, SyncDirection, SyncError, SyncReport, SyncRun};
use quipu_server::on_stop_signal;

use super::output::{Line, Output, counted};
use super::sync_folder::{OpenSync, SyncTarget, failed, line, print_problems};
use super::{Failure, Outcome, Shared};

/// How often the feed of the graph is read when nothing wakes this process.
const POLL: Duration = Duration::from_secs(1);

/// After a change of a file, its editor may still be writing: so long without another one,
const QUIET: Duration = Duration::from_millis(200);

/// or at the latest so long after the first.
const LATEST: Duration = Duration::from_secs(2);

/// Keep a folder of notes and a graph of a team's database equal.
///
/// Runs until Ctrl-C. A change on either side reaches the other within about a second, byte for byte. While the database is
/// unreachable, the folder can be edited as usual; changes are exchanged when the database answers again. If both sides changed
/// a note, the graph's version keeps the name, and the folder's version is stored beside it on both sides, as
/// `note (conflict 2026-11-18 ada).md`. A note that was deleted on one side but changed on the other is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu mirror ~/notes --graph team
  quipu mirror ~/work/handbook     a git checkout: `quipu stale` compares notes with sources

Replaced and deleted versions are in the trash of the folder (`quipu restore`) and in the
history of the graph. Quipu may be stopped or killed at any time; the next run continues.")]
pub(crate) struct Mirror {
    #[command(flatten)]
    target: SyncTarget,
}

enum Event {
    Folder(Result<FileBatch, String>),
    /// The change feed may have new entries.
    Graph,
    Stop,
}

impl Mirror {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = self.target.open(shared, output)?;
        let (sender, events) = mpsc::channel();
        let _watcher = listen(&open, &sender)?;
        let root = open.folder.root().display().to_string();
        output.aside(
            &Line::new()
                .plain("mirroring ")
                .bold(root)
                .plain(format!(" and the graph {}", open.name))
                .dim("; Ctrl-C ends it"),
        );
        let mut mirror = Mirroring { open, events, pending: Pending::All, failing_since: None, is_first: true };
        mirror.follow(output)?;
        output.aside(&Line::new().plain("stopped; folder and graph are compared again at the next start"));
        Ok(Outcome::Fine)
    }
}

/// Sends an event for every change of either side, and for a signal to stop.
fn listen(open: &OpenSync, sender: &Sender<Event>) -> Result<Box<dyn Send>, Failure> {
    let (to, wake, stop) = (sender.clone(), sender.clone(), sender.clone());
    // A closed channel means that the command ends.
    let watcher = open.folder.watch(move |event| _ = to.send(Event::Folder(event)));
    open.graph.feed.on_change(Box::new(move || _ = wake.send(Event::Graph)));
    on_stop_signal(move || _ = stop.send(Event::Stop))?;
    watcher.map_err(Failure::failed)
}

/// A side, or a file of it, that is to be compared.
enum Pending {
    All,
    Some(BTreeSet<VaultPath>),
}

impl Pending {
    fn add(&mut self, event: Result<FileBatch, String>, output: &Output) {
        match (event, self) {
            (Ok(FileBatch::Paths(paths) | FileBatch::Files(paths)), Self::Some(pending)) => pending.extend(paths),
            (Ok(FileBatch::Paths(_) | FileBatch::Files(_)), Self::All) => {}
            (Ok(FileBatch::All | FileBatch::AllRehashed), pending) => *pending = Self::All,
            (Err(warning), _) => output.warning(&warning, None),
        }
    }
}

struct Mirroring {
    open: OpenSync,
    events: Receiver<Event>,
    pending: Pending,
    failing_since: Option<Instant>,
    is_first: bool,
}

impl Mirroring {
    /// Exchanges changes until the process is asked to stop.
    fn follow(&mut self, output: &mut Output) -> Result<(), Failure> {
        loop {
            match self.exchange() {
                Ok(report) => {
                    if self.failing_since.take().is_some() {
                        output.aside(&Line::new().plain("the database answers again"));
                    }
                    self.print(&report, output)?;
                }
                Err(error) if error.is_outage() => {
                    if self.failing_since.is_none() {
                        self.failing_since = Some(Instant::now());
                        output.warning(&format!("{error}; retrying"), None);
                    }
                }
                Err(error) => return Err(failed(&error)),
            }
            if !self.wait(output) {
                return Ok(());
            }
        }
    }

    /// Waits for events; returns whether to go on.
    fn wait(&mut self, output: &Output) -> bool {
        let first = Instant::now();
        let mut timeout = POLL;
        loop {
            match self.events.recv_timeout(timeout) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(Event::Folder(event)) => {
                    self.pending.add(event, output);
                    timeout = QUIET.min(LATEST.saturating_sub(first.elapsed()));
                }
                Ok(Event::Graph) => timeout = timeout.min(QUIET),
                Err(RecvTimeoutError::Timeout) => return true,
            }
        }
    }

    /// Compares what changed on either side. What fails is compared again.
    fn exchange(&mut self) -> Result<SyncReport, SyncError> {
        let OpenSync { folder, graph, .. } = &self.open;
        let (folder, graph, feed) = (folder.port(), graph.files.clone(), graph.feed.clone());
        let options = self.open.options(SyncDirection::Mirror);
        let position = self.open.log.base().position();
        let unreachable = |error: quipu_core::ports::FeedError| {
            SyncError::Read(quipu_core::ports::VaultError::Database { reason: error.to_string() })
        };
        // Before the comparison: a change in between is compared the next time.
        let head = match &mut self.pending {
            Pending::All => feed.head().map_err(unreachable)?,
            Pending::Some(pending) => {
                let changes = feed.changes_since(position).map_err(unreachable)?;
                pending.extend(changes.paths);
                changes.head
            }
        };
        let sync = SyncRun { folder: &*folder, graph: &*graph, options };
        let report = match &self.pending {
            Pending::All => sync.all(&mut self.open.log)?,
            Pending::Some(paths) if paths.is_empty() => SyncReport::default(),
            Pending::Some(paths) => sync.some(paths, &mut self.open.log)?,
        };
        // Compared once more: the watcher may not see that a folder which was just created is deleted at once.
        let written = report.steps.iter().filter(|step| step.side == Side::Folder);
        self.pending = Pending::Some(written.map(|step| step.path.clone()).collect());
        if head != position {
            self.open.log.record(&[BaseChange::Position(head)]).map_err(SyncError::Record)?;
        }
        Ok(report)
    }

    fn print(&mut self, report: &SyncReport, output: &mut Output) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_first) {
            let moved = report.steps.len();
            let text = format!("{} exchanged, {} in sync before", counted(moved, "change", "changes"), report.in_sync);
            output.line(&Line::new().plain(text))?;
        } else {
            report.steps.iter().try_for_each(|step| output.line(&line(step)))?;
        }
        print_problems(report, Side::Folder, output);
        output.finish()
    }
}
