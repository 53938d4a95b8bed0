//! A note removed for good: its file, its kept versions and what the index has of it.

use rustc_hash::FxHashMap;

use super::{NoteError, Writing};
use crate::index::{IndexError, Writer, WrittenFile};
use crate::model::{ContentHash, NoteId, VaultPath, Warning};
use crate::ports::{FileChange, NoteAction, VaultError, WriteFilter};
use crate::session::Session;
use crate::{Knowledge, RequestKey};

/// What a redaction of a note removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RedactedNote {
    /// Whether the note existed.
    pub file: bool,
    /// Kept versions, the present one included.
    pub versions: usize,
}

impl Knowledge {
    /// Deletes a note and every kept version of it, under each name that it had, and rewrites index and history without them.
    /// One line with the reason is kept in the trash in their place. Also for a note that was deleted before. No version is
    /// expected: whatever the text is now, it must go.
    pub fn redact_note(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        id: &str,
        reason: &str,
    ) -> Result<RedactedNote, NoteError> {
        let taken_in = self.index_exact(id);
        let write = |mut writer: Writing<'_>| {
            taken_in?;
            let path = self.path_to_redact(id)?;
            let bytes = format!("[redacted: {reason}]\n").into_bytes();
            let trace = ContentHash::of(&bytes);
            let present = self.vault.read(&path).map_err(IndexError::from)?;
            let mut redacted =
                RedactedNote { file: present.as_ref().is_some_and(|old| old.hash != trace), versions: 0 };
            let change = match present {
                Some(content) => FileChange::Replace { path: path.clone(), expected: content.hash, bytes },
                None => FileChange::Create { path: path.clone(), bytes },
            };
            self.apply_by(session, (NoteAction::Redact, None), &[change])?;
            session.forget(&path);
            redacted.versions = self.finish_redaction(&mut writer, session, request, &path)?;
            Ok(redacted)
        };
        let redacted = self.once(request, write, |_| Ok(RedactedNote { file: true, versions: 0 }))?;
        self.refill();
        Ok(redacted)
    }

    /// Removes what is left of a note whose file has only the line with the reason. Its deletion comes last: until then, the
    /// next start finds the unfinished redaction in the history. Returns the number of kept versions.
    fn finish_redaction(
        &self,
        writer: &mut Writer,
        session: &Session,
        request: Option<RequestKey>,
        path: &VaultPath,
    ) -> Result<usize, NoteError> {
        let written = |path: &VaultPath| WrittenFile { path: path.clone(), renamed_from: None, content: None };
        self.indexer.apply_written(writer, vec![written(path)]);
        let names = self.trace(path)?.names;
        let versions = self.vault.forget(&names)?;
        self.store.scrub().map_err(IndexError::from)?;
        if let Some(content) = self.vault.read(path).map_err(IndexError::from)? {
            let change = FileChange::Delete { path: path.clone(), expected: content.hash };
            self.apply_by(session, (NoteAction::Redact, request), &[change])?;
        }
        self.indexer.apply_written(writer, vec![written(path)]);
        Ok(versions)
    }

    /// Finishes redactions that a crash interrupted. A failure is a warning: the next start tries again.
    pub(crate) fn finish_redactions(&self) {
        let unfinished = self.unfinished_redactions().unwrap_or_default();
        for path in &unfinished {
            let mut writer = self.indexer.writer();
            let finished = self.finish_redaction(&mut writer, &Session::default(), None, path);
            if let Err(error) = finished {
                let message = format!("its redaction is not finished: {error}; redact it again");
                self.warn(Warning { path: path.to_string(), message });
            }
        }
        if !unfinished.is_empty() {
            self.refill();
        }
    }

    /// The notes whose last write in the history is a redaction that left the line with the reason.
    fn unfinished_redactions(&self) -> Result<Vec<VaultPath>, VaultError> {
        let mut last: FxHashMap<VaultPath, bool> = FxHashMap::default();
        for file in self.vault.writes(&WriteFilter::default())?.into_iter().flat_map(|write| write.files) {
            let is_unfinished = file.action == NoteAction::Redact && file.after.is_some();
            last.entry(file.path).or_insert(is_unfinished);
        }
        let mut paths: Vec<VaultPath> =
            last.into_iter().filter(|(_, unfinished)| *unfinished).map(|(path, _)| path).collect();
        paths.sort();
        Ok(paths)
    }

    /// The path of a note, or of one that is only in the trash.
    fn path_to_redact(&self, id: &str) -> Result<VaultPath, NoteError> {
        let snapshot = self.snapshot();
        match snapshot.lookup(id)[..] {
            [key] => return Ok(snapshot.note(key).path.clone()),
            [] => {}
            ref several => {
                let matches = several.iter().map(|key| snapshot.note(*key).path.clone()).collect();
                return Err(NoteError::Ambiguous { id: id.to_owned(), matches });
            }
        }
        // A note that was moved is another id now.
        if let Some(to) = self.last_path(id)?
            && self.vault.read(&to).map_err(IndexError::from)?.is_some()
        {
            return Err(NoteError::Moved { id: NoteId::new(id), to });
        }
        let trashed = self.vault.trashed().map_err(IndexError::from)?;
        let exact = trashed.iter().find(|file| file.path.as_str() == id);
        let found = exact.or_else(|| trashed.iter().find(|file| file.path.note_id() == NoteId::new(id)));
        found.map(|file| file.path.clone()).ok_or_else(|| NoteError::NotFound { id: NoteId::new(id) })
    }
}
