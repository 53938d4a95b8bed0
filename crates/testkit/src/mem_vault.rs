//! A vault in memory that follows the port, and lets a test edit files as the user would.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, FileStat, VaultPath};
use quipu_core::ports::{
    Clock, FileChange, FileContent, ListedFile, Listing, LoggedFile, LoggedVersion, LoggedWrite, NamePeriod,
    NoteHistory, OUTSIDE, OtherFiles, TrashReason, TrashedFile, VaultError, VaultFiles, WriteError, WriteFilter,
    WriteNumber, WriteOrigin,
};

use crate::FixedClock;

/// Files in memory. Any path may be put there by [`MemVault::put`]; the port shows notes only.
pub struct MemVault {
    clock: Arc<FixedClock>,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    files: BTreeMap<VaultPath, File>,
    /// Also those that are empty by now: a write removes no folder.
    folders: BTreeSet<VaultPath>,
    kept: Vec<(TrashedFile, Vec<u8>)>,
    unreadable: Option<VaultPath>,
    read_only: bool,
    requests: BTreeMap<RequestKey, VaultPath>,
    writes: Vec<LoggedWrite>,
    /// How many of them were returned so far.
    writes_returned: usize,
}

#[derive(Clone)]
struct File {
    bytes: Vec<u8>,
    modified_ns: i64,
}

impl File {
    fn stat(&self) -> FileStat {
        FileStat { modified_ns: self.modified_ns, size: self.bytes.len() as u64 }
    }
}

impl MemVault {
    /// An empty vault.
    pub fn new(clock: Arc<FixedClock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// The vault of a fixture; see [`crate::fixture::files`].
    pub fn from_fixture(clock: Arc<FixedClock>, fixture: &str) -> Self {
        let vault = Self::new(clock);
        for (path, text) in crate::fixture::files(fixture) {
            vault.put(&path, &text);
        }
        vault
    }

    /// Writes a file as another program would; an existing one is replaced.
    pub fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = File { bytes: text.as_ref().to_vec(), modified_ns: self.clock.now_ns() };
        self.state().insert(parse(path), file);
    }

    /// Deletes a file as another program would.
    pub fn remove(&self, path: &str) {
        assert!(self.state().files.remove(&parse(path)).is_some(), "{path} is not there");
    }

    /// The text of a file with exactly this path.
    pub fn text(&self, path: &str) -> Option<String> {
        self.state().files.get(&parse(path)).map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
    }

    /// The bytes of a file with exactly this path.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        self.state().files.get(&parse(path)).map(|file| file.bytes.clone())
    }

    /// The path of every file, notes or not.
    pub fn paths(&self) -> Vec<String> {
        self.state().files.keys().map(VaultPath::to_string).collect()
    }

    /// How many entries of the history were returned so far, repeated ones included.
    pub fn writes_returned(&self) -> usize {
        self.state().writes_returned
    }

    /// Changes every kept version that has a text, as an editor does that had the file open.
    pub fn change_kept(&self, from: &str, to: &str) {
        for (_, bytes) in &mut self.state().kept {
            if bytes == from.as_bytes() {
                *bytes = to.into();
            }
        }
    }

    /// Makes all writes fail from now on, as on a full or read-only disk.
    pub fn refuse_writes(&self) {
        self.state().read_only = true;
    }

    /// Makes a file or folder unreadable from now on, as without permission.
    pub fn refuse_reading(&self, path: &str) {
        self.state().unreadable = Some(parse(path));
    }

    /// Makes everything readable again.
    pub fn allow_reading(&self) {
        self.state().unreadable = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn listing(&self, admits: impl Fn(&VaultPath) -> bool) -> Listing {
        let state = self.state();
        let notes = state.files.iter().filter(|(path, _)| is_note(path) && admits(path));
        let unread = |path: &VaultPath| state.unreadable.as_ref().filter(|unread| is_below(path, unread));
        let (locked, notes): (Vec<_>, Vec<_>) = notes.partition(|(path, _)| unread(path).is_some());
        let files = notes.iter().map(|(path, file)| ListedFile { path: (*path).clone(), stat: file.stat() }).collect();
        let unread = locked.first().and_then(|(path, _)| unread(path)).map(ToString::to_string);
        Listing { files, unread: unread.into_iter().collect(), ..Listing::default() }
    }
}

