//! Changing notes: every write an agent can ask for, guarded so that no edit is lost.

mod aliases;
mod create;
mod delete;
mod edit;
mod error;
mod follow_links;
mod history;
mod move_notes;
mod names;
mod redact;
mod relocate;
mod revert;
mod undo_write;
mod update;

pub use create::{NewNote, PlannedNote};
pub use edit::find::heading as find_section;
pub use edit::{Edit, EditProblem, EditedNote, NoteEdits, Position};
pub use error::NoteError;
pub use history::{ChangedPart, NoteVersion, NoteVersions};
pub use move_notes::{MovedNotes, NoteMove};
pub use redact::RedactedNote;
pub use revert::RevertedNote;
pub use undo_write::UndoneWrite;
pub use update::{NoteUpdate, UnreadText, UpdatedNote};

use relocate::{Relocated, RewrittenFile};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use crate::Knowledge;
use crate::index::{IndexError, Snapshot, Writer};
use crate::model::{ContentHash, FileStat, Note, NoteId, NoteKey, Tag, VaultPath};
use crate::ports::{FileChange, FileContent, NoteAction, TrashReason, WriteError, WriteOrigin};
use crate::session::Session;
use crate::{ReadNote, RequestKey, parse};

/// How long a write waits for the writer lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The writer lock.
type Writing<'k> = MutexGuard<'k, Writer>;

