//! Applies a plan: reads the bytes of each step, writes them guarded, records the base.

use std::collections::BTreeSet;

use super::base::{BaseChange, BaseLog};
use super::compare::{self, FolderComparison};
use super::copy_name::copy_name;
use super::plan::{Action, Side, Step, SyncDirection, SyncPlan, plan};
use super::report::{Conflict, SkippedFile, SyncError, SyncReport};
use crate::model::{ContentHash, VaultPath};
use crate::ports::{FileChange, VaultFiles, WriteError, WriteOrigin};

/// Steps that are written together: all or none, and one by one if that is refused.
const BATCH: usize = 64;

/// How often a note that changes meanwhile is compared again.
const ROUNDS: usize = 5;

/// Fewer deletions are not suspicious.
const FEW: usize = 10;

/// A folder and a graph.
pub struct SyncRun<'a> {
    pub folder: &'a dyn VaultFiles,
    pub graph: &'a dyn VaultFiles,
    /// The options of the run.
    pub options: SyncOptions,
}

/// How folder and graph are synchronised.
#[derive(Debug, Clone)]
pub struct SyncOptions {
    /// Which sides are written.
    pub direction: SyncDirection,
    /// In a conflict the side that is read replaces the other; the replaced version is in the trash or the history.
    pub force: bool,
    /// Only says what would be done.
    pub dry_run: bool,
    /// Deletes also more than half of the notes of a side.
    pub allow_deletes: bool,
    /// When and who, for the name of the copy in a conflict.
    pub label: String,
    /// The author of writes to the graph, for its history.
    pub writes_graph_as: String,
    /// The author of writes to the folder, for its history.
    pub writes_folder_as: String,
}

/// The result of a step.
enum ApplyOutcome {
    Done,
    /// The note changed meanwhile.
    Raced,
    Skipped(String),
}

