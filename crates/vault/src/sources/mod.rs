//! The files that notes are about: what a reference names, what it holds, and what it held when the note last changed.
//!
//! With git the past is in the repository; without, it is what the index remembers. Which of the two answers is decided
//! note by note and file by file.

mod content;
mod lookup;
mod past;
mod pattern;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::model::SourceVersion;
use quipu_core::ports::{Clock, SinceThen, SourcedNote, Sources, Traced, TracedSource};
use quipu_core::quoted;
use quipu_core::staleness::{SourceRef, since_remembered};

use crate::git::{GitError, GitOptions, Repository};
use content::Contents;
pub(crate) use lookup::Mark;
use lookup::{Named, Place};
use past::Past;

/// The sources of the notes in one folder.
pub struct FolderSources {
    vault: PathBuf,
    clock: Arc<dyn Clock>,
    contents: Contents,
    /// What is known of the repository around the vault. Apart from the contents, which indexing must not wait for.
    repository: Mutex<Option<Repository>>,
    git: GitOptions,
}

impl FolderSources {
    /// The sources of the vault at a folder. Nothing is opened yet.
    pub fn new(vault: &Path, clock: Arc<dyn Clock>) -> Self {
        let vault = std::fs::canonicalize(vault).unwrap_or_else(|_| vault.to_owned());
        let (contents, repository, git) = (Contents::default(), Mutex::default(), GitOptions::default());
        Self { vault, clock, contents, repository, git }
    }

    /// Asks git in another way.
    #[must_use]
    pub fn with_git(self, git: GitOptions) -> Self {
        Self { git, ..self }
    }

    /// What the index remembered, compared with what is there.
    fn by_memory(&self, place: &Place, note: &SourcedNote<'_>, lookups: &Lookups) -> Vec<TracedSource> {
        let now = self.versions_of(place, note.refs.iter().filter_map(|named| lookups.named.get(named)));
        since_remembered(&note.refs, note.remembered, &now)
    }

    /// The content of named files, by path, each once.
    fn versions_of<'a>(&self, place: &Place, named: impl Iterator<Item = &'a Named>) -> Vec<(SourceVersion, i64)> {
        let mut versions: BTreeMap<String, (SourceVersion, i64)> = BTreeMap::new();
        let now_ns = self.clock.now_ns();
        for named in named {
            for file in &named.files {
                let Some(hash) = self.contents.hash(place, file, now_ns) else { continue };
                let path = named.shown(&file.key).to_owned();
                versions.insert(path.clone(), (SourceVersion { path, hash }, file.mark.modified_ns));
            }
        }
        versions.into_values().collect()
    }
}

/// What the references of one question name now, each looked up once.
struct Lookups {
    named: HashMap<SourceRef, Named>,
}

impl Sources for FolderSources {
    fn versions(&self, refs: &[SourceRef]) -> Vec<SourceVersion> {
        let Ok(place) = Place::around(&self.vault) else { return Vec::new() };
        let named: Vec<Named> = refs.iter().map(|named| place.named(named)).collect();
        self.versions_of(&place, named.iter()).into_iter().map(|(version, _)| version).collect()
    }

    fn trace(&self, notes: &[SourcedNote<'_>]) -> Traced {
        let place = match Place::around(&self.vault) {
            Ok(place) => place,
            Err(error) => {
                tracing::warn!("the vault's folder cannot be opened: {error}");
                let warnings =
                    vec!["the vault's folder cannot be opened, so nothing is known of any source".to_owned()];
                return Traced { notes: notes.iter().map(|_| Vec::new()).collect(), warnings };
            }
        };
        let mut lookups = Lookups { named: HashMap::new() };
        let mut warnings = Vec::new();
        for named in notes.iter().flat_map(|note| &note.refs) {
            if !lookups.named.contains_key(named) {
                let found = place.named(named);
                if found.is_cut {
                    warnings.push(format!(
                        "{} names more than {} files; only the first of them are looked at",
                        quoted(named.as_str()),
                        lookup::MAX_FILES
                    ));
                }
                lookups.named.insert(named.clone(), found);
            }
        }
        let mut pasts: Vec<Past> = notes.iter().map(|_| Past::NotCommitted).collect();
        if place.is_repository {
            let mut repository = self.repository.lock();
            if repository.as_ref().is_none_or(|known| known.root() != place.base) {
                *repository = Some(Repository::at(&place.base, &self.git));
            }
            let known = repository.as_mut().expect("it was just put there");
            let asked = past::Asked { place: &place, notes, named: &lookups.named, now_ns: self.clock.now_ns() };
            match known.now().and_then(|head| past::trace(head, &asked, &mut warnings)) {
                Ok(traced) => pasts = traced,
                // A repository without commits has no past to be missed.
                Err(GitError::NoHistory) => {}
                Err(error) => {
                    warnings.push(format!("{error}; until that is mended it is not known whether sources changed"));
                    pasts.fill_with(|| Past::NotReached);
                }
            }
        }
        let traced = pasts.into_iter().zip(notes).map(|(past, note)| match past {
            Past::NotCommitted => self.by_memory(&place, note, &lookups),
            Past::NotReached => {
                let mut sources = self.by_memory(&place, note, &lookups);
                sources.iter_mut().for_each(doubt);
                sources
            }
            Past::Known(sources) => {
                let (known, unknown): (Vec<_>, Vec<_>) = sources.into_iter().partition(|source| source.since.is_some());
                let is_unknown = |path: &str| unknown.iter().any(|source| source.path == path);
                let by_memory = if unknown.is_empty() { Vec::new() } else { self.by_memory(&place, note, &lookups) };
                let remembered = by_memory.into_iter().filter(|source| is_unknown(&source.path));
                let known = known.into_iter().filter_map(past::Source::known);
                let mut all: Vec<_> = known.chain(remembered).collect();
                all.sort_unstable();
                all.dedup_by(|a, b| a.path == b.path);
                all
            }
        });
        Traced { notes: traced.collect(), warnings }
    }
}

/// What the index remembers is younger than what history would tell: a change since then is one, but to be the same as
/// then, or not to have been there then, says nothing of the time before.
fn doubt(source: &mut TracedSource) {
    if matches!(source.since, SinceThen::Same | SinceThen::NeverSeen) {
        source.since = SinceThen::Unknown;
    }
}
