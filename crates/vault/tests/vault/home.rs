//! A vault in a temporary folder.

use std::path::{Path, PathBuf};

use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_vault::{FolderVault, VaultOptions};

pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            home.save(path, text);
        }
        home
    }

    pub(crate) fn open(&self) -> FolderVault {
        FolderVault::open(self.folder.path(), VaultOptions::default()).unwrap()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn save(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.at(path)).ok()
    }

    /// Every file below the root and outside `.quipu`, with its text.
    pub(crate) fn tree(&self) -> Vec<(String, String)> {
        tree(self.folder.path())
    }
}

pub(crate) fn tree(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == ".quipu" {
                continue;
            }
            if path.is_dir() {
                found.push((format!("{name}/"), String::new()));
                folders.push(path);
            } else {
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).unwrap()
}

pub(crate) fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

pub(crate) fn create(at: &str, text: &str) -> FileChange {
    FileChange::Create { path: path(at), bytes: text.into() }
}

pub(crate) fn replace(at: &str, expected: &str, text: &str) -> FileChange {
    FileChange::Replace { path: path(at), expected: hash(expected), bytes: text.into() }
}

pub(crate) fn move_to(from: &str, to: &str, expected: &str, text: &str) -> FileChange {
    FileChange::Move { from: path(from), to: path(to), expected: hash(expected), bytes: text.into() }
}

pub(crate) fn delete(at: &str, expected: &str) -> FileChange {
    FileChange::Delete { path: path(at), expected: hash(expected) }
}

pub(crate) fn listed(vault: &FolderVault) -> Vec<String> {
    vault.list().unwrap().files.iter().map(|file| file.path.to_string()).collect()
}
