//! The first pass over the vault: loads the saved index, applies what changed since, and lets calls wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{IndexError, IndexReport, Indexer, Progress};
use crate::index::plan::{CHUNK, ReadPlan};
use crate::index::publish::snapshot_of_saved;
use crate::index::saved_links;
use crate::index::writer::{ChangedNotes, Writer};
use crate::model::Warning;
use crate::parse::PARSER_VERSION;
use crate::ports::StoreError;

/// A step of a start in steps reads at most this part of the notes that were read before it.
const STEPS: usize = 8;

/// The pause between two steps of a start in steps, in which waiting writes get the writer's lock.
const STEP_PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexStart {
    Pending,
    Done,
    Panicked,
}

/// Records the end of the first pass, also when a panic ends it: calls must not wait for it any longer.
struct IndexStartGuard<'a> {
    indexer: &'a Indexer,
    outcome: IndexStart,
}

impl Drop for IndexStartGuard<'_> {
    fn drop(&mut self) {
        let mut pass = self.indexer.first_pass.0.lock();
        // A later pass does not take a complete index back.
        if *pass != IndexStart::Done {
            *pass = self.outcome;
        }
        self.indexer.first_pass.1.notify_all();
    }
}

impl Indexer {
    /// Loads the saved index, then applies what changed in the vault since.
    pub fn start(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<IndexReport, IndexError> {
        let mut pass = IndexStartGuard { indexer: self, outcome: IndexStart::Panicked };
        let mut writer = self.writer();
        let before = self.snapshot();
        // Independent, and both mostly wait for the disk.
        let state = &mut *writer;
        let (_, listing) = rayon::join(|| self.load_or_warn(state), || self.reader.vault.list());
        let loaded = self.snapshot();
        // Otherwise the first pass over the vault may have been interrupted: a note that is not in the index is not new then.
        let was_complete = writer.links_are_saved;
        let outcome = listing.map(|listing| {
            let plan = ReadPlan::for_listing(&writer, &loaded, listing);
            self.execute(&mut writer, plan, progress)
        });
        self.detect_outside(&writer, &loaded, was_complete);
        self.detect_moves(&mut writer, &loaded);
        self.announce(&mut writer, &before);
        pass.outcome = IndexStart::Done;
        Ok(outcome?)
    }

    /// Like [`Indexer::start`], for a vault of which nothing is saved and every read is a round trip. The writer's lock is released
    /// between two steps: meanwhile notes can be written, and those that calls ask for can be indexed first. What could not be read
    /// is read by the next call of this method; until then the index is not ready.
    pub fn start_in_steps(&self) -> Result<IndexReport, IndexError> {
        let mut pass = IndexStartGuard { indexer: self, outcome: IndexStart::Panicked };
        let outcome = self.read_in_steps();
        let is_complete = outcome.as_ref().is_ok_and(|report| report.unreadable == 0);
        pass.outcome = if is_complete { IndexStart::Done } else { IndexStart::Pending };
        outcome
    }

    fn read_in_steps(&self) -> Result<IndexReport, IndexError> {
        self.expect_steps();
        let first = self.snapshot();
        if first.files().len() == 0 {
            self.load_or_warn(&mut self.writer());
        }
        let listing = self.reader.vault.list()?;
        let mut report = IndexReport::default();
        let mut files = &listing.files[..];
        while !files.is_empty() {
            let mut writer = self.writer();
            let before = self.snapshot();
            // Every step resolves all links so far: steps of a fixed size would take quadratic time.
            let (step, later) = files.split_at(files.len().min(CHUNK.max(before.files().len() / STEPS)));
            files = later;
            let read = self.execute(&mut writer, ReadPlan::of_listed(&before, step), &|_| {});
            report.added += read.added;
            report.changed += read.changed;
            report.unreadable += read.unreadable;
            writer.touched = ChangedNotes::default();
            drop(writer);
            if report.unreadable > 0 {
                return Ok(report);
            }
            std::thread::sleep(STEP_PAUSE);
        }
        let mut writer = self.writer();
        self.is_stepping.store(false, Ordering::Release);
        writer.touched = ChangedNotes::All;
        self.announce(&mut writer, &first);
        report.total = self.snapshot().files().len();
        Ok(report)
    }

    /// Announces a start in steps.
    pub(crate) fn expect_steps(&self) {
        self.is_stepping.store(true, Ordering::Release);
    }

    /// Whether a start in steps is not over: some notes are not in the index yet, and others can be written.
    pub(crate) fn is_stepping(&self) -> bool {
        self.is_stepping.load(Ordering::Acquire)
    }

    /// Loads the saved index, or serves without one.
    fn load_or_warn(&self, writer: &mut Writer) {
        if let Err(error) = self.load(writer) {
            writer.store_is_lost = true;
            let message =
                format!("{error}; notes are served, words cannot be searched, and nothing is kept for the next start");
            self.warnings.push(Warning { path: ".quipu/index".into(), message });
        }
    }

    fn load(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let loaded = self.store.load(&format!("{PARSER_VERSION} {:?}", self.reader.title_rule))?;
        self.was_saved.store(!loaded.notes.is_empty(), Ordering::Relaxed);
        writer.use_keys(&loaded.notes.iter().map(|(key, _)| *key).collect());
        writer.unsaved = loaded.text_missing.into_iter().collect();
        let links = loaded.links.and_then(|links| saved_links::decode(&links, &loaded.notes));
        match links {
            Some(links) => {
                self.current.store(Arc::new(snapshot_of_saved(writer, loaded.notes, &links)));
                writer.links_are_saved = true;
            }
            None => self.publish(writer, loaded.notes.into_iter().map(|(key, note)| (key, Some(note))).collect()),
        }
        Ok(())
    }

    /// Whether the first pass found a saved index, so that most notes are not new.
    pub(crate) fn was_saved(&self) -> bool {
        self.was_saved.load(Ordering::Relaxed)
    }

    /// Waits until the first pass is over; `false` on timeout, or if it panicked.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        let mut pass = self.first_pass.0.lock();
        self.first_pass.1.wait_while_for(&mut pass, |pass| *pass == IndexStart::Pending, timeout);
        *pass == IndexStart::Done
    }

    /// Whether the first pass panicked: the snapshot lacks notes, and no later pass adds them.
    pub fn has_panicked(&self) -> bool {
        *self.first_pass.0.lock() == IndexStart::Panicked
    }
}
