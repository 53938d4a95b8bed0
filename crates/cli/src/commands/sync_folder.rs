//! What `quipu push`, `pull` and `mirror` share: the folder, the graph, the file of the base, and the words for a report.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Zoned;
use quipu_core::model::VaultPath;
use quipu_core::sync::{
    Action, Base, BaseChange, BaseLog, Conflict, Side, SkippedFile, Step, SyncCounts, SyncDirection, SyncError,
    SyncOptions, SyncReport, SyncRun,
};
use quipu_own_folder::OwnFolder;
use quipu_server::own_files::own_folder;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::database::{DatabaseOption, choose_graph};
use super::open_vault::VaultLocation;
use super::output::{Line, Output, counted};
use super::{Failure, Outcome, Shared};
use crate::compose::{GraphFiles, OpenFiles};

/// Notes of one kind that are listed.
const LISTED: usize = 20;

/// Which folder and which graph.
#[derive(Debug, Args)]
pub(super) struct SyncTarget {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseOption,
    /// Graph of the database [default: the only one].
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
    /// Allow the run to delete more than half of the notes in the folder or the graph.
    #[arg(long)]
    allow_deletes: bool,
}

/// An open folder and an open graph.
pub(super) struct OpenSync {
    pub(super) folder: OpenFiles,
    pub(super) graph: GraphFiles,
    pub(super) log: BaseFile,
    pub(super) name: String,
    allow_deletes: bool,
}

impl SyncTarget {
    /// Opens both sides, and locks the folder against other runs.
    pub(super) fn open(&self, shared: &Shared, output: &Output) -> Result<OpenSync, Failure> {
        let location = VaultLocation::find(self.folder.as_deref(), shared)?;
        let database = self.database.open()?;
        let graph = choose_graph(&database, self.graph.as_deref())?;
        let folder = location.writable_files()?;
        folder.make_own_folder().map_err(|error| {
            Failure::failed(format!("cannot create .quipu in {}: {error}", folder.root().display()))
                .hint("make the folder writable: the sync record is stored there")
        })?;
        let mut log = BaseFile::open(folder.root(), &graph.name, graph.uid())?;
        let files = GraphFiles::open(database, &graph);
        let head = files.feed.head().map_err(|error| Failure::failed(error.to_string()))?;
        if log.base.is_empty() {
            output.aside(&Line::new().dim("only notes are synchronised; images and other files stay in the folder"));
        } else if head < log.base.position() {
            log.reset().map_err(|error| Failure::failed(SyncError::Record(error).to_string()))?;
            let message = format!("the graph {} is older than at the last run, as after a restore", graph.name);
            output.warning(&message, Some("notes that differ are conflicts now, and nothing is deleted"));
        }
        Ok(OpenSync { folder, graph: files, log, name: graph.name, allow_deletes: self.allow_deletes })
    }
}

impl OpenSync {
    /// How to synchronise in a direction.
    pub(super) fn options(&self, direction: SyncDirection) -> SyncOptions {
        let user = user();
        SyncOptions {
            direction,
            force: false,
            dry_run: false,
            allow_deletes: self.allow_deletes,
            label: format!("{} {user}", Zoned::now().strftime("%Y-%m-%d")),
            writes_graph_as: format!("quipu ({user})"),
            writes_folder_as: format!("graph {}", self.name),
        }
    }

    /// Compares every note once, in one direction.
    pub(super) fn run_once(&mut self, options: SyncOptions) -> Result<SyncReport, Failure> {
        let head = self.graph.feed.head().map_err(|error| Failure::failed(error.to_string()))?;
        let is_dry = options.dry_run;
        let (folder, graph) = (self.folder.port(), self.graph.files.clone());
        let report =
            SyncRun { folder: &*folder, graph: &*graph, options }.all(&mut self.log).map_err(|error| failed(&error))?;
        if !is_dry {
            self.log.record(&[BaseChange::Position(head)]).map_err(|error| failed(&SyncError::Record(error)))?;
        }
        Ok(report)
    }
}

