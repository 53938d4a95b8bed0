//! The files that notes are about: resolves references, and compares the files with their versions when the note last
//! changed.
//!
//! NoteHistory versions come from git history, or else from the index; decided for each note and file.

mod content;
mod finder;
mod lookup;
mod past;
mod pattern;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use quipu_core::model::SourceVersion;
use quipu_core::ports::{Clock, SourceStatus, SourcedNote, Sources, Traced, TracedSource};
use quipu_core::quoted;
use quipu_core::staleness::{NOT_SEARCHED, SourceRef, since_remembered};

use crate::git::{GitError, GitOptions, Repository};
use content::{HashCache, IndexingTime, SourceReading};
use finder::{LeftOut, MAX_FILES, MatchedFiles, SourceFinder};
pub(crate) use lookup::{FileFingerprint, MAX_BYTES, SourceRoot};
use past::GitTrace;

/// The sources of the notes in one folder.
pub struct FolderSources {
    vault: PathBuf,
    clock: Arc<dyn Clock>,
    hashes: HashCache,
    indexing_time: IndexingTime,
    /// The repository around the vault. Not locked with the hashes, so that indexing does not wait for git.
    repository: Mutex<Option<Repository>>,
    git: GitOptions,
}

impl FolderSources {
    /// The sources of the vault in a folder. Opens nothing.
    pub fn new(vault: &Path, clock: Arc<dyn Clock>) -> Self {
        let vault = std::fs::canonicalize(vault).unwrap_or_else(|_| vault.to_owned());
        Self {
            vault,
            clock,
            hashes: HashCache::default(),
            indexing_time: IndexingTime::new(),
            repository: Mutex::default(),
            git: GitOptions::default(),
        }
    }

    /// Sets the options for git.
    #[must_use]
    pub fn with_git(self, git: GitOptions) -> Self {
        Self { git, ..self }
    }

    /// The status of a note's sources compared with the versions in the index.
    fn by_index(&self, checked: &mut TraceCall<'_>, note: &SourcedNote<'_>) -> Vec<TracedSource> {
        let named = note.refs.iter().filter_map(|named| Some((named, checked.lookups.get(named)?)));
        let now = self.versions_of(checked.root, named, &mut checked.reading);
        since_remembered(&note.refs, note.remembered, &now)
    }

    /// The content of matched files, by path, without duplicates.
    fn versions_of<'a>(
        &self,
        root: &SourceRoot,
        named: impl Iterator<Item = (&'a SourceRef, &'a MatchedFiles)>,
        reading: &mut SourceReading,
    ) -> Vec<(SourceVersion, i64)> {
        let mut versions: BTreeMap<String, (SourceVersion, i64)> = BTreeMap::new();
        for (reference, named) in named {
            if named.left_out != LeftOut::Nothing {
                let path = reference.as_str().to_owned();
                versions.insert(path.clone(), (SourceVersion { path, hash: NOT_SEARCHED }, 0));
            }
            for file in &named.files {
                let Some(hash) = self.hashes.hash(root, file, reading) else { continue };
                let path = named.shown(&file.key).to_owned();
                versions.insert(path.clone(), (SourceVersion { path, hash }, file.fingerprint.modified_ns));
            }
        }
        versions.into_values().collect()
    }
}

/// One call of `Sources::trace`.
struct TraceCall<'a> {
    root: &'a SourceRoot,
    lookups: &'a Lookups,
    reading: SourceReading,
}

/// The files of every reference of one call, each resolved once.
type Lookups = HashMap<SourceRef, MatchedFiles>;

