//! Finds the files that references name. All references of a call share one listing of each folder, and one deadline.
//!
//! A folder and its ignore files are opened in the root, without following links: neither a link nor a pipe named `.gitignore` is
//! opened.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use quipu_core::staleness::SourceRef;

use super::lookup::{FileFingerprint, MatchedFile, SourceRoot};
use super::pattern::SourcePattern;
use crate::dir::{Dir, FileKind};
use crate::folder::{join, split};
use crate::rules::{GITIGNORE, PatternChain, Patterns};

/// At most this many files of one reference are used.
pub(super) const MAX_FILES: usize = 2000;

/// The search for one reference ends after this many files and folders.
const MAX_SEARCHED: usize = 200_000;

/// The names that one call keeps in memory, and the files that all of its references may match.
const MAX_LISTED: usize = 500_000;

/// Deeper folders are not searched.
const MAX_DEPTH: usize = 256;

/// The files that match a reference.
pub(crate) struct MatchedFiles {
    /// By path.
    pub(crate) files: Vec<MatchedFile>,
    /// The prefix under which the reference matched: the vault's folder or nothing.
    pub(crate) prefix: String,
    pub(crate) left_out: LeftOut,
}

/// What a search did not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    Nothing,
    /// More files match.
    Files,
    /// More files may match: a limit of the search was reached.
    Unsearched,
}

impl MatchedFiles {
    /// A path as in `source_refs`.
    pub(crate) fn shown<'a>(&self, key: &'a str) -> &'a str {
        key.strip_prefix(&self.prefix).unwrap_or(key)
    }
}

/// The searches of one call.
pub(crate) struct SourceFinder<'a> {
    root: &'a SourceRoot,
    deadline: Instant,
    folders: HashMap<String, Option<Rc<SourceEntries>>>,
    patterns: HashMap<String, Patterns>,
    listed: usize,
    matched: usize,
}

/// The entries of a folder that are searched, by name.
type SourceEntries = Vec<(String, FileKind)>;

/// The search for one reference.
struct ReferenceSearch<'a> {
    pattern: &'a SourcePattern,
    wants_modules: bool,
    files: Vec<MatchedFile>,
    searched: usize,
}

impl<'a> SourceFinder<'a> {
    pub(crate) fn new(root: &'a SourceRoot, deadline: Instant) -> Self {
        let (folders, patterns) = (HashMap::new(), HashMap::new());
        Self { root, deadline, folders, patterns, listed: 0, matched: 0 }
    }

    /// The files that match a reference in the vault, or else in the repository.
    pub(crate) fn named(&mut self, reference: &SourceRef) -> MatchedFiles {
        let mut left_out = LeftOut::Nothing;
        for prefix in self.root.prefixes() {
            if self.is_over() {
                left_out = LeftOut::Unsearched;
                break;
            }
            let (files, missed) = self.files(&SourcePattern::new(prefix, reference.as_str()));
            if left_out == LeftOut::Nothing {
                left_out = missed;
            }
            if !files.is_empty() {
                return MatchedFiles { files, prefix: prefix.to_owned(), left_out };
            }
        }
        MatchedFiles { files: Vec::new(), prefix: self.root.vault.clone(), left_out }
    }

    fn is_over(&self) -> bool {
        self.listed >= MAX_LISTED || self.matched >= MAX_LISTED || Instant::now() >= self.deadline
    }

    fn files(&mut self, pattern: &SourcePattern) -> (Vec<MatchedFile>, LeftOut) {
        match self.root.see(&pattern.plain) {
            Some(seen) if matches!(seen.kind, FileKind::File | FileKind::Link) => {
                let (key, is_link) = (pattern.plain.clone(), seen.kind == FileKind::Link);
                let file = MatchedFile { key, fingerprint: FileFingerprint::from(&seen), is_link };
                (vec![file], LeftOut::Nothing)
            }
            Some(seen) if seen.kind == FileKind::Folder => self.below(&pattern.plain, pattern),
            _ if pattern.is_glob() => self.below(pattern.start().trim_end_matches('/'), pattern),
            _ => (Vec::new(), LeftOut::Nothing),
        }
    }

