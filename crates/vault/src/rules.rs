//! The rules that decide which paths are notes, for walks, single paths and the watcher.
//!
//! Git settings of the user or the machine are not read: a vault has the same notes on every machine.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;

use quipu_core::model::Warning;

use crate::dir::{Dir, FileKind, Metadata, is_exhausted};
use crate::failpoint;
use crate::folder::join;

pub(crate) const GITIGNORE: &str = ".gitignore";
/// Far above any real one. Of a longer one, the start is used.
const GITIGNORE_MAX_BYTES: u64 = 1 << 20;

/// The rules of one vault.
#[derive(Debug)]
pub(crate) struct Rules {
    root: PathBuf,
    /// From the folders above the vault, up to the root of its git repository.
    outer: Patterns,
    include: Option<GlobSet>,
    exclude: GlobSet,
    /// The parsed `.gitignore` files, by folder.
    cache: Mutex<HashMap<String, (Metadata, Arc<Gitignore>)>>,
}

/// The git patterns that apply in a folder: its own, then those of its parents. `None` if there are none.
pub(crate) type Patterns = Option<Arc<PatternChain>>;

#[derive(Debug)]
pub(crate) struct PatternChain {
    own: Arc<Gitignore>,
    parent: Patterns,
}

/// The warning about a `.gitignore` that cannot be read.
pub(crate) type Unread = Option<Warning>;

/// Why a path is excluded.
pub(crate) type ExclusionReason = &'static str;

pub(crate) const HIDDEN: ExclusionReason = "names that start with a dot are hidden";
pub(crate) const NODE_MODULES: ExclusionReason = "node_modules folders are excluded";
pub(crate) const NOT_MARKDOWN: ExclusionReason = "a note's name ends in .md or .markdown";
pub(crate) const GIT_IGNORED: ExclusionReason = "a .gitignore excludes it";
pub(crate) const EXCLUDED: ExclusionReason = "an exclude pattern of the vault matches it";
pub(crate) const NOT_INCLUDED: ExclusionReason = "no include pattern of the vault matches it";

impl Rules {
    /// Reads the patterns of the folders above the vault. `root` is a real path.
    pub(crate) fn new(root: &Path, include: &[String], exclude: &[String]) -> Result<Self, globset::Error> {
        Ok(Self {
            root: root.to_owned(),
            outer: outer_patterns(root),
            include: if include.is_empty() { None } else { Some(globs(include)?) },
            exclude: globs(exclude)?,
            cache: Mutex::default(),
        })
    }

    /// The patterns that apply in the root.
    pub(crate) fn root_patterns(&self, dir: &Dir) -> io::Result<(Patterns, Unread)> {
        self.patterns_in(dir, "", self.outer.as_ref())
    }

    /// The patterns that apply in a folder, given those of its parent. A `.gitignore` that cannot be read is ignored, as in
    /// git.
    pub(crate) fn patterns_in(
        &self,
        dir: &Dir,
        path: &str,
        parent: Option<&Arc<PatternChain>>,
    ) -> io::Result<(Patterns, Unread)> {
        let Some(metadata) = dir.metadata(GITIGNORE)?.filter(|file| file.kind == FileKind::File) else {
            return Ok((parent.cloned(), None));
        };
        let cached = self.cache.lock().get(path).cloned();
        let own = match cached {
            Some((then, own)) if then == metadata => own,
            _ => {
                let mut bytes = Vec::new();
                let file = failpoint::hit("read rules").and_then(|()| dir.open_file(GITIGNORE));
                match file.and_then(|file| file.take(GITIGNORE_MAX_BYTES).read_to_end(&mut bytes)) {
                    Ok(_) => {}
                    // Not an error of the file: if it were ignored, notes that it excludes would appear.
                    Err(error) if is_exhausted(&error) => return Err(error),
                    Err(error) => {
                        let unread = format!("its patterns are ignored: it cannot be read: {error}");
                        return Ok((parent.cloned(), Some(Warning { path: join(path, GITIGNORE), message: unread })));
                    }
                }
                let own = Arc::new(parse_gitignore(&self.root.join(path), &bytes));
                self.cache.lock().insert(path.to_owned(), (metadata, Arc::clone(&own)));
                own
            }
        };
        Ok((Some(Arc::new(PatternChain { own, parent: parent.cloned() })), None))
    }

