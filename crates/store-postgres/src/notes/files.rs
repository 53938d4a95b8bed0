//! The notes at and around the paths of a write, in memory: changes are checked and made here, then written.

use std::collections::{BTreeMap, BTreeSet};

use quipu_core::model::{ContentHash, FileStat, VaultPath};
use quipu_core::ports::{FileChange, LoggedVersion, TrashReason, WriteError};

/// Longer paths do not fit into an index of the database.
const LONGEST_PATH: usize = 1600;

/// Why a path cannot hold a note.
type Reason = &'static str;

const HIDDEN: Reason = "names that start with a dot are hidden";
const NODE_MODULES: Reason = "node_modules folders are excluded";
const NOT_MARKDOWN: Reason = "a note's name ends in .md or .markdown";
const TOO_LONG: Reason = "a path has at most 1,600 bytes in a database";
const BELOW_A_FILE: Reason = "a part of its path is a file";
const IS_FOLDER: Reason = "it is a folder";

/// The version of a note and its stat.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredVersion {
    pub(super) hash: ContentHash,
    pub(super) stat: FileStat,
    pub(super) chars: u64,
}

/// The notes, complete as far as the changes need them: at their paths in any case, above and below them.
#[derive(Default)]
pub(super) struct Files<'c> {
    pub(super) notes: BTreeMap<VaultPath, StoredVersion>,
    /// What the changes replaced, moved or deleted, in order.
    pub(super) taken: Vec<DisplacedNote>,
    /// The notes that the changes wrote.
    pub(super) written: BTreeMap<VaultPath, (&'c [u8], StoredVersion)>,
}

/// A note that was replaced, moved or deleted.
pub(super) struct DisplacedNote {
    pub(super) path: VaultPath,
    pub(super) reason: TrashReason,
    pub(super) moved_to: Option<VaultPath>,
}

impl<'c> Files<'c> {
    /// Makes one change at a time; returns the new stat of the note.
    pub(super) fn apply(&mut self, change: &'c FileChange, now_ns: i64) -> Result<Option<FileStat>, WriteError> {
        match change {
            FileChange::Create { path, bytes } => {
                self.refuse_unfit(path)?;
                self.refuse_taken(path)?;
                Ok(Some(self.write(path, bytes, now_ns)))
            }
            FileChange::Replace { path, expected, bytes } => {
                self.refuse_unfit(path)?;
                let current = self.expect(path, *expected)?;
                if ContentHash::of(bytes) == current.hash {
                    return Ok(Some(current.stat));
                }
                self.take(path, TrashReason::Replaced, None);
                Ok(Some(self.write(path, bytes, now_ns)))
            }
            FileChange::Move { from, to, expected, bytes } => {
                self.refuse_unfit(from)?;
                self.refuse_unfit(to)?;
                self.expect(from, *expected)?;
                self.take(from, TrashReason::Moved, Some(to));
                self.refuse_taken(to)?;
                Ok(Some(self.write(to, bytes, now_ns)))
            }
            FileChange::Rename { from, .. } => Err(WriteError::Missing { path: from.clone() }),
            FileChange::Delete { path, expected } => {
                self.refuse_unfit(path)?;
                self.expect(path, *expected)?;
                self.take(path, TrashReason::Deleted, None);
                Ok(None)
            }
        }
    }

    /// Creates a note whose path must be free in its own spelling only.
    pub(super) fn create_beside(
        &mut self,
        path: &VaultPath,
        bytes: &'c [u8],
        now_ns: i64,
    ) -> Result<FileStat, WriteError> {
        self.refuse_unfit(path)?;
        match self.find_any_case(path).first() {
            Some(existing) if existing == path => Err(WriteError::Exists { existing: path.clone() }),
            _ => Ok(self.write(path, bytes, now_ns)),
        }
    }

    /// How many notes more there are than before, and how many bytes more are kept, if anything was written: what was replaced or
    /// deleted is kept too.
    pub(super) fn growth(&self) -> (i64, Option<i64>) {
        let written: usize = self.written.values().map(|(bytes, _)| bytes.len()).sum();
        let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let bytes = (!self.written.is_empty()).then(|| signed(written));
        (signed(self.written.len()) - signed(self.taken.len()), bytes)
    }

    /// The version of a note, for the history.
    pub(super) fn logged_version(&self, path: &VaultPath) -> Option<LoggedVersion> {
        let StoredVersion { hash, stat, chars } = *self.notes.get(path)?;
        Some(LoggedVersion { hash, chars, modified_ns: stat.modified_ns })
    }