impl Sources for FolderSources {
    fn versions(&self, refs: &[SourceRef]) -> Vec<SourceVersion> {
        let Ok(root) = SourceRoot::around(&self.vault) else { return Vec::new() };
        let (started, deadline) = (Instant::now(), self.indexing_time.deadline());
        let mut finder = SourceFinder::new(&root, deadline);
        let named: Vec<MatchedFiles> = refs.iter().map(|named| finder.named(named)).collect();
        let mut reading = SourceReading { now_ns: self.clock.now_ns(), deadline, is_late: false };
        let versions = self.versions_of(&root, refs.iter().zip(&named), &mut reading);
        self.indexing_time.spend(started.elapsed());
        if Instant::now() >= deadline {
            tracing::warn!("reading the sources of notes takes too long: some versions of them are not stored");
        }
        versions.into_iter().map(|(version, _)| version).collect()
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
        let mut finder = SourceFinder::new(&root, Instant::now() + self.git.patience);
        for named in notes.iter().flat_map(|note| &note.refs) {
            if !lookups.contains_key(named) {
                lookups.insert(named.clone(), finder.named(named));
            }
        }
        let mut warnings = lookup_warnings(&lookups);
        let mut pasts: Vec<GitTrace> = notes.iter().map(|_| GitTrace::NotCommitted).collect();
        if root.is_repository {
            let mut repository = self.repository.lock();
            if repository.as_ref().is_none_or(|known| known.root() != root.base) {
                *repository = Some(Repository::at(&root.base, &self.git));
            }
            let known = repository.as_mut().expect("set above");
            let (now_ns, patience) = (self.clock.now_ns(), self.git.patience);
            let asked = past::TraceRequest { root: &root, notes, lookups: &lookups, now_ns, patience };
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
        let reading =
            SourceReading { now_ns: self.clock.now_ns(), deadline: Instant::now() + self.git.patience, is_late: false };
        let mut checked = TraceCall { root: &root, lookups: &lookups, reading };
        let traced = pasts.into_iter().zip(notes).map(|(past, note)| self.merged(&mut checked, past, note)).collect();
        if checked.reading.is_late {
            warnings.push(
                "reading the sources takes too long: some are not compared yet; call again to continue".to_owned(),
            );
        }
        Traced { notes: traced, warnings }
    }
}

impl FolderSources {
    /// The status of a note's sources by git, and of those that it does not know by the index.
    fn merged(&self, checked: &mut TraceCall<'_>, past: GitTrace, note: &SourcedNote<'_>) -> Vec<TracedSource> {
        let sources = match past {
            GitTrace::NotCommitted => return self.by_index(checked, note),
            GitTrace::NotReached => {
                let mut sources = self.by_index(checked, note);
                sources.iter_mut().for_each(mark_unchanged_as_unknown);
                return sources;
            }
            GitTrace::Known(sources) => sources,
        };
        let (known, unknown): (Vec<_>, Vec<_>) = sources.into_iter().partition(|source| source.status.is_some());
        let is_unknown = |path: &str| unknown.iter().any(|source| source.path == path);
        let by_index = if unknown.is_empty() { Vec::new() } else { self.by_index(checked, note) };
        let remembered = by_index.into_iter().filter(|source| is_unknown(&source.path));
        let mut all: Vec<_> = known.into_iter().filter_map(past::PastSource::known).chain(remembered).collect();
        let is_unsearched = |named: &&SourceRef| checked.lookups[*named].left_out != LeftOut::Nothing;
        for named in note.refs.iter().filter(is_unsearched) {
            all.retain(|source| source.path != named.as_str());
            all.push(TracedSource { path: named.as_str().to_owned(), status: SourceStatus::Unknown });
        }
        all.sort_unstable();
        all.dedup_by(|a, b| a.path == b.path);
        all
    }
}

/// Warnings about files that are not compared.
fn lookup_warnings(lookups: &Lookups) -> Vec<String> {
    let with = |left_out: LeftOut| {
        let mut references: Vec<&str> =
            lookups.iter().filter(|(_, found)| found.left_out == left_out).map(|(named, _)| named.as_str()).collect();
        references.sort_unstable();
        references
    };
    let more_than = |reference: &str| {
        format!("{} matches more than {MAX_FILES} files; only the first of them are checked", quoted(reference))
    };
    let mut warnings: Vec<String> = with(LeftOut::Files).into_iter().map(more_than).collect();
    let unsearched = with(LeftOut::Unsearched);
    if let Some(first) = unsearched.first() {
        warnings.push(format!(
            "cannot look at all files of {}: there are too many files and folders; name folders or files instead of patterns",
            several(first, unsearched.len(), "references")
        ));
    }
    let files = lookups.values().flat_map(|found| found.files.iter().map(move |file| (found.shown(&file.key), file)));
    let too_large: BTreeSet<&str> =
        files.filter(|(_, file)| !file.is_link && file.fingerprint.is_too_large()).map(|(path, _)| path).collect();
    if let Some(first) = too_large.first() {
        let many = several(first, too_large.len(), "sources");
        warnings.push(format!("cannot compare {many}: a file with more than {} MiB is not read", MAX_BYTES >> 20));
    }
    warnings
}

/// The first of some things, and how many there are.
fn several(first: &str, count: usize, what: &str) -> String {
    match count {
        1 => quoted(first),
        _ => format!("{count} {what}, such as {}", quoted(first)),
    }
}

/// The versions in the index are younger than those in the history: a change since then counts, but an unchanged or unknown
/// file may have changed before.
fn mark_unchanged_as_unknown(source: &mut TracedSource) {
    if matches!(source.status, SourceStatus::Same | SourceStatus::NeverSeen) {
        source.status = SourceStatus::Unknown;
    }
}
