//! The other paths of a note's file, through symbolic links to it or to a folder above it, and what becomes of them when the file
//! is moved.

use rustc_hash::{FxHashMap, FxHashSet};

use super::NoteError;
use super::relocate::RelocatedFile;
use crate::Knowledge;
use crate::index::{IndexError, Snapshot, WrittenFile};
use crate::model::{ContentHash, NoteKey, VaultPath};

/// Another path of a file that moves.
pub(super) struct AliasMove {
    pub(super) key: NoteKey,
    /// Which of the moved files, and its new path.
    pub(super) file: usize,
    file_to: VaultPath,
    /// The path in the same linked folder that leads to the file then; `None` if none does.
    pub(super) to: Option<VaultPath>,
    /// The symbolic link to a folder that it goes through.
    pub(super) folder_link: Option<VaultPath>,
}

impl AliasMove {
    /// What the index takes in for this path, once it has the file.
    pub(super) fn written(&self, snapshot: &Snapshot, files: &[WrittenFile]) -> WrittenFile {
        let from = snapshot.note(self.key).path.clone();
        match &self.to {
            Some(to) => {
                let file = files.iter().find(|file| file.path == self.file_to);
                let content = file.and_then(|file| file.content.clone());
                WrittenFile { path: to.clone(), renamed_from: Some(from), content }
            }
            None => WrittenFile { path: from, renamed_from: None, content: None },
        }
    }
}

impl Knowledge {
    /// The other paths of these files.
    pub(super) fn aliases_of(&self, snapshot: &Snapshot, files: &[RelocatedFile]) -> Result<Vec<AliasMove>, NoteError> {
        let keys: Vec<NoteKey> = files.iter().map(|file| file.key).collect();
        let places: FxHashMap<NoteKey, usize> = files.iter().enumerate().map(|(at, file)| (file.key, at)).collect();
        let mut aliases = Vec::new();
        for (note, key) in self.other_paths(snapshot, &keys)? {
            let file = places[&note];
            let real = self.real_path(&snapshot.note(note).path)?;
            let real_then = self.real_path(&files[file].to)?;
            let path = &snapshot.note(key).path;
            let to = if real == real_then { Some(path.clone()) } else { self.alias_then(path, &real, &real_then)? };
            let file_to = files[file].to.clone();
            let (to, folder_link) = (to.filter(|to| *to != file_to), self.folder_link(path)?);
            aliases.push(AliasMove { key, file, file_to, to, folder_link });
        }
        Ok(aliases)
    }

    /// The other paths by which the vault has the files of these notes, each with its note.
    fn other_paths(&self, snapshot: &Snapshot, notes: &[NoteKey]) -> Result<Vec<(NoteKey, NoteKey)>, NoteError> {
        let own: FxHashSet<NoteKey> = notes.iter().copied().collect();
        // Only a note with the same bytes can be the same file.
        let hashes: FxHashSet<ContentHash> = notes.iter().map(|key| snapshot.note(*key).hash).collect();
        let alike = |key: &NoteKey| !own.contains(key) && hashes.contains(&snapshot.note(*key).hash);
        let others: Vec<NoteKey> = snapshot.files().filter(alike).collect();
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let real_path = |key: NoteKey| self.real_path(&snapshot.note(key).path);
        let real: FxHashMap<VaultPath, NoteKey> =
            notes.iter().map(|key| Ok((real_path(*key)?, *key))).collect::<Result<_, NoteError>>()?;
        let mut paths = Vec::new();
        for other in others {
            paths.extend(real.get(&real_path(other)?).map(|note| (*note, other)));
        }
        paths.sort_by_key(|(_, other)| &snapshot.note(*other).path);
        Ok(paths)
    }

    /// The other paths of a note's file.
    pub(super) fn other_paths_to(&self, snapshot: &Snapshot, note: NoteKey) -> Result<Vec<VaultPath>, NoteError> {
        let paths = self.other_paths(snapshot, &[note])?;
        Ok(paths.into_iter().map(|(_, other)| snapshot.note(other).path.clone()).collect())
    }

    /// The notes whose file lies below a folder itself, not behind a symbolic link in it.
    pub(super) fn without_linked(
        &self,
        snapshot: &Snapshot,
        notes: Vec<NoteKey>,
        folder: &VaultPath,
    ) -> Result<Vec<NoteKey>, NoteError> {
        let real_folder = self.real_path(folder)?;
        let mut inside = Vec::with_capacity(notes.len());
        for key in notes {
            let path = &snapshot.note(key).path;
            let rest = below(path, folder.as_str()).unwrap_or_default();
            if self.real_path(path)?.as_str() == join(real_folder.as_str(), rest) {
                inside.push(key);
            }
        }
        Ok(inside)
    }

    /// The path through the same linked folder by which a file is reached once it has moved; `None` if that folder does not
    /// lead to it, or if the path is a link to the file itself.
    fn alias_then(
        &self,
        path: &VaultPath,
        real: &VaultPath,
        real_then: &VaultPath,
    ) -> Result<Option<VaultPath>, NoteError> {
        for folder in folders_of(path) {
            let real_folder = self.real_folder(folder)?;
            let rest = below(path, folder).unwrap_or_default();
            if join(&real_folder, rest) != real.as_str() {
                continue;
            }
            if let Some(rest_then) = below(real_then, &real_folder) {
                return Ok(VaultPath::parse(&join(folder, rest_then)).ok());
            }
        }
        Ok(None)
    }

    /// The symbolic link to a folder that a path goes through. A path goes through one at most.
    fn folder_link(&self, path: &VaultPath) -> Result<Option<VaultPath>, NoteError> {
        let mut link = None;
        for folder in folders_of(path) {
            if self.real_folder(folder)? == folder {
                break;
            }
            link = VaultPath::parse(folder).ok();
        }
        Ok(link)
    }

    fn real_folder(&self, folder: &str) -> Result<String, NoteError> {
        match VaultPath::parse(folder) {
            Ok(path) => Ok(self.real_path(&path)?.to_string()),
            // The vault's root folder.
            Err(_) => Ok(String::new()),
        }
    }

    fn real_path(&self, path: &VaultPath) -> Result<VaultPath, NoteError> {
        Ok(self.vault.real_path(path).map_err(IndexError::from)?)
    }

    /// Which of the paths that led to a file still exist without it: a path through a linked folder went with the file, a link
    /// to the file itself leads nowhere now.
    pub(super) fn left_dangling(&self, mut aliases: Vec<VaultPath>) -> Vec<VaultPath> {
        aliases.retain(|path| self.vault.find_any_case(path).is_ok_and(|found| found.contains(path)));
        aliases
    }

    /// Which of these links no longer lead to a folder.
    pub(super) fn left_dangling_folders(&self, mut links: Vec<VaultPath>) -> Vec<VaultPath> {
        links.sort();
        links.dedup();
        let leads_nowhere = |path: &VaultPath| self.vault.real_path(path).is_ok_and(|real| real == *path);
        links.retain(leads_nowhere);
        self.left_dangling(links)
    }
}

/// The folders above a path, innermost first; the last one is the vault's root, which is empty.
fn folders_of(path: &VaultPath) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.folder()), |folder| match folder.rsplit_once('/') {
        Some((parent, _)) => Some(parent),
        None => (!folder.is_empty()).then_some(""),
    })
}

/// The path of a file from a folder that it lies in.
fn below<'p>(path: &'p VaultPath, folder: &str) -> Option<&'p str> {
    if folder.is_empty() { Some(path.as_str()) } else { path.as_str().strip_prefix(folder)?.strip_prefix('/') }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
