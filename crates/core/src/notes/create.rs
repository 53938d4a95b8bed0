//! A new note.

use std::sync::Arc;

use super::{NoteError, Writing, clean_tags};
use crate::index::{IndexError, Snapshot, WrittenFile};
use crate::model::{ContentHash, Note, NoteKey, VaultPath};
use crate::ports::{FileChange, NoteAction};
use crate::session::Session;
use crate::{Knowledge, ReadNote, RequestKey, parse};

/// A note to be made.
#[derive(Debug, Clone)]
pub struct NewNote<'a> {
    /// Its path, ending in `.md`. The file's name is lowercased, and folders that are there are used in any case.
    pub id: &'a str,
    /// Its text, written exactly so.
    pub content: &'a str,
    /// Put into the frontmatter when given.
    pub title: Option<&'a str>,
    /// Put into the frontmatter when there are any, behind those that the text has there.
    pub tags: &'a [String],
}

/// A note as it would be made.
pub struct PlannedNote {
    /// Its path, title, tags and links.
    pub note: Note,
    /// The targets of its links, in order.
    pub targets: Vec<Option<NoteKey>>,
    /// The whole text of its file.
    text: String,
    /// The index that the targets are in.
    pub snapshot: Arc<Snapshot>,
}

impl PlannedNote {
    /// Its text after the frontmatter.
    pub fn body(&self) -> &str {
        &self.text[parse::text_start(self.text.as_bytes())..]
    }
}

impl Knowledge {
    /// The note that [`Knowledge::create_note`] would make now, or the reason why it would not. Writes nothing.
    pub fn plan_note(&self, new: &NewNote<'_>) -> Result<PlannedNote, NoteError> {
        let (path, text) = self.new_file(new)?;
        if let Some(existing) = self.vault.find_any_case(&path).map_err(IndexError::from)?.into_iter().next() {
            return Err(NoteError::Exists { existing });
        }
        let note = self.indexer.preview(&path, text.as_bytes());
        let (snapshot, targets) = self.indexer.resolve_links_of(&note);
        Ok(PlannedNote { note, targets, text, snapshot })
    }

    /// The path and the text of a new note's file.
    fn new_file(&self, new: &NewNote<'_>) -> Result<(VaultPath, String), NoteError> {
        let path = self.place_for(new.id)?;
        if !path.as_str().ends_with(".md") || path.stem().trim().is_empty() {
            return Err(NoteError::bad_id(new.id, "it must end in .md"));
        }
        let text = parse::new_note_text(new.title, &clean_tags(new.tags), new.content)
            .map_err(|reason| NoteError::Frontmatter { path: path.clone(), reason })?;
        Ok((path, text))
    }

    /// Makes a note. On disk when this returns, and seen by every later call.
    pub fn create_note(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        new: &NewNote<'_>,
    ) -> Result<ReadNote, NoteError> {
        let (path, text) = self.new_file(new)?;
        let bytes = text.into_bytes();
        let hash = ContentHash::of(&bytes);
        let write = |mut writer: Writing<'_>| {
            let change = FileChange::Create { path: path.clone(), bytes: bytes.clone() };
            let stats = self.apply_by(session, (NoteAction::Create, request), &[change])?;
            let stat = stats.first().copied().flatten().expect("a created file has a stat");
            self.indexer.apply_written(&mut writer, vec![WrittenFile::new(path.clone(), bytes.clone(), stat)]);
            let key = self.snapshot().find_exact(&path).expect("the note was just indexed");
            Ok(self.written(session, key, bytes, true))
        };
        self.once(request, write, |path| {
            let done = self.done_before(session, path)?;
            if done.hash == hash {
                self.show_whole(session, &done);
            }
            Ok(done)
        })
    }
}