/// The name of the person for histories and conflicts.
fn user() -> String {
    let variable = |name| std::env::var(name).ok().filter(|user: &String| !user.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "folder".to_owned());
    user.chars().filter(|c| c.is_alphanumeric() || "-_.".contains(*c)).take(40).collect()
}

/// The message on the terminal when a run stops.
pub(super) fn failed(error: &SyncError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        SyncError::TooManyDeleted { .. } => failure.hint("if that is intended, run this again with --allow-deletes"),
        _ => failure.hint("what was done is recorded; run this again to continue"),
    }
}

/// The base of one folder and one graph: `.quipu/sync-UID`, locked while a run uses it.
pub(super) struct BaseFile {
    base: Base,
    file: File,
    folder: OwnFolder,
    name: String,
    /// Released when it is closed.
    _lock: File,
}

impl BaseFile {
    fn open(root: &Path, graph: &str, uid: &str) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::failed(format!("cannot open the sync record in {}: {error}", own_folder(root).display()))
        };
        let folder = OwnFolder::open(&own_folder(root)).map_err(cannot)?;
        let name = format!("sync-{uid}");
        let lock = folder.file(&format!("{name}.lock"), OFlags::RDWR | OFlags::CREATE).map_err(cannot)?;
        if lock.try_lock().is_err() {
            let message = format!("cannot synchronise {} with {}: another run does", root.display(), graph);
            return Err(Failure::failed(message).hint("end the other `quipu push`, `pull` or `mirror`, or wait for it"));
        }
        Self::load(folder, name, lock).map_err(cannot)
    }

    fn load(folder: OwnFolder, name: String, lock: File) -> io::Result<Self> {
        let mut text = String::new();
        let mut file = folder.file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
        // A file that is not text is not ours: the base is then unknown.
        let is_text = file.read_to_string(&mut text).map(|_| true).or_else(|error| match error.kind() {
            io::ErrorKind::InvalidData => Ok(false),
            _ => Err(error),
        })?;
        let (base, _) = Base::parse(if is_text { &text } else { "" });
        let mut log = Self { base, file, folder, name, _lock: lock };
        log.rewrite()?;
        Ok(log)
    }

    /// Deletes the record of what was in sync.
    fn reset(&mut self) -> io::Result<()> {
        self.base = Base::default();
        self.rewrite()
    }

    /// Replaces the file by the shortest text of the base.
    fn rewrite(&mut self) -> io::Result<()> {
        let draft = format!("{}.new", self.name);
        self.folder.remove(&draft)?;
        let mut file = self.folder.file(&draft, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND)?;
        file.write_all(self.base.to_text().as_bytes())?;
        file.sync_data()?;
        self.folder.rename(&draft, &self.name)?;
        self.folder.sync()?;
        self.file = file;
        Ok(())
    }
}

impl BaseLog for BaseFile {
    fn base(&self) -> &Base {
        &self.base
    }

    fn record(&mut self, changes: &[BaseChange]) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.file.write_all(Base::lines(changes).as_bytes())?;
        self.file.sync_data()?;
        self.base.apply(changes);
        Ok(())
    }
}

/// Prints what a run did, or would do, and returns its exit code.
pub(super) fn print(
    report: &SyncReport,
    side: Side,
    name: &str,
    (is_dry, is_json): (bool, bool),
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let outcome = if report.is_clean() { Outcome::Fine } else { Outcome::Negative };
    if is_json {
        output.json(&to_json(report, side))?;
        return Ok(outcome);
    }
    if is_dry {
        for step in &report.steps {
            output.line(&line(step))?;
        }
    }
    let verb = match (side, is_dry) {
        (Side::Graph, false) => format!("pushed to {name}"),
        (Side::Graph, true) => format!("would push to {name}"),
        (Side::Folder, false) => format!("pulled from {name}"),
        (Side::Folder, true) => format!("would pull from {name}"),
    };
    let SyncCounts { created, changed, moved, deleted } = report.counts(side);
    let mut line = Line::new().plain(format!("{verb}: "));
    line = line.plain(format!("{created} created, {changed} changed, {moved} moved, {deleted} deleted"));
    output.line(&line.plain(format!("; {} in sync before", report.in_sync)))?;
    if report.waiting > 0 {
        let other = if side == Side::Graph { "quipu pull" } else { "quipu push" };
        let wait = counted(report.waiting, "change waits", "changes wait");
        output.aside(&Line::new().dim(format!("{wait} on the other side; `{other}` brings them")));
    }
    print_problems(report, side, output);
    Ok(outcome)
}

