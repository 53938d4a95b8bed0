//! The versions of a note: who made them and when, and what is kept of their texts.
//!
//! A note keeps its history when it is moved. A note that is created where one was deleted continues that one's history.

use rustc_hash::FxHashSet;

use super::NoteError;
use crate::index::{IndexError, OutsideBatch};
use crate::model::{ContentHash, NoteId, VaultPath, Warning};
use crate::ports::{
    FileContent, LoggedFile, LoggedVersion, LoggedWrite, NamePeriod, NoteAction, OUTSIDE, WriteFilter, WriteNumber,
};
use crate::session::Session;
use crate::{Knowledge, parse, unified_diff};

/// The word for the version that the file has now.
const CURRENT: &str = "current";

/// The longest note in which the changed part is looked for.
const MAX_COMPARED_CHARS: u64 = 1_000_000;

/// Names of one note that are looked up one by one. Each look-up returns every write of a name, so the history of a note with more
/// names, which move back and forth in the worst case, is read once and whole.
const FEW_NAMES: usize = 16;

/// The part of a note that a write changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedPart {
    Properties,
    /// The section with this heading.
    Section(String),
}

/// A note and its versions.
#[derive(Debug, Clone)]
pub struct NoteVersions {
    /// Its path now; of a deleted note its last one.
    pub path: VaultPath,
    pub id: NoteId,
    /// Whether its file exists.
    pub exists: bool,
    /// Newest first, the present one included.
    pub versions: Vec<NoteVersion>,
}

/// One version of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteVersion {
    /// The hash of its bytes; of a deletion that of the deleted text.
    pub hash: ContentHash,
    /// When it was made, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The client's name, or [`OUTSIDE`] for another program.
    pub by: String,
    /// The action of the write on this note.
    pub action: NoteAction,
    /// Characters; 0 for a deletion.
    pub chars: u64,
    /// Whether its text can be read.
    pub is_kept: bool,
    /// The write that made it, if that was recorded.
    pub change: Option<WriteNumber>,
}

/// What the history has of one note, newest first.
pub(super) struct NoteTrace {
    steps: Vec<HistoryStep>,
    /// Every name that it had.
    pub(super) names: Vec<NamePeriod>,
}

/// One write of the note.
struct HistoryStep {
    number: WriteNumber,
    at_ns: i64,
    by: String,
    file: LoggedFile,
}

/// A note to look up in the history.
pub(super) struct TracedNote {
    /// Its path; of a deleted note its last one.
    pub(super) path: VaultPath,
    pub(super) id: NoteId,
    pub(super) content: Option<FileContent>,
    pub(super) trace: NoteTrace,
}

impl Knowledge {
    /// The versions of a note, or of one that was deleted; `None` if the history does not know it either.
    pub fn note_versions(&self, session: &Session, id: &str) -> Result<Option<NoteVersions>, NoteError> {
        let Some(note) = self.traced(session, id)? else { return Ok(None) };
        let versions = note.trace.versions(note.content.as_ref());
        Ok(Some(NoteVersions { exists: note.content.is_some(), path: note.path, id: note.id, versions }))
    }

    /// The unified diff between two versions of a note, each as listed or `current`.
    pub fn diff_versions(
        &self,
        session: &Session,
        id: &str,
        (from, to): (&str, &str),
    ) -> Result<Option<(NoteId, String)>, NoteError> {
        let Some(note) = self.traced(session, id)? else { return Ok(None) };
        let text = |version: &str| self.version_bytes(&note, version).map(|(bytes, _)| parse::decode(bytes));
        let diff = unified_diff(&text(from)?, &text(to)?);
        Ok(Some((note.id, diff)))
    }

    /// Where a write changed a note first, if the note has the text of that write still and the text before is kept.
    pub fn changed_part(&self, file: &LoggedFile) -> Option<ChangedPart> {
        let (before, after) = (file.before?, file.after.filter(|after| after.chars < MAX_COMPARED_CHARS)?);
        let now = self.vault.read(&file.path).ok()?.filter(|content| content.hash == after.hash)?.bytes;
        let kept = self.vault.kept_bytes(file.kept.as_ref()?).ok()?.filter(|it| ContentHash::of(it) == before.hash)?;
        let at = kept.iter().zip(&now).take_while(|(old, new)| old == new).count();
        if at < parse::text_start(&now) {
            return Some(ChangedPart::Properties);
        }
        let text = parse::same_length_text(&now);
        // A line that was added behind a section's end belongs to that section.
        let above = parse::outline(&text).into_iter().take_while(|heading| heading.range.start < at).last()?;
        Some(ChangedPart::Section(above.text))
    }

