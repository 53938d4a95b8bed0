//! One repository as it is at this moment. What was found out is kept for as long as HEAD stays where it is.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::GitOptions;
use super::history::{Advance, History};
use super::objects::Entry;
use super::program::{Git, GitError, judged};
use crate::sources::Mark;

/// A repository, and what is known of it.
pub(crate) struct Repository {
    root: PathBuf,
    git: Git,
    known: Option<AtHead>,
}

/// What is known while HEAD is at one commit.
pub(crate) struct AtHead {
    head: String,
    /// History ends early, since the clone was made so.
    pub(crate) is_shallow: bool,
    pub(crate) tree: BTreeMap<String, Entry>,
    pub(crate) history: History,
    git: Git,
    /// Until when history is read for the question under way. What is not found by then is unknown, and the next question
    /// goes on.
    deadline: Instant,
    /// Under commit and path, the content.
    at_commits: HashMap<(usize, String), Option<String>>,
    /// Of files on disk, with what the file system said of them.
    on_disk: HashMap<String, OnDisk>,
}

/// A file on disk.
struct OnDisk {
    mark: Mark,
    /// It was old enough when it was read that a later change must show in its mark.
    is_settled: bool,
    content: Option<String>,
}

impl Repository {
    pub(crate) fn at(root: &Path, options: &GitOptions) -> Self {
        Self { root: root.to_owned(), git: Git::at(root, options), known: None }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The repository at its present HEAD. One process where nothing has moved.
    pub(crate) fn now(&mut self) -> Result<&mut AtHead, GitError> {
        let arguments = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let head = match self.git.output(&arguments, String::new())? {
            (said, None) => String::from_utf8_lossy(&said).trim().to_owned(),
            (_, Some(said)) => {
                self.known = None;
                // Of a branch without commits nothing is said.
                return Err(if said.trim().is_empty() { GitError::NoHistory } else { judged(&arguments, &said) });
            }
        };
        if self.known.as_ref().is_none_or(|known| known.head != head) {
            self.known = None;
            self.known = Some(AtHead::read(&self.git, head)?);
        }
        let known = self.known.as_mut().expect("it was just read");
        known.deadline = Instant::now() + self.git.patience();
        Ok(known)
    }
}

impl AtHead {
    fn read(git: &Git, head: String) -> Result<Self, GitError> {
        let shallow = git.answer(&["rev-parse", "--is-shallow-repository"], String::new())?;
        Ok(Self {
            is_shallow: shallow.starts_with(b"true"),
            tree: git.tree(&head)?,
            history: History::begin(git, &head)?,
            git: git.clone(),
            deadline: Instant::now(),
            at_commits: HashMap::new(),
            on_disk: HashMap::new(),
            head,
        })
    }

    /// Reads history until enough is known, but not for too long.
    pub(crate) fn advance(&mut self, enough: impl Fn(&History) -> bool) -> Advance {
        self.history.advance(self.deadline, enough)
    }

    /// Finds out what some paths held at some commits, in one process.
    pub(crate) fn learn_contents_at(&mut self, asked: impl Iterator<Item = (usize, String)>) -> Result<(), GitError> {
        let mut unknown: Vec<(usize, String)> = asked.filter(|pair| !self.at_commits.contains_key(pair)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let names: Vec<(&str, &str)> =
            unknown.iter().map(|(place, path)| (self.history.commit(*place).id.as_str(), path.as_str())).collect();
        let contents = self.git.contents_at(&names)?;
        self.at_commits.extend(unknown.into_iter().zip(contents));
        Ok(())
    }

    /// What a path held at a commit, as learnt before.
    pub(crate) fn content_at(&self, commit: usize, path: &str) -> Option<&str> {
        self.at_commits.get(&(commit, path.to_owned()))?.as_deref()
    }

    /// Finds out what some files on disk hold, in one process. A file whose `Mark` is as before is not read again, unless
    /// it was too young then for its time to tell.
    pub(crate) fn learn_contents_of(&mut self, files: &BTreeMap<String, Mark>, now_ns: i64) -> Result<(), GitError> {
        let is_known = |path: &String, mark: &Mark| {
            self.on_disk.get(path).is_some_and(|known| known.is_settled && known.mark == *mark)
        };
        let unknown: Vec<&str> =
            files.iter().filter(|(path, mark)| !is_known(path, mark)).map(|(path, _)| path.as_str()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let contents = self.git.contents_of(&unknown)?;
        for (path, content) in unknown.into_iter().zip(contents) {
            let mark = files[path];
            self.on_disk.insert(path.to_owned(), OnDisk { mark, is_settled: mark.is_settled(now_ns), content });
        }
        Ok(())
    }

    /// What a file on disk holds, as learnt before.
    pub(crate) fn content_of(&self, path: &str) -> Option<&str> {
        self.on_disk.get(path)?.content.as_deref()
    }
}
