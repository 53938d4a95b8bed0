//! A note put away. It is kept, and can be brought back.

use super::{NoteError, Writing};
use crate::index::Written;
use crate::ports::FileChange;
use crate::session::Session;
use crate::{Knowledge, RequestKey};

impl Knowledge {
    /// Deletes a note into the vault's trash; `false` when there is no such note.
    pub fn delete_note(&self, session: &Session, request: Option<RequestKey>, id: &str) -> Result<bool, NoteError> {
        self.take_in_exact(id)?;
        let write = |mut writer: Writing<'_>| {
            let Some((key, content)) = self.expect_known(session, id)? else { return Ok(false) };
            let path = self.snapshot().note(key).path.clone();
            self.vault.apply_for(&[FileChange::Delete { path: path.clone(), expected: content.hash }], request)?;
            session.forget(&path);
            self.indexer.adopt(&mut writer, vec![Written { path, was: None, content: None }]);
            Ok(true)
        };
        self.once(request, write, |path| {
            session.forget(path);
            Ok(true)
        })
    }
}
