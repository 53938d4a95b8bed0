//! A note removed permanently: its file, its kept versions and what the index has of it.

use std::collections::BTreeMap;

use super::{NoteError, Writing};
use crate::index::{IndexError, Writer, WrittenFile};
use crate::model::{ContentHash, NoteId, VaultPath, Warning};
use crate::ports::{FileChange, LoggedFile, LoggedWrite, NoteAction, VaultError, WriteError, WriteFilter, WriteNumber};
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

/// How often the text is replaced if another program writes it again.
const MAX_ATTEMPTS: usize = 5;

/// Above every write.
const LAST: WriteNumber = WriteNumber(i64::MAX);

/// A redaction whose versions are not removed yet.
struct PendingRedaction {
    path: VaultPath,
    /// The write that replaced the text by the line with the reason.
    number: WriteNumber,
    at_ns: i64,
    placeholder: ContentHash,
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
        let indexed = self.index_exact(id);
        let write = |mut writer: Writing<'_>| {
            indexed?;
            let path = self.path_to_redact(id)?;
            session.forget(&path);
            let placeholder = format!("[redacted: {reason}]\n").into_bytes();
            let mut redacted = RedactedNote::default();
            // An editor may save the text again meanwhile.
            for _ in 0..MAX_ATTEMPTS {
                let pending = self.replace_by(session, &path, &placeholder, &mut redacted)?;
                redacted.versions += self.remove_versions(&mut writer, &pending)?;
                let is_deleted = self.delete_placeholder(&mut writer, session, request, &pending)?;
                self.vault.forget_write(pending.number)?;
                if is_deleted {
                    return Ok(redacted);
                }
            }
            Err(NoteError::ChangedElsewhere { path })
        };
        let redacted = self.once(request, write, |_| Ok(RedactedNote { file: true, versions: 0 }))?;
        self.refill();
        Ok(redacted)
    }

    /// Replaces the text of a note by the line with the reason, in a write that the history keeps until the versions are
    /// removed.
    fn replace_by(
        &self,
        session: &Session,
        path: &VaultPath,
        placeholder: &[u8],
        redacted: &mut RedactedNote,
    ) -> Result<PendingRedaction, NoteError> {
        let (path, bytes) = (path.clone(), placeholder.to_vec());
        let hash = ContentHash::of(placeholder);
        let present = self.vault.read(&path).map_err(IndexError::from)?;
        redacted.file |= present.as_ref().is_some_and(|old| old.hash != hash);
        let change = match present {
            Some(content) => FileChange::Replace { path: path.clone(), expected: content.hash, bytes },
            None => FileChange::Create { path: path.clone(), bytes },
        };
        self.apply_by(session, (NoteAction::Redact, None), &[change])?;
        let path = self.vault.real_path(&path).map_err(IndexError::from)?;
        let pending = self.pending_redactions().map_err(IndexError::from)?;
        // Without a usable history every version counts that has one of the note's names.
        let unrecorded = || PendingRedaction { path: path.clone(), number: LAST, at_ns: i64::MAX, placeholder: hash };
        Ok(pending.into_iter().find(|pending| pending.path == path).unwrap_or_else(unrecorded))
    }

    /// Removes every kept version of a redacted note, what the index has of it, and its entries in the history, except that of
    /// the redaction, by which the next start finds one that was interrupted. Returns the number of versions.
    fn remove_versions(&self, writer: &mut Writer, pending: &PendingRedaction) -> Result<usize, NoteError> {
        if self.is_placeholder(pending)? {
            self.indexer.apply_written(writer, vec![removed(&pending.path)]);
        }
        self.lines.forget(|| self.store.scrub()).map_err(IndexError::from)?;
        let before = WriteNumber(pending.number.0.saturating_add(1));
        let names = self.trace_before(pending.path.clone(), before, pending.at_ns)?.names;
        Ok(self.vault.forget(&names, pending.number)?)
    }

    /// Deletes the line with the reason. `false` if the file has another text by now, which is left alone.
    fn delete_placeholder(
        &self,
        writer: &mut Writer,
        session: &Session,
        request: Option<RequestKey>,
        pending: &PendingRedaction,
    ) -> Result<bool, NoteError> {
        let (path, expected) = (pending.path.clone(), pending.placeholder);
        match self.apply_by(session, (NoteAction::Redact, request), &[FileChange::Delete { path, expected }]) {
            Ok(_) | Err(WriteError::Missing { .. }) => {
                self.indexer.apply_written(writer, vec![removed(&pending.path)]);
                Ok(true)
            }
            Err(WriteError::Changed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Finishes redactions that a crash interrupted. A failure is a warning: the next start tries again.
    pub(crate) fn finish_redactions(&self) {
        let unfinished = self.pending_redactions().unwrap_or_default();
        for pending in &unfinished {
            let mut writer = self.indexer.writer();
            let session = Session::default();
            let finished = self
                .remove_versions(&mut writer, pending)
                .and_then(|_| self.delete_placeholder(&mut writer, &session, None, pending))
                .and_then(|is_deleted| Ok(self.vault.forget_write(pending.number).map(|()| is_deleted)?));
            let message = match finished {
                Ok(true) => continue,
                Ok(false) => {
                    "a text was written here after a redaction began; redact it again if it must go".to_owned()
                }
                Err(error) => format!("its redaction is not finished: {error}; redact it again"),
            };
            self.warn(Warning { path: pending.path.to_string(), message });
        }
        if !unfinished.is_empty() {
            self.refill();
        }
    }

    fn is_placeholder(&self, pending: &PendingRedaction) -> Result<bool, NoteError> {
        let present = self.vault.read(&pending.path).map_err(IndexError::from)?;
        Ok(present.is_some_and(|content| content.hash == pending.placeholder))
    }

    /// The redactions in the history whose versions are not removed yet; of each path the newest.
    fn pending_redactions(&self) -> Result<Vec<PendingRedaction>, VaultError> {
        let mut pending: BTreeMap<VaultPath, PendingRedaction> = BTreeMap::new();
        for LoggedWrite { number, at_ns, files, .. } in self.vault.writes(&WriteFilter::default())? {
            for LoggedFile { action, path, after, .. } in files {
                if let (NoteAction::Redact, Some(after)) = (action, after) {
                    let found = PendingRedaction { path: path.clone(), number, at_ns, placeholder: after.hash };
                    pending.entry(path).or_insert(found);
                }
            }
        }
        Ok(pending.into_values().collect())
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

fn removed(path: &VaultPath) -> WrittenFile {
    WrittenFile { path: path.clone(), renamed_from: None, content: None }
}