impl SyncRun<'_> {
    /// Compares every note.
    pub fn all(&self, log: &mut dyn BaseLog) -> Result<SyncReport, SyncError> {
        self.run(compare::all(self.folder, self.graph, log.base())?, log)
    }

    /// Compares the notes at some paths, and those of the folder below them.
    pub fn some(&self, paths: &BTreeSet<VaultPath>, log: &mut dyn BaseLog) -> Result<SyncReport, SyncError> {
        self.run(compare::some(self.folder, self.graph, log.base(), paths)?, log)
    }

    /// Applies the decisions of a comparison, and compares notes that change meanwhile again.
    fn run(&self, first: FolderComparison, log: &mut dyn BaseLog) -> Result<SyncReport, SyncError> {
        let mut report = SyncReport::default();
        let mut again = self.round(first, &mut report, log)?;
        for _ in 1..ROUNDS {
            if again.is_empty() {
                return Ok(report);
            }
            let mut later = SyncReport::default();
            let next = compare::some(self.folder, self.graph, log.base(), &again)?;
            again = self.round(next, &mut later, log)?;
            report.add(later);
        }
        let reason = "it changes all the time; try again later".to_owned();
        report.skipped.extend(again.into_iter().map(|path| SkippedFile { path, reason: reason.clone() }));
        Ok(report)
    }

    /// One comparison; returns the notes to compare again.
    fn round(
        &self,
        comparison: FolderComparison,
        report: &mut SyncReport,
        log: &mut dyn BaseLog,
    ) -> Result<BTreeSet<VaultPath>, SyncError> {
        let SyncOptions { direction, force, dry_run, .. } = self.options;
        let SyncPlan { steps, mut record, in_sync, conflicts, waiting } = plan(&comparison.notes, direction, force);
        report.in_sync += in_sync;
        report.waiting += waiting;
        report.conflicts.extend(conflicts.into_iter().map(|path| Conflict { path, copy: None }));
        report.skipped.extend(comparison.unreadable);
        record.extend(comparison.excluded.iter().map(|excluded| BaseChange::Gone(excluded.path.clone())));
        report.excluded.extend(comparison.excluded);
        self.refuse_too_many_deleted(&steps, log)?;
        let mut again = BTreeSet::new();
        if dry_run {
            let kept = steps.iter().filter(|step| matches!(step.action, Action::KeepBoth { .. }));
            report.conflicts.extend(kept.map(|step| Conflict { path: step.path.clone(), copy: None }));
            report.steps.extend(steps);
            return Ok(again);
        }
        log.record(&record).map_err(SyncError::Record)?;
        for batch in batches(&steps) {
            self.apply_batch(batch, report, &mut again, log)?;
        }
        Ok(again)
    }

    fn refuse_too_many_deleted(&self, steps: &[Step], log: &dyn BaseLog) -> Result<(), SyncError> {
        for side in [Side::Folder, Side::Graph] {
            let is_deletion = |step: &&Step| step.side == side && matches!(step.action, Action::Delete(_));
            let (deleted, notes) = (steps.iter().filter(is_deletion).count(), log.base().len());
            if !self.options.allow_deletes && deleted > FEW && deleted * 2 > notes {
                return Err(SyncError::TooManyDeleted { side, deleted, notes });
            }
        }
        Ok(())
    }

    /// Writes steps of one side together, or one by one if one of them is refused.
    fn apply_batch(
        &self,
        steps: &[Step],
        report: &mut SyncReport,
        again: &mut BTreeSet<VaultPath>,
        log: &mut dyn BaseLog,
    ) -> Result<(), SyncError> {
        if let [Step { path, action: Action::KeepBoth { folder, graph }, .. }] = steps {
            return self.keep_both((path, *folder, *graph), &steps[0], report, again, log);
        }
        let Some(first) = steps.first() else { return Ok(()) };
        let mut changes = Vec::with_capacity(steps.len());
        let mut ready = Vec::with_capacity(steps.len());
        let sources: Vec<&VaultPath> = steps.iter().map(|step| &step.path).collect();
        for (step, read) in steps.iter().zip(self.side(other(first.side)).read_many(&sources)) {
            match change(step, read?.map(|content| (content.hash, content.bytes))) {
                Some(change) => {
                    changes.push(change);
                    ready.push(step);
                }
                None => again.extend(paths(step).cloned()),
            }
        }
        log.record(&ready.iter().flat_map(|step| announced(step)).collect::<Vec<_>>()).map_err(SyncError::Record)?;
        let outcome = self.apply(first.side, &changes)?;
        if !matches!(outcome, ApplyOutcome::Done) {
            let refused = ready.iter().flat_map(|step| paths(step)).cloned().map(BaseChange::NotWritten);
            log.record(&refused.collect::<Vec<_>>()).map_err(SyncError::Record)?;
        }
        match outcome {
            ApplyOutcome::Done => {
                log.record(&ready.iter().flat_map(|step| recorded(step)).collect::<Vec<_>>())
                    .map_err(SyncError::Record)?;
                report.steps.extend(ready.into_iter().cloned());
            }
            ApplyOutcome::Raced | ApplyOutcome::Skipped(_) if ready.len() > 1 => {
                for step in ready {
                    self.apply_batch(std::slice::from_ref(step), report, again, log)?;
                }
            }
            ApplyOutcome::Raced => again.extend(ready.into_iter().flat_map(paths).cloned()),
            ApplyOutcome::Skipped(reason) => ready.into_iter().for_each(|step| report.skip(step, reason.clone())),
        }
        Ok(())
    }

    /// Gives the graph's version its name in the folder, and keeps the folder's version beside it, in one write.
    fn keep_both(
        &self,
        (path, folder, graph): (&VaultPath, ContentHash, ContentHash),
        step: &Step,
        report: &mut SyncReport,
        again: &mut BTreeSet<VaultPath>,
        log: &mut dyn BaseLog,
    ) -> Result<(), SyncError> {
        let (own, new) = (self.folder.read(path)?, self.graph.read(path)?);
        let (own, new) = (own.filter(|own| own.hash == folder), new.filter(|new| new.hash == graph));
        let (Some(own), Some(new)) = (own, new) else {
            again.insert(path.clone());
            return Ok(());
        };
        let Some((copy, is_there)) = self.place_for_copy(path, folder)? else {
            report.skip(step, "there is no name for a copy of the folder's version".to_owned());
            return Ok(());
        };
        let create = FileChange::Create { path: copy.clone(), bytes: own.bytes };
        let replace = FileChange::Replace { path: path.clone(), expected: folder, bytes: new.bytes };
        let changes = if is_there { vec![replace] } else { vec![create, replace] };
        log.record(&announced(step)).map_err(SyncError::Record)?;
        let outcome = self.apply(Side::Folder, &changes)?;
        if !matches!(outcome, ApplyOutcome::Done) {
            log.record(&[BaseChange::NotWritten(path.clone())]).map_err(SyncError::Record)?;
        }
        match outcome {
            ApplyOutcome::Done => {
                log.record(&recorded(step)).map_err(SyncError::Record)?;
                report.steps.push(step.clone());
                report.conflicts.push(Conflict { path: path.clone(), copy: Some(copy.clone()) });
                // A mirror sends the copy to the graph.
                if self.options.direction == SyncDirection::Mirror {
                    again.insert(copy);
                }
            }
            ApplyOutcome::Raced => _ = again.insert(path.clone()),
            ApplyOutcome::Skipped(reason) => report.skip(step, reason),
        }
        Ok(())
    }

    /// A name that is free on both sides, or one that has these bytes already: an interrupted run kept them.
    fn place_for_copy(&self, path: &VaultPath, version: ContentHash) -> Result<Option<(VaultPath, bool)>, SyncError> {
        for number in 1..1000 {
            let Some(copy) = copy_name(path, &self.options.label, number) else { return Ok(None) };
            if self.folder.read(&copy)?.is_some_and(|there| there.hash == version) {
                return Ok(Some((copy, true)));
            }
            if self.folder.find_any_case(&copy)?.is_empty() && self.graph.find_any_case(&copy)?.is_empty() {
                return Ok(Some((copy, false)));
            }
        }
        Ok(None)
    }

    fn side(&self, side: Side) -> &dyn VaultFiles {
        match side {
            Side::Folder => self.folder,
            Side::Graph => self.graph,
        }
    }

    fn apply(&self, side: Side, changes: &[FileChange]) -> Result<ApplyOutcome, SyncError> {
        let by = match side {
            Side::Folder => &self.options.writes_folder_as,
            Side::Graph => &self.options.writes_graph_as,
        };
        let origin = WriteOrigin { by, ..WriteOrigin::UNKNOWN };
        match self.side(side).apply_for(changes, &origin) {
            Ok(_) => Ok(ApplyOutcome::Done),
            Err(WriteError::Changed { .. } | WriteError::Missing { .. }) => Ok(ApplyOutcome::Raced),
            Err(WriteError::Exists { existing }) => {
                let is_exact = changes.iter().any(|change| *change.path() == existing);
                Ok(if is_exact { ApplyOutcome::Raced } else { ApplyOutcome::Skipped(differs_in_case(&existing)) })
            }
            Err(WriteError::Refused { reason, .. }) => Ok(ApplyOutcome::Skipped(reason.to_owned())),
            Err(WriteError::Full { limit, .. }) => Ok(ApplyOutcome::Skipped(format!(
                "the graph has reached its limit of {limit}; an administrator can raise it with `quipu graph limit`"
            ))),
            Err(error) => Err(error.into()),
        }
    }
}

