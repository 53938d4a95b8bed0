//! The walk over the vault, in parallel, one task for each folder.
//!
//! It uses [`crate::rules`] instead of the walker of the `ignore` crate, so that a walk and a single path always agree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::model::{VaultPath, Warning, fold};
use quipu_core::ports::{ListedFile, Listing, VaultError};
use rayon::prelude::*;

use crate::dir::{Dir, FileKind, is_no_folder};
use crate::folder::{Folder, NOT_REGULAR, ResolvedPath, UnopenedFolder, join, resolve};
use crate::folder_vault::FolderVault;
use crate::rules::is_markdown;
use crate::{failpoint, temporary};

/// Up to this many notes in a folder, one thread reads their metadata.
const STAT_CHUNK: usize = 512;

/// Everything that a walk found.
#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    pub(crate) files: Vec<ListedFile>,
    pub(crate) folders: Vec<WalkedFolder>,
    /// Links that are or may become part of the vault, by path, each with the real paths it passes through. Empty in a walk
    /// that reads stats.
    pub(crate) links: Vec<(String, Vec<String>)>,
    pub(crate) warnings: Vec<Warning>,
    /// Files and folders that exist and could not be read, by path.
    pub(crate) unread: Vec<String>,
    /// Temporary files, by real path. One that exists while no write runs was left by a crash.
    pub(crate) leftovers: Vec<String>,
}

/// A visited folder.
#[derive(Debug)]
pub(crate) struct WalkedFolder {
    /// From the root; empty for the root.
    pub(crate) path: String,
    /// The real path.
    pub(crate) real: String,
}

/// Every note of the vault.
pub(crate) fn list(vault: &FolderVault) -> Result<Listing, VaultError> {
    let root = Folder::root(vault).map_err(|source| VaultError::Read { path: ".".to_owned(), source })?;
    // An unreadable root is an error, not a warning: the vault is not empty.
    root.dir.entries().map_err(|source| VaultError::Read { path: ".".to_owned(), source })?;
    let walked = walk(vault, &Arc::new(root));
    vault.leftovers.lock().extend(walked.leftovers.iter().cloned());
    let mut listing = listing(walked);
    listing.warnings.extend(vault.notices.lock().iter().cloned());
    listing.warnings.sort_unstable();
    Ok(listing)
}

/// The notes at or below a path.
pub(crate) fn list_below(vault: &FolderVault, path: &VaultPath) -> Result<Listing, VaultError> {
    let fail = |source| VaultError::Read { path: path.to_string(), source };
    match resolve(vault, path).map_err(fail)? {
        ResolvedPath::Folder(folder) => Ok(listing(walk(vault, &folder))),
        ResolvedPath::Note(location) => {
            let metadata = vault
                .open_root()
                .and_then(|root| root.open_below(&location.folder))
                .and_then(|folder| folder.metadata(&location.name))
                .map_err(fail)?;
            let file = metadata.map(|metadata| ListedFile { path: path.clone(), stat: metadata.stat });
            Ok(Listing { files: file.into_iter().collect(), ..Listing::default() })
        }
        ResolvedPath::Absent(_) | ResolvedPath::Excluded(_) => Ok(Listing::default()),
    }
}

/// Walks a folder and everything below it. Unreadable files and folders become warnings.
pub(crate) fn walk(vault: &FolderVault, start: &Arc<Folder>) -> WalkResult {
    walk_with(vault, start, true)
}

/// Walks a folder without reading stats: `files` contains only links.
pub(crate) fn walk_folders(vault: &FolderVault, start: &Arc<Folder>) -> WalkResult {
    walk_with(vault, start, false)
}

fn walk_with(vault: &FolderVault, start: &Arc<Folder>, stats: bool) -> WalkResult {
    let walk = Walk { vault, stats, walked: Mutex::new(WalkResult::default()) };
    rayon::scope(|scope| walk.visit(scope, start));
    let mut walked = walk.walked.into_inner();
    walked.files.par_sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.folders.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.warnings.sort_unstable();
    walked.leftovers.sort_unstable();
    walked
}