/// Prints conflicts and notes that were not synchronised.
pub(super) fn print_problems(report: &SyncReport, side: Side, output: &Output) {
    let (kept, left): (Vec<&Conflict>, Vec<&Conflict>) = report.conflicts.iter().partition(|it| it.copy.is_some());
    for Conflict { path, copy } in kept {
        let copy = copy.as_ref().map(ToString::to_string).unwrap_or_default();
        output.warning(&format!("{path} was changed on both sides: the folder's version is now {copy}"), None);
    }
    if !left.is_empty() {
        let conflicts = counted(left.len(), "note was", "notes were");
        let hint = match side {
            Side::Graph => {
                "`quipu pull` gets the graph's version and keeps yours beside it; `quipu push --force` replaces the graph's"
            }
            Side::Folder => "both versions are kept in the folder when this runs without --dry-run",
        };
        output.warning(&format!("{conflicts} changed on both sides and not synchronised"), Some(hint));
        list(left.iter().map(|it| it.path.to_string()), output);
    }
    let shown = |skipped: &SkippedFile| format!("{}: {}", skipped.path, skipped.reason);
    if !report.skipped.is_empty() {
        output.warning(&format!("cannot synchronise {}", counted(report.skipped.len(), "note", "notes")), None);
        list(report.skipped.iter().map(shown), output);
    }
    if !report.excluded.is_empty() {
        let notes = counted(report.excluded.len(), "note", "notes");
        output
            .aside(&Line::new().dim(format!("{notes} of the graph cannot be in this folder, and stay in the graph:")));
        list(report.excluded.iter().map(shown), output);
    }
}

fn list(lines: impl ExactSizeIterator<Item = String>, output: &Output) {
    let more = lines.len().saturating_sub(LISTED);
    lines.take(LISTED).for_each(|line| output.aside(&Line::new().plain(format!("  {line}"))));
    if more > 0 {
        output.aside(&Line::new().dim(format!("  and {more} more")));
    }
}

/// One step, as `--dry-run` and `mirror` print it.
pub(super) fn line(step: &Step) -> Line {
    let place = if step.side == Side::Graph { "graph" } else { "folder" };
    let (verb, from) = match &step.action {
        Action::Create(_) => ("create", None),
        Action::Replace { .. } => ("change", None),
        Action::Move { from, .. } => ("move", Some(from)),
        Action::Delete(_) => ("delete", None),
        Action::KeepBoth { .. } => ("keep both", None),
    };
    let from = from.map_or_else(String::new, |from| format!(" from {from}"));
    Line::new().dim(format!("{place:<6}  {verb:<9}  ")).bold(step.path.to_string()).plain(from)
}

fn to_json(report: &SyncReport, side: Side) -> Value {
    let SyncCounts { created, changed, moved, deleted } = report.counts(side);
    let conflict = |it: &Conflict| json!({ "path": it.path.as_str(), "copy": it.copy.as_ref().map(VaultPath::as_str) });
    let skipped = |it: &SkippedFile| json!({ "path": it.path.as_str(), "reason": it.reason });
    json!({
        "created": created,
        "changed": changed,
        "moved": moved,
        "deleted": deleted,
        "in_sync": report.in_sync,
        "waiting": report.waiting,
        "conflicts": report.conflicts.iter().map(conflict).collect::<Vec<_>>(),
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "excluded": report.excluded.iter().map(skipped).collect::<Vec<_>>(),
    })
}
