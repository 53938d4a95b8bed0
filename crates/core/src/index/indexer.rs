//! The one writer of the index, and the snapshot it publishes.

use std::sync::{self, Arc, MutexGuard, TryLockError};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use rustc_hash::{FxHashMap, FxHashSet};

use super::changes::{Changes, Listener, Listeners};
use super::kept_links;
use super::moves::{Halves, Moves};
use super::publish::{publish, remembered, wanted_by};
use super::resolve::Resolver;
use super::snapshot::Snapshot;
use super::sync::{Plan, Progress, Staged, SyncReport, is_settled};
use crate::model::{ContentHash, FileStat, Link, Note, NoteKey, VaultPath, Warning};
use crate::parse::{PARSER_VERSION, TitleRule, read_note};
use crate::ports::{Clock, FileContent, NoteStore, Sources, StoreError, VaultError, VaultFiles};
use crate::staleness::{source_refs, to_remember};
use crate::warnings::WarningLog;

/// How often a lock that someone else holds is tried.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// How long a question waits for a pass that is under way before it makes do with what is known.
const PASS_PATIENCE: Duration = Duration::from_millis(100);

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
    sources: Arc<dyn Sources>,
    pub(super) title_rule: TitleRule,
    pub(super) warnings: Arc<WarningLog>,
    current: ArcSwap<Snapshot>,
    /// The lock of the standard library: its poison marks a state that a panic may have left half changed.
    writer: sync::Mutex<Writer>,
    /// Not yet taken by whoever follows them.
    moves: Mutex<Vec<Moves>>,
    ready: (Mutex<bool>, Condvar),
    listeners: Listeners,
}

/// What an indexer reaches outside the domain.
pub struct Outside {
    /// The notes' files.
    pub vault: Arc<dyn VaultFiles>,
    /// What is remembered between runs.
    pub store: Arc<dyn NoteStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The files that notes are about.
    pub sources: Arc<dyn Sources>,
}

/// What only the writer needs.
#[derive(Default)]
pub(crate) struct Writer {
    /// Made at the first change: a start among remembered notes and links needs none.
    pub(super) resolver: Option<Resolver>,
    /// Whether the store has what the links of the snapshot mean.
    links_are_kept: bool,
    /// Under the hash of a link's target, the notes with such a link. Made at the first small change: a start needs none.
    pub(super) wanted: Option<FxHashMap<u64, Vec<NoteKey>>>,
    /// Notes whose links were resolved since changes were last told.
    pub(super) touched: Touched,
    /// Places lately left and taken, of which moves may yet be made.
    halves: Halves,
    /// Slots that may be used again.
    free: Vec<NoteKey>,
    next_key: u32,
    /// Notes that the store has not taken in.
    pub(super) owed: FxHashSet<NoteKey>,
    /// Notes that were younger than their time can tell when they were read.
    pub(super) unsettled: FxHashSet<NoteKey>,
    /// The store could not be loaded, so its slots are not ours: nothing more is written to it.
    pub(super) store_is_lost: bool,
}

/// Which notes may have to be told of.
pub(super) enum Touched {
    All,
    These(FxHashSet<NoteKey>),
}

impl Default for Touched {
    fn default() -> Self {
        Self::These(FxHashSet::default())
    }
}

impl Writer {
    /// The state that belongs to a snapshot, when the one there was cannot be trusted.
    fn restored(snapshot: &Snapshot, store_is_lost: bool) -> Self {
        let mut writer = Self { store_is_lost, ..Self::default() };
        writer.use_keys(&snapshot.files().collect());
        writer
    }

    fn use_keys(&mut self, used: &FxHashSet<NoteKey>) {
        self.next_key = used.iter().map(|key| key.0 + 1).max().unwrap_or(0);
        self.free = (0..self.next_key).rev().map(NoteKey).filter(|key| !used.contains(key)).collect();
    }

    pub(super) fn take_key(&mut self) -> NoteKey {
        self.free.pop().unwrap_or_else(|| {
            self.next_key += 1;
            NoteKey(self.next_key - 1)
        })
    }

    pub(super) fn release_key(&mut self, key: NoteKey) {
        debug_assert!(!self.free.contains(&key), "{key:?} was released twice");
        self.owed.remove(&key);
        self.unsettled.remove(&key);
        self.free.push(key);
    }

