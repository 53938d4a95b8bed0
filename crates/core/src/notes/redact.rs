//! A note removed for good: its file, its kept versions and what the index has of it.

use super::{NoteError, Writing};
use crate::index::{IndexError, WrittenFile};
use crate::model::{ContentHash, NoteId, VaultPath};
use crate::ports::FileChange;
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
    /// Deletes a note and every kept version of it, and rewrites the index without them. One line with the reason is kept in
    /// the trash in their place. Also for a note that was deleted before. No version is expected: whatever the text is now, it
    /// must go.
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
            let mut redacted = RedactedNote::default();
            let bytes = format!("[redacted: {reason}]\n").into_bytes();
            let trace = ContentHash::of(&bytes);
            let present = self.vault.read(&path).map_err(IndexError::from)?;
            match present {
                Some(content) => {
                    redacted.file = content.hash != trace;
                    let expected = content.hash;
                    self.vault.apply(&[FileChange::Replace { path: path.clone(), expected, bytes }])?;
                }
                None => drop(self.vault.apply(&[FileChange::Create { path: path.clone(), bytes }])?),
            }
            redacted.versions = self.vault.forget(&path)?;
            self.vault.apply_for(&[FileChange::Delete { path: path.clone(), expected: trace }], request)?;
            session.forget(&path);
            self.indexer.apply_written(&mut writer, vec![WrittenFile { path, renamed_from: None, content: None }]);
            self.store.scrub().map_err(IndexError::from)?;
            Ok(redacted)
        };
        let redacted = self.once(request, write, |_| Ok(RedactedNote { file: true, versions: 0 }))?;
        self.refill();
        Ok(redacted)
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
        let trashed = self.vault.trashed().map_err(IndexError::from)?;
        let exact = trashed.iter().find(|file| file.path.as_str() == id);
        let found = exact.or_else(|| trashed.iter().find(|file| file.path.note_id() == NoteId::new(id)));
        found.map(|file| file.path.clone()).ok_or_else(|| NoteError::NotFound { id: NoteId::new(id) })
    }
}
