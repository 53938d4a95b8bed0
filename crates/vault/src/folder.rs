//! Folders of the vault, and the resolution of a path to the file at it.
//!
//! A folder has two paths: the one from the root, to which the rules apply, and the real one, which differs behind a link.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use quipu_core::model::VaultPath;

use crate::dir::{Dir, FileKind, Metadata, is_no_folder};
use crate::folder_vault::FolderVault;
use crate::rules::{ExclusionReason, Patterns, Unread};

/// An open folder that the rules include.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) dir: Dir,
    /// From the root; empty for the root.
    pub(crate) path: String,
    /// The real path, from the root.
    pub(crate) real: String,
    pub(crate) patterns: Patterns,
    pub(crate) unread: Unread,
    /// Whether its path contains a link.
    is_behind_link: bool,
}

/// A folder that the rules include and that is not open yet: a walk may collect any number without running out of handles.
#[derive(Debug)]
pub(crate) struct UnopenedFolder {
    pub(crate) path: String,
    pub(crate) real: String,
    parent_patterns: Patterns,
    is_behind_link: bool,
}

/// The file or folder at the end of a path.
pub(crate) enum ResolvedPath {
    Note(FileLocation),
    Folder(Arc<Folder>),
    /// Nothing exists there, and a note may be created.
    Absent(FileLocation),
    /// The rules exclude the path.
    Excluded(ExclusionReason),
}

/// The real location of a file.
#[derive(Debug)]
pub(crate) struct FileLocation {
    /// The real folder, from the root; empty for the root.
    pub(crate) folder: String,
    pub(crate) name: String,
    /// The folders of the path that do not exist, outermost first, each from the root.
    pub(crate) missing_folders: Vec<String>,
    /// Whether the path itself is a symbolic link to the file.
    pub(crate) is_link: bool,
}

/// The target of a symbolic link.
pub(crate) struct LinkTarget {
    /// The real path, from the root.
    pub(crate) real: String,
    pub(crate) metadata: Metadata,
}

pub(crate) const LEADS_OUT: ExclusionReason = "a symbolic link leads out of the vault";
pub(crate) const LEADS_TO_RESERVED: ExclusionReason = "a symbolic link leads into a .git or .quipu folder";
pub(crate) const TARGET_MISSING: ExclusionReason = "the target of a symbolic link does not exist";
pub(crate) const LINK_CYCLE: ExclusionReason = "a symbolic link leads to a folder that contains it";
pub(crate) const SECOND_LINK: ExclusionReason = "only one symbolic link to a folder is followed in a path";
pub(crate) const NOT_REGULAR: ExclusionReason = "it is not a regular file";
pub(crate) const BELOW_A_FILE: ExclusionReason = "a part of its path is a file";

/// The number of links in a path after which the kernel reports a cycle.
const MAX_LINKS: usize = 40;

impl Folder {
    /// The root, opened again each time: it may have been unmounted or replaced.
    pub(crate) fn root(vault: &FolderVault) -> io::Result<Self> {
        let dir = vault.open_root()?;
        let (patterns, unread) = vault.rules.root_patterns(&dir)?;
        Ok(Self { dir, path: String::new(), real: String::new(), patterns, unread, is_behind_link: false })
    }

    /// The path of a name in this folder.
    pub(crate) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// A folder in this one that the rules include; `target` is given if it is a link.
    pub(crate) fn child(&self, name: &str, target: Option<&LinkTarget>) -> UnopenedFolder {
        UnopenedFolder {
            path: self.path_of(name),
            real: target.map_or_else(|| join(&self.real, name), |target| target.real.clone()),
            parent_patterns: self.patterns.clone(),
            is_behind_link: self.is_behind_link || target.is_some(),
        }
    }

    /// The target of a symbolic link in this folder; the inner `Err` is the reason why it is not followed.
    pub(crate) fn follow(&self, vault: &FolderVault, name: &OsStr) -> io::Result<Result<LinkTarget, ExclusionReason>> {
        let link = vault.root().join(&self.real).join(name);
        let real = match std::fs::canonicalize(&link) {
            Ok(real) => real,
            Err(error) if is_no_folder(&error) => return Ok(Err(TARGET_MISSING)),
            Err(error) => return Err(error),
        };
        // A target whose path is not UTF-8 cannot be part of the vault either.
        let Some(real) = real.strip_prefix(vault.root()).ok().and_then(|real| real.to_str()) else {
            return Ok(Err(LEADS_OUT));
        };
        if real.split('/').any(|part| part == ".git" || part == crate::own_folder::OWN_FOLDER) {
            return Ok(Err(LEADS_TO_RESERVED));
        }
        let (folder, name) = split(real);
        let root = vault.open_root()?;
        let metadata =
            if name.is_empty() { Some(Metadata::of(&root)?) } else { root.open_below(folder)?.metadata(name)? };
        let Some(metadata) = metadata else { return Ok(Err(TARGET_MISSING)) };
        Ok(match metadata.kind {
            FileKind::Folder if self.lies_in(real) => Err(LINK_CYCLE),
            // Links to folders full of links would multiply without end. One link at most is a rule about the path alone, so
            // a walk and the resolution of a single path agree.
            FileKind::Folder if self.is_behind_link => Err(SECOND_LINK),
            FileKind::Folder | FileKind::File => Ok(LinkTarget { real: real.to_owned(), metadata }),
            FileKind::Link | FileKind::Other => Err(NOT_REGULAR),
        })
    }

