//! The state of one client's connection: its name, the versions of notes it was shown, the warnings it got, and its
//! context.
//!
//! A client may replace a note only after it was shown all of it, at once or part by part: a truncated result must not
//! lead to the loss of the rest.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::memory::EntityId;
use crate::model::{ContentHash, NoteId, VaultPath};
use crate::warnings::LogPosition;

/// Longer names are cut, since memory logs the name with every change. Over HTTP a name ends with the name of the token,
/// which must not be lost: the HTTP server limits the length itself.
const MAX_NAME_CHARS: usize = 800;

/// The state of one connected client.
#[derive(Debug)]
pub struct Session {
    number: u64,
    /// Whether requests of one client at other servers belong to it too, by the client's name.
    is_shared: bool,
    state: Mutex<SessionState>,
}

impl Default for Session {
    fn default() -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Self { number: NUMBERS.fetch_add(1, Ordering::Relaxed), is_shared: false, state: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct SessionState {
    shown: FxHashMap<VaultPath, ShownNote>,
    /// Counts changes of `shown` and of the context, so that a copy in another process can follow.
    revision: u64,
    sent: LogPosition,
    is_told_of_provisional_ranking: bool,
    client: String,
    /// `None` until it is set, or read from the store, where a client's name keeps its last context.
    context: Option<Option<EntityId>>,
    /// The revision in which the context was last set.
    context_revision: u64,
}

#[derive(Debug, Clone)]
struct ShownNote {
    /// `None` once it is forgotten.
    version: Option<ShownVersion>,
    revision: u64,
    /// Whether other servers can know of it, see [`crate::ports::ShownNotes`].
    is_recorded: bool,
    /// The id that the note had when this server last read it for the client.
    id: Option<NoteId>,
}

/// A version of a file that a client was shown, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownVersion {
    pub hash: ContentHash,
    /// How much of its text.
    pub extent: Extent,
}

/// How much of a text was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// These characters of it: sorted, with gaps between them.
    Parts(Vec<Range<usize>>),
}

impl Extent {
    /// Adds a part of a text that has `total` characters.
    fn and(self, part: Range<usize>, total: usize) -> Self {
        let Self::Parts(mut parts) = self else { return Self::Whole };
        parts.push(part);
        parts.sort_unstable_by_key(|part| part.start);
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(parts.len());
        for part in parts {
            match joined.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => joined.push(part),
            }
        }
        match joined.as_slice() {
            [all] if all.start == 0 && all.end >= total => Self::Whole,
            _ => Self::Parts(joined),
        }
    }

    /// What was shown by either of two servers.
    fn union(self, other: Self) -> Self {
        match other {
            Self::Whole => Self::Whole,
            Self::Parts(parts) => parts.into_iter().fold(self, |all, part| all.and(part, usize::MAX)),
        }
    }
}

/// What changed in a session since a revision. A copy that gets every change can replace its original. Delivered warnings
/// are not included: after a takeover a client gets them again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionChanges {
    /// The revision after these changes.
    pub revision: u64,
    /// Files and the version shown; `None` if it was forgotten.
    pub shown: Vec<(VaultPath, Option<ShownVersion>)>,
    /// The context, if it changed.
    pub context: Option<Option<EntityId>>,
}

