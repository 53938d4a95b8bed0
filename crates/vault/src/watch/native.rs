//! Kernel watches, one for each folder that the rules include.
//!
//! Not one recursive watch: inotify has none, and `notify` would place a watch in every folder of `node_modules` and `.git`,
//! which takes minutes and exhausts the system's limit. If the system watches whole trees, one watch is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use quipu_core::model::VaultPath;
use quipu_core::ports::VaultError;

use super::Message;
use super::batch::{EventBatch, is_of_interest};
use crate::dir::{FileKind, Metadata};
use crate::failpoint;
use crate::folder::{Folder, ResolvedPath, join, resolve, split};
use crate::folder_vault::FolderVault;
use crate::rules::is_markdown;
use crate::walk::{WalkResult, walk_folders};

/// Whether the system can watch a whole tree.
const WATCHES_TREES: bool = cfg!(not(any(target_os = "linux", target_os = "android")));

/// The watches of one vault.
pub(super) struct Native {
    watcher: RecommendedWatcher,
    root_inode: u64,
    /// Every watched folder: its path in the vault, and its real path.
    folders: BTreeMap<String, String>,
    /// The inverse; a folder behind links has several paths.
    reached_by: BTreeMap<String, BTreeSet<String>>,
    /// Every link, by path, with the real paths it passes through. For a broken link, the last is its missing target.
    links: BTreeMap<String, Vec<String>>,
    passed_by: BTreeMap<String, BTreeSet<String>>,
    /// The number of folders and links that need the watch of a real folder.
    uses: BTreeMap<String, usize>,
    /// Whether a link passes through a hidden name, so that events of hidden names count.
    sees_hidden: Arc<AtomicBool>,
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
        let root = open_root(vault)?;
        let root_inode = Metadata::of(&root.dir).map_err(unreadable_root)?.inode;
        let (sender, root_path) = (sender.clone(), vault.root().to_owned());
        let sees_hidden = Arc::new(AtomicBool::new(false));
        let is_seen = Arc::clone(&sees_hidden);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let message = match event {
                Ok(event) if is_of_interest(&event, &root_path, is_seen.load(Ordering::Relaxed)) => {
                    Message::Event(event)
                }
                Ok(_) => return,
                Err(_) => Message::Fault,
            };
            // Fails only while the watcher is being dropped.
            let _ = sender.send(message);
        })?;
        let mut native = Self {
            watcher,
            root_inode,
            folders: BTreeMap::new(),
            reached_by: BTreeMap::new(),
            links: BTreeMap::new(),
            passed_by: BTreeMap::new(),
            uses: BTreeMap::new(),
            sees_hidden,
        };
        native.add_below(vault, root)?;
        Ok(native)
    }

    /// Whether the root is still the watched folder.
    pub(super) fn is_in_place(&self, vault: &FolderVault) -> bool {
        let seen = vault.open_root().and_then(|root| Metadata::of(&root));
        seen.is_ok_and(|seen| seen.inode == self.root_inode)
    }

    /// Updates the watches after a batch of events, and returns the paths to read again.
    pub(super) fn settle(&mut self, vault: &FolderVault, batch: &EventBatch) -> Result<Vec<VaultPath>, PlaceError> {
        let mut candidates = BTreeMap::new();
        for (real, is_name) in &batch.paths {
            for path in self.paths_of(real) {
                *candidates.entry(path).or_default() |= *is_name;
            }
        }
        // First unwatch, then watch: a moved folder is one inode with one watch, and unwatching its old path after
        // watching the new one would end both.
        let mut changed = BTreeSet::new();
        for (path, is_name) in &candidates {
            if *is_name && self.forget(vault, path) {
                changed.extend(VaultPath::parse(path));
            }
        }
        for (path, is_name) in candidates {
            let Ok(path) = VaultPath::parse(&path) else { continue };
            if is_name {
                self.follow_link(vault, &path)?;
            }
            match resolve(vault, &path) {
                Ok(ResolvedPath::Folder(folder)) => {
                    if !self.folders.contains_key(path.as_str()) {
                        self.add_below(vault, folder)?;
                    }
                    changed.insert(path);
                }
                Ok(ResolvedPath::Note(_) | ResolvedPath::Absent(_)) | Err(_) => {
                    changed.insert(path);
                }
                // A note may have been replaced by something else: reported, so that it is read and found deleted.
                Ok(ResolvedPath::Excluded(reason)) => {
                    if is_markdown(path.file_name().as_ref()) && crate::folder::is_about_file(reason) {
                        changed.insert(path);
                    }
                }
            }
        }
        Ok(changed.into_iter().collect())
    }

    /// The paths in the vault of a real path.
    fn paths_of(&self, real: &str) -> BTreeSet<String> {
        let (folder, name) = split(real);
        let in_folders = self.reached_by.get(folder).into_iter().flatten().map(|path| join(path, name));
        let as_folder = self.reached_by.get(real).into_iter().flatten().cloned();
        let as_passed = self.passed_by.get(real).into_iter().flatten().cloned();
        in_folders.chain(as_folder).chain(as_passed).collect()
    }

    /// Watches a folder and its subfolders. A new folder is watched before it is reported, so its present files are found by
    /// reading it, and later ones by its watch.
    fn add_below(&mut self, vault: &FolderVault, mut folder: Arc<Folder>) -> Result<(), PlaceError> {
        // Watch, then read, level by level, until no unwatched folder is found.
        loop {
            let WalkResult { folders, links, .. } = walk_folders(vault, &folder);
            let mut is_complete = true;
            for (path, way) in links {
                is_complete &= !self.add_link(vault, &path, way)?;
            }
            for found in folders {
                if !self.folders.contains_key(&found.path) {
                    is_complete = false;
                    self.add(vault, found.path, found.real)?;
                }
            }
            if is_complete {
                return Ok(());
            }
            if folder.path.is_empty() {
                // A change of the root's `.gitignore` before the root was watched has no event.
                folder = open_root(vault)?;
            }
        }
    }

    fn add(&mut self, vault: &FolderVault, path: String, real: String) -> Result<(), PlaceError> {
        self.watch(vault, &real)?;
        self.reached_by.entry(real.clone()).or_default().insert(path.clone());
        self.folders.insert(path, real);
        Ok(())
    }

    /// Watches the folders on the way of the link at a path, if there is one.
    fn follow_link(&mut self, vault: &FolderVault, path: &VaultPath) -> Result<(), PlaceError> {
        // Watch, then follow, until nothing new is on the way.
        while let Some(way) = way_of_link(vault, path) {
            if !self.add_link(vault, path.as_str(), way)? {
                break;
            }
        }
        Ok(())
    }

    /// Watches the folders that a link passes through, excluded ones too; returns whether one is new.
    fn add_link(&mut self, vault: &FolderVault, path: &str, way: Vec<String>) -> Result<bool, PlaceError> {
        let mut is_new = false;
        for real in &way {
            is_new |= self.watch(vault, split(real).0)?;
            self.passed_by.entry(real.clone()).or_default().insert(path.to_owned());
            if real.starts_with('.') || real.contains("/.") {
                self.sees_hidden.store(true, Ordering::Relaxed);
            }
        }
        let before = self.links.insert(path.to_owned(), way);
        self.leave_way(vault, path, before.unwrap_or_default());
        Ok(is_new)
    }

    /// Unwatches folders that a link no longer passes through.
    fn leave_way(&mut self, vault: &FolderVault, path: &str, way: Vec<String>) {
        for real in way {
            self.unwatch(vault, split(&real).0);
            let is_passed = self.links.get(path).is_some_and(|now| now.contains(&real));
            if !is_passed && let Some(paths) = self.passed_by.get_mut(&real) {
                paths.remove(path);
                if paths.is_empty() {
                    self.passed_by.remove(&real);
                }
            }
        }
    }

    /// Unwatches the folder or link at a path and those below it; returns whether there was a folder.
    fn forget(&mut self, vault: &FolderVault, path: &str) -> bool {
        let folders = at_or_below(&self.folders, path);
        for folder in &folders {
            let Some(real) = self.folders.remove(folder) else { continue };
            self.unwatch(vault, &real);
            if let Some(paths) = self.reached_by.get_mut(&real) {
                paths.remove(folder);
                if paths.is_empty() {
                    self.reached_by.remove(&real);
                }
            }
        }
        for link in at_or_below(&self.links, path) {
            let way = self.links.remove(&link).unwrap_or_default();
            self.leave_way(vault, &link, way);
        }
        !folders.is_empty()
    }

    /// Watches a real folder for one more use; returns whether it is new.
    fn watch(&mut self, vault: &FolderVault, real: &str) -> Result<bool, PlaceError> {
        failpoint::hit("watch").map_err(notify::Error::io)?;
        let uses = self.uses.entry(real.to_owned()).or_default();
        *uses += 1;
        if *uses > 1 || (WATCHES_TREES && !real.is_empty()) {
            return Ok(false);
        }
        let mode = if WATCHES_TREES { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        match self.watcher.watch(&vault.root().join(real), mode) {
            Ok(()) => Ok(true),
            // Deleted again, or not readable: the parent folder's watch reports when that changes.
            Err(error) if !real.is_empty() && is_about_one_folder(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn unwatch(&mut self, vault: &FolderVault, real: &str) {
        let Some(uses) = self.uses.get_mut(real) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.uses.remove(real);
            // The kernel has already removed the watch of a deleted folder.
            let _ = self.watcher.unwatch(&vault.root().join(real));
        }
    }
}

/// The vault's root with its rules as they are now.
fn open_root(vault: &FolderVault) -> Result<Arc<Folder>, PlaceError> {
    Folder::root(vault).map(Arc::new).map_err(unreadable_root)
}

fn unreadable_root(source: std::io::Error) -> PlaceError {
    PlaceError::Vault(VaultError::Read { path: ".".to_owned(), source })
}

/// The keys at or below a path.
fn at_or_below<T>(map: &BTreeMap<String, T>, path: &str) -> Vec<String> {
    let below = format!("{path}/");
    map.range(path.to_owned()..)
        .map(|(key, _)| key)
        .take_while(|key| key.starts_with(path))
        .filter(|key| *key == path || key.starts_with(&below))
        .cloned()
        .collect()
}

/// The way of the link at a path; `None` if there is no link that the walk would find.
fn way_of_link(vault: &FolderVault, path: &VaultPath) -> Option<Vec<String>> {
    let folder = match VaultPath::parse(path.folder()) {
        Err(_) => Arc::new(Folder::root(vault).ok()?),
        Ok(above) => match resolve(vault, &above) {
            Ok(ResolvedPath::Folder(folder)) => folder,
            _ => return None,
        },
    };
    let is_link = folder.dir.metadata(path.file_name()).ok()??.kind == FileKind::Link;
    is_link.then(|| folder.paths_to_target(vault, path.file_name().as_ref()))
}

fn is_about_one_folder(error: &notify::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(io) => matches!(io.kind(), NotFound | NotADirectory | PermissionDenied),
        _ => false,
    }
}
