//! Files to notes: reads and parses, and remembers the versions of the sources that a note names.

use std::sync::Arc;

use super::plan::FileToRead;
use super::snapshot::Snapshot;
use super::writer::Writer;
use crate::model::{ContentHash, FileStat, Note, NoteKey, VaultPath};
use crate::parse::{TitleRule, read_note};
use crate::ports::{FileContent, Sources, VaultError, VaultFiles};
use crate::staleness::{source_refs, to_remember};

/// The result of reading one file.
pub(super) enum ReadOutcome {
    Unchanged { key: NoteKey, stat: FileStat },
    Read { note: Box<Note>, text: String },
    Missing,
    Unreadable(VaultError),
}

/// Reads notes from their files.
pub(super) struct NoteReader {
    pub(super) vault: Arc<dyn VaultFiles>,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) title_rule: TitleRule,
}

impl NoteReader {
    /// Reads files in one step, and parses those whose bytes the snapshot or the store lacks.
    pub(super) fn read(&self, snapshot: &Snapshot, writer: &Writer, files: &[FileToRead]) -> Vec<ReadOutcome> {
        let paths: Vec<&VaultPath> = files.iter().map(|file| &file.path).collect();
        let contents = self.vault.read_many(&paths);
        files.iter().zip(contents).map(|(file, content)| self.outcome(snapshot, writer, file, content)).collect()
    }

    fn outcome(
        &self,
        snapshot: &Snapshot,
        writer: &Writer,
        file: &FileToRead,
        content: Result<Option<FileContent>, VaultError>,
    ) -> ReadOutcome {
        let content = match content {
            Err(error) => return ReadOutcome::Unreadable(error),
            Ok(None) => return ReadOutcome::Missing,
            Ok(Some(content)) => content,
        };
        match file.key {
            Some(key) if snapshot.note(key).hash == content.hash && !writer.unsaved.contains(&key) => {
                ReadOutcome::Unchanged { key, stat: content.stat }
            }
            key => {
                let (note, text) = self.parse(snapshot, &file.path, &content, key);
                ReadOutcome::Read { note: Box::new(note), text }
            }
        }
    }

    /// A file's note and text, with the versions of its sources. `key` is its note in the snapshot.
    pub(super) fn parse(
        &self,
        snapshot: &Snapshot,
        path: &VaultPath,
        content: &FileContent,
        key: Option<NoteKey>,
    ) -> (Note, String) {
        let (mut note, text) = read_note(path, content, &self.title_rule);
        let refs = source_refs(&note);
        if !refs.is_empty() {
            // A note that was moved or copied is no newer than the original.
            note.sources = match key.map(|key| snapshot.note(key)).or_else(|| snapshot.sourced(note.hash)) {
                Some(known) if known.hash == note.hash => known.sources.clone(),
                known => to_remember(&refs, self.sources.versions(&refs), known.map_or(&[], |known| &known.sources)),
            };
        }
        (note, text)
    }
}

/// A file this process wrote: its path, its earlier path if it was renamed, and its bytes unless it was deleted.
pub(crate) struct WrittenFile {
    pub(crate) path: VaultPath,
    pub(crate) renamed_from: Option<VaultPath>,
    pub(crate) content: Option<FileContent>,
}

impl WrittenFile {
    pub(crate) fn new(path: VaultPath, bytes: Vec<u8>, stat: FileStat) -> Self {
        let hash = ContentHash::of(&bytes);
        Self { path, renamed_from: None, content: Some(FileContent { bytes, stat, hash }) }
    }
}
