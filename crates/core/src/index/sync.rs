//! One pass from the files to the store and the snapshot: list, compare, read, parse, apply, publish.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::indexer::{IndexError, Indexer, Writer};
use super::snapshot::Snapshot;
use crate::model::{ContentHash, FileStat, Note, NoteKey, VaultPath, Warning};
use crate::ports::{FileContent, Listing, NoteChange, VaultError};

/// What to look at.
#[derive(Debug, Clone)]
pub enum Scope {
    /// The whole vault; files whose time and size are known are not opened.
    Everything,
    /// The whole vault, every file opened and hashed whatever its time says.
    EveryByte,
    /// These files and folders, which something said have changed: files are opened whatever their time says.
    Below(Vec<VaultPath>),
}

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// New notes.
    pub added: usize,
    /// Notes with new bytes.
    pub changed: usize,
    /// Notes that are gone.
    pub removed: usize,
    /// Files that could not be read.
    pub unreadable: usize,
    /// Notes in the vault now.
    pub total: usize,
    /// Those of them that the store has not taken in: they are served, and read again at the next start.
    pub unsaved: usize,
}

/// How far a pass is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Files read.
    pub done: usize,
    /// Files to read.
    pub total: usize,
}

/// Files read and parsed side by side before they are applied as one change.
const CHUNK: usize = 512;

/// Partial results of a long pass become visible this often.
const PUBLISH_EVERY_NS: i64 = 5_000_000_000;

/// A file younger than this when read may change again without its time moving, so its time is not trusted later.
const UNSETTLED_NS: i64 = 2_000_000_000;

/// What reading one file gave.
enum Outcome {
    Unchanged { key: NoteKey, stat: FileStat },
    Read { note: Box<Note>, text: String },
    Gone,
    Unreadable(VaultError),
}

/// A note that came, changed or (with `None`) went.
pub(super) type Staged = (NoteKey, Option<Note>);

impl Indexer {
    /// Brings the index up to what the vault holds.
    pub fn sync(&self, scope: &Scope, progress: &(dyn Fn(Progress) + Sync)) -> Result<SyncReport, IndexError> {
        let mut writer = self.writer();
        let before = self.snapshot();
        let plan = match scope {
            Scope::Everything => Plan::of_all(&writer, &before, self.vault.list()?),
            Scope::EveryByte => Plan::of_every_byte(&before, self.vault.list()?),
            Scope::Below(paths) => self.plan_below(&writer, &before, paths),
        };
        let report = self.pass(&mut writer, plan, progress);
        self.recognise_moves(&mut writer, &before);
        self.tell_changes(&mut writer, &before);
        Ok(report)
    }

    /// One pass. What it changed is told by the caller, once: until its end a link may seem broken whose target is yet to
    /// be read.
    pub(super) fn pass(&self, writer: &mut Writer, plan: Plan, progress: &(dyn Fn(Progress) + Sync)) -> SyncReport {
        let snapshot = self.snapshot();
        let mut report = SyncReport::default();
        let mut staged: Vec<Staged> = Vec::new();
        let mut published_ns = self.clock.now_ns();
        let mut done = 0;

        for chunk in plan.read.chunks(CHUNK) {
            let outcomes: Vec<Outcome> =
                chunk.par_iter().map(|wanted| self.read_wanted(&snapshot, wanted, writer)).collect();
            self.apply_outcomes(writer, &snapshot, chunk, outcomes, &mut staged, &mut report);
            done += chunk.len();
            progress(Progress { done, total: plan.read.len() });
            if self.clock.now_ns() - published_ns > PUBLISH_EVERY_NS {
                self.publish(writer, std::mem::take(&mut staged));
                published_ns = self.clock.now_ns();
            }
        }
        report.removed += plan.gone.len();
        self.remove(writer, &plan.gone, &mut staged);
        for warning in plan.warnings {
            self.warnings.push(warning);
        }
        self.publish(writer, staged);
        report.total = self.snapshot().files().len();
        report.unsaved = if writer.store_is_lost { report.total } else { writer.owed.len() };
        report
    }

    fn plan_below(&self, writer: &Writer, snapshot: &Snapshot, paths: &[VaultPath]) -> Plan {
        let mut plan = Plan::default();
        for path in paths {
            match self.vault.list_below(path) {
                Ok(listing) => plan.compare(snapshot, listing, snapshot.files_below(path), |_| false),
                // The other paths are still looked at, and what was known here stays.
                Err(error) => plan.warnings.push(unreadable(path, &error)),
            }
        }
        let owed = writer.owed.iter().take(CHUNK).filter_map(|key| Some((*key, snapshot.get(*key)?)));
        plan.read.extend(owed.map(|(key, note)| Wanted { path: note.path.clone(), key: Some(key) }));
        plan.settle();
        plan
    }