    /// Whether a folder or file may be part of the vault, given that its parent is. `path` is from the root. The caller
    /// resolves links.
    pub(crate) fn check(&self, patterns: &Patterns, path: &str, is_folder: bool) -> Result<(), ExclusionReason> {
        let name = name_of(path);
        if !is_folder && !name.starts_with('.') && !is_markdown(OsStr::new(name)) {
            return Err(NOT_MARKDOWN);
        }
        self.check_any(patterns, path, is_folder)
    }

    /// Like [`Self::check`], for a file that is not a note.
    pub(crate) fn check_image(&self, patterns: &Patterns, path: &str) -> Result<(), ExclusionReason> {
        self.check_any(patterns, path, false)
    }

    fn check_any(&self, patterns: &Patterns, path: &str, is_folder: bool) -> Result<(), ExclusionReason> {
        let name = name_of(path);
        if name.starts_with('.') {
            return Err(HIDDEN);
        }
        if is_folder && name == "node_modules" {
            return Err(NODE_MODULES);
        }
        if let Some(include) = self.include.as_ref().filter(|_| !is_folder)
            && !self.exclude.is_match(path)
            && !prefixes(path).any(|prefix| include.is_match(prefix))
        {
            return Err(NOT_INCLUDED);
        }
        self.check_excluded(patterns, path, is_folder)
    }

    /// Whether no pattern excludes a path, be it a note or another file.
    pub(crate) fn check_excluded(
        &self,
        patterns: &Patterns,
        path: &str,
        is_folder: bool,
    ) -> Result<(), ExclusionReason> {
        if self.exclude.is_match(path) {
            return Err(EXCLUDED);
        }
        if patterns.as_ref().is_some_and(|patterns| patterns.ignore(&self.root.join(path), is_folder)) {
            return Err(GIT_IGNORED);
        }
        Ok(())
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Like `VaultPath::is_markdown`, for names that may not be UTF-8.
pub(crate) fn is_markdown(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|ext| ext.eq_ignore_ascii_case("md") || ext.eq_ignore_ascii_case("markdown"))
}

/// Whether a change of this file can change which paths are notes.
pub(crate) fn is_rule_file(name: &OsStr) -> bool {
    name == GITIGNORE
}

impl PatternChain {
    /// Adds the patterns of a file in an open folder, which apply below `base`. One that is missing or cannot be read has none,
    /// nor has a link, a pipe or a device.
    pub(crate) fn with_file(patterns: Patterns, dir: &Dir, name: &str, base: &Path) -> Patterns {
        let mut bytes = Vec::new();
        match dir.open_file(name).and_then(|file| file.take(GITIGNORE_MAX_BYTES).read_to_end(&mut bytes)) {
            Ok(_) => Some(Arc::new(Self { own: Arc::new(parse_gitignore(base, &bytes)), parent: patterns })),
            Err(_) => patterns,
        }
    }

    /// The innermost `.gitignore` with a matching pattern decides, as in git.
    pub(crate) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        match self.own.matched(path, is_folder) {
            ignore::Match::Ignore(_) => true,
            ignore::Match::Whitelist(_) => false,
            ignore::Match::None => self.parent.as_ref().is_some_and(|parent| parent.ignore(path, is_folder)),
        }
    }
}

/// `a`, `a/b`, `a/b/c.md`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash]).chain([path])
}

/// Patterns from the root: `*` matches within one folder, `**` across folders, and a folder includes everything in it.
fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let from_root = pattern.trim_start_matches("./").trim_matches('/');
        set.add(GlobBuilder::new(from_root).literal_separator(true).build()?);
    }
    set.build()
}

/// The patterns of the folders between the root of the git repository and the vault. Read once, since files outside the vault
/// are not watched. `None` if the vault is a repository itself or lies in none.
fn outer_patterns(root: &Path) -> Patterns {
    let repository = root.ancestors().find(|folder| folder.join(".git").exists())?;
    let mut above: Vec<&Path> = root.ancestors().skip(1).take_while(|folder| folder.starts_with(repository)).collect();
    above.reverse();
    let files = above.into_iter().map(|folder| (folder, folder.to_owned(), GITIGNORE));
    let exclude = (repository, repository.join(".git/info"), "exclude");
    std::iter::once(exclude).chain(files).fold(None, |patterns, (base, folder, name)| {
        // An unreadable file above the vault is ignored without a warning, since it is not part of the vault.
        match Dir::open_root(&folder) {
            Ok(dir) => PatternChain::with_file(patterns, &dir, name, base),
            Err(_) => patterns,
        }
    })
}

/// Invalid patterns are skipped, as in git.
fn parse_gitignore(folder: &Path, bytes: &[u8]) -> Gitignore {
    let text = String::from_utf8_lossy(bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
