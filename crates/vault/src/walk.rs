//! The walk over the vault, in parallel, one task for each folder.
//!
//! Not the `ignore` crate's walker: judging by our own rules means that a walk and a single path cannot disagree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::model::{VaultPath, Warning, fold};
use quipu_core::ports::{ListedFile, Listing, VaultError};
use rayon::prelude::*;

use crate::beneath::{Dir, Kind, is_no_folder};
use crate::folder::{Ahead, Folder, Found, NOT_REGULAR, find, join};
use crate::folder_vault::FolderVault;
use crate::rules::is_markdown;
use crate::{step, temporary};

/// Below this many notes in one folder, asking for their sizes and times is not worth sharing out.
const STAT_CHUNK: usize = 512;

/// Everything a walk came across.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) files: Vec<ListedFile>,
    pub(crate) folders: Vec<WalkedFolder>,
    /// Links that are or may become part of the vault, by path, each with the real paths it passes through. Only where
    /// sizes and times are not asked for.
    pub(crate) links: Vec<(String, Vec<String>)>,
    pub(crate) warnings: Vec<Warning>,
    /// What is there and could not be read, by path.
    pub(crate) unread: Vec<String>,
    /// Temporary files of ours, by real path. Any that is there while nobody writes was left by a crash.
    pub(crate) leftovers: Vec<String>,
}

/// A folder that was entered.
#[derive(Debug)]
pub(crate) struct WalkedFolder {
    /// As reached; empty for the root.
    pub(crate) path: String,
    /// Without links.
    pub(crate) real: String,
}

/// Every note of the vault.
pub(crate) fn list(vault: &FolderVault) -> Result<Listing, VaultError> {
    let root = Folder::root(vault).map_err(|source| VaultError::Read { path: ".".to_owned(), source })?;
    // Unlike any other folder, a root that cannot be read is no empty vault.
    root.dir.entries().map_err(|source| VaultError::Read { path: ".".to_owned(), source })?;
    let walked = walk(vault, &Arc::new(root));
    vault.remember_leftovers(&walked.leftovers);
    let mut listing = listing(walked);
    listing.warnings.extend(vault.notices());
    listing.warnings.sort_unstable();
    Ok(listing)
}

/// The notes at or below a path.
pub(crate) fn list_below(vault: &FolderVault, path: &VaultPath) -> Result<Listing, VaultError> {
    let fail = |source| VaultError::Read { path: path.to_string(), source };
    match find(vault, path).map_err(fail)? {
        Found::Folder(folder) => Ok(listing(walk(vault, &folder))),
        Found::Note(spot) => {
            let seen = vault
                .open_root()
                .and_then(|root| root.open_below(&spot.folder))
                .and_then(|folder| folder.see(&spot.name))
                .map_err(fail)?;
            let file = seen.map(|seen| ListedFile { path: path.clone(), stat: seen.stat });
            Ok(Listing { files: file.into_iter().collect(), ..Listing::default() })
        }
        Found::Absent(_) | Found::LeftOut(_) => Ok(Listing::default()),
    }
}

/// Walks a folder and everything below it. What cannot be read becomes a warning.
pub(crate) fn walk(vault: &FolderVault, start: &Arc<Folder>) -> Walked {
    walk_with(vault, start, true)
}

/// Walks a folder without asking for the size and time of any file: `files` has only those that are links.
pub(crate) fn walk_folders(vault: &FolderVault, start: &Arc<Folder>) -> Walked {
    walk_with(vault, start, false)
}

fn walk_with(vault: &FolderVault, start: &Arc<Folder>, stats: bool) -> Walked {
    let walk = Walk { vault, stats, walked: Mutex::new(Walked::default()) };
    rayon::scope(|scope| walk.visit(scope, start));
    let mut walked = walk.walked.into_inner();
    walked.files.par_sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.folders.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.warnings.sort_unstable();
    walked.leftovers.sort_unstable();
    walked
}

/// Every file or folder that has a path when case is ignored, the exact one first, rules or no rules.
pub(crate) fn find_any_case(vault: &FolderVault, path: &VaultPath) -> io::Result<Vec<VaultPath>> {
    let root = Folder::root(vault)?;
    let parts: Vec<&str> = path.as_str().split('/').collect();
    let mut found = Vec::new();
    collect_any_case(vault, &root.dir, &parts, ("", ""), &mut found)?;
    Ok(found)
}

fn listing(walked: Walked) -> Listing {
    Listing { files: walked.files, warnings: walked.warnings, unread: walked.unread }
}

/// One walk under way.
struct Walk<'a> {
    vault: &'a FolderVault,
    /// Whether sizes and times are asked for.
    stats: bool,
    walked: Mutex<Walked>,
}