    /// A note, or a deleted one, with its history. An existing note counts as shown: a later write must be to this version.
    pub(super) fn traced(&self, session: &Session, id: &str) -> Result<Option<TracedNote>, NoteError> {
        let read = self.read(session, id)?;
        let path = match &read {
            Some(read) => read.note().path.clone(),
            None => match self.last_path(id)? {
                Some(path) => path,
                None => return Ok(None),
            },
        };
        // A note that was moved is found under its new path.
        let content = self.vault.read(&path).map_err(IndexError::from)?;
        if let (None, Some(content)) = (&read, &content) {
            session.show(&path, content.hash, false);
        }
        let snapshot = self.snapshot();
        let id = snapshot.find_exact(&path).map_or_else(|| path.note_id(), |key| snapshot.note(key).id.clone());
        let trace = self.trace(&path)?;
        Ok(Some(TracedNote { path, id, content, trace }))
    }

    /// The history of the note at a path.
    pub(super) fn trace(&self, path: &VaultPath) -> Result<NoteTrace, NoteError> {
        let at = self.vault.real_path(path).map_err(IndexError::from)?;
        self.trace_before(at, WriteNumber(i64::MAX), i64::MAX)
    }

    /// The history of the note that had a path before a write, which was not later than a time.
    pub(super) fn trace_before(
        &self,
        mut at: VaultPath,
        mut before: WriteNumber,
        mut until_ns: i64,
    ) -> Result<NoteTrace, NoteError> {
        let mut trace = NoteTrace { steps: Vec::new(), names: Vec::new() };
        let mut writes = Vec::new().into_iter();
        loop {
            let known = trace.names.len();
            if known <= FEW_NAMES {
                let id = (known < FEW_NAMES).then(|| at.note_id());
                let filter = WriteFilter { id, before, ..WriteFilter::default() };
                writes = self.vault.writes(&filter).map_err(IndexError::from)?.into_iter();
            }
            let (since, from) = trace_name(&mut trace.steps, &at, &mut writes);
            trace.names.push(NamePeriod { path: at, since_ns: since.map_or(i64::MIN, |(_, at_ns)| at_ns), until_ns });
            match (from, since) {
                (Some(from), Some((number, at_ns))) => (at, before, until_ns) = (from, number, at_ns),
                _ => return Ok(trace),
            }
        }
    }

    /// Where the note went that had an id: its path now, or its last one if it was deleted.
    pub(super) fn last_path(&self, id: &str) -> Result<Option<VaultPath>, NoteError> {
        let filter = WriteFilter { id: Some(NoteId::new(id)), ..WriteFilter::default() };
        let writes = self.vault.writes(&filter).map_err(IndexError::from)?;
        let entries = || writes.iter().flat_map(|write| write.files.iter().map(move |file| (write.number, file)));
        let exact = entries().find(|(_, file)| file.paths().any(|path| path.as_str() == id));
        let any_case = || entries().find(|(_, file)| file.paths().any(|path| path.note_id() == NoteId::new(id)));
        let Some((mut number, mut file)) = exact.or_else(any_case).map(|(number, file)| (number, file.clone())) else {
            return Ok(None);
        };
        // Each later write about its path may have moved it on.
        let mut later = Vec::new().into_iter().rev();
        for known in 0.. {
            if known <= FEW_NAMES {
                let id = (known < FEW_NAMES).then(|| file.path.note_id());
                let filter = WriteFilter { id, after: number, ..WriteFilter::default() };
                later = self.vault.writes(&filter).map_err(IndexError::from)?.into_iter().rev();
            }
            let moved = later.find_map(|write: LoggedWrite| {
                let moved = write.files.into_iter().find(|later| later.from.as_ref() == Some(&file.path))?;
                Some((write.number, moved))
            });
            match moved {
                Some(next) => (number, file) = next,
                None => break,
            }
        }
        Ok(Some(file.path))
    }

    /// Records what other programs did. After a failure it is recorded with the next change.
    pub(crate) fn record_outside(&self, batches: Vec<OutsideBatch>, moves: &[(VaultPath, VaultPath)]) {
        for mut batch in batches {
            batch.join_moves(moves);
            // Files behind links have their real paths in the history, once.
            let real_path = |path: &VaultPath| self.vault.real_path(path).unwrap_or_else(|_| path.clone());
            batch.files.retain(|file| file.after.is_none() || real_path(&file.path) == file.path);
            if let Err(error) = self.vault.record_outside(&batch.files) {
                let message = format!("changes by other programs are not in the history yet: {error}");
                self.warn(Warning { path: ".quipu".to_owned(), message });
                self.indexer.queue_outside(batch);
            }
        }
    }

