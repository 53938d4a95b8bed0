//! A whole write undone: every file of a move with its rewritten links, or none.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{NoteError, Writing};
use crate::index::{FileBatch, IndexError, Moves, WrittenFile};
use crate::model::{ContentHash, VaultPath};
use crate::ports::{
    FileChange, LoggedFile, LoggedWrite, NoteAction, OUTSIDE, VaultError, WriteError, WriteFilter, WriteNumber,
};
use crate::session::Session;
use crate::{Knowledge, RequestKey};

/// A write that was undone.
#[derive(Debug)]
pub struct UndoneWrite {
    /// The write that undid it, which can be undone in turn; `None` if the history does not tell.
    pub by: Option<WriteNumber>,
    /// The action on each file.
    pub steps: Vec<LoggedFile>,
}

impl Knowledge {
    /// Undoes a write: all of its files or none. Refused if one of them has changed since.
    pub fn undo_write(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        number: WriteNumber,
    ) -> Result<UndoneWrite, NoteError> {
        let filter = WriteFilter {
            after: WriteNumber(number.0.saturating_sub(1)),
            before: WriteNumber(number.0.saturating_add(1)),
            ..WriteFilter::default()
        };
        let found = self.vault.writes(&filter).map_err(IndexError::from)?.pop();
        let logged = found.ok_or(NoteError::NoChange { number })?;
        let write = |mut writer: Writing<'_>| {
            let (changes, kept): (Vec<_>, Vec<_>) = self.reversed(&logged)?.into_iter().unzip();
            let has_new_paths = changes.iter().any(|change| !matches!(change, FileChange::Replace { .. }));
            let before = self.snapshot();
            let stats = self.apply_kept(session, (NoteAction::Undo, request), (&changes, &kept));
            let stats = stats.map_err(|error| match self.already_undone(&logged) {
                Some(by) => NoteError::AlreadyUndone { number, by },
                None => changed_since(number, error),
            })?;
            self.show_undone(session, &changes);
            let mut moved = FxHashMap::default();
            let notes =
                changes.into_iter().zip(stats).filter(|(change, _)| !matches!(change, FileChange::Rename { .. }));
            let written = notes.map(|(change, stat)| match (change, stat) {
                (FileChange::Move { from, to, bytes, .. }, Some(stat)) => {
                    moved.insert(from.clone(), to.clone());
                    WrittenFile { renamed_from: Some(from), ..WrittenFile::new(to, bytes, stat) }
                }
                (FileChange::Create { path, bytes } | FileChange::Replace { path, bytes, .. }, Some(stat)) => {
                    WrittenFile::new(path, bytes, stat)
                }
                (change, _) => WrittenFile { path: change.path().clone(), renamed_from: None, content: None },
            });
            let written = written.collect();
            self.indexer.apply_written(&mut writer, written);
            moved.keys().for_each(|from| self.remove_vacated_folders(from));
            if !moved.is_empty() {
                self.indexer.queue_moves(Moves { before, to: moved });
            }
            Ok(has_new_paths)
        };
        if self.once(request, write, |_: &VaultPath| Ok(false))? {
            // Symbolic links that led nowhere may lead to the restored files, and only a walk finds them. If it fails, the
            // watcher's next walk does.
            let _ = self.apply(&FileBatch::All, &|_| {});
        }
        self.follow_changes();
        let steps = logged.files.iter().rev().map(undone).collect();
        // The undo took place: it has not failed if its number cannot be read.
        let by = self.undo_of(&logged).unwrap_or_default();
        Ok(UndoneWrite { by: by.map(|write| write.number), steps })
    }

    /// The files that a client's undo wrote count as read by it as far as the versions before did.
    fn show_undone(&self, session: &Session, changes: &[FileChange]) {
        for change in changes {
            match change {
                FileChange::Replace { path, expected, bytes } => {
                    // A path that cannot be resolved now is checked when it is written.
                    if let Ok(real) = self.vault.real_path(path) {
                        self.show_own_write(session, &real, *expected, ContentHash::of(bytes));
                    }
                }
                FileChange::Move { from, to, expected, bytes } => {
                    if let Some(whole) = session.shown_whole(from, *expected) {
                        session.show(to, ContentHash::of(bytes), whole);
                    }
                }
                FileChange::Create { .. } | FileChange::Rename { .. } | FileChange::Delete { .. } => {}
            }
        }
    }

    /// Removes the folders of a path that no longer have notes: the move may have created them. A failure does no harm.
    fn remove_vacated_folders(&self, path: &VaultPath) {
        let mut path = path.as_str();
        while let Some((folder, _)) = path.rsplit_once('/')
            && let Ok(folder_path) = VaultPath::parse(folder)
            && self.vault.list_below(&folder_path).is_ok_and(|listing| listing.files.is_empty())
            && self.vault.remove_empty_folders(&folder_path).is_ok()
        {
            path = folder;
        }
    }

    /// The newest write that undid this one. Other clients may have written since.
    fn undo_of(&self, logged: &LoggedWrite) -> Result<Option<LoggedWrite>, VaultError> {
        let Some(first) = logged.files.first() else { return Ok(None) };
        let id = Some(first.old_path().note_id());
        let undos = self.vault.writes(&WriteFilter { id, ..undos_after(logged.number) })?;
        Ok(undos.into_iter().find(|undo| is_undo(undo, logged)))
    }

    /// For each of these writes the one that undid it, unless it was undone in turn. Of the later history it reads only the undos,
    /// once for all of these writes.
    pub fn undone_by(&self, writes: &[&LoggedWrite]) -> Result<Vec<Option<WriteNumber>>, NoteError> {
        let Some(after) = writes.iter().map(|write| write.number).min() else { return Ok(Vec::new()) };
        let undos = self.vault.writes(&undos_after(after)).map_err(IndexError::from)?;
        // Each undo under each of its steps, newest first, so that a write is compared only with undos of the same step.
        let mut by_step: FxHashMap<ComparedStep, Vec<&LoggedWrite>> = FxHashMap::default();
        for undo in &undos {
            undo.files.iter().for_each(|file| by_step.entry(step(file)).or_default().push(undo));
        }
        let undo_of = |write: &LoggedWrite| {
            let same_step = by_step.get(&step(&undone(write.files.first()?)))?;
            same_step.iter().copied().find(|undo| undo.number > write.number && is_undo(undo, write))
        };
        let in_effect = |write: &&LoggedWrite| undo_of(write).filter(|undo| undo_of(undo).is_none());
        Ok(writes.iter().map(|write| in_effect(write).map(|undo| undo.number)).collect())
    }

    /// The write that undid this one, unless it was undone in turn.
    fn already_undone(&self, logged: &LoggedWrite) -> Option<WriteNumber> {
        let undo = self.undo_of(logged).ok()??;
        let is_in_effect = self.undo_of(&undo).is_ok_and(|redo| redo.is_none());
        is_in_effect.then_some(undo.number)
    }

    /// The changes that undo a write, each with the kept version whose text it writes.
    fn reversed(&self, write: &LoggedWrite) -> Result<Vec<(FileChange, Option<String>)>, NoteError> {
        let refused = |reason: String| NoteError::CannotUndo { number: write.number, reason };
        if write.by == OUTSIDE {
            return Err(refused("another program made it, and Quipu has no copy of the text before".to_owned()));
        }
        if write.unlisted > 0 || write.files.iter().any(|file| file.action == NoteAction::Redact) {
            return Err(refused("a part of it was redacted".to_owned()));
        }
        let old_bytes = |file: &LoggedFile| {
            let kept =
                file.kept.as_ref().map(|kept| self.vault.kept_bytes(kept)).transpose().map_err(IndexError::from)?;
            // An editor that had the file open may have changed the kept one since: then it is not the old text.
            let old = file.before.map(|before| before.hash);
            let kept = kept.flatten().filter(|bytes| Some(ContentHash::of(bytes)) == old);
            kept.ok_or_else(|| refused(format!("Quipu has no copy of the old text of {}", file.old_path())))
        };
        let reverse = |file: &LoggedFile| {
            let path = file.path.clone();
            let change = match (&file.after, &file.from) {
                (Some(after), _) if file.before.is_none() => FileChange::Delete { path, expected: after.hash },
                (Some(after), Some(from)) => {
                    let (to, bytes) = (from.clone(), old_bytes(file)?);
                    FileChange::Move { from: path, to, expected: after.hash, bytes }
                }
                (Some(after), None) => FileChange::Replace { path, expected: after.hash, bytes: old_bytes(file)? },
                (None, Some(to)) if !file.is_note() => FileChange::Rename { from: path, to: to.clone() },
                (None, _) => FileChange::Create { path, bytes: old_bytes(file)? },
            };
            let kept = file.kept.clone().filter(|_| file.before.is_some());
            Ok((change, kept))
        };
        write.files.iter().rev().map(reverse).collect()
    }
}

