//! A folder of the vault as reached from the root, and the way from a path to what lies there.
//!
//! A folder has two paths: the one it was reached by, which the rules judge, and the real one, which differs behind a link.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use quipu_core::model::VaultPath;

use crate::beneath::{Dir, Kind, Seen, is_no_folder};
use crate::folder_vault::FolderVault;
use crate::rules::{Patterns, Reason, Unread};

/// An open folder that the rules admit.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) dir: Dir,
    /// As reached, from the root; empty for the root.
    pub(crate) path: String,
    /// Without links, from the root.
    pub(crate) real: String,
    pub(crate) patterns: Patterns,
    pub(crate) unread: Unread,
    /// Whether a link is on the way to it.
    is_behind_link: bool,
}

/// A folder that the rules have admitted and that is not open yet. It holds no handle: a walk may know of any number.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) path: String,
    pub(crate) real: String,
    above: Patterns,
    is_behind_link: bool,
}

/// What lies at a path.
pub(crate) enum Found {
    /// A note file.
    Note(Spot),
    /// A folder.
    Folder(Arc<Folder>),
    /// Nothing, and a note may be made there.
    Absent(Spot),
    /// Something that the rules leave out, or nothing where they admit nothing.
    LeftOut(Reason),
}

/// Where a file really lies.
#[derive(Debug)]
pub(crate) struct Spot {
    /// The real folder from the root; empty for the root.
    pub(crate) folder: String,
    pub(crate) name: String,
    /// The folders on the way that are not there yet, outermost first, each from the root.
    pub(crate) missing: Vec<String>,
    /// Whether the path itself is a link to the file.
    pub(crate) is_link: bool,
}

/// Where a link leads.
pub(crate) struct Target {
    /// From the root, without links.
    pub(crate) real: String,
    pub(crate) seen: Seen,
}

pub(crate) const LEADS_OUT: Reason = "a link leads out of the vault";
pub(crate) const LEADS_TO_RESERVED: Reason = "a link leads into a .git or .quipu folder";
pub(crate) const LEADS_NOWHERE: Reason = "a link leads nowhere";
pub(crate) const LEADS_IN_CIRCLES: Reason = "a link leads back to a folder it lies in";
pub(crate) const BEHIND_A_LINK: Reason = "a link to a folder is not followed behind another one";
pub(crate) const NOT_REGULAR: Reason = "it is not a regular file";
pub(crate) const BELOW_A_FILE: Reason = "a part of its path is a file";

/// As many links the kernel follows before it takes them for a circle.
const MAX_LINKS_ON_WAY: usize = 40;

impl Folder {
    /// The root, opened anew each time: it may have been unmounted or replaced since.
    pub(crate) fn root(vault: &FolderVault) -> io::Result<Self> {
        let dir = vault.open_root()?;
        let (patterns, unread) = vault.rules().root_patterns(&dir)?;
        Ok(Self { dir, path: String::new(), real: String::new(), patterns, unread, is_behind_link: false })
    }

    /// The path of a name in this folder.
    pub(crate) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// A folder in this one, whose name the rules have admitted; `target` says where it leads if it is a link.
    pub(crate) fn ahead(&self, name: &str, target: Option<&Target>) -> Ahead {
        Ahead {
            path: self.path_of(name),
            real: target.map_or_else(|| join(&self.real, name), |target| target.real.clone()),
            above: self.patterns.clone(),
            is_behind_link: self.is_behind_link || target.is_some(),
        }
    }

    /// Finds out where a link in this folder leads. `Err` inside says why it is not followed.
    pub(crate) fn follow(&self, vault: &FolderVault, name: &OsStr) -> io::Result<Result<Target, Reason>> {
        let link = vault.root().join(&self.real).join(name);
        let real = match std::fs::canonicalize(&link) {
            Ok(real) => real,
            Err(error) if is_no_folder(&error) => return Ok(Err(LEADS_NOWHERE)),
            Err(error) => return Err(error),
        };
        // A target without a UTF-8 name cannot be told from one outside; both are left alone.
        let Some(real) = real.strip_prefix(vault.root()).ok().and_then(|real| real.to_str()) else {
            return Ok(Err(LEADS_OUT));
        };
        if real.split('/').any(|part| part == ".git" || part == crate::rules::OWN_FOLDER) {
            return Ok(Err(LEADS_TO_RESERVED));
        }
        let (folder, name) = split(real);
        let root = vault.open_root()?;
        let seen = if name.is_empty() { Some(root.see_self()?) } else { root.open_below(folder)?.see(name)? };
        let Some(seen) = seen else { return Ok(Err(LEADS_NOWHERE)) };
        Ok(match seen.kind {
            Kind::Folder if self.lies_in(real) => Err(LEADS_IN_CIRCLES),
            // Links to folders full of links would multiply without end. That a path passes through one at most is
            // seen from the path alone, so a walk and a single path cannot disagree about it.
            Kind::Folder if self.is_behind_link => Err(BEHIND_A_LINK),
            Kind::Folder | Kind::File => Ok(Target { real: real.to_owned(), seen }),
            Kind::Link | Kind::Other => Err(NOT_REGULAR),
        })
    }