/// Every file or folder whose path equals `path` when case is ignored, excluded ones too; the exact match first.
pub(crate) fn find_any_case(vault: &FolderVault, path: &VaultPath) -> io::Result<Vec<VaultPath>> {
    let parts: Vec<&str> = path.as_str().split('/').collect();
    let mut found = Vec::new();
    collect_any_case(vault, &vault.open_root()?, &parts, ("", ""), &mut found)?;
    Ok(found)
}

fn listing(walked: WalkResult) -> Listing {
    Listing { files: walked.files, warnings: walked.warnings, unread: walked.unread }
}

/// A running walk.
struct Walk<'a> {
    vault: &'a FolderVault,
    /// Whether to read the stats of files.
    stats: bool,
    walked: Mutex<WalkResult>,
}

impl Walk<'_> {
    fn visit<'scope>(&'scope self, scope: &rayon::Scope<'scope>, folder: &Folder) {
        let mut here = WalkResult::default();
        here.folders.push(WalkedFolder { path: folder.path.clone(), real: folder.real.clone() });
        here.warnings.extend(folder.unread.clone());
        match failpoint::hit("read a folder").and_then(|()| folder.dir.entries()) {
            Ok(entries) => {
                let mut notes = Vec::new();
                for (name, kind) in entries {
                    self.visit_entry(scope, folder, &name, kind, &mut here, &mut notes);
                }
                if self.stats {
                    stat_notes(folder, notes, &mut here);
                }
            }
            Err(error) => here.warn_unread(&folder.path, &format!("the folder cannot be read: {error}")),
        }
        self.walked.lock().merge(here);
    }

    fn visit_entry<'scope>(
        &'scope self,
        scope: &rayon::Scope<'scope>,
        folder: &Folder,
        name: &OsStr,
        kind: FileKind,
        here: &mut WalkResult,
        notes: &mut Vec<VaultPath>,
    ) {
        if name.as_bytes().starts_with(b".") {
            if let Some(name) = name.to_str().filter(|name| temporary::is_ours(name)) {
                here.leftovers.push(join(&folder.real, name));
            }
            return;
        }
        // The fast path for most files that are not notes: no system call, no allocation.
        if matches!(kind, FileKind::File | FileKind::Other) && !is_markdown(name) {
            return;
        }
        let path = folder.path_of(&name.to_string_lossy());
        if kind == FileKind::Link && !self.stats && self.may_be_part(folder, &path) {
            here.links.push((path.clone(), folder.paths_to_target(self.vault, name)));
        }
        let target = match kind {
            FileKind::Link => match folder.follow(self.vault, name) {
                Ok(Ok(target)) => Some(target),
                Ok(Err(reason)) => {
                    // No warning for a link that is excluded whatever it leads to, such as a picture.
                    let is_folder = self.vault.root().join(&path).is_dir();
                    if self.vault.rules.check(&folder.patterns, &path, is_folder).is_ok() {
                        here.warn(&path, &format!("not followed: {reason}"));
                    }
                    return;
                }
                Err(error) => return here.warn_unread(&path, &format!("the link cannot be followed: {error}")),
            },
            _ => None,
        };
        let kind = target.as_ref().map_or(kind, |target| target.metadata.kind);
        if self.vault.rules.check(&folder.patterns, &path, kind == FileKind::Folder).is_err() {
            return;
        }
        let (Some(name), Ok(note_path)) = (name.to_str(), VaultPath::parse(&path)) else {
            let fault = if name.to_str().is_none() { "its name is not UTF-8" } else { "its name is not allowed" };
            return here.warn(&path, &format!("skipped: {fault}; rename it to add it to the vault"));
        };
        match (kind, target) {
            (FileKind::Folder, target) => {
                let child = folder.child(name, target.as_ref());
                scope.spawn(move |scope| self.descend(scope, child));
            }
            (FileKind::File, Some(target)) => {
                here.files.push(ListedFile { path: note_path, stat: target.metadata.stat });
            }
            (FileKind::File, None) => notes.push(note_path),
            (FileKind::Link | FileKind::Other, _) => here.warn(&path, &format!("skipped: {NOT_REGULAR}")),
        }
    }

    /// Whether the rules include a link if it leads to a note or to a folder.
    fn may_be_part(&self, folder: &Folder, path: &str) -> bool {
        [true, false].iter().any(|is_folder| self.vault.rules.check(&folder.patterns, path, *is_folder).is_ok())
    }

    /// Opens a folder when it is visited, and from the root: no folder stays open for those below it, so a walk has as many
    /// open folders as threads, however deep the vault is.
    fn descend<'scope>(&'scope self, scope: &rayon::Scope<'scope>, child: UnopenedFolder) {
        let path = child.path.clone();
        let dir = self.vault.open_root().and_then(|root| root.open_below(&child.real));
        match dir.and_then(|dir| child.opened(self.vault, dir)) {
            Ok(folder) => self.visit(scope, &folder),
            // Removed or replaced since the folder was read.
            Err(error) if is_no_folder(&error) => {}
            Err(error) => self.walked.lock().warn_unread(&path, &format!("the folder cannot be read: {error}")),
        }
    }
}

