//! The files that notes are about: resolves references, and compares the files with their versions when the note last
//! changed.
//!
//! NoteHistory versions come from git history, or else from the index; decided for each note and file.

mod content;
mod lookup;
mod past;
mod pattern;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::model::SourceVersion;
use quipu_core::ports::{Clock, SourceStatus, SourcedNote, Sources, Traced, TracedSource};
use quipu_core::quoted;
use quipu_core::staleness::{SourceRef, since_remembered};

use crate::git::{GitError, GitOptions, Repository};
use content::HashCache;
use lookup::MatchedFiles;
pub(crate) use lookup::{FileFingerprint, SourceRoot};
use past::GitTrace;

/// The sources of the notes in one folder.
pub struct FolderSources {
    vault: PathBuf,
    clock: Arc<dyn Clock>,
    hashes: HashCache,
    /// The repository around the vault. Not locked with the hashes, so that indexing does not wait for git.
    repository: Mutex<Option<Repository>>,
    git: GitOptions,
}

impl FolderSources {
    /// The sources of the vault in a folder. Opens nothing.
    pub fn new(vault: &Path, clock: Arc<dyn Clock>) -> Self {
        let vault = std::fs::canonicalize(vault).unwrap_or_else(|_| vault.to_owned());
        let (hashes, repository, git) = (HashCache::default(), Mutex::default(), GitOptions::default());
        Self { vault, clock, hashes, repository, git }
    }

    /// Sets the options for git.
    #[must_use]
    pub fn with_git(self, git: GitOptions) -> Self {
        Self { git, ..self }
    }

    /// The status of a note's sources compared with the versions in the index.
    fn by_index(&self, root: &SourceRoot, note: &SourcedNote<'_>, lookups: &Lookups) -> Vec<TracedSource> {
        let now = self.versions_of(root, note.refs.iter().filter_map(|named| lookups.get(named)));
        since_remembered(&note.refs, note.remembered, &now)
    }

    /// The content of matched files, by path, without duplicates.
    fn versions_of<'a>(
        &self,
        root: &SourceRoot,
        named: impl Iterator<Item = &'a MatchedFiles>,
    ) -> Vec<(SourceVersion, i64)> {
        let mut versions: BTreeMap<String, (SourceVersion, i64)> = BTreeMap::new();
        let now_ns = self.clock.now_ns();
        for named in named {
            for file in &named.files {
                let Some(hash) = self.hashes.hash(root, file, now_ns) else { continue };
                let path = named.shown(&file.key).to_owned();
                versions.insert(path.clone(), (SourceVersion { path, hash }, file.fingerprint.modified_ns));
            }
        }
        versions.into_values().collect()
    }
}

/// The files of every reference of one call, each resolved once.
type Lookups = HashMap<SourceRef, MatchedFiles>;

impl Sources for FolderSources {
    fn versions(&self, refs: &[SourceRef]) -> Vec<SourceVersion> {
        let Ok(root) = SourceRoot::around(&self.vault) else { return Vec::new() };
        let named: Vec<MatchedFiles> = refs.iter().map(|named| root.named(named)).collect();
        self.versions_of(&root, named.iter()).into_iter().map(|(version, _)| version).collect()
    }

    fn trace(&self, notes: &[SourcedNote<'_>]) -> Traced {
        let root = match SourceRoot::around(&self.vault) {
            Ok(root) => root,
            Err(error) => {
                tracing::warn!("cannot open the folder of the vault: {error}");
                let warnings = vec!["cannot check any source: the folder of the vault cannot be opened".to_owned()];
                return Traced { notes: notes.iter().map(|_| Vec::new()).collect(), warnings };
            }
        };
        let mut lookups = Lookups::new();
        let mut warnings = Vec::new();
        for named in notes.iter().flat_map(|note| &note.refs) {
            if !lookups.contains_key(named) {
                let found = root.named(named);
                if found.is_cut {
                    warnings.push(format!(
                        "{} matches more than {} files; only the first of them are checked",
                        quoted(named.as_str()),
                        lookup::MAX_FILES
                    ));
                }
                lookups.insert(named.clone(), found);
            }
        }
        let mut pasts: Vec<GitTrace> = notes.iter().map(|_| GitTrace::NotCommitted).collect();
        if root.is_repository {
            let mut repository = self.repository.lock();
            if repository.as_ref().is_none_or(|known| known.root() != root.base) {
                *repository = Some(Repository::at(&root.base, &self.git));
            }
            let known = repository.as_mut().expect("set above");
            let asked = past::TraceRequest { root: &root, notes, lookups: &lookups, now_ns: self.clock.now_ns() };
            match known.now().and_then(|head| past::trace(head, &asked, &mut warnings)) {
                Ok(traced) => pasts = traced,
                // A repository without commits has no history to compare with.
                Err(GitError::NoHistory) => {}
                Err(error) => {
                    warnings.push(format!("cannot tell whether sources changed: {error}"));
                    pasts.fill_with(|| GitTrace::NotReached);
                }
            }
        }
        let traced = pasts.into_iter().zip(notes).map(|(past, note)| match past {
            GitTrace::NotCommitted => self.by_index(&root, note, &lookups),
            GitTrace::NotReached => {
                let mut sources = self.by_index(&root, note, &lookups);
                sources.iter_mut().for_each(mark_unchanged_as_unknown);
                sources
            }
            GitTrace::Known(sources) => {
                let (known, unknown): (Vec<_>, Vec<_>) =
                    sources.into_iter().partition(|source| source.status.is_some());
                let is_unknown = |path: &str| unknown.iter().any(|source| source.path == path);
                let by_index = if unknown.is_empty() { Vec::new() } else { self.by_index(&root, note, &lookups) };
                let remembered = by_index.into_iter().filter(|source| is_unknown(&source.path));
                let known = known.into_iter().filter_map(past::PastSource::known);
                let mut all: Vec<_> = known.chain(remembered).collect();
                all.sort_unstable();
                all.dedup_by(|a, b| a.path == b.path);
                all
            }
        });
        Traced { notes: traced.collect(), warnings }
    }
}

/// The versions in the index are younger than those in the history: a change since then counts, but an unchanged or unknown
/// file may have changed before.
fn mark_unchanged_as_unknown(source: &mut TracedSource) {
    if matches!(source.status, SourceStatus::Same | SourceStatus::NeverSeen) {
        source.status = SourceStatus::Unknown;
    }
}