    fn read_wanted(&self, snapshot: &Snapshot, wanted: &Wanted, writer: &Writer) -> Outcome {
        match self.vault.read(&wanted.path) {
            Err(error) => Outcome::Unreadable(error),
            Ok(None) => Outcome::Gone,
            Ok(Some(content)) => match wanted.key {
                Some(key) if snapshot.note(key).hash == content.hash && !writer.owed.contains(&key) => {
                    Outcome::Unchanged { key, stat: content.stat }
                }
                key => {
                    let known = key.map(|key| snapshot.note(key));
                    let (note, text) = self.read_sourced(&wanted.path, &content, known);
                    Outcome::Read { note: Box::new(note), text }
                }
            },
        }
    }

    fn apply_outcomes(
        &self,
        writer: &mut Writer,
        snapshot: &Snapshot,
        chunk: &[Wanted],
        outcomes: Vec<Outcome>,
        staged: &mut Vec<Staged>,
        report: &mut SyncReport,
    ) {
        let mut read: Vec<(NoteKey, Note, String)> = Vec::new();
        let mut touched: Vec<(NoteKey, FileStat)> = Vec::new();
        let mut gone: Vec<NoteKey> = Vec::new();
        for (wanted, outcome) in chunk.iter().zip(outcomes) {
            match outcome {
                Outcome::Unchanged { key, stat } => touched.push((key, stat)),
                Outcome::Read { note, text } => {
                    match wanted.key {
                        Some(key) if snapshot.note(key).hash == note.hash => {}
                        Some(_) => report.changed += 1,
                        None => report.added += 1,
                    }
                    read.push((wanted.key.unwrap_or_else(|| writer.take_key()), *note, text));
                }
                Outcome::Gone => gone.extend(wanted.key),
                Outcome::Unreadable(error) => {
                    report.unreadable += 1;
                    self.warnings.push(unreadable(&wanted.path, &error));
                }
            }
        }
        self.put(writer, &read);
        let now_ns = self.clock.now_ns();
        let touches: Vec<NoteChange<'_>> = touched
            .iter()
            .filter(|(key, stat)| writer.note_settled(*key, *stat, now_ns) || snapshot.note(*key).stat != *stat)
            .map(|(key, stat)| NoteChange::Touch { key: *key, stat: settled_stat(*stat, now_ns) })
            .collect();
        self.store_changes(writer, &touches);

        for (key, stat) in touched {
            if snapshot.note(key).stat != stat {
                staged.push((key, Some(Note { stat, ..snapshot.note(key).clone() })));
            }
        }
        staged.extend(read.into_iter().map(|(key, note, _)| (key, Some(note))));
        report.removed += gone.len();
        self.remove(writer, &gone, staged);
    }

    /// Hands notes and their texts to the store, as one change.
    fn put(&self, writer: &mut Writer, read: &[(NoteKey, Note, String)]) {
        let now_ns = self.clock.now_ns();
        // What is kept of an unsettled file says another time, so that the next start reads it again.
        let kept: Vec<Note> = read
            .iter()
            .map(|(key, note, _)| {
                writer.note_settled(*key, note.stat, now_ns);
                Note { stat: settled_stat(note.stat, now_ns), ..note.clone() }
            })
            .collect();
        let puts = read.iter().zip(&kept).map(|((key, _, text), note)| NoteChange::Put { key: *key, note, text });
        self.store_changes(writer, &puts.collect::<Vec<_>>());
    }

    fn remove(&self, writer: &mut Writer, gone: &[NoteKey], staged: &mut Vec<Staged>) {
        self.store_changes(writer, &gone.iter().map(|key| NoteChange::Remove { key: *key }).collect::<Vec<_>>());
        for key in gone {
            staged.push((*key, None));
            writer.release_key(*key);
        }
    }

    /// Takes in files that this process has just written, without reading them back.
    pub(crate) fn adopt(&self, writer: &mut Writer, written: Vec<Written>) {
        let before = self.snapshot();
        let mut gone: Vec<NoteKey> = Vec::new();
        let mut read: Vec<(NoteKey, Note, String)> = Vec::new();
        let key_of = |written: &Written| before.find_exact(written.was.as_ref().unwrap_or(&written.path));
        let keys: Vec<Option<NoteKey>> = written.iter().map(key_of).collect();
        for (Written { path, content, .. }, key) in written.into_iter().zip(keys.iter().copied()) {
            // Whatever the index still remembers at this place was deleted elsewhere, or there would have been no room.
            let ghosts =
                before.with_lowercased(&path.note_id()).iter().copied().filter(|other| !keys.contains(&Some(*other)));
            gone.extend(ghosts.filter(|other| {
                before.note(*other).path == path || matches!(self.vault.read(&before.note(*other).path), Ok(None))
            }));
            match content {
                None => gone.extend(key),
                Some(content) => {
                    let known = key.map(|key| before.note(key));
                    let (note, text) = self.read_sourced(&path, &content, known);
                    read.push((key.unwrap_or_else(|| writer.take_key()), note, text));
                }
            }
        }
        gone.sort_unstable();
        gone.dedup();
        let mut staged: Vec<Staged> = Vec::new();
        self.remove(writer, &gone, &mut staged);
        self.put(writer, &read);
        staged.extend(read.into_iter().map(|(key, note, _)| (key, Some(note))));
        self.publish(writer, staged);
        self.tell_changes(writer, &before);
    }