fn undos_after(after: WriteNumber) -> WriteFilter {
    WriteFilter { action: Some(NoteAction::Undo), after, ..WriteFilter::default() }
}

/// What a write did to a file, for comparison.
type ComparedStep = (NoteAction, VaultPath, Option<VaultPath>, Option<ContentHash>);

/// Whether a later write undid exactly what this one did.
fn is_undo(later: &LoggedWrite, logged: &LoggedWrite) -> bool {
    let done: FxHashSet<_> = later.files.iter().map(step).collect();
    later.files.len() == logged.files.len() && logged.files.iter().all(|file| done.contains(&step(&undone(file))))
}

/// What an undo does to a file that a write changed.
fn undone(file: &LoggedFile) -> LoggedFile {
    LoggedFile {
        action: NoteAction::Undo,
        path: file.old_path().clone(),
        from: file.from.is_some().then(|| file.path.clone()),
        before: file.after,
        after: file.before,
        kept: None,
    }
}

fn step(file: &LoggedFile) -> ComparedStep {
    (file.action, file.path.clone(), file.from.clone(), file.after.map(|after| after.hash))
}

fn changed_since(number: WriteNumber, error: WriteError) -> NoteError {
    match error {
        WriteError::Changed { path } | WriteError::Missing { path } => {
            NoteError::CannotUndo { number, reason: format!("{path} has changed since") }
        }
        WriteError::Exists { existing } => NoteError::CannotUndo { number, reason: format!("{existing} exists") },
        other => other.into(),
    }
}
