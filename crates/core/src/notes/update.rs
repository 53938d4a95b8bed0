//! New text, tags or title for a note. What was not asked to change keeps every byte.

use std::collections::BTreeMap;

use super::names::unportable;
use super::relocate::{LinkPolicy, Relocated, RelocatedFile, Relocation};
use super::{NoteError, Writing, clean_tags, updated_ids};
use crate::index::{IndexError, WrittenFile};
use crate::model::{ContentHash, Note, NoteId, NoteKey, VaultPath};
use crate::parse::FrontmatterEdit;
use crate::ports::{FileChange, NoteAction};
use crate::session::Session;
use crate::{Knowledge, ReadNote, RequestKey, parse};

/// The new content and name of a note.
#[derive(Debug, Clone, Default)]
pub struct NoteUpdate<'a> {
    /// Which note, in any case.
    pub id: &'a str,
    /// A new title: goes into the frontmatter and renames the file.
    pub title: Option<&'a str>,
    /// A new text. One that brings its own frontmatter replaces the old frontmatter too.
    pub content: Option<&'a str>,
    /// The only tags it shall have in its frontmatter.
    pub tags: Option<&'a [String]>,
    /// Whether links to it follow a rename; without it, a note that others link to is not renamed.
    pub update_links: bool,
    /// The version it must have; without it, the version that the session was shown.
    pub expected_version: Option<&'a str>,
}

/// A note after a change.
pub struct UpdatedNote {
    /// As it is now.
    pub note: ReadNote,
    /// What the change replaced without this client having read any of it.
    pub unread: Option<UnreadText>,
    /// Symbolic links to the file that a rename left without a target.
    pub dangling: Vec<VaultPath>,
    /// Notes with a link that was not rewritten, since its place cannot hold the new target, and its target.
    pub lost_links: Vec<(VaultPath, String)>,
    /// The notes whose links a rename rewrote, the renamed one included; `None` if it was not renamed.
    pub updated_links: Option<Vec<NoteId>>,
}

/// Text that was replaced unread.
pub struct UnreadText {
    /// The version that had it, which is kept.
    pub version: ContentHash,
    /// How much of it there was.
    pub chars: usize,
}

