//! Kernel watches, one for each folder that the rules admit.
//!
//! Not one recursive watch: inotify knows none, and `notify` would place a watch in every folder of `node_modules` and
//! `.git` too, which costs minutes and the system's limit. Where the system watches whole trees itself, one is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use quipu_core::model::VaultPath;
use quipu_core::ports::VaultError;

use super::Message;
use super::batch::{Batch, is_of_interest};
use crate::folder::{Folder, Found, find, join, split};
use crate::folder_vault::FolderVault;
use crate::rules::is_markdown;
use crate::step;
use crate::walk::{Walked, walk_folders};

/// Whether the system watches whole trees by itself.
const WATCHES_TREES: bool = cfg!(not(any(target_os = "linux", target_os = "android")));

/// The watches of one vault.
pub(super) struct Native {
    watcher: RecommendedWatcher,
    root_inode: u64,
    /// Every watched folder: the path it is reached by, and its real path.
    folders: BTreeMap<String, String>,
    /// The same, the other way round; a folder behind links is reached by several paths.
    reached_by: BTreeMap<String, BTreeSet<String>>,
    /// Notes that are links, by the real path of the file.
    linked_files: BTreeMap<String, BTreeSet<VaultPath>>,
}

/// Why watches could not be placed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    #[error("no watches left")]
    Exhausted,
    #[error(transparent)]
    Vault(VaultError),
    #[error("{0}")]
    Kernel(notify::Error),
}

impl From<notify::Error> for PlaceError {
    fn from(error: notify::Error) -> Self {
        // No space for watches, or no room for one more watcher.
        let is_full = |code| code == Some(rustix::io::Errno::NOSPC.raw_os_error());
        let is_many = |code| code == Some(rustix::io::Errno::MFILE.raw_os_error());
        match &error.kind {
            ErrorKind::MaxFilesWatch => Self::Exhausted,
            ErrorKind::Io(io) if is_full(io.raw_os_error()) || is_many(io.raw_os_error()) => Self::Exhausted,
            _ => Self::Kernel(error),
        }
    }
}

