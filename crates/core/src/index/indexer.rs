//! The one writer of the index, and the snapshot it publishes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::resolve::{Resolver, hash_of_target};
use super::snapshot::{Entry, Snapshot};
use super::sync::{Progress, Scope, Staged, SyncReport};
use crate::graph::Graph;
use crate::model::{ContentHash, FileStat, Link, Note, NoteId, NoteKey, VaultPath};
use crate::parse::{PARSER_VERSION, TitleRule, read_note};
use crate::ports::{Clock, FileContent, NoteStore, StoreError, VaultError, VaultFiles};
use crate::warnings::WarningLog;

/// Why the index could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The vault cannot be read.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps a snapshot of the vault.
pub struct Indexer {
    pub(super) vault: Arc<dyn VaultFiles>,
    pub(super) store: Arc<dyn NoteStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) title_rule: TitleRule,
    pub(super) warnings: Arc<WarningLog>,
    current: ArcSwap<Snapshot>,
    writer: Mutex<Writer>,
    ready: (Mutex<bool>, Condvar),
}

/// What only the writer needs.
#[derive(Default)]
pub(crate) struct Writer {
    resolver: Resolver,
    /// Under the hash of a link's target, the notes with such a link. Made at the first small change: a start needs none.
    wanted: Option<FxHashMap<u64, Vec<NoteKey>>>,
    pub(super) free: Vec<NoteKey>,
    next_key: u32,
    pub(super) text_missing: FxHashSet<NoteKey>,
}

impl Writer {
    pub(super) fn take_key(&mut self) -> NoteKey {
        self.free.pop().unwrap_or_else(|| {
            self.next_key += 1;
            NoteKey(self.next_key - 1)
        })
    }
}

impl Indexer {
    /// An indexer that knows nothing yet; [`Indexer::start`] makes it ready.
    pub fn new(
        vault: Arc<dyn VaultFiles>,
        store: Arc<dyn NoteStore>,
        clock: Arc<dyn Clock>,
        title_rule: TitleRule,
        warnings: Arc<WarningLog>,
    ) -> Self {
        Self {
            vault,
            store,
            clock,
            title_rule,
            warnings,
            current: ArcSwap::default(),
            writer: Mutex::default(),
            ready: (Mutex::new(false), Condvar::new()),
        }
    }

    /// The vault as last published.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Remembers what earlier runs knew, then brings it up to what the vault holds now.
    pub fn start(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<SyncReport, IndexError> {
        let mut writer = self.writer();
        let outcome = self.load(&mut writer).and_then(|()| self.sync_locked(&mut writer, &Scope::Everything, progress));
        *self.ready.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ready.1.notify_all();
        outcome
    }

    /// Waits until the first pass is over; `false` when it still is not.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        let ready = self.ready.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.ready.1.wait_timeout_while(ready, timeout, |ready| !*ready);
        *wait.unwrap_or_else(PoisonError::into_inner).0
    }

    fn load(&self, writer: &mut Writer) -> Result<(), IndexError> {
        let loaded = self.store.load(&format!("{PARSER_VERSION} {:?}", self.title_rule))?;
        let used: FxHashSet<NoteKey> = loaded.notes.iter().map(|(key, _)| *key).collect();
        writer.next_key = used.iter().map(|key| key.0 + 1).max().unwrap_or(0);
        writer.free = (0..writer.next_key).rev().map(NoteKey).filter(|key| !used.contains(key)).collect();
        writer.text_missing = loaded.text_missing.into_iter().collect();
        self.publish(writer, loaded.notes.into_iter().map(|(key, note)| (key, Some(note))).collect());
        Ok(())
    }

    /// The writer's state. A panic while it was held cannot leave a torn snapshot behind: that is swapped whole.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does now what the first change would otherwise have to wait for.
    pub fn expect_changes(&self) {
        let mut writer = self.writer();
        let snapshot = self.snapshot();
        writer.wanted.get_or_insert_with(|| wanted_by(snapshot.entries()));
    }

    /// What would be known of a note with these bytes at this path.
    pub(crate) fn read_renamed(&self, path: &VaultPath, bytes: &[u8]) -> Note {
        let stat = FileStat { modified_ns: self.clock.now_ns(), size: bytes.len() as u64 };
        let content = FileContent { hash: ContentHash::of(bytes), stat, bytes: bytes.to_vec() };
        read_note(path, &content, &self.title_rule).0
    }

