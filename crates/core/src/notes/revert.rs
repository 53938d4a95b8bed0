//! An earlier version of a note again, or a deleted note.

use super::history::TracedNote;
use super::{NoteError, Writing};
use crate::index::{IndexError, WrittenFile};
use crate::model::{ContentHash, NoteId, NoteKey, VaultPath};
use crate::ports::{FileChange, FileContent, NoteAction};
use crate::session::Session;
use crate::{Knowledge, RequestKey, parse, unified_diff};

/// A note after it was reverted.
#[derive(Debug)]
pub struct RevertedNote {
    pub path: VaultPath,
    pub id: NoteId,
    /// The version of the file now.
    pub version: ContentHash,
    /// The version before; `None` if the note was deleted, or where the diff is not known.
    pub before: Option<ContentHash>,
    /// The unified diff; empty if the note had this version. `None` if an earlier attempt of the same call wrote it.
    pub diff: Option<String>,
}

impl Knowledge {
    /// Gives a note the text of an earlier version, or restores a deleted one at its last path. Guarded like every write; the
    /// version that it replaces is kept.
    pub fn revert_note(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        id: &str,
        version: &str,
    ) -> Result<RevertedNote, NoteError> {
        let indexed = self.index_exact(id);
        let write = |writer: Writing<'_>| {
            indexed?;
            match self.note_to_write(session, id)? {
                Some(current) => self.revert_existing(session, request, current, version, writer),
                None => self.revert_deleted(session, request, id, version, writer),
            }
        };
        let done = |path: &VaultPath| {
            let note = self.done_before(session, path)?;
            let (path, id) = (note.note().path.clone(), note.note().id.clone());
            Ok(RevertedNote { path, id, version: note.hash, before: None, diff: None })
        };
        self.once(request, write, done)
    }

    fn revert_existing(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        (key, current): (NoteKey, FileContent),
        version: &str,
        mut writer: Writing<'_>,
    ) -> Result<RevertedNote, NoteError> {
        let snapshot = self.snapshot();
        let (path, id) = (snapshot.note(key).path.clone(), snapshot.note(key).id.clone());
        let before = current.hash;
        let (trace, old_text) = (self.trace(&path)?, parse::decode(current.bytes.clone()));
        let traced = TracedNote { path: path.clone(), id: id.clone(), content: Some(current), trace };
        let (bytes, kept) = self.version_bytes(&traced, version)?;
        let diff = Some(unified_diff(&old_text, &parse::decode(bytes.clone())));
        let after = ContentHash::of(&bytes);
        if after != before {
            let whole = session.shown_whole(&path, before) == Some(true);
            let real = self.vault.real_path(&path).map_err(IndexError::from)?;
            let change = FileChange::Replace { path: path.clone(), expected: before, bytes: bytes.clone() };
            let stats = self.apply_kept(session, (NoteAction::Revert, request), (&[change], &[kept]))?;
            let stat = stats.first().copied().flatten().expect("a replaced file has a stat");
            self.indexer.apply_written(&mut writer, vec![WrittenFile::new(path.clone(), bytes.clone(), stat)]);
            self.show_own_write(session, &real, before, after);
            self.written(session, key, bytes, whole);
        }
        Ok(RevertedNote { path, id, version: after, before: Some(before), diff })
    }

    fn revert_deleted(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        id: &str,
        version: &str,
        mut writer: Writing<'_>,
    ) -> Result<RevertedNote, NoteError> {
        let not_found = || NoteError::NotFound { id: NoteId::new(id) };
        let path = self.last_path(id)?.ok_or_else(not_found)?;
        let content = self.vault.read(&path).map_err(IndexError::from)?;
        if content.is_some() {
            return Err(NoteError::Moved { id: NoteId::new(id), to: path });
        }
        let traced = TracedNote { id: path.note_id(), content, trace: self.trace(&path)?, path: path.clone() };
        let (bytes, kept) = self.version_bytes(&traced, version)?;
        let change = FileChange::Create { path: path.clone(), bytes: bytes.clone() };
        let stats = self.apply_kept(session, (NoteAction::Revert, request), (&[change], &[kept]))?;
        let stat = stats.first().copied().flatten().expect("a created file has a stat");
        self.indexer.apply_written(&mut writer, vec![WrittenFile::new(path.clone(), bytes.clone(), stat)]);
        let key = self.snapshot().find_exact(&path).expect("the note was just indexed");
        let diff = Some(unified_diff("", &parse::decode(bytes.clone())));
        let note = self.written(session, key, bytes, false);
        Ok(RevertedNote { path, id: note.note().id.clone(), version: note.hash, before: None, diff })
    }
}
