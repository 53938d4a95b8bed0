//! The root of references, and the files in it. Links are never followed, so nothing outside the root is read.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::dir::{Dir, Metadata};
use crate::folder::split;
use crate::rules::{PatternChain, Patterns};

/// A file changed within this time may change again without a new modification time.
const UNSETTLED_NS: i64 = 2_000_000_000;

/// Larger files are not compared: hashing one would take most of the time of a call.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// The root of all references: the repository around the vault, or the vault.
pub(crate) struct SourceRoot {
    /// Without symbolic links.
    pub(crate) base: PathBuf,
    /// The vault's folder relative to `base`: empty, or ending with a slash.
    pub(crate) vault: String,
    pub(crate) is_repository: bool,
    dir: Dir,
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
    /// Whether the file has too many bytes to be compared.
    pub(crate) fn is_too_large(&self) -> bool {
        self.size > MAX_BYTES
    }

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

    /// Opens a folder; the empty path is the root.
    pub(super) fn folder(&self, key: &str) -> io::Result<Dir> {
        self.dir.open_below(key)
    }

    /// The target of a link.
    pub(super) fn link_target(&self, key: &str) -> io::Result<Vec<u8>> {
        let (folder, name) = split(key);
        Ok(rustix::fs::readlinkat(self.dir.open_below(folder)?, name, Vec::new())?.into_bytes())
    }

    /// The patterns of `.git/info/exclude`.
    pub(super) fn excludes(&self) -> Patterns {
        let info = self.dir.open_below(".git/info").ok()?;
        PatternChain::with_file(None, &info, "exclude", &self.base)
    }
}
