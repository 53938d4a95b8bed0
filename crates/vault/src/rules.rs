//! Which paths are notes: one judgement, asked by the walk, by single paths and by the watcher alike.
//!
//! The machine's own git settings are not read: a vault holds the same notes on every machine.

#![expect(clippy::disallowed_methods, reason = "the vault crate owns the user's files")]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;

use quipu_core::model::Warning;

use crate::beneath::{Dir, Kind, Seen, is_exhausted};
use crate::folder::join;
use crate::step;

/// The folder that holds what Quipu keeps beside the notes.
pub(crate) const OWN_FOLDER: &str = ".quipu";

const GITIGNORE: &str = ".gitignore";
/// Far above any real one; a larger file is not a list of patterns.
const GITIGNORE_MAX_BYTES: u64 = 1 << 20;

/// The rules of one vault.
#[derive(Debug)]
pub(crate) struct Rules {
    root: PathBuf,
    /// From the folders above the vault, as far as its git repository reaches.
    outer: Patterns,
    include: Option<GlobSet>,
    exclude: GlobSet,
    /// The `.gitignore` of a folder, as last read.
    read: Mutex<HashMap<String, (Seen, Arc<Gitignore>)>>,
}

/// The git patterns in force in a folder: its own, then those of the folders above. `None` when there are none at all.
pub(crate) type Patterns = Option<Arc<PatternChain>>;

#[derive(Debug)]
pub(crate) struct PatternChain {
    own: Arc<Gitignore>,
    above: Patterns,
}

/// A file of patterns that is there and cannot be read.
pub(crate) type Unread = Option<Warning>;

/// Why a path is left out, as told to a person.
pub(crate) type Reason = &'static str;

pub(crate) const HIDDEN: Reason = "names that start with a dot are hidden";
pub(crate) const NODE_MODULES: Reason = "node_modules folders are left out";
pub(crate) const NOT_MARKDOWN: Reason = "a note's name ends in .md or .markdown";
pub(crate) const GIT_IGNORED: Reason = "a .gitignore leaves it out";
pub(crate) const EXCLUDED: Reason = "the vault's exclude patterns leave it out";
pub(crate) const NOT_INCLUDED: Reason = "the vault's include patterns do not cover it";

impl Rules {
    /// Reads the patterns around the vault. `root` is a real path.
    pub(crate) fn new(root: &Path, include: &[String], exclude: &[String]) -> Result<Self, globset::Error> {
        Ok(Self {
            root: root.to_owned(),
            outer: outer_patterns(root),
            include: if include.is_empty() { None } else { Some(globs(include)?) },
            exclude: globs(exclude)?,
            read: Mutex::default(),
        })
    }

    /// The patterns in force at the root.
    pub(crate) fn root_patterns(&self, dir: &Dir) -> io::Result<(Patterns, Unread)> {
        self.patterns_in(dir, "", self.outer.as_ref())
    }

    /// The patterns in force in a folder, given those of the folder above. A file of patterns that cannot be read has no
    /// say, as in git.
    pub(crate) fn patterns_in(
        &self,
        dir: &Dir,
        path: &str,
        above: Option<&Arc<PatternChain>>,
    ) -> io::Result<(Patterns, Unread)> {
        let Some(seen) = dir.see(GITIGNORE)?.filter(|seen| seen.kind == Kind::File) else {
            return Ok((above.cloned(), None));
        };
        let known = self.read.lock().get(path).cloned();
        let own = match known {
            Some((then, own)) if then == seen => own,
            _ => {
                let mut bytes = Vec::new();
                let file = step::before("read rules").and_then(|()| dir.open_file(GITIGNORE));
                match file.and_then(|file| file.take(GITIGNORE_MAX_BYTES).read_to_end(&mut bytes)) {
                    Ok(_) => {}
                    // The file is fine and we are not: without it, notes that it hides would appear.
                    Err(error) if is_exhausted(&error) => return Err(error),
                    Err(error) => {
                        let unread = format!("it cannot be read, so nothing is left out by it: {error}");
                        return Ok((above.cloned(), Some(Warning { path: join(path, GITIGNORE), message: unread })));
                    }
                }
                let own = Arc::new(parse_gitignore(&self.root.join(path), &bytes));
                let mut read = self.read.lock();
                read.insert(path.to_owned(), (seen, Arc::clone(&own)));
                own
            }
        };
        Ok((Some(Arc::new(PatternChain { own, above: above.cloned() })), None))
    }

