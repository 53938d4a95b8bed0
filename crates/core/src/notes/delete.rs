//! A note put away. It is kept, and can be brought back.

use super::{NoteError, Writing};
use crate::index::WrittenFile;
use crate::model::{NoteId, VaultPath};
use crate::ports::FileChange;
use crate::session::Session;
use crate::{Knowledge, RequestKey};

impl Knowledge {
    /// Deletes a note into the vault's trash; `false` when there is no such note.
    pub fn delete_note(&self, session: &Session, request: Option<RequestKey>, id: &str) -> Result<bool, NoteError> {
        let taken_in = self.index_exact(id);
        let write = |mut writer: Writing<'_>| {
            taken_in?;
            // An error, so that a call that another process carried out meanwhile is known again.
            let not_found = || NoteError::NotFound { id: NoteId::new(id) };
            let (key, content) = self.expect_known(session, id)?.ok_or_else(not_found)?;
            let path = self.snapshot().note(key).path.clone();
            self.vault.apply_for(&[FileChange::Delete { path: path.clone(), expected: content.hash }], request)?;
            session.forget(&path);
            self.indexer.apply_written(&mut writer, vec![WrittenFile { path, renamed_from: None, content: None }]);
            Ok(())
        };
        let done = |path: &VaultPath| {
            session.forget(path);
            Ok(())
        };
        match self.once(request, write, done) {
            Ok(()) => Ok(true),
            Err(NoteError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
