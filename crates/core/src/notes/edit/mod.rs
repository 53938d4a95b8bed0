//! Edits of a part of a note, applied together or not at all. What no edit names keeps every byte.

pub(crate) mod apply;
pub(crate) mod find;

pub use find::EditProblem;

use super::{NoteError, Writing};
use crate::diff::unified_diff;
use crate::index::{IndexError, WrittenFile};
use crate::model::{ContentHash, NoteId, NoteKey, Value, VaultPath};
use crate::ports::{FileChange, FileContent, NoteAction};
use crate::session::Session;
use crate::{Knowledge, RequestKey, parse};
use apply::{AppliedEdits, Refused, apply_edits};

/// One edit. A heading is its text, or a path of headings: `A > B`.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Adds lines at the end.
    Append { text: String },
    /// Adds lines at the start, below the frontmatter.
    Prepend { text: String },
    /// Adds lines at a heading.
    Insert {
        heading: String,
        /// Where.
        position: Position,
        text: String,
    },
    /// Replaces the text below a heading, subsections included.
    ReplaceSection { heading: String, text: String },
    /// Deletes a heading with its text and subsections.
    DeleteSection { heading: String },
    /// Replaces a text below the frontmatter that occurs so many times.
    Replace {
        /// The text, exactly.
        old: String,
        new: String,
        /// How often `old` must occur.
        count: usize,
    },
    /// Sets a frontmatter key.
    SetProperty { key: String, value: Value },
    /// Removes a frontmatter key.
    RemoveProperty { key: String },
    /// Adds tags to the frontmatter.
    AddTags {
        /// The tags, with or without `#`.
        tags: Vec<String>,
    },
    /// Removes tags from the frontmatter.
    RemoveTags {
        /// The tags, with or without `#`.
        tags: Vec<String>,
    },
    /// Ticks or unticks a task.
    SetTask {
        /// Its text, or a part of it.
        text: String,
        /// Whether it shall be ticked.
        done: bool,
    },
}

/// A position at a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Above the heading's line.
    Before,
    /// Directly below it.
    Start,
    /// At the end of its own text, before the first subsection.
    End,
    /// After the section with its subsections.
    After,
}

/// The edits of one note.
#[derive(Debug, Clone)]
pub struct NoteEdits<'a> {
    /// Which note, in any case.
    pub id: &'a str,
    /// Applied in order.
    pub edits: &'a [Edit],
    /// The version that the note must have, as [`ContentHash`] is written.
    pub expected_version: Option<&'a str>,
    /// Writes nothing.
    pub dry_run: bool,
}

/// A note after its edits.
#[derive(Debug)]
pub struct EditedNote {
    pub path: VaultPath,
    pub id: NoteId,
    /// The version of the file now. After a dry run it is still the old one.
    pub version: ContentHash,
    /// The version before. If an earlier attempt of the same call wrote the edits, that is not known, and this is the present one.
    pub before: ContentHash,
    /// The unified diff. `None` if an earlier attempt of the same call wrote the edits: the text before is not known then.
    pub diff: Option<String>,
    /// Warnings about edits that were applied only in part.
    pub warnings: Vec<String>,
}

impl Knowledge {
    /// Edits a note. On disk when this returns, seen by every later call.
    pub fn edit_note(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        edits: &NoteEdits<'_>,
    ) -> Result<EditedNote, NoteError> {
        let indexed = self.index_exact(edits.id);
        if edits.dry_run {
            indexed?;
            return Ok(self.plan(session, edits)?.edited(self));
        }
        let write = |writer: Writing<'_>| {
            indexed?;
            self.write_edits(session, request, edits, writer)
        };
        let done = |path: &VaultPath| {
            let note = self.done_before(session, path)?;
            let (path, id) = (note.note().path.clone(), note.note().id.clone());
            Ok(EditedNote { path, id, version: note.hash, before: note.hash, diff: None, warnings: Vec::new() })
        };
        self.once(request, write, done)
    }

    fn write_edits(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        edits: &NoteEdits<'_>,
        mut writer: Writing<'_>,
    ) -> Result<EditedNote, NoteError> {
        let plan = self.plan(session, edits)?;
        let (key, before) = (plan.key, plan.current.hash);
        let bytes = plan.applied.bytes.clone();
        let mut edited = plan.edited(self);
        if ContentHash::of(&bytes) == before {
            return Ok(edited);
        }
        let path = edited.path.clone();
        let whole = session.shown_whole(&path, before) == Some(true);
        let real = self.vault.real_path(&path).map_err(IndexError::from)?;
        let change = FileChange::Replace { path: path.clone(), expected: before, bytes: bytes.clone() };
        let stats = self.apply_by(session, (NoteAction::Edit, request), &[change])?;
        let stat = stats.first().copied().flatten().expect("a replaced file has a stat");
        self.indexer.apply_written(&mut writer, vec![WrittenFile::new(path, bytes.clone(), stat)]);
        self.show_own_write(session, &real, before, ContentHash::of(&bytes));
        edited.version = self.written(session, key, bytes, whole).hash;
        Ok(edited)
    }

    /// The note and its new bytes, after making sure that the writer knows the note.
    fn plan(&self, session: &Session, edits: &NoteEdits<'_>) -> Result<Plan, NoteError> {
        let not_found = || NoteError::NotFound { id: NoteId::new(edits.id) };
        let (key, current) = self.note_to_write_at(session, edits.id, edits.expected_version)?.ok_or_else(not_found)?;
        let applied = apply_edits(&current.bytes, edits.edits).map_err(|(number, refused)| match refused {
            Refused::Place(problem) => {
                let op = edits.edits.get(number - 1).map_or("", Edit::name);
                NoteError::Edit { number, op, problem }
            }
            Refused::Frontmatter(reason) => {
                NoteError::Frontmatter { path: self.snapshot().note(key).path.clone(), reason }
            }
        })?;
        Ok(Plan { key, current, applied })
    }
}

/// Edits that are ready to be written.
struct Plan {
    key: NoteKey,
    current: FileContent,
    applied: AppliedEdits,
}

impl Plan {
    /// The result before anything is written.
    fn edited(self, knowledge: &Knowledge) -> EditedNote {
        let snapshot = knowledge.snapshot();
        let note = snapshot.note(self.key);
        let (before, after) = (parse::decode(self.current.bytes), parse::decode(self.applied.bytes));
        EditedNote {
            path: note.path.clone(),
            id: note.id.clone(),
            version: self.current.hash,
            before: self.current.hash,
            diff: Some(unified_diff(&before, &after)),
            warnings: self.applied.warnings,
        }
    }
}
