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
use std::sync::{Arc, Mutex, PoisonError};

use quipu_core::model::SourceVersion;
use quipu_core::ports::{Clock, SourcedNote, Sources, Traced};
use quipu_core::staleness::{SourceRef, since_remembered};

use crate::git::{GitError, Repository};
use content::Contents;
pub(crate) use lookup::Mark;
use lookup::{Named, Place};

/// The sources of the notes in one folder.
pub struct FolderSources {
    vault: PathBuf,
    clock: Arc<dyn Clock>,
    contents: Contents,
    /// What is known of the repository around the vault. Apart from the contents, which indexing must not wait for.
    repository: Mutex<Option<Repository>>,
}

impl FolderSources {
    /// The sources of the vault at a folder. Nothing is opened yet.
    pub fn new(vault: &Path, clock: Arc<dyn Clock>) -> Self {
        let vault = std::fs::canonicalize(vault).unwrap_or_else(|_| vault.to_owned());
        Self { vault, clock, contents: Contents::default(), repository: Mutex::default() }
    }

    /// What the index remembered, compared with what is there.
    fn by_memory(
        &self,
        place: &Place,
        note: &SourcedNote<'_>,
        lookups: &Lookups,
    ) -> Vec<quipu_core::ports::TracedSource> {
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
                        "`{}` names more than {} files; only the first of them are looked at",
                        named.as_str(),
                        lookup::MAX_FILES
                    ));
                }
                lookups.named.insert(named.clone(), found);
            }
        }
        let mut by_history = vec![None; notes.len()];
        if place.is_repository {
            let mut repository = self.repository.lock().unwrap_or_else(PoisonError::into_inner);
            if repository.as_ref().is_none_or(|known| known.root() != place.base) {
                *repository = Some(Repository::at(&place.base));
            }
            let known = repository.as_mut().expect("it was just put there");
            let asked = past::Asked { place: &place, notes, named: &lookups.named, now_ns: self.clock.now_ns() };
            match known.now().and_then(|head| past::trace(head, &asked, &mut warnings)) {
                Ok(traced) => by_history = traced,
                // A repository without commits has no past to be missed.
                Err(GitError::NoHistory) => {}
                Err(error) => {
                    warnings.push(format!("{error}; until then sources are compared with what the index remembers"));
                }
            }
        }
        let traced = by_history.into_iter().zip(notes).map(|(by_history, note)| {
            let Some(mut sources) = by_history else { return self.by_memory(&place, note, &lookups) };
            let unknown: Vec<_> =
                sources.iter().filter(|source| source.since.is_none()).map(|source| source.path.clone()).collect();
            let by_memory = if unknown.is_empty() { Vec::new() } else { self.by_memory(&place, note, &lookups) };
            sources.retain(|source| source.since.is_some());
            let known = sources.into_iter().filter_map(past::Source::known);
            let remembered = by_memory.into_iter().filter(|source| unknown.contains(&source.path));
            let mut all: Vec<_> = known.chain(remembered).collect();
            all.sort_unstable();
            all.dedup_by(|a, b| a.path == b.path);
            all
        });
        Traced { notes: traced.collect(), warnings }
    }
}