    /// The store only speeds up the next start and finds words, so its failure is told and survived. What it did not take
    /// is offered again by the next passes.
    fn store_changes(&self, writer: &mut Writer, changes: &[NoteChange<'_>]) {
        if changes.is_empty() || writer.store_is_lost {
            return;
        }
        let outcome = self.store.apply(changes);
        for change in changes {
            if let NoteChange::Put { key, .. } = change {
                if outcome.is_ok() {
                    writer.owed.remove(key)
                } else {
                    writer.owed.insert(*key)
                };
            }
        }
        if let Err(error) = outcome {
            let message = format!("{error}; notes are safe and served, but a search for words may miss the newest");
            self.warnings.push(Warning { path: ".quipu/index".into(), message });
        }
    }
}

/// A file this process wrote: where it is, where it was if it was elsewhere, and its bytes unless it was deleted.
pub(crate) struct Written {
    pub(crate) path: VaultPath,
    pub(crate) was: Option<VaultPath>,
    pub(crate) content: Option<FileContent>,
}

impl Written {
    pub(crate) fn new(path: VaultPath, bytes: Vec<u8>, stat: FileStat) -> Self {
        let hash = ContentHash::of(&bytes);
        Self { path, was: None, content: Some(FileContent { bytes, stat, hash }) }
    }
}

/// What to read, and what to forget.
#[derive(Default)]
pub(super) struct Plan {
    read: Vec<Wanted>,
    gone: Vec<NoteKey>,
    warnings: Vec<Warning>,
}

struct Wanted {
    path: VaultPath,
    key: Option<NoteKey>,
}

impl Plan {
    /// Compares every file with what is known of it, by time and size where they can be trusted.
    pub(super) fn of_all(writer: &Writer, snapshot: &Snapshot, listing: Listing) -> Self {
        let mut plan = Self::default();
        let trusted = |key: NoteKey| !writer.owed.contains(&key) && !writer.unsettled.contains(&key);
        plan.compare(snapshot, listing, snapshot.files().collect(), trusted);
        plan.settle();
        plan
    }

    fn of_every_byte(snapshot: &Snapshot, listing: Listing) -> Self {
        let mut plan = Self::default();
        plan.compare(snapshot, listing, snapshot.files().collect(), |_| false);
        plan.settle();
        plan
    }

    /// Adds what differs between some files and the notes known there. A note is `trusted` when its time and size are
    /// enough to know that it did not change.
    fn compare(
        &mut self,
        snapshot: &Snapshot,
        listing: Listing,
        known: Vec<NoteKey>,
        trusted: impl Fn(NoteKey) -> bool,
    ) {
        let mut by_path: FxHashMap<&str, NoteKey> = FxHashMap::default();
        for key in known {
            self.gone.extend(by_path.insert(snapshot.note(key).path.as_str(), key));
        }
        // A folder that cannot be read for a moment has lost no notes: what was known of them stays.
        by_path.retain(|_, key| !listing.is_unread(&snapshot.note(*key).path));
        self.warnings.extend(listing.warnings);
        for file in listing.files {
            let key = by_path.remove(file.path.as_str());
            if !key.is_some_and(|key| trusted(key) && snapshot.note(key).stat == file.stat) {
                self.read.push(Wanted { path: file.path, key });
            }
        }
        self.gone.extend(by_path.into_values());
    }

    /// One decision for each file. A folder and a file in it may have been looked at a moment apart and disagree: then
    /// reading the file decides.
    fn settle(&mut self) {
        self.read.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.read.dedup_by(|a, b| a.path == b.path);
        let read: FxHashSet<NoteKey> = self.read.iter().filter_map(|wanted| wanted.key).collect();
        self.gone.retain(|key| !read.contains(key));
        self.gone.sort_unstable();
        self.gone.dedup();
    }
}

/// The stat to remember: an unsettled one without its time.
fn settled_stat(stat: FileStat, now_ns: i64) -> FileStat {
    if is_settled(stat, now_ns) { stat } else { FileStat { modified_ns: 0, ..stat } }
}

/// Whether a file was old enough when it was read that a later change must show in its time.
pub(super) fn is_settled(stat: FileStat, now_ns: i64) -> bool {
    now_ns - stat.modified_ns >= UNSETTLED_NS
}

fn unreadable(path: &VaultPath, error: &VaultError) -> Warning {
    let VaultError::Read { source, .. } = error;
    Warning { path: path.to_string(), message: format!("cannot be read: {source}") }
}