    /// Makes staged changes visible, links resolved.
    pub(super) fn publish(&self, writer: &mut Writer, staged: Vec<Staged>) {
        if staged.is_empty() {
            return;
        }
        let before = self.snapshot();
        let changed: Vec<NoteKey> = staged.iter().map(|(key, _)| *key).collect();
        // Amending costs by the change, rebuilding by the vault: they meet at about a fiftieth of it.
        let rebuild = staged.len() > 64 + before.files().len() / 50;
        let after = if rebuild { rebuilt(writer, &before, staged) } else { amended(writer, &before, staged) };
        let after = Arc::new(after);
        self.warnings.note_changes(&before, &after, &changed);
        self.current.store(after);
    }
}

impl Writer {
    /// The note a link of `source` means.
    pub(crate) fn means(&self, source: &Note, link: &Link) -> Option<NoteKey> {
        self.resolver.resolve(source, link)
    }

    /// Whether a link of `source` would mean the note `key` if that note were `renamed`.
    pub(crate) fn would_mean(
        &mut self,
        known: &Note,
        renamed: &Note,
        key: NoteKey,
        source: &Note,
        link: &Link,
    ) -> bool {
        self.resolver.insert(key, renamed);
        let meant = self.resolver.resolve(source, link);
        self.resolver.insert(key, known);
        meant == Some(key)
    }
}

/// Everything resolved anew: the first time, and when much has changed.
fn rebuilt(writer: &mut Writer, before: &Snapshot, staged: Vec<Staged>) -> Snapshot {
    let (mut entries, _, mut renamed) = before.parts();
    writer.wanted = None;
    for (key, note) in staged {
        put(&mut entries, key, note);
        renamed.insert(key);
    }
    let mut order: Vec<NoteKey> = (0..entries.len()).filter(|slot| entries[*slot].is_some()).map(key_of_slot).collect();
    order.par_sort_unstable_by(|a, b| place(&entries, *a).cmp(&place(&entries, *b)));
    let shadowed: FxHashSet<NoteKey> =
        order.windows(2).filter(|pair| id(&entries, pair[0]) == id(&entries, pair[1])).map(|pair| pair[1]).collect();

    // Whoever came, went, or owned no id before or now.
    for key in renamed.iter().chain(&shadowed) {
        answer_to_names(&mut writer.resolver, &entries, &shadowed, *key);
    }
    let resolver = &writer.resolver;
    entries.par_iter_mut().flatten().for_each(|entry| entry.targets = targets_of(resolver, &entry.note));
    let rows: Vec<Vec<NoteKey>> = (0..entries.len()).map(|slot| row(&entries, &shadowed, key_of_slot(slot))).collect();
    Snapshot::new(entries, order, shadowed, Graph::new(&rows))
}