    /// The bytes of a version, and where they are kept unless the file has them.
    pub(super) fn version_bytes(
        &self,
        note: &TracedNote,
        version: &str,
    ) -> Result<(Vec<u8>, Option<String>), NoteError> {
        if let Some(content) = &note.content
            && (version == CURRENT || content.hash.to_string() == version)
        {
            return Ok((content.bytes.clone(), None));
        }
        let mut is_known = false;
        for step in &note.trace.steps {
            let file = &step.file;
            is_known |= file.after.is_some_and(|after| after.hash.to_string() == version);
            let Some(before) = file.before.filter(|before| before.hash.to_string() == version) else { continue };
            is_known = true;
            // An editor that had the file open may have changed it since: then it is not this version.
            let kept = step.kept().map(|kept| self.vault.kept_bytes(kept)).transpose().map_err(IndexError::from)?;
            if let Some(bytes) = kept.flatten().filter(|bytes| ContentHash::of(bytes) == before.hash) {
                return Ok((bytes, file.kept.clone()));
            }
        }
        Err(NoteError::NoVersion { path: note.path.clone(), version: version.to_owned(), is_known })
    }
}

/// Adds the writes of a note while it had a name, of writes that are sorted, newest first, and that it reads no further than
/// that. Returns the write that gave it the name, or that moved another note away from it, and its path before.
fn trace_name(
    steps: &mut Vec<HistoryStep>,
    at: &VaultPath,
    writes: &mut impl Iterator<Item = LoggedWrite>,
) -> (Option<(WriteNumber, i64)>, Option<VaultPath>) {
    for LoggedWrite { number, at_ns, by, files, .. } in writes {
        for file in files {
            if file.path == *at {
                let from = file.from.clone();
                steps.push(HistoryStep { number, at_ns, by: by.clone(), file });
                if from.is_some() {
                    return (Some((number, at_ns)), from);
                }
            } else if file.from.as_ref() == Some(at) {
                return (Some((number, at_ns)), None);
            }
        }
    }
    (None, None)
}

impl NoteTrace {
    /// The versions, newest first. Where a version was replaced that no write made, another program made it.
    fn versions(&self, current: Option<&FileContent>) -> Vec<NoteVersion> {
        let mut versions = Vec::new();
        let mut newer: Option<&HistoryStep> = None;
        let steps =
            self.steps.iter().enumerate().filter(|(index, _)| !self.is_half_of_move(*index)).map(|(_, step)| step);
        let present = current.map(|content| LoggedVersion::of(&content.bytes, content.stat.modified_ns));
        let kept = self.steps.iter().filter(|step| step.kept().is_some()).filter_map(|step| step.file.before);
        let readable: FxHashSet<ContentHash> = kept.chain(present).map(|version| version.hash).collect();
        for step in steps.map(Some).chain([None]) {
            let made = step.and_then(|step| step.file.after);
            // What was there before the newer write, or is there now.
            let found = match newer {
                // The line with the reason was no version of the note.
                Some(newer) if newer.file.action == NoteAction::Redact => None,
                Some(newer) => newer.file.before,
                None => present,
            };
            if let Some(found) = found.filter(|found| made.is_none_or(|made| made.hash != found.hash)) {
                versions.push(outside(&found));
            }
            versions.extend(step.and_then(HistoryStep::version));
            newer = step;
        }
        for version in &mut versions {
            version.is_kept = readable.contains(&version.hash);
        }
        versions
    }

    /// Whether a step is the disappearance of a file that another program moved: the step before says so.
    fn is_half_of_move(&self, index: usize) -> bool {
        let [newer, step] = [index.wrapping_sub(1), index].map(|index| self.steps.get(index));
        let (Some(newer), Some(step)) = (newer, step) else { return false };
        newer.by == OUTSIDE && newer.file.action == NoteAction::Move && step.by == OUTSIDE && step.file.after.is_none()
    }
}

impl HistoryStep {
    /// Where the text before is kept. A redaction keeps the line with its reason, which is no text of the note.
    fn kept(&self) -> Option<&String> {
        self.file.kept.as_ref().filter(|_| self.file.action != NoteAction::Redact)
    }

    fn version(&self) -> Option<NoteVersion> {
        let shown = self.file.after.or(self.file.before)?;
        Some(NoteVersion {
            hash: shown.hash,
            at_ns: self.at_ns,
            by: self.by.clone(),
            action: self.file.action,
            chars: self.file.after.map_or(0, |after| after.chars),
            is_kept: true,
            change: Some(self.number),
        })
    }
}

/// A version that no write of the history made.
fn outside(version: &LoggedVersion) -> NoteVersion {
    NoteVersion {
        hash: version.hash,
        at_ns: version.modified_ns,
        by: OUTSIDE.to_owned(),
        action: NoteAction::Edit,
        chars: version.chars,
        is_kept: true,
        change: None,
    }
}