impl VaultFiles for MemVault {
    fn list(&self) -> Result<Listing, VaultError> {
        Ok(self.listing(|_| true))
    }

    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        Ok(self.listing(|file| file == path || is_below(file, path)))
    }

    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        let state = self.state();
        if state.unreadable.as_ref().is_some_and(|unread| unread == path || is_below(path, unread)) {
            return Err(VaultError::Read { path: path.to_string(), source: permission_denied() });
        }
        let file = state.files.get(path).filter(|_| is_note(path));
        Ok(file.map(|file| FileContent {
            hash: ContentHash::of(&file.bytes),
            stat: file.stat(),
            bytes: file.bytes.clone(),
        }))
    }

    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        Ok(self.state().find_any_case(path))
    }

    fn list_others_below(&self, folder: &VaultPath) -> Result<OtherFiles, VaultError> {
        let state = self.state();
        let others = state.files.keys().filter(|path| is_below(path, folder) && !is_note(path));
        let is_hidden = |path: &VaultPath| path.as_str().split('/').any(|part| part.starts_with('.'));
        let (kept, files): (Vec<VaultPath>, Vec<VaultPath>) = others.cloned().partition(is_hidden);
        Ok(OtherFiles { files, kept: kept.iter().map(ToString::to_string).collect() })
    }

    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        FileChange::refuse_twice(changes)?;
        let mut state = self.state();
        // The changes are made to a copy, so that they are atomic.
        let mut next = state.clone();
        let stats = next.apply(changes, origin, self.clock.now_ns())?;
        if let (Some(request), Some(first)) = (origin.request, changes.first()) {
            next.requests.insert(request, first.path().clone());
        }
        *state = next;
        Ok(stats)
    }

    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        Ok(self.state().requests.get(&request).cloned())
    }

    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        Ok(self.state().kept.iter().rev().map(|(kept, _)| kept.clone()).collect())
    }

    fn restore(&self, kept: &TrashedFile) -> Result<FileStat, WriteError> {
        let mut state = self.state();
        state.writable(&kept.path)?;
        let found = state.kept.iter().find(|(known, _)| known.version == kept.version);
        let bytes = found.map(|(_, bytes)| bytes.clone()).ok_or(WriteError::Missing { path: kept.path.clone() })?;
        let path = kept.path.clone();
        let change = match state.files.get(&path) {
            Some(current) if current.bytes == bytes => return Ok(current.stat()),
            Some(current) => FileChange::Replace { path, expected: ContentHash::of(&current.bytes), bytes },
            // A note that differs only in case is replaced, if it is the only one and the version was not deleted.
            None => match state.in_other_case(&path).as_slice() {
                [(from, expected)] if kept.reason != TrashReason::Deleted => {
                    FileChange::Move { from: from.clone(), to: path, expected: *expected, bytes }
                }
                _ if state.find_any_case(&path).contains(&path) => return Err(WriteError::Exists { existing: path }),
                // Its place is free in its own spelling, which is enough.
                _ => return Ok(state.write_beside(&path, bytes, self.clock.now_ns())),
            },
        };
        let mut next = state.clone();
        let stats = next.apply(&[change], &WriteOrigin::RESTORE, self.clock.now_ns())?;
        *state = next;
        Ok(stats[0].expect("a change that leaves a file answers with its stat"))
    }
}

impl NoteHistory for MemVault {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        let mut state = self.state();
        let found = state.writes.iter().rev().filter(|write| filter.admits(write)).take(filter.limit);
        let found: Vec<LoggedWrite> = found.cloned().collect();
        state.writes_returned += found.len();
        Ok(found)
    }

    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        let state = self.state();
        Ok(state.kept.iter().find(|(known, _)| known.version == kept).map(|(_, bytes)| bytes.clone()))
    }

    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError> {
        let mut state = self.state();
        let now_ns = state.next_ns(self.clock.now_ns());
        let last = |path: &VaultPath| {
            let entries = state.writes.iter().rev().flat_map(|write| write.files.iter().map(move |file| (write, file)));
            entries.into_iter().find(|(_, file)| file.paths().any(|other| other == path))
        };
        let news = files.iter().filter(|file| file.is_news(last(&file.path), now_ns)).cloned().collect();
        state.log(OUTSIDE, now_ns, news);
        Ok(())
    }

    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        let mut state = self.state();
        let mut kept: BTreeSet<String> = BTreeSet::new();
        for write in &mut state.writes {
            let of_note = |file: &&LoggedFile| names.iter().any(|name| name.covers_entry(write, file));
            kept.extend(write.files.iter().filter(of_note).filter_map(|file| file.kept.clone()));
            write.forget(names, unfinished);
        }
        let before = state.kept.len();
        state.kept.retain(|(file, _)| !kept.contains(&file.version));
        Ok(before - state.kept.len())
    }

    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        self.state().writes.iter_mut().filter(|write| write.number == number).for_each(LoggedWrite::forget_files);
        Ok(())
    }
}