    /// The notes between two snapshots that may have to be told of.
    fn touched_keys(&self, before: &Snapshot, after: &Snapshot) -> Vec<NoteKey> {
        let mut keys: Vec<NoteKey> = match &self.touched {
            Touched::All => before.files().chain(after.files()).collect(),
            Touched::These(keys) => keys.iter().copied().collect(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Remembers whether a note's time can be trusted from now on, and says so.
    pub(super) fn note_settled(&mut self, key: NoteKey, stat: FileStat, now_ns: i64) -> bool {
        let settled = is_settled(stat, now_ns);
        if settled {
            self.unsettled.remove(&key)
        } else {
            self.unsettled.insert(key)
        };
        settled
    }
}

impl Indexer {
    /// An indexer that knows nothing yet; [`Indexer::start`] makes it ready.
    pub fn new(outside: Outside, title_rule: TitleRule, warnings: Arc<WarningLog>) -> Self {
        let Outside { vault, store, clock, sources } = outside;
        Self {
            vault,
            store,
            clock,
            sources,
            title_rule,
            warnings,
            current: ArcSwap::default(),
            writer: sync::Mutex::default(),
            moves: Mutex::default(),
            ready: (Mutex::new(false), Condvar::new()),
            listeners: Listeners::default(),
        }
    }

    /// The vault as last published.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Remembers what earlier runs knew, then brings it up to what the vault holds now.
    pub fn start(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<SyncReport, IndexError> {
        let mut writer = self.writer();
        let before = self.snapshot();
        // Neither needs the other, and both mostly wait.
        let state = &mut *writer;
        let (loaded, listing) = rayon::join(|| self.load(state), || self.vault.list());
        if let Err(error) = loaded {
            writer.store_is_lost = true;
            let message =
                format!("{error}; notes are served, words cannot be searched, and nothing is kept for the next start");
            self.warnings.push(Warning { path: ".quipu/index".into(), message });
        }
        let remembered = self.snapshot();
        let outcome = listing.map(|listing| {
            let plan = Plan::of_all(&writer, &remembered, listing);
            self.pass(&mut writer, plan, progress)
        });
        self.recognise_moves(&mut writer, &remembered);
        self.tell_changes(&mut writer, &before);
        *self.ready.0.lock() = true;
        self.ready.1.notify_all();
        Ok(outcome?)
    }

    /// Waits until the first pass is over; `false` when it still is not.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        let mut ready = self.ready.0.lock();
        self.ready.1.wait_while_for(&mut ready, |ready| !*ready, timeout);
        *ready
    }

    fn load(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let loaded = self.store.load(&format!("{PARSER_VERSION} {:?}", self.title_rule))?;
        writer.use_keys(&loaded.notes.iter().map(|(key, _)| *key).collect());
        writer.owed = loaded.text_missing.into_iter().collect();
        let links = loaded.links.and_then(|links| kept_links::decode(&links, &loaded.notes));
        match links {
            Some(links) => {
                self.current.store(Arc::new(remembered(writer, loaded.notes, links)));
                writer.links_are_kept = true;
            }
            None => self.publish(writer, loaded.notes.into_iter().map(|(key, note)| (key, Some(note))).collect()),
        }
        Ok(())
    }

    /// Keeps what links mean for the next start, which then need not find out. Not while somebody is writing, or before
    /// everything was read: then it would be of no use.
    pub fn keep_links(&self) -> Result<(), StoreError> {
        let Some(mut writer) = self.writer_within(Duration::ZERO) else { return Ok(()) };
        if writer.links_are_kept || writer.store_is_lost || !self.wait_ready(Duration::ZERO) {
            return Ok(());
        }
        self.store.keep_links(&kept_links::encode(&self.snapshot()))?;
        writer.links_are_kept = true;
        Ok(())
    }

    /// The writer's state. One that a panic left behind may be torn, so it is made anew from the snapshot, which never is.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| self.mended(poisoned.into_inner()))
    }

    /// The same, unless someone else keeps it for too long: a first pass over a big vault does.
    pub(crate) fn writer_within(&self, patience: Duration) -> Option<MutexGuard<'_, Writer>> {
        let mut waited = Duration::ZERO;
        loop {
            match self.writer.try_lock() {
                Ok(writer) => return Some(writer),
                Err(TryLockError::Poisoned(poisoned)) => return Some(self.mended(poisoned.into_inner())),
                Err(TryLockError::WouldBlock) if waited >= patience => return None,
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(LOOK_AGAIN);
                    waited += LOOK_AGAIN;
                }
            }
        }
    }