/// Only the changed notes, and the notes whose links may now mean something else, resolved anew.
fn amended(writer: &mut Writer, before: &Snapshot, staged: Vec<Staged>) -> Snapshot {
    let (mut entries, mut order, mut shadowed) = before.parts();
    let Writer { resolver, wanted, .. } = writer;
    let wanted = wanted.get_or_insert_with(|| wanted_by(&entries));
    let mut stale: FxHashSet<NoteKey> = FxHashSet::default();
    let mut touched: Vec<u64> = Vec::new();

    for (key, note) in staged {
        if let Some(old) = entries.get(key.slot()).and_then(Option::as_ref).map(|entry| entry.note.clone()) {
            for hash in old.links.iter().map(|link| hash_of_target(&link.target)) {
                if let Some(sources) = wanted.get_mut(&hash) {
                    sources.retain(|source| *source != key);
                }
            }
            let at = order.partition_point(|other| place(&entries, *other) < (&old.id, &old.path));
            order.remove(at);
            shadowed.remove(&key);
            if let Some(heir) = order.get(at).copied().filter(|heir| *id(&entries, *heir) == old.id) {
                stale.insert(heir);
            }
        }
        for link in note.iter().flat_map(|note| &note.links) {
            wanted.entry(hash_of_target(&link.target)).or_default().push(key);
        }
        let added = note.as_ref().map(|note| (note.id.clone(), note.path.clone()));
        put(&mut entries, key, note);
        if let Some((id, path)) = added {
            let at = order.partition_point(|other| place(&entries, *other) < (&id, &path));
            order.insert(at, key);
            stale.extend(order.get(at + 1).copied());
        }
        stale.insert(key);
    }

    // Whether a file owns its id depends on its neighbours in the order only.
    for key in &stale {
        if let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) {
            let at = order.partition_point(|other| place(&entries, *other) < (&entry.note.id, &entry.note.path));
            let owned_by_other = at > 0 && *id(&entries, order[at - 1]) == entry.note.id;
            if owned_by_other {
                shadowed.insert(*key)
            } else {
                shadowed.remove(key)
            };
        }
        touched.extend(answer_to_names(resolver, &entries, &shadowed, *key));
    }
    stale.extend(touched.iter().filter_map(|hash| wanted.get(hash)).flatten());

    let mut rows = Vec::new();
    let mut stale: Vec<NoteKey> = stale.into_iter().collect();
    stale.sort_unstable();
    for key in stale {
        if let Some(entry) = entries[key.slot()].as_mut() {
            entry.targets = targets_of(resolver, &entry.note);
        }
        rows.push((key, row(&entries, &shadowed, key)));
    }
    Snapshot::new(entries, order, shadowed, before.graph().with_rows(rows))
}

/// Lets a slot's note answer to its names, or to none when it is gone or another file owns its id. Returns the hashes under
/// which links may now mean something else.
fn answer_to_names(
    resolver: &mut Resolver,
    entries: &[Option<Entry>],
    shadowed: &FxHashSet<NoteKey>,
    key: NoteKey,
) -> Vec<u64> {
    match entries.get(key.slot()).and_then(Option::as_ref).filter(|_| !shadowed.contains(&key)) {
        Some(entry) => resolver.insert(key, &entry.note),
        None => resolver.remove(key),
    }
}

fn targets_of(resolver: &Resolver, note: &Note) -> Arc<[Option<NoteKey>]> {
    note.links.iter().map(|link| resolver.resolve(note, link)).collect()
}

fn wanted_by(entries: &[Option<Entry>]) -> FxHashMap<u64, Vec<NoteKey>> {
    let hashes = |entry: &Option<Entry>| -> Vec<u64> {
        entry.iter().flat_map(|entry| &entry.note.links).map(|link| hash_of_target(&link.target)).collect()
    };
    let hashes: Vec<Vec<u64>> = entries.par_iter().map(hashes).collect();
    let mut wanted: FxHashMap<u64, Vec<NoteKey>> = FxHashMap::default();
    for (slot, hashes) in hashes.into_iter().enumerate() {
        for hash in hashes {
            wanted.entry(hash).or_default().push(key_of_slot(slot));
        }
    }
    wanted
}

/// A note's distinct targets in order of appearance, itself left out.
fn row(entries: &[Option<Entry>], shadowed: &FxHashSet<NoteKey>, key: NoteKey) -> Vec<NoteKey> {
    let Some(entry) = entries.get(key.slot()).and_then(Option::as_ref) else { return Vec::new() };
    if shadowed.contains(&key) {
        return Vec::new();
    }
    let mut seen = FxHashSet::from_iter([key]);
    entry.targets.iter().flatten().copied().filter(|target| seen.insert(*target)).collect()
}

fn put(entries: &mut Vec<Option<Entry>>, key: NoteKey, note: Option<Note>) {
    if entries.len() <= key.slot() {
        entries.resize_with(key.slot() + 1, || None);
    }
    entries[key.slot()] = note.map(|note| Entry { note: Arc::new(note), targets: Arc::default() });
}

fn place(entries: &[Option<Entry>], key: NoteKey) -> (&NoteId, &VaultPath) {
    let note = &entries[key.slot()].as_ref().expect("only slots in use are ordered").note;
    (&note.id, &note.path)
}

fn id(entries: &[Option<Entry>], key: NoteKey) -> &NoteId {
    place(entries, key).0
}

fn key_of_slot(slot: usize) -> NoteKey {
    NoteKey(u32::try_from(slot).expect("slots were handed out as u32"))
}
