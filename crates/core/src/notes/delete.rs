//! A note put away. It is kept, and can be brought back.

use super::{NoteError, Writing};
use crate::index::WrittenFile;
use crate::model::{NoteId, VaultPath};
use crate::ports::{FileChange, NoteAction};
use crate::session::Session;
use crate::{Knowledge, RequestKey};

impl Knowledge {
    /// Deletes a note into the vault's trash; `None` when there is no such note. Returns the symbolic links that led to its
    /// file and lead nowhere now.
    pub fn delete_note(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        id: &str,
    ) -> Result<Option<Vec<VaultPath>>, NoteError> {
        let indexed = self.index_exact(id);
        let write = |mut writer: Writing<'_>| {
            indexed?;
            // An error, so that a call that another process applied meanwhile is recognised.
            let not_found = || NoteError::NotFound { id: NoteId::new(id) };
            let (key, content) = self.note_to_write(session, id)?.ok_or_else(not_found)?;
            let snapshot = self.snapshot();
            let path = snapshot.note(key).path.clone();
            let aliases = self.other_paths_to(&snapshot, key)?;
            let change = FileChange::Delete { path: path.clone(), expected: content.hash };
            self.apply_by(session, (NoteAction::Delete, request), &[change])?;
            session.forget(&path);
            self.indexer.apply_written(&mut writer, vec![WrittenFile { path, renamed_from: None, content: None }]);
            Ok(self.left_dangling(aliases))
        };
        let done = |path: &VaultPath| {
            session.forget(path);
            Ok(Vec::new())
        };
        match self.once(request, write, done) {
            Err(NoteError::NotFound { .. }) => Ok(None),
            deleted => deleted.map(Some),
        }
    }
}