    /// The real paths below the root that lead from a link in this folder to its target: every folder, link and file on
    /// the way, up to the first that is not there. When one of them comes, goes or is replaced, the link may mean
    /// something else.
    pub(crate) fn way_of(&self, vault: &FolderVault, name: &OsStr) -> Vec<String> {
        let mut way = Vec::new();
        let mut at = vault.root().join(&self.real);
        let mut ahead = vec![name.to_owned()];
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            // An absolute part, `/`, replaces all before it.
            let next = at.join(&part);
            way.extend(below_root(vault, &next));
            match std::fs::symlink_metadata(&next) {
                Ok(seen) if !seen.is_symlink() => at = next,
                Ok(_) if links < MAX_LINKS_ON_WAY => {
                    links += 1;
                    let Ok(target) = std::fs::read_link(&next) else { break };
                    let parts = target.components().filter(|part| *part != Component::CurDir).rev();
                    ahead.extend(parts.map(|part| part.as_os_str().to_owned()));
                }
                Ok(_) | Err(_) => break,
            }
        }
        way
    }

    /// Whether this is a real folder, or lies in it.
    fn lies_in(&self, real: &str) -> bool {
        let below = self.real.strip_prefix(real);
        real.is_empty() || below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

impl Ahead {
    /// Enters the folder, which `dir` is.
    pub(crate) fn enter(self, vault: &FolderVault, dir: Dir) -> io::Result<Folder> {
        let Self { path, real, above, is_behind_link } = self;
        let (patterns, unread) = vault.rules().patterns_in(&dir, &path, above.as_ref())?;
        Ok(Folder { dir, path, real, patterns, unread, is_behind_link })
    }
}

/// Goes to a path from the root, judging every part of it as the walk does.
pub(crate) fn find(vault: &FolderVault, path: &VaultPath) -> io::Result<Found> {
    let rules = vault.rules();
    let mut folder = Arc::new(Folder::root(vault)?);
    let parts: Vec<&str> = path.as_str().split('/').collect();
    for (depth, part) in parts.iter().enumerate() {
        let is_last = depth + 1 == parts.len();
        let part_path = folder.path_of(part);
        let Some(seen) = folder.dir.see(part)? else {
            return absent(vault, &folder, &parts[depth..]);
        };
        // What the name alone decides comes first, so that a link is not looked at in vain.
        let target = if seen.kind == Kind::Link && !part.starts_with('.') {
            match folder.follow(vault, OsStr::new(part))? {
                Ok(target) => Some(target),
                Err(reason) => return Ok(Found::LeftOut(reason)),
            }
        } else {
            None
        };
        let kind = target.as_ref().map_or(seen.kind, |target| target.seen.kind);
        let stands_for_folder = kind == Kind::Folder || !is_last;
        if let Err(reason) = rules.judge(&folder.patterns, &part_path, stands_for_folder) {
            return Ok(Found::LeftOut(reason));
        }
        match kind {
            Kind::Folder => {
                let dir = match &target {
                    Some(target) => vault.open_root()?.open_below(&target.real)?,
                    None => folder.dir.open(part)?,
                };
                folder = Arc::new(folder.ahead(part, target.as_ref()).enter(vault, dir)?);
            }
            Kind::File if is_last => {
                let real = target.as_ref().map_or_else(|| join(&folder.real, part), |target| target.real.clone());
                let (real_folder, name) = split(&real);
                return Ok(Found::Note(Spot {
                    folder: real_folder.to_owned(),
                    name: name.to_owned(),
                    missing: Vec::new(),
                    is_link: target.is_some(),
                }));
            }
            Kind::File => return Ok(Found::LeftOut(BELOW_A_FILE)),
            Kind::Link | Kind::Other => return Ok(Found::LeftOut(NOT_REGULAR)),
        }
    }
    Ok(Found::Folder(folder))
}

/// Judges the rest of a path of which nothing is there.
fn absent(vault: &FolderVault, folder: &Folder, rest: &[&str]) -> io::Result<Found> {
    let (name, folders) = rest.split_last().expect("a path has a last part");
    let (mut path, mut real) = (folder.path.clone(), folder.real.clone());
    let mut missing = Vec::new();
    for part in folders {
        path = join(&path, part);
        real = join(&real, part);
        if let Err(reason) = vault.rules().judge(&folder.patterns, &path, true) {
            return Ok(Found::LeftOut(reason));
        }
        missing.push(real.clone());
    }
    if let Err(reason) = vault.rules().judge(&folder.patterns, &join(&path, name), false) {
        return Ok(Found::LeftOut(reason));
    }
    Ok(Found::Absent(Spot { folder: real, name: (*name).to_owned(), missing, is_link: false }))
}

/// A path from the root; `None` outside the vault and for the root itself.
fn below_root(vault: &FolderVault, path: &Path) -> Option<String> {
    let path = path.strip_prefix(vault.root()).ok()?.to_str()?;
    (!path.is_empty()).then(|| path.to_owned())
}

/// A name below a folder; the root's path is empty.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A path's folder and name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a path is left out for what lies there, not for its name: it may have been a note before.
pub(crate) fn is_about_kind(reason: Reason) -> bool {
    [LEADS_OUT, LEADS_TO_RESERVED, LEADS_NOWHERE, LEADS_IN_CIRCLES, BEHIND_A_LINK, NOT_REGULAR, BELOW_A_FILE]
        .contains(&reason)
}