impl Knowledge {
    /// Changes a note. On disk when this returns, links rewritten in the same step, seen by every later call.
    pub fn update_note(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        update: &NoteUpdate<'_>,
    ) -> Result<UpdatedNote, NoteError> {
        if update.title.is_none() && update.content.is_none() && update.tags.is_none() {
            return Err(NoteError::NothingToDo);
        }
        if update.title.is_some() {
            self.expect_every_link()?;
        }
        let indexed = self.index_exact(update.id);
        let write = |writer: Writing<'_>| {
            indexed?;
            self.rewrite(session, request, update, writer)
        };
        let done = |path: &VaultPath| {
            let note = self.done_before(session, path)?;
            Ok(UpdatedNote { note, unread: None, dangling: Vec::new(), lost_links: Vec::new(), updated_links: None })
        };
        self.once(request, write, done)
    }

    fn rewrite(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        update: &NoteUpdate<'_>,
        mut writer: Writing<'_>,
    ) -> Result<UpdatedNote, NoteError> {
        let not_found = || NoteError::NotFound { id: NoteId::new(update.id) };
        let (key, current) =
            self.note_to_write_at(session, update.id, update.expected_version)?.ok_or_else(not_found)?;
        let snapshot = self.snapshot();
        let note = snapshot.note(key);

        let shown_whole = session.shown_whole(&note.path, current.hash);
        if update.content.is_some() && shown_whole == Some(false) {
            return Err(NoteError::SeenInPart { path: note.path.clone() });
        }
        let whole = update.content.is_some() || shown_whole == Some(true);

        let old_text = parse::text_start(&current.bytes);
        let bytes = match update.content {
            Some(content) => parse::with_new_text(&current.bytes, content),
            None => current.bytes.clone(),
        };
        let is_unread = shown_whole.is_none() && bytes != current.bytes && update.content.is_some();
        let chars = String::from_utf8_lossy(&current.bytes[old_text..]).chars().count();
        let unread = (is_unread && chars > 0).then_some(UnreadText { version: current.hash, chars });
        let title = update.title.map(str::trim).filter(|title| !is_unchanged_title(note, title));
        let edits: Vec<FrontmatterEdit> = title
            .map(|title| FrontmatterEdit::Title(title.to_owned()))
            .into_iter()
            .chain(update.tags.map(|tags| FrontmatterEdit::Tags(clean_tags(tags))))
            .collect();
        let bytes = parse::splice_frontmatter(&bytes, &edits)
            .map_err(|reason| NoteError::Frontmatter { path: note.path.clone(), reason })?;

        let Some(title) = title else {
            let real = self.vault.real_path(&note.path).map_err(IndexError::from)?;
            let change = FileChange::Replace { path: note.path.clone(), expected: current.hash, bytes: bytes.clone() };
            let stats = self.apply_by(session, (NoteAction::Edit, request), &[change])?;
            let stat = stats.first().copied().flatten().expect("a replaced file has a stat");
            self.indexer.apply_written(&mut writer, vec![WrittenFile::new(note.path.clone(), bytes.clone(), stat)]);
            self.show_own_write(session, &real, current.hash, ContentHash::of(&bytes));
            let note = self.written(session, key, bytes, whole);
            let (dangling, lost_links) = (Vec::new(), Vec::new());
            return Ok(UpdatedNote { note, unread, dangling, lost_links, updated_links: None });
        };
        let to = renamed_path(&note.path, title)?;
        // Before links are checked: a name that is in use is refused, whatever the links are.
        let is_there = |other: &NoteKey| !matches!(self.vault.read(&snapshot.note(*other).path), Ok(None));
        let mut same_name = snapshot.with_lowercased(&to.note_id()).iter().filter(|other| **other != key);
        if to != note.path
            && let Some(other) = same_name.find(|other| is_there(other))
        {
            return Err(NoteError::Exists { existing: snapshot.note(*other).path.clone() });
        }
        let action = if to == note.path { NoteAction::Edit } else { NoteAction::Move };
        let files = vec![RelocatedFile { key, to, expected: current.hash, bytes }];
        let links = if update.update_links { LinkPolicy::RewriteIncoming } else { LinkPolicy::KeepIds };
        let (others, folders) = (BTreeMap::new(), BTreeMap::new());
        let relocation = Relocation { snapshot: &snapshot, files, others, folders, links };
        let mut renamed =
            self.relocate(&mut writer, session, (action, request), relocation).map_err(|error| match error {
                // The place that was refused is the one the title names.
                NoteError::BadId { reason, .. } => NoteError::BadTitle { title: title.to_owned(), reason },
                error => error,
            })?;
        self.show_rewritten(session, &renamed);
        session.forget(&note.path);
        let bytes = renamed.bytes.pop().expect("one note was renamed");
        let note = self.written(session, key, bytes, whole);
        let updated_links = Some(updated_ids(&note.snapshot, &renamed));
        let Relocated { dangling, lost_links, .. } = renamed;
        Ok(UpdatedNote { note, unread, dangling, lost_links, updated_links })
    }
}

/// Whether a title is the one that the note has, and cannot be its file's name: then there is nothing to rename. A client that
/// read the title and sends it back with a new text does not ask for a rename.
fn is_unchanged_title(note: &Note, title: &str) -> bool {
    note.title == title && (!parse::can_be_linked(title) || renamed_path(&note.path, title).is_err())
}

/// The path of a note with the title as the file's name, in the same folder.
fn renamed_path(path: &VaultPath, title: &str) -> Result<VaultPath, NoteError> {
    let bad = |reason: &str| NoteError::BadTitle { title: title.to_owned(), reason: reason.to_owned() };
    if title.is_empty() {
        return Err(bad("a file name cannot be empty"));
    }
    if let Some(slash) = title.chars().find(|character| ['/', '\\'].contains(character)) {
        return Err(bad(&format!("`{slash}` cannot be in a file name")));
    }
    if title == path.stem() {
        return Ok(path.clone());
    }
    let name = format!("{title}.md");
    if let Some(reason) = unportable(&name) {
        return Err(bad(&reason));
    }
    let folder = path.folder();
    let slash = if folder.is_empty() { "" } else { "/" };
    VaultPath::parse(&format!("{folder}{slash}{name}")).map_err(|error| bad(&error.to_string()))
}