    /// The real paths below the root between a link in this folder and its target: every folder, link and file, up to the
    /// first that does not exist. If one of them is created, removed or replaced, the link may lead elsewhere.
    pub(crate) fn paths_to_target(&self, vault: &FolderVault, name: &OsStr) -> Vec<String> {
        let mut paths = Vec::new();
        let mut at = vault.root().join(&self.real);
        let mut remaining = vec![name.to_owned()];
        let mut links = 0;
        while let Some(part) = remaining.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            // The absolute part `/` replaces everything before it.
            let next = at.join(&part);
            paths.extend(below_root(vault, &next));
            match std::fs::symlink_metadata(&next) {
                Ok(metadata) if !metadata.is_symlink() => at = next,
                Ok(_) if links < MAX_LINKS => {
                    links += 1;
                    let Ok(target) = std::fs::read_link(&next) else { break };
                    let parts = target.components().filter(|part| *part != Component::CurDir).rev();
                    remaining.extend(parts.map(|part| part.as_os_str().to_owned()));
                }
                Ok(_) | Err(_) => break,
            }
        }
        paths
    }

    /// Whether this folder is, or lies in, the folder with a real path.
    fn lies_in(&self, real: &str) -> bool {
        let below = self.real.strip_prefix(real);
        real.is_empty() || below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

impl FileLocation {
    /// Its real path; `path` led to it.
    pub(crate) fn path(&self, path: &VaultPath) -> VaultPath {
        VaultPath::parse(&join(&self.folder, &self.name)).unwrap_or_else(|_| path.clone())
    }
}

impl UnopenedFolder {
    /// Continues with the opened folder.
    pub(crate) fn opened(self, vault: &FolderVault, dir: Dir) -> io::Result<Folder> {
        let Self { path, real, parent_patterns, is_behind_link } = self;
        let (patterns, unread) = vault.rules.patterns_in(&dir, &path, parent_patterns.as_ref())?;
        Ok(Folder { dir, path, real, patterns, unread, is_behind_link })
    }
}

/// Resolves a path from the root. The rules apply to every part, as in a walk.
pub(crate) fn resolve(vault: &FolderVault, path: &VaultPath) -> io::Result<ResolvedPath> {
    let rules = &vault.rules;
    let mut folder = Arc::new(Folder::root(vault)?);
    let parts: Vec<&str> = path.as_str().split('/').collect();
    for (depth, part) in parts.iter().enumerate() {
        let is_last = depth + 1 == parts.len();
        let part_path = folder.path_of(part);
        let Some(metadata) = folder.dir.metadata(part)? else {
            return resolve_absent(vault, &folder, &parts[depth..]);
        };
        // A hidden name is excluded whatever it leads to.
        let target = if metadata.kind == FileKind::Link && !part.starts_with('.') {
            match folder.follow(vault, OsStr::new(part))? {
                Ok(target) => Some(target),
                Err(reason) => return Ok(ResolvedPath::Excluded(reason)),
            }
        } else {
            None
        };
        let kind = target.as_ref().map_or(metadata.kind, |target| target.metadata.kind);
        let is_folder = kind == FileKind::Folder || !is_last;
        if let Err(reason) = rules.check(&folder.patterns, &part_path, is_folder) {
            return Ok(ResolvedPath::Excluded(reason));
        }
        match kind {
            FileKind::Folder => {
                let dir = match &target {
                    Some(target) => vault.open_root()?.open_below(&target.real)?,
                    None => folder.dir.open(part)?,
                };
                folder = Arc::new(folder.child(part, target.as_ref()).opened(vault, dir)?);
            }
            FileKind::File if is_last => {
                let real = target.as_ref().map_or_else(|| join(&folder.real, part), |target| target.real.clone());
                let (real_folder, name) = split(&real);
                return Ok(ResolvedPath::Note(FileLocation {
                    folder: real_folder.to_owned(),
                    name: name.to_owned(),
                    missing_folders: Vec::new(),
                    is_link: target.is_some(),
                }));
            }
            FileKind::File => return Ok(ResolvedPath::Excluded(BELOW_A_FILE)),
            FileKind::Link | FileKind::Other => return Ok(ResolvedPath::Excluded(NOT_REGULAR)),
        }
    }
    Ok(ResolvedPath::Folder(folder))
}

/// Applies the rules to the rest of a path, which does not exist.
fn resolve_absent(vault: &FolderVault, folder: &Folder, rest: &[&str]) -> io::Result<ResolvedPath> {
    let (name, folders) = rest.split_last().expect("a path has a last part");
    let (mut path, mut real) = (folder.path.clone(), folder.real.clone());
    let mut missing_folders = Vec::new();
    for part in folders {
        path = join(&path, part);
        real = join(&real, part);
        if let Err(reason) = vault.rules.check(&folder.patterns, &path, true) {
            return Ok(ResolvedPath::Excluded(reason));
        }
        missing_folders.push(real.clone());
    }
    if let Err(reason) = vault.rules.check(&folder.patterns, &join(&path, name), false) {
        return Ok(ResolvedPath::Excluded(reason));
    }
    Ok(ResolvedPath::Absent(FileLocation { folder: real, name: (*name).to_owned(), missing_folders, is_link: false }))
}

/// The path from the root; `None` outside the vault and for the root itself.
fn below_root(vault: &FolderVault, path: &Path) -> Option<String> {
    let path = path.strip_prefix(vault.root()).ok()?.to_str()?;
    (!path.is_empty()).then(|| path.to_owned())
}

/// The path of a name in a folder; the root's path is empty.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The folder and the name of a path.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a path is excluded for the file at it, not for its name: it may have been a note before.
pub(crate) fn is_about_file(reason: ExclusionReason) -> bool {
    [LEADS_OUT, LEADS_TO_RESERVED, TARGET_MISSING, LINK_CYCLE, SECOND_LINK, NOT_REGULAR, BELOW_A_FILE].contains(&reason)
}