    /// The files below a folder that match a pattern, without git-ignored ones.
    fn below(&mut self, start: &str, pattern: &SourcePattern) -> (Vec<MatchedFile>, LeftOut) {
        let wants_modules = pattern.plain.contains("node_modules");
        let mut search = ReferenceSearch { pattern, wants_modules, files: Vec::new(), searched: 0 };
        let left_out = self.search(start, &mut search);
        self.matched += search.files.len();
        (search.files, left_out)
    }

    /// In the order of names, each folder with what is below it.
    fn search(&mut self, start: &str, search: &mut ReferenceSearch<'_>) -> LeftOut {
        let start_depth = start.matches('/').count();
        if start_depth >= MAX_DEPTH {
            return LeftOut::Unsearched;
        }
        let mut open = vec![(start.to_owned(), self.listing(start), 0)];
        let mut seen_in: Option<(String, Dir)> = None;
        loop {
            let depth = start_depth + open.len();
            let Some((folder, listing, next)) = open.last_mut() else { return LeftOut::Nothing };
            let Some((name, kind)) = listing.as_ref().and_then(|listing| listing.get(*next)).cloned() else {
                open.pop();
                continue;
            };
            *next += 1;
            search.searched += 1;
            if search.files.len() == MAX_FILES {
                return LeftOut::Files;
            }
            if search.searched > MAX_SEARCHED || self.is_over() {
                return LeftOut::Unsearched;
            }
            let key = join(folder, &name);
            match kind {
                FileKind::Folder if name == "node_modules" && !search.wants_modules => {}
                FileKind::Folder if depth >= MAX_DEPTH => return LeftOut::Unsearched,
                FileKind::Folder => {
                    let listing = self.listing(&key);
                    open.push((key, listing, 0));
                }
                FileKind::File | FileKind::Link if search.pattern.names(&key) => {
                    if seen_in.as_ref().is_none_or(|(known, _)| known != folder) {
                        seen_in = self.root.folder(folder).ok().map(|dir| (folder.clone(), dir));
                    }
                    let seen = seen_in.as_ref().and_then(|(_, dir)| dir.metadata(&name).ok().flatten());
                    // Unreadable entries are skipped.
                    if let Some(seen) = seen.filter(|seen| matches!(seen.kind, FileKind::File | FileKind::Link)) {
                        let is_link = seen.kind == FileKind::Link;
                        search.files.push(MatchedFile { key, fingerprint: FileFingerprint::from(&seen), is_link });
                    }
                }
                FileKind::File | FileKind::Link | FileKind::Other => {}
            }
        }
    }

    /// The entries of a folder, without git-ignored ones; `None` if it cannot be read.
    fn listing(&mut self, folder: &str) -> Option<Rc<SourceEntries>> {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let listing = self.read(folder).map(Rc::new);
        self.listed += 1 + listing.as_ref().map_or(0, |listing| listing.len());
        self.folders.insert(folder.to_owned(), listing.clone());
        listing
    }

    fn read(&mut self, folder: &str) -> Option<SourceEntries> {
        let dir = self.root.folder(folder).ok()?;
        let patterns = self.patterns_in(folder);
        let mut entries = dir.entries().ok()?;
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let is_searched = |name: &str, kind: FileKind| {
            // Git reads paths line by line.
            let is_reserved =
                name == ".git" || name == crate::own_folder::OWN_FOLDER || name.contains(char::is_control);
            let path = || self.root.base.join(folder).join(name);
            !is_reserved
                && !patterns.as_ref().is_some_and(|patterns| patterns.ignore(&path(), kind == FileKind::Folder))
        };
        let named = entries.into_iter().filter_map(|(name, kind)| Some((name.into_string().ok()?, kind)));
        Some(named.filter(|(name, kind)| *kind != FileKind::Other && is_searched(name, *kind)).collect())
    }

    /// The git patterns that apply in a folder, from the root of the references.
    fn patterns_in(&mut self, folder: &str) -> Patterns {
        if let Some(known) = self.patterns.get(folder) {
            return known.clone();
        }
        let outer = match folder {
            "" => self.root.excludes(),
            _ => self.patterns_in(split(folder).0),
        };
        let patterns = match self.root.folder(folder) {
            Ok(dir) => PatternChain::with_file(outer, &dir, GITIGNORE, &self.root.base.join(folder)),
            Err(_) => outer,
        };
        self.patterns.insert(folder.to_owned(), patterns.clone());
        patterns
    }
}