    /// Every path that was touched.
    pub(super) fn touched(&self) -> BTreeSet<&VaultPath> {
        self.taken.iter().map(|taken| &taken.path).chain(self.written.keys()).collect()
    }

    /// The one other note whose path differs only in case.
    pub(super) fn in_other_case(&self, path: &VaultPath) -> Option<(VaultPath, ContentHash)> {
        let mut others = self.notes.iter().filter(|(other, _)| *other != path && other.note_id() == path.note_id());
        let (other, version) = others.next()?;
        others.next().is_none().then(|| (other.clone(), version.hash))
    }

    /// Files and folders of that path ignoring case, an exact match first, the others in byte order.
    pub(super) fn find_any_case(&self, path: &VaultPath) -> Vec<VaultPath> {
        // A move of a folder asks this for each of its notes: most are ruled out without folding their case.
        let may_be = |note: &&VaultPath| match (note.as_str(), path.as_str()) {
            (note, path) if note.is_ascii() && path.is_ascii() => {
                note.get(..path.len()).is_some_and(|start| start.eq_ignore_ascii_case(path))
            }
            _ => true,
        };
        let places = self.notes.keys().filter(may_be).filter_map(|note| ancestor(note, path.depth()));
        let mut found: Vec<VaultPath> = places.filter(|place| place.note_id() == path.note_id()).collect();
        found.sort_by(|a, b| (a != path, a).cmp(&(b != path, b)));
        found.dedup();
        found
    }

    fn refuse_unfit(&self, path: &VaultPath) -> Result<(), WriteError> {
        let above = |note: &VaultPath| is_below(path, note);
        let reason = match excluded(path) {
            None if self.notes.keys().any(above) => Some(BELOW_A_FILE),
            reason => reason,
        };
        reason.map_or(Ok(()), |reason| Err(WriteError::Refused { path: path.clone(), reason }))
    }

    fn refuse_taken(&self, path: &VaultPath) -> Result<(), WriteError> {
        let existing = self.find_any_case(path).into_iter().next();
        existing.map_or(Ok(()), |existing| Err(WriteError::Exists { existing }))
    }

    fn expect(&self, path: &VaultPath, expected: ContentHash) -> Result<StoredVersion, WriteError> {
        if self.notes.keys().any(|note| is_below(note, path)) {
            return Err(WriteError::Refused { path: path.clone(), reason: IS_FOLDER });
        }
        match self.notes.get(path) {
            Some(current) if current.hash == expected => Ok(*current),
            Some(_) => Err(WriteError::Changed { path: path.clone() }),
            None => Err(WriteError::Missing { path: path.clone() }),
        }
    }

    fn take(&mut self, path: &VaultPath, reason: TrashReason, moved_to: Option<&VaultPath>) {
        self.notes.remove(path);
        self.taken.push(DisplacedNote { path: path.clone(), reason, moved_to: moved_to.cloned() });
    }

    fn write(&mut self, path: &VaultPath, bytes: &'c [u8], now_ns: i64) -> FileStat {
        let stat = FileStat { modified_ns: now_ns, size: bytes.len() as u64 };
        let LoggedVersion { hash, chars, .. } = LoggedVersion::of(bytes, now_ns);
        let version = StoredVersion { hash, stat, chars };
        self.notes.insert(path.clone(), version);
        self.written.insert(path.clone(), (bytes, version));
        stat
    }
}

/// The rule that excludes a path: those of a folder that has no settings.
pub(super) fn excluded(path: &VaultPath) -> Option<Reason> {
    let mut parts = path.as_str().split('/');
    let name = parts.next_back().unwrap_or_default();
    if name.starts_with('.') || parts.clone().any(|folder| folder.starts_with('.')) {
        return Some(HIDDEN);
    }
    if parts.any(|folder| folder == "node_modules") {
        return Some(NODE_MODULES);
    }
    if !path.is_markdown() {
        return Some(NOT_MARKDOWN);
    }
    (path.as_str().len() > LONGEST_PATH).then_some(TOO_LONG)
}

fn is_below(note: &VaultPath, folder: &VaultPath) -> bool {
    note.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// The part of a path down to a depth.
fn ancestor(path: &VaultPath, depth: usize) -> Option<VaultPath> {
    let end = match path.as_str().match_indices('/').nth(depth) {
        Some((end, _)) => end,
        None if path.depth() == depth => path.as_str().len(),
        None => return None,
    };
    VaultPath::parse(&path.as_str()[..end]).ok()
}

/// A path and every folder above it, in lower case.
pub(super) fn keys_above(path: &VaultPath) -> impl Iterator<Item = String> {
    (0..=path.depth()).filter_map(|depth| ancestor(path, depth)).map(|place| place.note_id().to_string())
}
