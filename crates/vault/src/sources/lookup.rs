//! Resolves references to files. Links are never followed, so nothing outside the root is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quipu_core::staleness::SourceRef;

use super::pattern::SourcePattern;
use crate::dir::{Dir, FileKind, Metadata};
use crate::folder::split;

/// At most this many files of one reference are used.
pub(super) const MAX_FILES: usize = 2000;

/// A walk ends after this many entries.
const MAX_WALKED: usize = 200_000;

/// A file changed within this time may change again without a new modification time.
const UNSETTLED_NS: i64 = 2_000_000_000;

/// The root of all references: the repository around the vault, or the vault.
pub(crate) struct SourceRoot {
    /// Without symbolic links.
    pub(crate) base: PathBuf,
    /// The vault's folder relative to `base`: empty, or ending with a slash.
    pub(crate) vault: String,
    pub(crate) is_repository: bool,
    dir: Dir,
}

/// The files that match a reference.
pub(crate) struct MatchedFiles {
    /// By path.
    pub(crate) files: Vec<MatchedFile>,
    /// The prefix under which the reference matched: the vault's folder or nothing.
    pub(crate) prefix: String,
    /// Whether more files match than are listed.
    pub(crate) is_cut: bool,
}

/// A file that matches a reference.
pub(crate) struct MatchedFile {
    /// Its path relative to the base.
    pub(crate) key: String,
    pub(crate) fingerprint: FileFingerprint,
    pub(crate) is_link: bool,
}

/// Metadata that changes with the content of a file, once it is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFingerprint {
    pub(crate) modified_ns: i64,
    changed_ns: i64,
    size: u64,
    inode: u64,
}

impl FileFingerprint {
    /// Whether the file was old enough at a time that a later change gives another fingerprint.
    pub(crate) fn is_settled(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.modified_ns.max(self.changed_ns)) >= UNSETTLED_NS
    }
}

impl From<&Metadata> for FileFingerprint {
    fn from(seen: &Metadata) -> Self {
        Self {
            modified_ns: seen.stat.modified_ns,
            changed_ns: seen.changed_ns,
            size: seen.stat.size,
            inode: seen.inode,
        }
    }
}

impl From<&std::fs::Metadata> for FileFingerprint {
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

impl MatchedFiles {
    /// A path as in `source_refs`.
    pub(crate) fn shown<'a>(&self, key: &'a str) -> &'a str {
        key.strip_prefix(&self.prefix).unwrap_or(key)
    }
}

impl SourceRoot {
    /// The root for a vault. Searched on every call, since a repository may be created, moved or removed.
    pub(crate) fn around(vault: &Path) -> io::Result<Self> {
        let repository = vault.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
        // A reference cannot express a path that is not UTF-8; then only the vault is searched.
        let below = repository.and_then(|base| Some((base, vault.strip_prefix(base).ok()?.to_str()?)));
        let (base, below) = below.unwrap_or((vault, ""));
        Ok(Self {
            base: base.to_owned(),
            vault: if below.is_empty() { String::new() } else { format!("{below}/") },
            is_repository: repository == Some(base),
            dir: Dir::open_root(base)?,
        })
    }

    /// The prefixes of references, in the order of lookup: the vault's folder, then the repository's root.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &str> {
        let both = [self.vault.as_str(), ""];
        both.into_iter().take(if self.vault.is_empty() { 1 } else { 2 })
    }

    /// The files that match a reference in the vault, or else in the repository.
    pub(crate) fn named(&self, reference: &SourceRef) -> MatchedFiles {
        for prefix in self.prefixes() {
            let (files, is_cut) = self.files(&SourcePattern::new(prefix, reference.as_str()));
            if !files.is_empty() {
                return MatchedFiles { files, prefix: prefix.to_owned(), is_cut };
            }
        }
        MatchedFiles { files: Vec::new(), prefix: self.vault.clone(), is_cut: false }
    }

    /// A file or link at a path; `None` for anything else.
    pub(crate) fn see(&self, key: &str) -> Option<Metadata> {
        let (folder, name) = split(key);
        self.dir.open_below(folder).and_then(|dir| dir.metadata(name)).ok().flatten()
    }

    /// Opens a file without following links.
    pub(crate) fn open(&self, key: &str) -> io::Result<File> {
        let (folder, name) = split(key);
        self.dir.open_below(folder)?.open_file(name)
    }

    fn files(&self, pattern: &SourcePattern) -> (Vec<MatchedFile>, bool) {
        match self.see(&pattern.plain) {
            Some(seen) if matches!(seen.kind, FileKind::File | FileKind::Link) => {
                let key = pattern.plain.clone();
                (
                    vec![MatchedFile {
                        key,
                        fingerprint: FileFingerprint::from(&seen),
                        is_link: seen.kind == FileKind::Link,
                    }],
                    false,
                )
            }
            Some(seen) if seen.kind == FileKind::Folder => self.walk(&pattern.plain, pattern),
            _ if pattern.is_glob() => self.walk(pattern.start().trim_end_matches('/'), pattern),
            _ => (Vec::new(), false),
        }
    }

    /// The files below a folder that match a pattern, without git-ignored ones.
    fn walk(&self, folder: &str, pattern: &SourcePattern) -> (Vec<MatchedFile>, bool) {
        // The walk opens by path; this checks that no link is on the way to its start.
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
        for (walked, entry) in walk.enumerate() {
            if files.len() == MAX_FILES || walked > MAX_WALKED {
                return (files, true);
            }
            // Unreadable entries are skipped.
            let Ok(entry) = entry else { continue };
            let Some(kind) = entry.file_type().filter(|kind| kind.is_file() || kind.is_symlink()) else { continue };
            let Some(key) = entry.path().strip_prefix(&self.base).ok().and_then(Path::to_str) else { continue };
            // Git reads paths line by line.
            if key.contains(char::is_control) || !pattern.names(key) {
                continue;
            }
            if let Ok(metadata) = entry.metadata() {
                files.push(MatchedFile {
                    key: key.to_owned(),
                    fingerprint: FileFingerprint::from(&metadata),
                    is_link: kind.is_symlink(),
                });
            }
        }
        (files, false)
    }
}