impl Session {
    /// Whether to tell the client now that the order of results may change: once.
    pub fn tell_of_provisional_ranking(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_told_of_provisional_ranking, true)
    }

    /// The session of a client with a name.
    pub fn named(client: &str) -> Self {
        let session = Self::default();
        session.introduce(client);
        session
    }

    /// The session of a client whose requests are independent of each other, so that any server may answer the next.
    pub fn shared(client: &str) -> Self {
        Self { is_shared: true, ..Self::named(client) }
    }

    /// Unique in this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sets the client's name. The first name stays.
    pub fn introduce(&self, client: &str) {
        let mut state = self.lock();
        if state.client.is_empty() {
            state.client = client.chars().take(MAX_NAME_CHARS).collect();
        }
    }

    /// The client's name; empty if it has none.
    pub fn client(&self) -> String {
        self.lock().client.clone()
    }

    /// The context, if this session knows it.
    pub(crate) fn context(&self) -> Option<Option<EntityId>> {
        self.lock().context
    }

    pub(crate) fn set_context(&self, context: Option<EntityId>) {
        let mut state = self.lock();
        state.context = Some(context);
        state.revision += 1;
        state.context_revision = state.revision;
    }

    /// The version of a file this client was last shown.
    pub fn shown(&self, path: &VaultPath) -> Option<ContentHash> {
        Some(self.lock().shown.get(path)?.version.as_ref()?.hash)
    }

    /// Whether this client was shown all of that version; `None` if it was not shown that version.
    pub(crate) fn shown_whole(&self, path: &VaultPath, hash: ContentHash) -> Option<bool> {
        let state = self.lock();
        let version = state.shown.get(path)?.version.as_ref().filter(|shown| shown.hash == hash)?;
        Some(version.extent == Extent::Whole)
    }

    /// Records that a version was shown, `whole` or without its text. Parts of that version shown before still count.
    pub(crate) fn show(&self, path: &VaultPath, hash: ContentHash, whole: bool) {
        self.lock().show(path, hash, |before| if whole { Extent::Whole } else { before });
    }

    /// Records under which id a note was read.
    pub(crate) fn show_id(&self, path: &VaultPath, id: &NoteId) {
        if let Some(shown) = self.lock().shown.get_mut(path) {
            shown.id = Some(id.clone());
        }
    }

    /// Whether the client read this version of a note under an id.
    pub(crate) fn knows_by_id(&self, path: &VaultPath, hash: ContentHash, id: &str) -> bool {
        let state = self.lock();
        state.shown.get(path).is_some_and(|shown| {
            shown.version.as_ref().is_some_and(|version| version.hash == hash)
                && shown.id.as_ref().is_some_and(|known| known.as_str() == id)
        })
    }

    /// Records that some characters of a version were shown, whose text has `total`.
    pub(crate) fn show_part(&self, path: &VaultPath, hash: ContentHash, part: Range<usize>, total: usize) {
        self.lock().show(path, hash, |before| before.and(part, total));
    }

    /// The files of which this client was last shown a version.
    pub(crate) fn shown_at(&self, hash: ContentHash) -> Vec<VaultPath> {
        let state = self.lock();
        let shown = state.shown.iter().filter(|(_, shown)| shown.version.as_ref().is_some_and(|v| v.hash == hash));
        shown.map(|(path, _)| path.clone()).collect()
    }

    /// The client's own write gave a file another version, which counts as shown as far as the one before: whole, or nothing
    /// of it yet, since the parts that were shown may have moved.
    pub(crate) fn follow_own_write(&self, path: &VaultPath, before: ContentHash, after: ContentHash) {
        if let Some(whole) = self.shown_whole(path, before) {
            self.show(path, after, whole);
        }
    }

    pub(crate) fn forget(&self, path: &VaultPath) {
        self.lock().set_shown(path.clone(), None);
    }

    /// Whether the client knows the exact path `spelled` as another note than `found`, whose path differs only in case: it was
    /// shown or deleted that note, has not been shown `found` since, and `found` is not its text under a new name.
    pub(crate) fn knows_as_another(&self, spelled: &VaultPath, found: &VaultPath, hash: ContentHash) -> bool {
        let state = self.lock();
        let Some(known) = state.shown.get(spelled) else { return false };
        let is_renamed = known.version.as_ref().is_some_and(|version| version.hash == hash);
        let is_shown_since = state.shown.get(found).is_some_and(|shown| shown.revision > known.revision);
        !is_renamed && !is_shown_since
    }

    /// Counts what changed of what was shown.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// The files that were shown or written since a revision.
    pub fn touched_since(&self, revision: u64) -> BTreeSet<VaultPath> {
        let state = self.lock();
        let newer = state.shown.iter().filter(|(_, shown)| shown.revision > revision);
        newer.map(|(path, _)| path.clone()).collect()
    }

    /// What came to this session since a revision; everything since 0.
    pub fn changes_since(&self, revision: u64) -> SessionChanges {
        let state = self.lock();
        let newer = state.shown.iter().filter(|(_, shown)| shown.revision > revision);
        SessionChanges {
            revision: state.revision,
            shown: newer.map(|(path, shown)| (path.clone(), shown.version.clone())).collect(),
            context: state.context.filter(|_| state.context_revision > revision),
        }
    }

    /// Applies the changes of the session that this one is a copy of.
    pub fn take_over(&self, changes: SessionChanges) {
        let mut state = self.lock();
        for (path, version) in changes.shown {
            state.set_shown(path, version);
        }
        if let Some(context) = changes.context {
            state.context = Some(context);
            state.revision += 1;
            state.context_revision = state.revision;
        }
    }

    /// The versions that the other servers do not know yet.
    pub(crate) fn unrecorded(&self) -> Vec<(VaultPath, Option<ShownVersion>)> {
        let state = self.lock();
        let unrecorded = state.shown.iter().filter(|(_, shown)| !shown.is_recorded);
        let mut unrecorded: Vec<_> = unrecorded.map(|(path, shown)| (path.clone(), shown.version.clone())).collect();
        unrecorded.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        unrecorded
    }

    /// Other servers know of these from now on, as far as nothing was shown since.
    pub(crate) fn mark_recorded(&self, recorded: &[(VaultPath, Option<ShownVersion>)]) {
        let mut state = self.lock();
        for (path, version) in recorded {
            if let Some(shown) = state.shown.get_mut(path)
                && shown.version == *version
            {
                shown.is_recorded = true;
            }
        }
    }

    /// Takes over what the client was last shown by any server. What this server has shown and not yet recorded is newer; of the
    /// same version, both count. A client with a connection of its own is shown notes by this server alone: what others
    /// showed under its name counts for notes that it was not shown here.
    pub(crate) fn learn(&self, path: &VaultPath, recorded: Option<ShownVersion>) {
        let mut state = self.lock();
        let (learned, is_recorded) = match (state.shown.get(path), recorded) {
            (None, None) => return,
            (None, recorded) => (recorded, true),
            (Some(known), _) if known.is_recorded && !self.is_shared => return,
            (Some(known), recorded) if known.is_recorded => {
                if known.version == recorded {
                    return;
                }
                (recorded, true)
            }
            (Some(ShownNote { version: Some(known), .. }), Some(recorded)) if known.hash == recorded.hash => {
                let extent = known.extent.clone().union(recorded.extent);
                (Some(ShownVersion { hash: known.hash, extent }), false)
            }
            (Some(_), _) => return,
        };
        state.set_shown(path.clone(), learned);
        if let Some(shown) = state.shown.get_mut(path) {
            shown.is_recorded = is_recorded;
        }
    }

    pub(crate) fn take_log_position(&self) -> LogPosition {
        std::mem::take(&mut self.lock().sent)
    }

    pub(crate) fn set_log_position(&self, sent: LogPosition) {
        self.lock().sent = sent;
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }
}

