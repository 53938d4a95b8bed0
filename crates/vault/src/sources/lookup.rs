//! Where references are looked up, and which files they name now. Links are never followed, so nothing outside is seen.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quipu_core::staleness::SourceRef;

use super::pattern::Pattern;
use crate::dir::{Dir, FileKind, Metadata};
use crate::folder::split;

/// More files than this of one reference are not looked at.
pub(super) const MAX_FILES: usize = 2000;

/// A pattern that has met so many files gives up: it was meant for something smaller.
const MAX_MET: usize = 200_000;

/// A file younger than this may change again without its time moving.
const UNSETTLED_NS: i64 = 2_000_000_000;

/// The folder below which everything lies that a reference may name: the repository around the vault, or the vault.
pub(crate) struct Place {
    /// Without links.
    pub(crate) base: PathBuf,
    /// The vault's folder from there: empty, or ending with a slash.
    pub(crate) vault: String,
    pub(crate) is_repository: bool,
    dir: Dir,
}

/// What a reference names now.
pub(crate) struct Named {
    /// By path.
    pub(crate) files: Vec<NamedFile>,
    /// Where the reference was found, from the base: the vault's folder or nothing.
    pub(crate) space: String,
    /// There are more than are listed.
    pub(crate) is_cut: bool,
}

/// A file that is named.
pub(crate) struct NamedFile {
    /// Its path from the base.
    pub(crate) key: String,
    pub(crate) mark: Mark,
    pub(crate) is_link: bool,
}

/// What the file system says of a file: as long as it is the same, so is the content, once settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) modified_ns: i64,
    changed_ns: i64,
    size: u64,
    inode: u64,
}

impl Mark {
    /// Whether the file was old enough at a time that a later change shows.
    pub(crate) fn is_settled(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.modified_ns.max(self.changed_ns)) >= UNSETTLED_NS
    }
}

impl From<&Metadata> for Mark {
    fn from(seen: &Metadata) -> Self {
        Self {
            modified_ns: seen.stat.modified_ns,
            changed_ns: seen.changed_ns,
            size: seen.stat.size,
            inode: seen.inode,
        }
    }
}

impl From<&std::fs::Metadata> for Mark {
    fn from(metadata: &std::fs::Metadata) -> Self {
        let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
        }
    }
}

impl Named {
    /// A path as a reader of the note would write it.
    pub(crate) fn shown<'a>(&self, key: &'a str) -> &'a str {
        key.strip_prefix(&self.space).unwrap_or(key)
    }
}

impl Place {
    /// The place around a vault. Looks each time: a repository may be made, moved or removed.
    pub(crate) fn around(vault: &Path) -> io::Result<Self> {
        let repository = vault.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
        // A path that is not UTF-8 cannot be written in a reference; then only the vault is looked at.
        let below = repository.and_then(|base| Some((base, vault.strip_prefix(base).ok()?.to_str()?)));
        let (base, below) = below.unwrap_or((vault, ""));
        Ok(Self {
            base: base.to_owned(),
            vault: if below.is_empty() { String::new() } else { format!("{below}/") },
            is_repository: repository == Some(base),
            dir: Dir::open_root(base)?,
        })
    }

    /// Where references are looked up, in this order.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = &str> {
        let both = [self.vault.as_str(), ""];
        both.into_iter().take(if self.vault.is_empty() { 1 } else { 2 })
    }

    /// What a reference names now. Where it names nothing in the vault, the repository is looked at.
    pub(crate) fn named(&self, reference: &SourceRef) -> Named {
        for space in self.spaces() {
            let (files, is_cut) = self.files(&Pattern::new(space, reference.as_str()));
            if !files.is_empty() {
                return Named { files, space: space.to_owned(), is_cut };
            }
        }
        Named { files: Vec::new(), space: self.vault.clone(), is_cut: false }
    }

    /// A file or link at a path; `None` for anything else.
    pub(crate) fn see(&self, key: &str) -> Option<Metadata> {
        let (folder, name) = split(key);
        self.dir.open_below(folder).and_then(|dir| dir.metadata(name)).ok().flatten()
    }

    /// The folder a path lies in, opened without following any link.
    pub(super) fn open_folder_of(&self, key: &str) -> io::Result<Dir> {
        self.dir.open_below(split(key).0)
    }

    fn files(&self, pattern: &Pattern) -> (Vec<NamedFile>, bool) {
        match self.see(&pattern.plain) {
            Some(seen) if matches!(seen.kind, FileKind::File | FileKind::Link) => {
                let key = pattern.plain.clone();
                (vec![NamedFile { key, mark: Mark::from(&seen), is_link: seen.kind == FileKind::Link }], false)
            }
            Some(seen) if seen.kind == FileKind::Folder => self.walk(&pattern.plain, pattern),
            _ if pattern.is_glob() => self.walk(pattern.folder().trim_end_matches('/'), pattern),
            _ => (Vec::new(), false),
        }
    }

    /// The files below a folder that a pattern names, without those that git ignores.
    fn walk(&self, folder: &str, pattern: &Pattern) -> (Vec<NamedFile>, bool) {
        // The walk goes by path; that no link is on the way to its start is seen here.
        if self.dir.open_below(folder).is_err() {
            return (Vec::new(), false);
        }
        let wants_modules = pattern.plain.contains("node_modules");
        let walk = ignore::WalkBuilder::new(self.base.join(folder))
            .hidden(false)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(move |entry| {
                let name = entry.file_name();
                name != ".git" && name != crate::own_folder::OWN_FOLDER && (wants_modules || name != "node_modules")
            })
            .build();
        let mut files = Vec::new();
        for (met, entry) in walk.enumerate() {
            if files.len() == MAX_FILES || met > MAX_MET {
                return (files, true);
            }
            // What cannot be read is not there.
            let Ok(entry) = entry else { continue };
            let Some(kind) = entry.file_type().filter(|kind| kind.is_file() || kind.is_symlink()) else { continue };
            let Some(key) = entry.path().strip_prefix(&self.base).ok().and_then(Path::to_str) else { continue };
            // Git is told paths line by line.
            if key.contains(char::is_control) || !pattern.names(key) {
                continue;
            }
            if let Ok(metadata) = entry.metadata() {
                files.push(NamedFile { key: key.to_owned(), mark: Mark::from(&metadata), is_link: kind.is_symlink() });
            }
        }
        (files, false)
    }
}
