//! What other programs did to notes between two snapshots, for the history.

use super::snapshot::Snapshot;
use crate::model::{Note, NoteKey, VaultPath};
use crate::ports::{LoggedFile, LoggedVersion, NoteAction};

/// The files of one batch that other programs may have changed. Those that this program wrote and indexed late are among
/// them: the history knows them.
pub(crate) struct OutsideBatch {
    pub(crate) files: Vec<LoggedFile>,
}

impl OutsideBatch {
    /// `None` if no file was changed. New files count only if the first snapshot had every file.
    pub(super) fn new(before: &Snapshot, after: &Snapshot, keys: &[NoteKey], was_complete: bool) -> Option<Self> {
        let mut files = Vec::new();
        for key in keys {
            match (before.get(*key), after.get(*key)) {
                (Some(old), Some(new)) if old.path == new.path && old.hash == new.hash => {}
                (Some(old), Some(new)) if old.path == new.path => {
                    files.push(file(NoteAction::Edit, &new.path, Some(old), Some(new)));
                }
                // A key may be used again.
                (old, new) => {
                    files.extend(old.map(|old| file(NoteAction::Delete, &old.path, Some(old), None)));
                    let new = new.filter(|_| was_complete);
                    files.extend(new.map(|new| file(NoteAction::Create, &new.path, None, Some(new))));
                }
            }
        }
        (!files.is_empty()).then_some(Self { files })
    }

    /// Replaces the disappearance and the appearance of a file by its move.
    pub(crate) fn join_moves(&mut self, moves: &[(VaultPath, VaultPath)]) {
        for (from, to) in moves {
            let part = |path: &VaultPath, action| {
                self.files.iter().position(|file| file.path == *path && file.action == action)
            };
            let old = part(from, NoteAction::Delete).map(|index| self.files[index].clone());
            let Some(new) = part(to, NoteAction::Create) else { continue };
            let after = self.files[new].after;
            let before = old.and_then(|old| old.before).or(after);
            let (path, from) = (to.clone(), Some(from.clone()));
            self.files[new] = LoggedFile { action: NoteAction::Move, path, from, before, after, kept: None };
            let gone = |file: &LoggedFile| {
                file.action == NoteAction::Delete && Some(&file.path) == self.files[new].from.as_ref()
            };
            if let Some(index) = self.files.iter().position(gone) {
                self.files.remove(index);
            }
        }
    }
}

fn file(action: NoteAction, path: &VaultPath, before: Option<&Note>, after: Option<&Note>) -> LoggedFile {
    let version = |note: &Note| LoggedVersion {
        hash: note.hash,
        chars: note.counts.file_chars as u64,
        modified_ns: note.stat.modified_ns,
    };
    let (before, after) = (before.map(version), after.map(version));
    LoggedFile { action, path: path.clone(), from: None, before, after, kept: None }
}