impl Walk<'_> {
    fn visit<'scope>(&'scope self, scope: &rayon::Scope<'scope>, folder: &Folder) {
        let mut here = Walked::default();
        here.folders.push(WalkedFolder { path: folder.path.clone(), real: folder.real.clone() });
        here.warnings.extend(folder.unread.clone());
        match step::before("read a folder").and_then(|()| folder.dir.entries()) {
            Ok(entries) => {
                let mut notes = Vec::new();
                for (name, kind) in entries {
                    self.look_at(scope, folder, &name, kind, &mut here, &mut notes);
                }
                if self.stats {
                    stat_notes(folder, notes, &mut here);
                }
            }
            Err(error) => here.miss(&folder.path, &format!("the folder cannot be read: {error}")),
        }
        self.walked().absorb(here);
    }

    fn look_at<'scope>(
        &'scope self,
        scope: &rayon::Scope<'scope>,
        folder: &Folder,
        name: &OsStr,
        kind: Kind,
        here: &mut Walked,
        notes: &mut Vec<VaultPath>,
    ) {
        if name.as_bytes().starts_with(b".") {
            if let Some(name) = name.to_str().filter(|name| temporary::is_ours(name)) {
                here.leftovers.push(join(&folder.real, name));
            }
            return;
        }
        // Most files that are not notes end here, before anything is asked or allocated.
        if matches!(kind, Kind::File | Kind::Other) && !is_markdown(name) {
            return;
        }
        let path = folder.path_of(&name.to_string_lossy());
        if kind == Kind::Link && !self.stats && self.may_count(folder, &path) {
            here.links.push((path.clone(), folder.way_of(self.vault, name)));
        }
        let target = match kind {
            Kind::Link => match folder.follow(self.vault, name) {
                Ok(Ok(target)) => Some(target),
                Ok(Err(reason)) => {
                    // A link that would be left out wherever it led, to a picture for example, concerns nobody.
                    let is_folder = self.vault.root().join(&path).is_dir();
                    if self.vault.rules().judge(&folder.patterns, &path, is_folder).is_ok() {
                        here.warn(&path, &format!("not followed: {reason}"));
                    }
                    return;
                }
                Err(error) => return here.miss(&path, &format!("the link cannot be followed: {error}")),
            },
            _ => None,
        };
        let kind = target.as_ref().map_or(kind, |target| target.seen.kind);
        if self.vault.rules().judge(&folder.patterns, &path, kind == Kind::Folder).is_err() {
            return;
        }
        let (Some(name), Ok(note_path)) = (name.to_str(), VaultPath::parse(&path)) else {
            let fault = if name.to_str().is_none() { "its name is not UTF-8" } else { "its name cannot be used" };
            return here.warn(&path, &format!("left out: {fault}; rename it to make it part of the vault"));
        };
        match (kind, target) {
            (Kind::Folder, target) => {
                let ahead = folder.ahead(name, target.as_ref());
                scope.spawn(move |scope| self.descend(scope, ahead));
            }
            (Kind::File, Some(target)) => here.files.push(ListedFile { path: note_path, stat: target.seen.stat }),
            (Kind::File, None) => notes.push(note_path),
            (Kind::Link | Kind::Other, _) => here.warn(&path, &format!("left out: {NOT_REGULAR}")),
        }
    }

    /// Whether a link would be part of the vault, led it to a note or to a folder.
    fn may_count(&self, folder: &Folder, path: &str) -> bool {
        [true, false].iter().any(|is_folder| self.vault.rules().judge(&folder.patterns, path, *is_folder).is_ok())
    }

    /// Opens a folder only when its turn comes, and from the root: no folder is held open for those below it, so a walk
    /// has as many open as it has threads, however deep the vault.
    fn descend<'scope>(&'scope self, scope: &rayon::Scope<'scope>, ahead: Ahead) {
        let path = ahead.path.clone();
        let dir = self.vault.open_root().and_then(|root| root.open_below(&ahead.real));
        match dir.and_then(|dir| ahead.enter(self.vault, dir)) {
            Ok(folder) => self.visit(scope, &folder),
            // Removed, or become something else, since its name was read.
            Err(error) if is_no_folder(&error) => {}
            Err(error) => self.walked().miss(&path, &format!("the folder cannot be read: {error}")),
        }
    }

    fn walked(&self) -> MutexGuard<'_, Walked> {
        self.walked.lock()
    }
}

fn stat_notes(folder: &Folder, notes: Vec<VaultPath>, here: &mut Walked) {
    let stat = |path: VaultPath| (folder.dir.see(path.file_name()), path);
    let seen: Vec<_> = if notes.len() > STAT_CHUNK {
        notes.into_par_iter().with_min_len(STAT_CHUNK / 2).map(stat).collect()
    } else {
        notes.into_iter().map(stat).collect()
    };
    for (seen, path) in seen {
        match seen {
            Ok(Some(seen)) if seen.kind == Kind::File => here.files.push(ListedFile { path, stat: seen.stat }),
            // Removed, or become something else, since its name was read.
            Ok(_) => {}
            Err(error) => here.miss(path.as_str(), &format!("cannot be read: {error}")),
        }
    }
}

impl Walked {
    fn warn(&mut self, path: &str, message: &str) {
        self.warnings.push(Warning { path: path.to_owned(), message: message.to_owned() });
    }

    /// Warns of something that is there and cannot be read.
    fn miss(&mut self, path: &str, message: &str) {
        self.unread.push(path.to_owned());
        self.warn(path, message);
    }

    fn absorb(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.folders.append(&mut other.folders);
        self.links.append(&mut other.links);
        self.unread.append(&mut other.unread);
        self.warnings.append(&mut other.warnings);
        self.leftovers.append(&mut other.leftovers);
    }
}

/// `at` is where `dir` lies: as reached, and really.
fn collect_any_case(
    vault: &FolderVault,
    dir: &Dir,
    parts: &[&str],
    at: (&str, &str),
    found: &mut Vec<VaultPath>,
) -> io::Result<()> {
    let Some((wanted, rest)) = parts.split_first() else { return Ok(()) };
    let folded = fold(wanted);
    // The exact name sorts first, the others follow in byte order.
    let names: BTreeSet<(bool, OsString, bool)> = dir
        .entries()?
        .into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| fold(name) == folded))
        .map(|(name, kind)| (name != *wanted, name, kind == Kind::Link))
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

/// Where a linked folder really is, if that is inside the vault.
fn real_folder(vault: &FolderVault, folder: &str, name: &str) -> Option<String> {
    let real = std::fs::canonicalize(vault.root().join(folder).join(name)).ok()?;
    real.strip_prefix(vault.root()).ok()?.to_str().map(str::to_owned)
}