impl Knowledge {
    /// Takes the writer lock. Fails with [`NoteError::Busy`] after [`PATIENCE`], so that a client does not wait for a long pass
    /// over the vault.
    fn writer_for_note(&self) -> Result<Writing<'_>, NoteError> {
        self.indexer.writer_within(PATIENCE).ok_or(NoteError::Busy)
    }

    /// Waits until every note is in the index and memory is read, for a write that must find the links to a note. Fails after
    /// [`PATIENCE`]. Not under the writer lock, which other writes wait for.
    fn expect_every_link(&self) -> Result<(), NoteError> {
        let until = Instant::now() + PATIENCE;
        if self.indexer.is_stepping() && !self.wait_ready(PATIENCE) {
            return Err(NoteError::Busy);
        }
        let Some(memory) = &self.memory else { return Ok(()) };
        memory.expect_read(until.saturating_duration_since(Instant::now())).map_err(NoteError::Memory)
    }

    /// The note to be written and its bytes, after checking that the client knows them. `None` if there is no such note.
    ///
    /// A client that was shown the note must have been shown this version. For a client that was not, the file must be the
    /// version in the index: an edit by another program that is not indexed yet is never overwritten.
    fn note_to_write(&self, session: &Session, spelled: &str) -> Result<Option<(NoteKey, FileContent)>, NoteError> {
        self.note_to_write_at(session, spelled, None)
    }

    /// Like [`Self::note_to_write`], for a client that may name the version it expects.
    fn note_to_write_at(
        &self,
        session: &Session,
        spelled: &str,
        version: Option<&str>,
    ) -> Result<Option<(NoteKey, FileContent)>, NoteError> {
        let snapshot = self.snapshot();
        let key = match snapshot.lookup(spelled)[..] {
            [] => return Ok(None),
            [key] => key,
            ref several => {
                let matches = several.iter().map(|key| snapshot.note(*key).path.clone()).collect();
                return Err(NoteError::Ambiguous { id: spelled.to_owned(), matches });
            }
        };
        let note = snapshot.note(key);
        let Some(content) = self.vault.read(&note.path).map_err(IndexError::from)? else { return Ok(None) };
        if note.path.as_str() != spelled && self.names_another(session, spelled, note, &content)? {
            return Ok(None);
        }
        self.learn_shown(session, &[&note.path]).map_err(IndexError::from)?;
        if let Some(version) = version {
            let present = content.hash.to_string();
            return if version == present {
                Ok(Some((key, content)))
            } else {
                Err(NoteError::OtherVersion { path: note.path.clone(), expected: version.to_owned(), present })
            };
        }
        let expected = session.shown(&note.path).unwrap_or(note.hash);
        if content.hash != expected {
            return Err(NoteError::ChangedElsewhere { path: note.path.clone() });
        }
        Ok(Some((key, content)))
    }

    /// Whether a spelling that differs in case from the found note is the exact path of another note, which was deleted. A
    /// repeated delete must not delete the found one. A client that read the found note under this id means it: while the other
    /// one existed, the id was that one's.
    fn names_another(
        &self,
        session: &Session,
        spelled: &str,
        found: &Note,
        content: &FileContent,
    ) -> Result<bool, NoteError> {
        let Ok(spelled) = VaultPath::parse(spelled) else { return Ok(false) };
        if session.knows_as_another(&spelled, &found.path, content.hash) {
            return Ok(true);
        }
        if session.knows_by_id(&found.path, content.hash, spelled.as_str()) {
            return Ok(false);
        }
        let trashed = self.vault.trashed().map_err(IndexError::from)?;
        let mut deletions = trashed.iter().filter(|file| file.path == spelled && file.reason == TrashReason::Deleted);
        // A spelling that is also the id of the found note means that note, unless both notes existed when the other one was
        // deleted.
        let is_id = found.id.as_str() == spelled.as_str();
        Ok(deletions.any(|deleted| !is_id || content.stat.modified_ns <= deleted.at_ns))
    }

    /// Writes, unless the request was applied before: then `done` builds the answer. This is checked under the writer lock,
    /// so that a retry cannot run beside the first attempt, and again after a failure: another process may have applied the
    /// request meanwhile.
    fn once<T>(
        &self,
        request: Option<RequestKey>,
        write: impl FnOnce(Writing<'_>) -> Result<T, NoteError>,
        done: impl FnOnce(&VaultPath) -> Result<T, NoteError>,
    ) -> Result<T, NoteError> {
        let applied = || -> Result<Option<VaultPath>, NoteError> {
            let Some(request) = request else { return Ok(None) };
            Ok(self.vault.applied_request(request).map_err(IndexError::from)?)
        };
        let writer = self.writer_for_note()?;
        // What other programs did before this write comes before it in the history.
        self.follow_changes();
        if let Some(path) = applied()? {
            drop(writer);
            return done(&path);
        }
        write(writer).or_else(|error| {
            let applied = match request.filter(|_| error.depends_on_notes()) {
                // If this fails, it is unknown whether an earlier attempt was applied, and a refusal would say that it was not.
                Some(request) => self.vault.refuse_request(request).map_err(IndexError::from)?,
                // If this fails too, the error of the write is the one that the client needs.
                None => applied().ok().flatten(),
            };
            applied.map_or(Err(error), |path| done(&path))
        })
    }

    /// The present state of the note that an earlier attempt of the request wrote. It may have changed since, so it counts as
    /// shown in part.
    fn done_before(&self, session: &Session, path: &VaultPath) -> Result<ReadNote, NoteError> {
        // If there is none, it was deleted after that attempt.
        self.read(session, path.as_str())?.ok_or_else(|| NoteError::NotFound { id: path.note_id() })
    }

    /// Writes for a client: its name goes to the history.
    fn apply_by(
        &self,
        session: &Session,
        (action, request): (NoteAction, Option<RequestKey>),
        changes: &[FileChange],
    ) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.apply_kept(session, (action, request), (changes, &[]))
    }

    /// Like [`Self::apply_by`], for changes some of which write kept versions.
    fn apply_kept(
        &self,
        session: &Session,
        (action, request): (NoteAction, Option<RequestKey>),
        (changes, kept): (&[FileChange], &[Option<String>]),
    ) -> Result<Vec<Option<FileStat>>, WriteError> {
        let client = session.client();
        self.vault.apply_for(changes, &WriteOrigin { by: &client, action, request, kept })
    }

    /// Marks the version that a client's own write produced as shown to it, under every path by which it was shown the
    /// version before.
    fn show_own_write(&self, session: &Session, real: &VaultPath, before: ContentHash, after: ContentHash) {
        for path in session.shown_at(before) {
            // A path that cannot be resolved now is checked when it is written.
            if self.vault.real_path(&path).is_ok_and(|found| found == *real) {
                session.follow_own_write(&path, before, after);
            }
        }
    }

    /// Like [`Self::show_own_write`], for every file whose links a client's write rewrote.
    fn show_rewritten(&self, session: &Session, relocated: &Relocated) {
        // What cannot be learned now is asked again when the client writes the note.
        let _ = self.learn_shown(session, &relocated.rewritten.iter().map(|file| &file.real).collect::<Vec<_>>());
        for RewrittenFile { real, before, after } in &relocated.rewritten {
            self.show_own_write(session, real, *before, *after);
        }
    }

    /// The note after a write, marked as shown to the client: `whole` if the client sent or knew all of its text.
    fn written(&self, session: &Session, key: NoteKey, bytes: Vec<u8>, whole: bool) -> ReadNote {
        let snapshot = self.snapshot();
        let hash = ContentHash::of(&bytes);
        session.show(&snapshot.note(key).path, hash, whole);
        ReadNote { text: parse::decode(bytes), hash, snapshot, key, others: Vec::new() }
    }
}

/// The ids of the notes whose links were rewritten.
fn updated_ids(snapshot: &Snapshot, relocated: &Relocated) -> Vec<NoteId> {
    let keys = relocated.updated.iter().filter_map(|path| snapshot.find_exact(path));
    let mut ids: Vec<NoteId> = keys.map(|key| snapshot.note(key).id.clone()).collect();
    ids.sort_unstable();
    ids
}

/// Tags as they are written into frontmatter: without `#`, none empty.
fn clean_tags(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| Tag::new(tag).name).filter(|tag| !tag.is_empty()).collect()
}
