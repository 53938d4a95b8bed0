//! A repository. Results are cached until HEAD moves.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::GitOptions;
use super::blob::{IdKind, ids_of};
use super::history::{Advance, GitHistory};
use super::objects::TreeEntry;
use super::program::{Git, GitError, classify};
use crate::sources::{FileFingerprint, SourceRoot};

/// A repository with the cached results for its HEAD.
pub(crate) struct Repository {
    root: PathBuf,
    git: Git,
    known: Option<HeadCache>,
}

/// Cached results for one HEAD.
pub(crate) struct HeadCache {
    head: String,
    /// Whether the clone has only the newest part of the history.
    pub(crate) is_shallow: bool,
    pub(crate) tree: BTreeMap<String, TreeEntry>,
    pub(crate) history: GitHistory,
    git: Git,
    /// When the present call stops reading history. The next call continues.
    deadline: Instant,
    /// Contents by commit and path.
    at_commits: HashMap<(usize, String), Option<String>>,
    /// Contents of files on disk.
    on_disk: HashMap<String, OnDisk>,
}

/// A file on disk.
struct OnDisk {
    fingerprint: FileFingerprint,
    /// Whether it was old enough when it was read that a later change gives another fingerprint.
    is_settled: bool,
    /// The ids that git may store it under; none if that cannot be told.
    contents: Vec<String>,
}

impl Repository {
    pub(crate) fn at(root: &Path, options: &GitOptions) -> Self {
        Self { root: root.to_owned(), git: Git::at(root, options), known: None }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The repository at its present HEAD. Needs one process if HEAD has not moved.
    pub(crate) fn now(&mut self) -> Result<&mut HeadCache, GitError> {
        let arguments = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let head = match self.git.output(&arguments, String::new())? {
            (output, None) => String::from_utf8_lossy(&output).trim().to_owned(),
            (_, Some(stderr)) => {
                self.known = None;
                // A branch without commits gives no message.
                return Err(if stderr.trim().is_empty() { GitError::NoHistory } else { classify(&arguments, &stderr) });
            }
        };
        if self.known.as_ref().is_none_or(|known| known.head != head || known.history.has_failed()) {
            self.known = None;
            self.known = Some(HeadCache::read(&self.git, head)?);
        }
        let known = self.known.as_mut().expect("read above");
        known.deadline = Instant::now() + self.git.patience();
        Ok(known)
    }
}

impl HeadCache {
    fn read(git: &Git, head: String) -> Result<Self, GitError> {
        let shallow = git.answer(&["rev-parse", "--is-shallow-repository"], String::new())?;
        Ok(Self {
            is_shallow: shallow.starts_with(b"true"),
            tree: git.tree(&head)?,
            history: GitHistory::begin(git, &head)?,
            git: git.clone(),
            deadline: Instant::now(),
            at_commits: HashMap::new(),
            on_disk: HashMap::new(),
            head,
        })
    }

    /// Reads history until `enough` or the deadline.
    pub(crate) fn advance(&mut self, enough: impl Fn(&GitHistory) -> bool) -> Advance {
        self.history.advance(self.deadline, enough)
    }

    /// Loads the contents of paths at commits, in one process.
    pub(crate) fn load_contents_at(&mut self, asked: impl Iterator<Item = (usize, String)>) -> Result<(), GitError> {
        let mut unknown: Vec<(usize, String)> = asked.filter(|pair| !self.at_commits.contains_key(pair)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let names: Vec<(&str, &str)> =
            unknown.iter().map(|(place, path)| (self.history.commit(*place).id.as_str(), path.as_str())).collect();
        let contents = self.git.contents_at(&names)?;
        self.at_commits.extend(unknown.into_iter().zip(contents));
        Ok(())
    }

    /// The content of a path at a commit, if loaded.
    pub(crate) fn content_at(&self, commit: usize, path: &str) -> Option<&str> {
        self.at_commits.get(&(commit, path.to_owned()))?.as_deref()
    }

    /// Loads the contents of files on disk. A file with the same settled fingerprint is not read again. If there is no time for
    /// all files, the next call reads the others.
    pub(crate) fn load_contents_of(
        &mut self,
        root: &SourceRoot,
        files: &BTreeMap<String, FileFingerprint>,
        now_ns: i64,
    ) -> Result<(), GitError> {
        let is_known = |path: &String, fingerprint: &FileFingerprint| {
            self.on_disk.get(path).is_some_and(|known| known.is_settled && known.fingerprint == *fingerprint)
        };
        // Of its own: reading the history may have taken all of the other time.
        let deadline = Instant::now() + self.git.patience();
        let mut unknown: Vec<(&str, Vec<String>)> = Vec::new();
        let mut is_late = false;
        for (path, _) in files.iter().filter(|(path, fingerprint)| !is_known(path, fingerprint)) {
            let ids = root.open(path).and_then(|mut file| ids_of(&mut file, IdKind::of(&self.head), deadline));
            match ids {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    is_late = true;
                    break;
                }
                // Deleted, too large, or not to be read.
                ids => unknown.push((path.as_str(), ids.unwrap_or_default())),
            }
        }
        let differs =
            |(path, ids): &(&str, Vec<String>)| self.tree.get(*path).is_some_and(|entry| !ids.contains(&entry.id));
        let different: Vec<&str> = unknown.iter().filter(|file| differs(file)).map(|(path, _)| *path).collect();
        let converted = self.git.converted(&different)?;
        for (path, ids) in unknown {
            let fingerprint = files[path];
            let contents = if converted.contains(path) { Vec::new() } else { ids };
            let is_settled = fingerprint.is_settled(now_ns);
            self.on_disk.insert(path.to_owned(), OnDisk { fingerprint, is_settled, contents });
        }
        if is_late { Err(GitError::SlowFiles(self.git.patience())) } else { Ok(()) }
    }

    /// The contents that git may store for a file on disk; empty if it is not loaded or that cannot be told.
    pub(crate) fn contents_of(&self, path: &str) -> &[String] {
        self.on_disk.get(path).map_or(&[][..], |file| file.contents.as_slice())
    }
}