    fn mended<'a>(&self, mut writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        *writer = Writer::restored(&self.snapshot(), writer.store_is_lost);
        self.writer.clear_poison();
        writer
    }

    /// Does now what the first change would otherwise have to wait for.
    pub fn expect_changes(&self) {
        let mut writer = self.writer();
        let snapshot = self.snapshot();
        writer.wanted.get_or_insert_with(|| wanted_by(snapshot.entries()));
        writer.resolver.get_or_insert_with(|| snapshot.resolver());
    }

    /// What would be known of a note with these bytes at this path.
    pub(crate) fn read_renamed(&self, path: &VaultPath, bytes: &[u8]) -> Note {
        let stat = FileStat { modified_ns: self.clock.now_ns(), size: bytes.len() as u64 };
        let content = FileContent { hash: ContentHash::of(bytes), stat, bytes: bytes.to_vec() };
        read_note(path, &content, &self.title_rule).0
    }

    /// Puts again what the store has lost of its texts; `false` when someone else keeps the writer for too long.
    pub(crate) fn refill(&self, patience: Duration) -> bool {
        let Some(mut writer) = self.writer_within(patience) else { return false };
        // Somebody else may have done it meanwhile.
        let lost = self.store.text_lost().unwrap_or_default();
        if !lost.is_empty() {
            writer.owed.extend(lost);
            let before = self.snapshot();
            match self.vault.list() {
                Ok(listing) => {
                    let plan = Plan::of_all(&writer, &before, listing);
                    let unreadable = self.pass(&mut writer, plan, &|_| {}).unreadable;
                    // What the store did not take is lost still, and no search may pass over it.
                    if self.store.text_lost().is_ok_and(|lost| lost.len() <= unreadable) {
                        self.store.accept_loss();
                    }
                }
                Err(error) => self.warnings.push(Warning { path: ".".into(), message: error.to_string() }),
            }
            self.recognise_moves(&mut writer, &before);
            self.tell_changes(&mut writer, &before);
        }
        true
    }

    /// A file's note and text, with what is to be remembered of its sources. `known` is the note as it was before.
    pub(super) fn read_sourced(&self, path: &VaultPath, content: &FileContent, known: Option<&Note>) -> (Note, String) {
        let (mut note, text) = read_note(path, content, &self.title_rule);
        let refs = source_refs(&note);
        if refs.is_empty() {
            return (note, text);
        }
        // A page that was moved or copied is no newer for it.
        let snapshot = self.snapshot();
        note.sources = match known.or_else(|| snapshot.sourced(note.hash)) {
            Some(known) if known.hash == note.hash => known.sources.clone(),
            known => to_remember(&refs, self.sources.versions(&refs), known.map_or(&[], |known| &known.sources)),
        };
        (note, text)
    }

    /// Makes staged changes visible, links resolved.
    pub(super) fn publish(&self, writer: &mut Writer, staged: Vec<Staged>) {
        if !staged.is_empty() {
            writer.links_are_kept = false;
            self.current.store(Arc::new(publish(writer, &self.snapshot(), staged)));
        }
    }

    /// Keeps for whoever follows them the moves that a pass has come upon.
    pub(super) fn recognise_moves(&self, writer: &mut Writer, before: &Arc<Snapshot>) {
        let after = self.snapshot();
        if Arc::ptr_eq(before, &after) {
            return;
        }
        let keys = writer.touched_keys(before, &after);
        let moves = writer.halves.recognise(before, &after, &keys, self.clock.now_ns());
        self.moves.lock().extend(moves);
    }

    /// Waits for a pass that is under way, unless it takes long.
    pub(crate) fn wait_for_pass(&self) {
        drop(self.writer_within(PASS_PATIENCE));
    }

    /// The moves that passes have come upon since this was last asked.
    pub(crate) fn take_moves(&self) -> Vec<Moves> {
        std::mem::take(&mut *self.moves.lock())
    }

    /// What links mean that stand in no note, and the vault in which they do.
    pub(crate) fn meant_from_top<'l>(
        &self,
        links: impl Iterator<Item = &'l Link>,
    ) -> (Arc<Snapshot>, Vec<Option<NoteKey>>) {
        match self.writer_within(PASS_PATIENCE) {
            Some(mut writer) => {
                let snapshot = self.snapshot();
                let resolver = writer.resolver.get_or_insert_with(|| snapshot.resolver());
                let meant = links.map(|link| resolver.resolve_from_top(link)).collect();
                (snapshot, meant)
            }
            // A pass may take long. Names made anew for this one question take a part of a second in a big vault.
            None => {
                let snapshot = self.snapshot();
                let meant = snapshot.meant_from_top(links);
                (snapshot, meant)
            }
        }
    }

    /// Tells what is odd about notes that came, changed or went since `before`.
    pub(super) fn tell_changes(&self, writer: &mut Writer, before: &Snapshot) {
        let after = self.snapshot();
        let keys = writer.touched_keys(before, &after);
        writer.touched = Touched::default();
        self.warnings.note_changes(before, &after, &keys);
        if !keys.is_empty() {
            self.listeners.tell(&Changes::new(before, &after, &keys));
        }
    }

    /// Has someone told of every change from now on.
    pub fn on_change(&self, listener: Listener) {
        self.listeners.add(listener);
    }
}