    /// Whether a folder or file may be part of the vault, given that the folder it lies in is.
    ///
    /// `path` is from the root. Links are another matter: they are judged by where they lead.
    pub(crate) fn judge(&self, patterns: &Patterns, path: &str, is_folder: bool) -> Result<(), Reason> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.starts_with('.') {
            return Err(HIDDEN);
        }
        if is_folder && name == "node_modules" {
            return Err(NODE_MODULES);
        }
        if !is_folder && !is_markdown(OsStr::new(name)) {
            return Err(NOT_MARKDOWN);
        }
        if self.exclude.is_match(path) {
            return Err(EXCLUDED);
        }
        if let Some(include) = self.include.as_ref().filter(|_| !is_folder)
            && !prefixes(path).any(|prefix| include.is_match(prefix))
        {
            return Err(NOT_INCLUDED);
        }
        if patterns.as_ref().is_some_and(|patterns| patterns.ignore(&self.root.join(path), is_folder)) {
            return Err(GIT_IGNORED);
        }
        Ok(())
    }
}

/// Whether a name ends as a note's does. For names that may not be UTF-8; others have `VaultPath::is_markdown`.
pub(crate) fn is_markdown(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|ext| ext.eq_ignore_ascii_case("md") || ext.eq_ignore_ascii_case("markdown"))
}

/// Whether a change of this file changes which paths are notes.
pub(crate) fn is_rule_file(name: &OsStr) -> bool {
    name == GITIGNORE
}

impl PatternChain {
    /// The innermost file with an opinion decides, as in git.
    fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        match self.own.matched(path, is_folder) {
            ignore::Match::Ignore(_) => true,
            ignore::Match::Whitelist(_) => false,
            ignore::Match::None => self.above.as_ref().is_some_and(|above| above.ignore(path, is_folder)),
        }
    }
}

/// `a`, `a/b`, `a/b/c.md`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash]).chain([path])
}

/// Patterns from the root; `*` stays in one folder, `**` goes down, and a folder's name stands for all in it.
fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let from_root = pattern.trim_start_matches("./").trim_matches('/');
        set.add(GlobBuilder::new(from_root).literal_separator(true).build()?);
    }
    set.build()
}

/// The patterns of the folders above the root, down from the repository that holds it. Read once: what lies outside
/// the vault is not watched. A vault that is a repository itself, or in none, has none of them.
fn outer_patterns(root: &Path) -> Patterns {
    let repository = root.ancestors().find(|folder| folder.join(".git").exists())?;
    let mut patterns = None;
    let exclude = repository.join(".git/info/exclude");
    add_outer(&mut patterns, repository, &exclude);
    let mut above: Vec<&Path> = root.ancestors().skip(1).take_while(|folder| folder.starts_with(repository)).collect();
    above.reverse();
    for folder in above {
        add_outer(&mut patterns, folder, &folder.join(GITIGNORE));
    }
    patterns
}

/// A file above the vault that cannot be read has no say: it is not the vault's to report.
fn add_outer(patterns: &mut Patterns, folder: &Path, file: &Path) {
    let is_file = std::fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file());
    if is_file && let Ok(bytes) = std::fs::read(file) {
        let own = Arc::new(parse_gitignore(folder, &bytes));
        *patterns = Some(Arc::new(PatternChain { own, above: patterns.take() }));
    }
}

/// A line that is no pattern is skipped, as git does.
fn parse_gitignore(folder: &Path, bytes: &[u8]) -> Gitignore {
    let text = String::from_utf8_lossy(bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
