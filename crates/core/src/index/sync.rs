//! One pass from the files to the store and the snapshot: list, compare, read, parse, apply, publish.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::indexer::{IndexError, Indexer, Writer};
use super::snapshot::Snapshot;
use crate::model::{ContentHash, FileStat, Note, NoteKey, VaultPath, Warning};
use crate::parse::read_note;
use crate::ports::{FileContent, ListedFile, NoteChange, VaultError};

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
        self.sync_locked(&mut writer, scope, progress)
    }

    pub(super) fn sync_locked(
        &self,
        writer: &mut Writer,
        scope: &Scope,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SyncReport, IndexError> {
        let snapshot = self.snapshot();
        let plan = self.plan(&snapshot, scope, &writer.text_missing)?;
        let mut report = SyncReport::default();
        let mut staged: Vec<Staged> = Vec::new();
        let mut published_ns = self.clock.now_ns();

        for chunk in plan.read.chunks(CHUNK) {
            let outcomes: Vec<Outcome> =
                chunk.par_iter().map(|wanted| self.read_wanted(&snapshot, wanted, writer)).collect();
            self.apply_outcomes(writer, &snapshot, chunk, outcomes, &mut staged, &mut report);
            report.total += chunk.len();
            progress(Progress { done: report.total, total: plan.read.len() });
            if self.clock.now_ns() - published_ns > PUBLISH_EVERY_NS {
                self.publish(writer, std::mem::take(&mut staged));
                published_ns = self.clock.now_ns();
            }
        }
        self.remove_vanished(writer, &plan.gone, &mut staged, &mut report);
        writer.text_missing.clear();
        for warning in plan.warnings {
            self.warnings.push(warning);
        }
        self.publish(writer, staged);
        report.total = self.snapshot().files().len();
        Ok(report)
    }

    /// Compares the files with what is known.
    fn plan(&self, snapshot: &Snapshot, scope: &Scope, text_missing: &FxHashSet<NoteKey>) -> Result<Plan, IndexError> {
        let mut plan = Plan::default();
        let mut compare = |files: Vec<ListedFile>, known: Vec<NoteKey>, trust_times: bool| {
            let mut known: FxHashMap<&str, NoteKey> =
                known.into_iter().map(|key| (snapshot.note(key).path.as_str(), key)).collect();
            for file in files {
                let key = known.remove(file.path.as_str());
                let settled = key.is_some_and(|key| {
                    trust_times && snapshot.note(key).stat == file.stat && !text_missing.contains(&key)
                });
                if !settled {
                    plan.read.push(Wanted { path: file.path, key });
                }
            }
            plan.gone.extend(known.into_values());
        };
        match scope {
            Scope::Everything | Scope::EveryByte => {
                let listing = self.vault.list()?;
                plan.warnings = listing.warnings;
                compare(listing.files, snapshot.files().collect(), matches!(scope, Scope::Everything));
            }
            Scope::Below(paths) => {
                for path in paths {
                    let listing = self.vault.list_below(path)?;
                    plan.warnings.extend(listing.warnings);
                    compare(listing.files, snapshot.files_below(path), false);
                }
            }
        }
        plan.gone.sort_unstable();
        plan.gone.dedup();
        plan.read.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        plan.read.dedup_by(|a, b| a.path == b.path);
        Ok(plan)
    }

    fn read_wanted(&self, snapshot: &Snapshot, wanted: &Wanted, writer: &Writer) -> Outcome {
        match self.vault.read(&wanted.path) {
            Err(error) => Outcome::Unreadable(error),
            Ok(None) => Outcome::Gone,
            Ok(Some(content)) => match wanted.key {
                Some(key) if snapshot.note(key).hash == content.hash && !writer.text_missing.contains(&key) => {
                    Outcome::Unchanged { key, stat: content.stat }
                }
                _ => {
                    let (note, text) = read_note(&wanted.path, &content, &self.title_rule);
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
        let now_ns = self.clock.now_ns();
        let mut read: Vec<(NoteKey, Note, String)> = Vec::new();
        let mut touched: Vec<(NoteKey, FileStat)> = Vec::new();
        let mut gone: Vec<NoteKey> = Vec::new();
        for (wanted, outcome) in chunk.iter().zip(outcomes) {
            match outcome {
                Outcome::Unchanged { key, stat } => touched.push((key, stat)),
                Outcome::Read { note, text } => {
                    match wanted.key {
                        Some(_) => report.changed += 1,
                        None => report.added += 1,
                    }
                    read.push((wanted.key.unwrap_or_else(|| writer.take_key()), *note, text));
                }
                Outcome::Gone => gone.extend(wanted.key),
                Outcome::Unreadable(error) => {
                    report.unreadable += 1;
                    self.warnings.push(Warning { path: wanted.path.to_string(), message: error.to_string() });
                }
            }
        }
        // What is kept of an unsettled file says another time, so that the next start reads it again.
        let kept: Vec<Note> =
            read.iter().map(|(_, note, _)| Note { stat: settle(note.stat, now_ns), ..note.clone() }).collect();
        let puts = read.iter().zip(&kept).map(|((key, _, text), note)| NoteChange::Put { key: *key, note, text });
        let touches = touched
            .iter()
            .filter(|(key, stat)| settle(*stat, now_ns) == *stat || snapshot.note(*key).stat != *stat)
            .map(|(key, stat)| NoteChange::Touch { key: *key, stat: settle(*stat, now_ns) });
        self.store_changes(&puts.chain(touches).collect::<Vec<_>>());

        for (key, stat) in touched {
            if snapshot.note(key).stat != stat {
                staged.push((key, Some(Note { stat, ..snapshot.note(key).clone() })));
            }
        }
        staged.extend(read.into_iter().map(|(key, note, _)| (key, Some(note))));
        self.remove_vanished(writer, &gone, staged, report);
    }

    fn remove_vanished(
        &self,
        writer: &mut Writer,
        gone: &[NoteKey],
        staged: &mut Vec<Staged>,
        report: &mut SyncReport,
    ) {
        let changes: Vec<NoteChange<'_>> = gone.iter().map(|key| NoteChange::Remove { key: *key }).collect();
        self.store_changes(&changes);
        for key in gone {
            report.removed += 1;
            staged.push((*key, None));
            writer.free.push(*key);
        }
    }

    /// Takes in files that this process has just written, without reading them back.
    pub(crate) fn adopt(&self, writer: &mut Writer, written: Vec<Written>) {
        let now_ns = self.clock.now_ns();
        let snapshot = self.snapshot();
        let mut staged: Vec<Staged> = Vec::new();
        for Written { path, was, content } in written {
            let key = snapshot.find_exact(was.as_ref().unwrap_or(&path));
            match content {
                None => {
                    let mut report = SyncReport::default();
                    self.remove_vanished(writer, key.as_slice(), &mut staged, &mut report);
                }
                Some(content) => {
                    let (note, text) = read_note(&path, &content, &self.title_rule);
                    let kept = Note { stat: settle(note.stat, now_ns), ..note.clone() };
                    let key = key.unwrap_or_else(|| writer.take_key());
                    self.store_changes(&[NoteChange::Put { key, note: &kept, text: &text }]);
                    staged.push((key, Some(note)));
                }
            }
        }
        self.publish(writer, staged);
    }

    /// The store only speeds up the next start, so its failure is told and survived.
    fn store_changes(&self, changes: &[NoteChange<'_>]) {
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.store.apply(changes) {
            self.warnings.push(Warning {
                path: ".quipu/index".into(),
                message: format!("{error}; notes are safe and served, but text search may miss the newest until the index can be written"),
            });
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

#[derive(Default)]
struct Plan {
    read: Vec<Wanted>,
    gone: Vec<NoteKey>,
    warnings: Vec<Warning>,
}

struct Wanted {
    path: VaultPath,
    key: Option<NoteKey>,
}

fn settle(stat: FileStat, now_ns: i64) -> FileStat {
    if now_ns - stat.modified_ns < UNSETTLED_NS { FileStat { modified_ns: 0, ..stat } } else { stat }
}