impl Native {
    /// Watches every folder of the vault.
    pub(super) fn place(vault: &FolderVault, sender: &Sender<Message>) -> Result<Self, PlaceError> {
        let root = Folder::root(vault)
            .and_then(|root| Ok((root.dir.see_self()?.inode, root)))
            .map_err(|source| PlaceError::Vault(VaultError::Read { path: ".".to_owned(), source }));
        let (root_inode, root) = root?;
        let (sender, root_path) = (sender.clone(), vault.root().to_owned());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let message = match event {
                Ok(event) if is_of_interest(&event, &root_path) => Message::Event(event),
                Ok(_) => return,
                Err(_) => Message::Fault,
            };
            // Nobody listens any more: the watcher is being dropped.
            let _ = sender.send(message);
        })?;
        let mut native = Self {
            watcher,
            root_inode,
            folders: BTreeMap::new(),
            reached_by: BTreeMap::new(),
            linked_files: BTreeMap::new(),
        };
        native.add_below(vault, &Arc::new(root))?;
        Ok(native)
    }

    /// Whether the root is still the folder that is watched.
    pub(super) fn is_in_place(&self, vault: &FolderVault) -> bool {
        let seen = vault.open_root().and_then(|root| root.see_self());
        seen.is_ok_and(|seen| seen.inode == self.root_inode)
    }

    /// Follows a batch of events with the watches, and says which paths to look at again.
    pub(super) fn settle(&mut self, vault: &FolderVault, batch: &Batch) -> Result<Vec<VaultPath>, PlaceError> {
        let mut candidates = BTreeMap::new();
        for (real, is_name) in &batch.paths {
            for path in self.paths_of(real) {
                *candidates.entry(path).or_default() |= *is_name;
            }
        }
        // First let go, then watch: a folder that was moved is one inode with one watch, and letting go of its old
        // path after watching the new one would end both.
        let mut changed = BTreeSet::new();
        for (path, is_name) in &candidates {
            if *is_name && self.folders.contains_key(path) {
                self.forget(vault, path);
                changed.extend(VaultPath::parse(path));
            }
        }
        for path in candidates.keys().filter_map(|path| VaultPath::parse(path).ok()) {
            match find(vault, &path) {
                Ok(Found::Folder(folder)) => {
                    if !self.folders.contains_key(path.as_str()) {
                        self.add_below(vault, &folder)?;
                    }
                    changed.insert(path);
                }
                Ok(Found::Note(spot)) => {
                    if spot.is_link {
                        let real = join(&spot.folder, &spot.name);
                        self.linked_files.entry(real).or_default().insert(path.clone());
                    }
                    changed.insert(path);
                }
                Ok(Found::Absent(_)) | Err(_) => {
                    changed.insert(path);
                }
                // A note may have become something that is none: told, so that it is looked at and found gone.
                Ok(Found::LeftOut(reason)) => {
                    if is_markdown(path.file_name().as_ref()) && crate::folder::is_about_kind(reason) {
                        changed.insert(path);
                    }
                }
            }
        }
        Ok(changed.into_iter().collect())
    }

    /// The paths by which a real path is reached.
    fn paths_of(&self, real: &str) -> BTreeSet<String> {
        let (folder, name) = split(real);
        let in_folders = self.reached_by.get(folder).into_iter().flatten().map(|path| join(path, name));
        let as_folder = self.reached_by.get(real).into_iter().flatten().cloned();
        let as_linked = self.linked_files.get(real).into_iter().flatten().map(ToString::to_string);
        in_folders.chain(as_folder).chain(as_linked).collect()
    }

    /// Watches a folder and those below it. A folder made and filled at once is watched before it is told of, so what
    /// was put into it before is found by looking, and what comes after by its watch.
    fn add_below(&mut self, vault: &FolderVault, folder: &Arc<Folder>) -> Result<(), PlaceError> {
        // Watched first and read second, level by level, until a reading finds no folder that was not watched.
        loop {
            let Walked { folders, linked_files, .. } = walk_folders(vault, folder);
            for (real, path) in linked_files {
                self.linked_files.entry(real).or_default().insert(path);
            }
            let mut is_complete = true;
            for found in folders {
                if !self.folders.contains_key(&found.path) {
                    is_complete = false;
                    self.add(vault, found.path, found.real)?;
                }
            }
            if is_complete {
                return Ok(());
            }
        }
    }

    fn add(&mut self, vault: &FolderVault, path: String, real: String) -> Result<(), PlaceError> {
        step::before("watch").map_err(notify::Error::io)?;
        if !self.reached_by.contains_key(&real) && (!WATCHES_TREES || real.is_empty()) {
            let mode = if WATCHES_TREES { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            match self.watcher.watch(&vault.root().join(&real), mode) {
                Ok(()) => {}
                // Gone again, or not ours to read: its folder's watch tells when that changes.
                Err(error) if !real.is_empty() && is_about_one_folder(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.reached_by.entry(real.clone()).or_default().insert(path.clone());
        self.folders.insert(path, real);
        Ok(())
    }

    /// Lets go of a folder and those below it.
    fn forget(&mut self, vault: &FolderVault, path: &str) {
        let below = format!("{path}/");
        let gone: Vec<String> = self
            .folders
            .range(path.to_owned()..)
            .map(|(folder, _)| folder)
            .take_while(|folder| folder.starts_with(path))
            .filter(|folder| *folder == path || folder.starts_with(&below))
            .cloned()
            .collect();
        for folder in gone {
            let Some(real) = self.folders.remove(&folder) else { continue };
            let Some(paths) = self.reached_by.get_mut(&real) else { continue };
            paths.remove(&folder);
            if paths.is_empty() {
                // The kernel has let go already where the folder is gone.
                let _ = self.watcher.unwatch(&vault.root().join(&real));
                self.reached_by.remove(&real);
            }
        }
    }
}

fn is_about_one_folder(error: &notify::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(io) => matches!(io.kind(), NotFound | NotADirectory | PermissionDenied),
        _ => false,
    }
}