impl SyncReport {
    /// A folder excludes notes by its owner's choice; a graph refuses what it cannot hold.
    fn skip(&mut self, step: &Step, reason: String) {
        let is_choice = step.side == Side::Folder && !reason.starts_with(CASE);
        let list = if is_choice { &mut self.excluded } else { &mut self.skipped };
        list.push(SkippedFile { path: step.path.clone(), reason });
    }
}

/// The start of [`differs_in_case`].
const CASE: &str = "its name differs only in case from ";

fn differs_in_case(existing: &VaultPath) -> String {
    format!("{CASE}{existing}")
}

fn other(side: Side) -> Side {
    match side {
        Side::Folder => Side::Graph,
        Side::Graph => Side::Folder,
    }
}

/// Runs of steps on one side, short enough; a conflict alone.
fn batches(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    let is_conflict = |step: &Step| matches!(step.action, Action::KeepBoth { .. });
    let together = move |a: &Step, b: &Step| a.side == b.side && !is_conflict(a) && !is_conflict(b);
    steps.chunk_by(together).flat_map(|run| run.chunks(BATCH))
}

/// The write of a step, with what the other side has at its path; `None` if that changed meanwhile.
fn change(step: &Step, source: Option<(ContentHash, Vec<u8>)>) -> Option<FileChange> {
    let path = step.path.clone();
    let is_absent = source.is_none();
    let bytes = |wanted: ContentHash| source.filter(|(hash, _)| *hash == wanted).map(|(_, bytes)| bytes);
    Some(match &step.action {
        Action::Create(new) => FileChange::Create { path, bytes: bytes(*new)? },
        Action::Replace { old, new } => FileChange::Replace { path, expected: *old, bytes: bytes(*new)? },
        Action::Move { from, version } => {
            FileChange::Move { from: from.clone(), to: path, expected: *version, bytes: bytes(*version)? }
        }
        Action::Delete(old) if is_absent => FileChange::Delete { path, expected: *old },
        Action::Delete(_) | Action::KeepBoth { .. } => return None,
    })
}

/// The paths of a step.
fn paths(step: &Step) -> impl Iterator<Item = &VaultPath> {
    let from = if let Action::Move { from, .. } = &step.action { Some(from) } else { None };
    [&step.path].into_iter().chain(from)
}

/// The changes of the base to record before a step.
fn announced(step: &Step) -> Vec<BaseChange> {
    let writing = |change| match change {
        BaseChange::InSync(path, version) => BaseChange::Writing(path, step.side, Some(version)),
        BaseChange::Gone(path) => BaseChange::Writing(path, step.side, None),
        other => other,
    };
    recorded(step).into_iter().map(writing).collect()
}

/// The changes of the base to record after a step.
fn recorded(step: &Step) -> Vec<BaseChange> {
    let path = step.path.clone();
    match &step.action {
        Action::Create(new) | Action::Replace { new, .. } | Action::KeepBoth { graph: new, .. } => {
            vec![BaseChange::InSync(path, *new)]
        }
        Action::Move { from, version } => vec![BaseChange::Gone(from.clone()), BaseChange::InSync(path, *version)],
        Action::Delete(_) => vec![BaseChange::Gone(path)],
    }
}