impl State {
    /// The time of the next write. Times increase.
    fn next_ns(&self, now_ns: i64) -> i64 {
        self.writes.last().map_or(now_ns, |last| now_ns.max(last.at_ns + 1))
    }

    fn log(&mut self, by: &str, at_ns: i64, files: Vec<LoggedFile>) {
        if !files.is_empty() {
            let number = WriteNumber(self.writes.last().map_or(1, |last| last.number.0 + 1));
            self.writes.push(LoggedWrite { number, at_ns, by: by.to_owned(), files, unlisted: 0 });
        }
    }

    fn apply(
        &mut self,
        changes: &[FileChange],
        origin: &WriteOrigin<'_>,
        now_ns: i64,
    ) -> Result<Vec<Option<FileStat>>, WriteError> {
        let at_ns = self.next_ns(now_ns);
        let mut stats = Vec::new();
        let mut files = Vec::new();
        for change in changes {
            // Of files that are no notes only the paths are recorded.
            let is_note = |path: &&VaultPath| is_note(path);
            let version = |state: &Self, path: &VaultPath| {
                let file = Some(path).filter(is_note).and_then(|path| state.files.get(path));
                file.map(|file| LoggedVersion::of(&file.bytes, file.modified_ns))
            };
            let before = version(self, change.old_path());
            let count = self.kept.len();
            stats.push(self.change(change, at_ns)?);
            let path = change.path();
            let after = version(self, path);
            if before.map(|version| version.hash) == after.map(|version| version.hash) && path == change.old_path() {
                continue;
            }
            files.push(LoggedFile {
                action: origin.action_on(change),
                path: path.clone(),
                from: (path != change.old_path()).then(|| change.old_path().clone()),
                before: before.filter(|_| !matches!(change, FileChange::Create { .. })),
                after,
                kept: self.kept.get(count).map(|(kept, _)| kept.version.clone()),
            });
        }
        self.log(origin.by, at_ns, files);
        Ok(stats)
    }

    /// Restores a note whose place is free in its own spelling.
    fn write_beside(&mut self, path: &VaultPath, bytes: Vec<u8>, now_ns: i64) -> FileStat {
        let at_ns = self.next_ns(now_ns);
        let after = Some(LoggedVersion::of(&bytes, at_ns));
        let action = WriteOrigin::RESTORE.action;
        let file = LoggedFile { action, path: path.clone(), from: None, before: None, after, kept: None };
        self.log(WriteOrigin::RESTORE.by, at_ns, vec![file]);
        self.write(path, bytes, at_ns)
    }

    fn change(&mut self, change: &FileChange, now_ns: i64) -> Result<Option<FileStat>, WriteError> {
        match change {
            FileChange::Create { path, bytes } => {
                self.writable(path)?;
                self.free(path)?;
                Ok(Some(self.write(path, bytes.clone(), now_ns)))
            }
            FileChange::Replace { path, expected, bytes } => {
                self.writable(path)?;
                let old = self.take(path, *expected)?;
                self.keep(path, old, TrashReason::Replaced, now_ns);
                Ok(Some(self.write(path, bytes.clone(), now_ns)))
            }
            FileChange::Move { from, to, expected, bytes } => {
                self.writable(from)?;
                self.writable(to)?;
                let old = self.take(from, *expected)?;
                self.free(to)?;
                self.keep(from, old, TrashReason::Moved, now_ns);
                Ok(Some(self.write(to, bytes.clone(), now_ns)))
            }
            FileChange::Rename { from, to } => {
                if let Some(existing) = self.find_any_case(to).into_iter().find(|existing| existing != from) {
                    return Err(WriteError::Exists { existing });
                }
                let file = self.files.remove(from).ok_or_else(|| WriteError::Missing { path: from.clone() })?;
                self.insert(to.clone(), file);
                Ok(None)
            }
            FileChange::Delete { path, expected } => {
                self.writable(path)?;
                let old = self.take(path, *expected)?;
                self.keep(path, old, TrashReason::Deleted, now_ns);
                Ok(None)
            }
        }
    }

