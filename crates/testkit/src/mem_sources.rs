//! Source files of notes in memory, without history, which a test can change.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::model::{ContentHash, SourceVersion};
use quipu_core::ports::{Clock, SourcedNote, Sources, Traced};
use quipu_core::staleness::{SourceRef, since_remembered};

use crate::FixedClock;

/// Files in memory. References are files and folders; patterns match nothing.
#[derive(Default)]
pub struct MemSources {
    clock: Arc<FixedClock>,
    files: Mutex<BTreeMap<String, (ContentHash, i64)>>,
}

impl MemSources {
    /// No files yet.
    pub fn new(clock: Arc<FixedClock>) -> Self {
        Self { clock, files: Mutex::default() }
    }

    /// Writes a file.
    pub fn put(&self, path: &str, text: &str) {
        self.files().insert(path.to_owned(), (ContentHash::of(text.as_bytes()), self.clock.now_ns()));
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        self.files().remove(path);
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, (ContentHash, i64)>> {
        self.files.lock()
    }

    fn named(&self, refs: &[SourceRef]) -> Vec<(SourceVersion, i64)> {
        let is_named = |path: &str| {
            let below = |named: &SourceRef| path.strip_prefix(named.as_str());
            refs.iter().filter_map(below).any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let files = self.files();
        let named = files.iter().filter(|(path, _)| is_named(path));
        named.map(|(path, (hash, at_ns))| (SourceVersion { path: path.clone(), hash: *hash }, *at_ns)).collect()
    }
}

impl Sources for MemSources {
    fn versions(&self, refs: &[SourceRef]) -> Vec<SourceVersion> {
        self.named(refs).into_iter().map(|(version, _)| version).collect()
    }

    fn trace(&self, notes: &[SourcedNote<'_>]) -> Traced {
        let trace = |note: &SourcedNote<'_>| since_remembered(&note.refs, note.remembered, &self.named(&note.refs));
        Traced { notes: notes.iter().map(trace).collect(), warnings: Vec::new() }
    }
}
