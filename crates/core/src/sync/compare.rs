//! Collects the versions of notes on both sides.

use std::collections::{BTreeMap, BTreeSet};

use super::base::Base;
use super::plan::Compared;
use super::report::SkippedFile;
use crate::model::{ContentHash, VaultPath};
use crate::ports::{VaultError, VaultFiles, VaultVersions};

const UNREADABLE: &str = "it cannot be read";
const EXCLUDED: &str = "the rules of the folder exclude it";

/// The notes to compare, and those that cannot be.
#[derive(Default)]
pub(super) struct FolderComparison {
    pub(super) notes: Vec<Compared>,
    pub(super) unreadable: Vec<SkippedFile>,
    pub(super) excluded: Vec<SkippedFile>,
}

/// Compares every note.
pub(super) fn all(
    folder: &dyn VaultFiles,
    graph: &dyn VaultFiles,
    base: &Base,
) -> Result<FolderComparison, VaultError> {
    // The folder first: a change of the graph in between is found again by its feed.
    let (here, there) = (folder.versions()?, graph.versions()?);
    let paths: BTreeSet<&VaultPath> = here.notes.keys().chain(there.notes.keys()).chain(base.notes.keys()).collect();
    compare(folder, &paths, &here, &there.notes, base)
}

/// Compares the notes at some paths, and those of the folder and the base below them.
pub(super) fn some(
    folder: &dyn VaultFiles,
    graph: &dyn VaultFiles,
    base: &Base,
    paths: &BTreeSet<VaultPath>,
) -> Result<FolderComparison, VaultError> {
    let mut notes = paths.clone();
    let mut unread = Vec::new();
    for path in paths {
        let listing = folder.list_below(path)?;
        notes.extend(listing.files.into_iter().map(|file| file.path));
        unread.extend(listing.unread);
        let below = base.notes.range(path.clone()..).map(|(note, _)| note);
        notes.extend(below.take_while(|note| note.as_str().starts_with(path.as_str())).cloned());
    }
    let notes: Vec<&VaultPath> = notes.iter().collect();
    let mut here = VaultVersions { notes: BTreeMap::new(), unread };
    for (path, read) in notes.iter().zip(folder.read_in_batches(&notes)) {
        match read {
            Ok(Some(content)) => _ = here.notes.insert((*path).clone(), content.hash),
            Ok(None) => {}
            Err(_) => here.unread.push(path.to_string()),
        }
    }
    let mut there = BTreeMap::new();
    for (path, read) in notes.iter().zip(graph.read_in_batches(&notes)) {
        if let Some(content) = read? {
            there.insert((*path).clone(), content.hash);
        }
    }
    compare(folder, &notes.into_iter().collect(), &here, &there, base)
}

fn compare(
    folder: &dyn VaultFiles,
    paths: &BTreeSet<&VaultPath>,
    here: &VaultVersions,
    there: &BTreeMap<VaultPath, ContentHash>,
    base: &Base,
) -> Result<FolderComparison, VaultError> {
    let mut comparison = FolderComparison::default();
    for path in paths.iter().copied() {
        let skipped = |reason: &str| SkippedFile { path: path.clone(), reason: reason.to_owned() };
        let (own, graph) = (here.notes.get(path).copied(), there.get(path).copied());
        let known = base.version(path, own, graph);
        if own.is_none() && here.is_unread(path) {
            comparison.unreadable.push(skipped(UNREADABLE));
        } else if own.is_none() && known.is_some() && folder.find_any_case(path)?.first() == Some(path) {
            // The file exists: it was excluded, not deleted.
            comparison.excluded.push(skipped(EXCLUDED));
        } else {
            let is_recorded = base.records(path, own);
            comparison.notes.push(Compared { path: path.clone(), base: known, folder: own, graph, is_recorded });
        }
    }
    Ok(comparison)
}