    fn writable(&self, path: &VaultPath) -> Result<(), WriteError> {
        if !is_note(path) {
            let reason = "it is hidden, reserved or not Markdown";
            return Err(WriteError::Refused { path: path.clone(), reason });
        }
        if self.files.keys().any(|file| is_below(path, file)) {
            return Err(WriteError::Refused { path: path.clone(), reason: "a part of its path is a file" });
        }
        if self.read_only {
            return Err(WriteError::Write { path: path.to_string(), source: permission_denied() });
        }
        Ok(())
    }

    fn free(&self, path: &VaultPath) -> Result<(), WriteError> {
        let existing = self.find_any_case(path).into_iter().next();
        existing.map_or(Ok(()), |existing| Err(WriteError::Exists { existing }))
    }

    /// Files whose path differs only in case.
    fn in_other_case(&self, path: &VaultPath) -> Vec<(VaultPath, ContentHash)> {
        let others = self.files.iter().filter(|(other, _)| *other != path && other.note_id() == path.note_id());
        others.map(|(other, file)| (other.clone(), ContentHash::of(&file.bytes))).collect()
    }

    /// Files and folders of that path ignoring case, an exact match first.
    fn find_any_case(&self, path: &VaultPath) -> Vec<VaultPath> {
        let (id, depth) = (path.note_id(), path.depth());
        let places = self.files.keys().chain(&self.folders).filter(|place| place.depth() == depth);
        let mut found: Vec<VaultPath> = places.filter(|place| place.note_id() == id).cloned().collect();
        found.sort_by_key(|place| (place != path, place.clone()));
        found.dedup();
        found
    }

    fn take(&mut self, path: &VaultPath, expected: ContentHash) -> Result<Vec<u8>, WriteError> {
        if self.folders.contains(path) {
            return Err(WriteError::Refused { path: path.clone(), reason: "it is a folder" });
        }
        let Some(file) = self.files.get(path) else { return Err(WriteError::Missing { path: path.clone() }) };
        if ContentHash::of(&file.bytes) != expected {
            return Err(WriteError::Changed { path: path.clone() });
        }
        Ok(self.files.remove(path).map(|file| file.bytes).unwrap_or_default())
    }

    fn keep(&mut self, path: &VaultPath, bytes: Vec<u8>, reason: TrashReason, at_ns: i64) {
        let version = format!("{at_ns:020}-{:06}", self.kept.len());
        let kept = TrashedFile { version, path: path.clone(), at_ns, reason, size: bytes.len() as u64 };
        self.kept.push((kept, bytes));
    }

    fn write(&mut self, path: &VaultPath, bytes: Vec<u8>, now_ns: i64) -> FileStat {
        let file = File { bytes, modified_ns: now_ns };
        let stat = file.stat();
        self.insert(path.clone(), file);
        stat
    }

    fn insert(&mut self, path: VaultPath, file: File) {
        self.folders.extend((0..path.depth()).filter_map(|depth| ancestor(&path, depth)));
        self.files.insert(path, file);
    }
}

/// The rules of the real vault that matter to a caller: Markdown, nothing hidden, no `node_modules`.
fn is_note(path: &VaultPath) -> bool {
    path.is_markdown() && !path.as_str().split('/').any(|part| part.starts_with('.') || part == "node_modules")
}

fn is_below(file: &VaultPath, folder: &VaultPath) -> bool {
    file.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// The ancestor of a file at a depth.
fn ancestor(file: &VaultPath, depth: usize) -> Option<VaultPath> {
    let parts: Vec<&str> = file.as_str().split('/').collect();
    (parts.len() > depth).then(|| parse(&parts[..=depth].join("/")))
}

fn parse(path: &str) -> VaultPath {
    VaultPath::parse(path).unwrap_or_else(|error| panic!("{path:?} is not a vault path: {error}"))
}

fn permission_denied() -> io::Error {
    io::Error::from_raw_os_error(13)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault_conformance::TestedVault;

    struct InMemory(MemVault);

    impl TestedVault for InMemory {
        type Vault = MemVault;

        fn vault(&self) -> &MemVault {
            &self.0
        }

        fn save(&self, path: &str, text: &str) {
            self.0.put(path, text);
        }
    }

    crate::vault_conformance!(InMemory(MemVault::new(Arc::default())));
}