impl SessionState {
    fn show(&mut self, path: &VaultPath, hash: ContentHash, extent: impl FnOnce(Extent) -> Extent) {
        let before = self.shown.get(path).and_then(|shown| shown.version.clone());
        let before = before.filter(|before| before.hash == hash).map(|before| before.extent);
        let extent = extent(before.unwrap_or(Extent::Parts(Vec::new())));
        self.set_shown(path.clone(), Some(ShownVersion { hash, extent }));
    }

    fn set_shown(&mut self, path: VaultPath, version: Option<ShownVersion>) {
        self.revision += 1;
        let known = self.shown.get(&path);
        let is_recorded = known.is_some_and(|known| known.is_recorded && known.version == version);
        let id = known.and_then(|known| known.id.clone()).filter(|_| version.is_some());
        self.shown.insert(path, ShownNote { version, revision: self.revision, is_recorded, id });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VaultPath {
        VaultPath::parse(text).unwrap()
    }

    #[test]
    fn a_copy_with_every_change_can_replace_its_original() {
        let (original, copy) = (Session::named("ada"), Session::named("ada"));
        let version = ContentHash::of(b"1");
        original.show(&path("a.md"), version, true);
        original.show(&path("b.md"), version, false);
        let first = original.changes_since(0);
        assert_eq!(first.shown.len(), 2);
        copy.take_over(first.clone());
        original.forget(&path("a.md"));
        original.set_context(Some(EntityId(7)));
        let second = original.changes_since(first.revision);
        assert_eq!(
            (second.shown.as_slice(), second.context),
            ([(path("a.md"), None)].as_slice(), Some(Some(EntityId(7))))
        );
        copy.take_over(second.clone());
        assert_eq!(original.changes_since(second.revision).shown, []);
        assert_eq!((copy.shown(&path("a.md")), copy.shown(&path("b.md"))), (None, Some(version)));
        assert_eq!(copy.shown_whole(&path("b.md"), version), Some(false));
        assert_eq!(copy.context(), Some(Some(EntityId(7))));
    }

    #[test]
    fn versions_shown_by_any_server_count() {
        let (one, two) = (Session::shared("ada"), Session::shared("ada"));
        let (a, old, new) = (path("a.md"), ContentHash::of(b"1"), ContentHash::of(b"2"));
        let record = |session: &Session| {
            let shown = session.unrecorded();
            session.mark_recorded(&shown);
            shown.into_iter().next().expect("something was shown").1
        };
        one.show(&a, old, true);
        two.learn(&a, record(&one));
        assert_eq!((two.shown_whole(&a, old), two.unrecorded()), (Some(true), Vec::new()));
        one.show(&a, old, true);
        assert_eq!(one.unrecorded(), [], "the same version again is no news");
        two.show_part(&a, new, 0..10, 30);
        one.learn(&a, record(&two));
        one.show_part(&a, new, 10..30, 30);
        assert_eq!(one.shown_whole(&a, new), Some(true), "parts of two servers");
        two.show_part(&a, new, 20..25, 30);
        two.learn(&a, record(&one));
        assert_eq!(two.shown_whole(&a, new), Some(true));
        assert_eq!(two.unrecorded().len(), 1, "nothing that this server showed is taken for recorded");
        record(&two);
        two.learn(&a, None);
        assert_eq!(two.shown(&a), None, "it was deleted through another server");
    }

    #[test]
    fn version_shown_by_this_server_is_not_replaced_by_a_recorded_one() {
        let (session, a, b) = (Session::named("ada"), path("a.md"), path("b.md"));
        let (old, new) = (ContentHash::of(b"1"), ContentHash::of(b"2"));
        session.show(&a, old, true);
        session.mark_recorded(&session.unrecorded());
        for note in [&a, &b] {
            session.learn(note, Some(ShownVersion { hash: new, extent: Extent::Whole }));
        }
        assert_eq!((session.shown(&a), session.shown(&b)), (Some(old), Some(new)));
    }

    #[test]
    fn parts_in_any_order_count_as_whole_only_without_gaps() {
        let (session, version) = (Session::default(), ContentHash::of(b"1"));
        let a = path("a.md");
        let shown = |part: Range<usize>| {
            session.show_part(&a, version, part, 30);
            session.shown_whole(&a, version).unwrap()
        };
        assert_eq!([shown(20..30), shown(0..10), shown(12..20), shown(5..12)], [false, false, false, true]);
        session.show(&a, version, false);
        assert_eq!(session.shown_whole(&a, version), Some(true), "another read removes nothing");
        session.show_part(&a, ContentHash::of(b"2"), 0..10, 30);
        assert_eq!(
            session.shown_whole(&a, ContentHash::of(b"2")),
            Some(false),
            "another version starts with nothing shown"
        );
    }
}
