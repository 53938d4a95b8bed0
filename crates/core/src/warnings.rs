//! What is odd, told to each client once: kept in short logs that every session reads from where it left off.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::index::Snapshot;
use crate::model::{ContentHash, NoteKey, VaultPath, Warning};
use crate::quote::quoted;
use crate::session::Session;

/// A session that missed more than this many is told how many.
const KEPT: usize = 1000;

/// At most this many are told at once: an agent's context is precious.
const TOLD_AT_ONCE: usize = 10;

/// How it is told that a link leads nowhere.
const BROKEN_LINK: &str = "broken link to ";

/// How it is told that a file does not have its lowercased path as its id.
const CASE_VARIANT: &str =
    "another file has this path in other capitals; the id of this one is its exact path. Rename one of them";

/// The newest warnings of a vault, for as long as it is open.
#[derive(Debug)]
pub struct WarningLog {
    /// No other log of this process has it.
    id: u64,
    inner: Mutex<Logs>,
}

impl Default for WarningLog {
    fn default() -> Self {
        static LOGS: AtomicU64 = AtomicU64::new(1);
        Self { id: LOGS.fetch_add(1, Ordering::Relaxed), inner: Mutex::default() }
    }
}

/// How far a session has been told of a log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    log: u64,
    odd: u64,
    changed: u64,
}

#[derive(Debug, Default)]
struct Logs {
    /// For everyone; `None` where it is so no more.
    odd: Log<Option<Warning>>,
    /// For those who were shown another version of the note: what it is now, if it still is.
    changed: Log<(VaultPath, Option<ContentHash>)>,
}

/// The last entries of a list that only grows.
#[derive(Debug)]
struct Log<Entry> {
    entries: VecDeque<Entry>,
    /// How many there ever were.
    count: u64,
}

impl<Entry> Default for Log<Entry> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), count: 0 }
    }
}

impl<Entry> Log<Entry> {
    fn push(&mut self, entry: Entry) {
        self.count += 1;
        self.entries.push_back(entry);
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    /// What came after the first `told`, and how many of that are no longer kept.
    fn since(&self, told: u64) -> (impl Iterator<Item = &Entry>, usize) {
        let unseen = usize::try_from(self.count - told).unwrap_or(usize::MAX);
        let kept = unseen.min(self.entries.len());
        (self.entries.iter().skip(self.entries.len() - kept), unseen - kept)
    }
}

impl WarningLog {
    /// Adds one, unless it is the very thing that was said last.
    pub fn push(&self, warning: Warning) {
        let mut logs = self.lock();
        let warning = Some(warning);
        if !logs.odd.entries.contains(&warning) {
            logs.odd.push(warning);
        }
    }

    /// Takes back what was said of a file and is so no more; whoever has not heard it will not.
    fn take_back(&self, path: &VaultPath, is_so: impl Fn(&str) -> bool) {
        let is_over = |said: &Warning| said.path == path.as_str() && !is_so(&said.message);
        for said in &mut self.lock().odd.entries {
            if said.as_ref().is_some_and(is_over) {
                *said = None;
            }
        }
    }

    /// What this session has not been told yet, the first few in words and the rest as a number.
    pub fn take(&self, session: &Session) -> Vec<String> {
        let logs = self.lock();
        let all = Told { log: self.id, odd: logs.odd.count, changed: logs.changed.count };
        let told = session.told_until(all);
        // A session goes on when the vault is opened anew, and has heard nothing of that log.
        let told = if told.log == self.id { told } else { Told::default() };
        let (odd, lost) = logs.odd.since(told.odd);
        let (changed, _) = logs.changed.since(told.changed);
        // The last word on a note counts, and only for who has seen another version of it.
        let mut lines: BTreeSet<String> = BTreeSet::new();
        for (path, now) in changed {
            let Some(shown) = session.shown(path) else { continue };
            let path = quoted(path.as_str());
            let stale = format!("{path}: changed on disk since you read it; read it again before writing");
            let gone = format!("{path}: no longer in the vault");
            lines.remove(&stale);
            lines.remove(&gone);
            match now {
                Some(now) if *now == shown => false,
                Some(_) => lines.insert(stale),
                None => lines.insert(gone),
            };
        }
        let mut lines: Vec<String> = lines.into_iter().chain(odd.flatten().map(ToString::to_string)).collect();
        let more = lost + lines.len().saturating_sub(TOLD_AT_ONCE);
        lines.truncate(TOLD_AT_ONCE);
        if more > 0 {
            lines.push(format!("and {more} more, which a person can list with `quipu doctor`"));
        }
        lines
    }

    /// Tells what became odd about some notes, and who has seen an older version of them.
    pub(crate) fn note_changes(&self, before: &Snapshot, after: &Snapshot, keys: &[NoteKey]) {
        for key in keys {
            let (old, new) = (before.get(*key), after.get(*key));
            let same_file = |note: &&crate::model::Note| new.is_some_and(|new| new.path == note.path);
            if let Some(gone) = old.filter(|old| !same_file(old) && after.find_exact(&old.path).is_none()) {
                self.lock().changed.push((gone.path.clone(), None));
                self.take_back(&gone.path, |_| false);
            }
            let Some(new) = new else { continue };
            let old = old.filter(same_file);
            if old.is_some_and(|old| old.hash != new.hash) {
                self.lock().changed.push((new.path.clone(), Some(new.hash)));
            }
            let odd = |message: String| self.push(Warning { path: new.path.to_string(), message });
            if old.is_none_or(|old| old.hash != new.hash) {
                new.warnings.iter().cloned().for_each(odd);
            }
            if after.case_twin(*key).is_some() && !(old.is_some() && before.case_twin(*key).is_some()) {
                odd(CASE_VARIANT.into());
            }
            let broken: BTreeSet<String> = after.broken_links(*key).map(|link| quoted(&link.target)).collect();
            if let Some(old) = old {
                self.take_back(&new.path, |said| match said.strip_prefix(BROKEN_LINK) {
                    Some(target) => broken.contains(target),
                    None if said == CASE_VARIANT => after.case_twin(*key).is_some(),
                    None => old.hash == new.hash || new.warnings.iter().any(|warning| warning == said),
                });
            }
            let known: BTreeSet<String> =
                old.iter().flat_map(|_| before.broken_links(*key)).map(|link| quoted(&link.target)).collect();
            for target in broken.difference(&known) {
                odd(format!("{BROKEN_LINK}{target}"));
            }
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Logs> {
        self.inner.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(message: &str) -> Warning {
        Warning { path: "a.md".into(), message: message.into() }
    }

    #[test]
    fn each_warning_is_told_once() {
        let (log, session) = (WarningLog::default(), Session::default());
        log.push(warning("odd"));
        assert_eq!(log.take(&session), ["\"a.md\": odd"]);
        assert!(log.take(&session).is_empty());
        log.push(warning("odder"));
        assert_eq!(log.take(&session), ["\"a.md\": odder"]);
        assert_eq!(log.take(&Session::default()).len(), 2, "another session has heard nothing");
    }

    #[test]
    fn a_session_that_goes_on_with_another_log_is_told_all_of_it() {
        let (long, short, session) = (WarningLog::default(), WarningLog::default(), Session::default());
        (0..5).for_each(|number| long.push(warning(&format!("odd {number}"))));
        assert_eq!(long.take(&session).len(), 5);
        short.push(warning("odd"));
        assert_eq!(short.take(&session), ["\"a.md\": odd"]);
        assert_eq!(long.take(&session).len(), 5, "nobody remembers how far it was told of that one");
    }
}