fn stat_notes(folder: &Folder, notes: Vec<VaultPath>, here: &mut WalkResult) {
    let stat = |path: VaultPath| (folder.dir.metadata(path.file_name()), path);
    let results: Vec<_> = if notes.len() > STAT_CHUNK {
        notes.into_par_iter().with_min_len(STAT_CHUNK / 2).map(stat).collect()
    } else {
        notes.into_iter().map(stat).collect()
    };
    for (result, path) in results {
        match result {
            Ok(Some(file)) if file.kind == FileKind::File => here.files.push(ListedFile { path, stat: file.stat }),
            // Removed or replaced since the folder was read.
            Ok(_) => {}
            Err(error) => here.warn_unread(path.as_str(), &format!("cannot be read: {error}")),
        }
    }
}

impl WalkResult {
    fn warn(&mut self, path: &str, message: &str) {
        self.warnings.push(Warning { path: path.to_owned(), message: message.to_owned() });
    }

    /// Warns about a file or folder that exists and cannot be read.
    fn warn_unread(&mut self, path: &str, message: &str) {
        self.unread.push(path.to_owned());
        self.warn(path, message);
    }

    fn merge(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.folders.append(&mut other.folders);
        self.links.append(&mut other.links);
        self.unread.append(&mut other.unread);
        self.warnings.append(&mut other.warnings);
        self.leftovers.append(&mut other.leftovers);
    }
}

/// `at` is the path and the real path of `dir`.
fn collect_any_case(
    vault: &FolderVault,
    dir: &Dir,
    parts: &[&str],
    at: (&str, &str),
    found: &mut Vec<VaultPath>,
) -> io::Result<()> {
    let Some((wanted, rest)) = parts.split_first() else { return Ok(()) };
    let folded = fold(wanted);
    // The exact name first, the others in byte order.
    let names: BTreeSet<(bool, OsString, bool)> = dir
        .entries()?
        .into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| fold(name) == folded))
        .map(|(name, kind)| (name != *wanted, name, kind == FileKind::Link))
        .collect();
    for (_, name, is_link) in names {
        let Some(name) = name.to_str() else { continue };
        let path = join(at.0, name);
        if rest.is_empty() {
            found.extend(VaultPath::parse(&path).ok());
            continue;
        }
        let real = if is_link { real_folder(vault, at.1, name) } else { Some(join(at.1, name)) };
        let Some(real) = real else { continue };
        match vault.open_root()?.open_below(&real) {
            Ok(below) => collect_any_case(vault, &below, rest, (&path, &real), found)?,
            Err(error) if is_no_folder(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The real path of a linked folder inside the vault.
fn real_folder(vault: &FolderVault, folder: &str, name: &str) -> Option<String> {
    let real = std::fs::canonicalize(vault.root().join(folder).join(name)).ok()?;
    real.strip_prefix(vault.root()).ok()?.to_str().map(str::to_owned)
}
