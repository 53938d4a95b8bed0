//! What is odd, told to each client once: kept in a short log that every session reads from where it left off.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::index::Snapshot;
use crate::model::{ContentHash, NoteId, NoteKey, Warning};
use crate::session::Session;

/// A session that missed more than this many is told how many.
const KEPT: usize = 1000;

/// At most this many are told at once: an agent's context is precious.
const TOLD_AT_ONCE: usize = 10;

/// The newest warnings of a vault.
#[derive(Debug, Default)]
pub struct WarningLog {
    inner: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Entry>,
    /// How many there ever were.
    count: u64,
}

#[derive(Debug)]
enum Entry {
    /// For everyone.
    Odd(Warning),
    /// For those who were shown another version of this note.
    Changed { id: NoteId, now: Option<ContentHash> },
}

impl WarningLog {
    /// Adds one.
    pub fn push(&self, warning: Warning) {
        self.add(Entry::Odd(warning));
    }

    /// What this session has not been told yet, the first few in words and the rest as a number.
    pub fn take(&self, session: &Session) -> Vec<String> {
        let log = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let told = session.told_until(log.count);
        let unseen = usize::try_from(log.count - told).unwrap_or(usize::MAX);
        let lost = unseen.saturating_sub(log.entries.len());
        let mut lines: Vec<String> = log
            .entries
            .iter()
            .skip(log.entries.len().saturating_sub(unseen))
            .filter_map(|entry| entry.line(session))
            .collect();
        let more = lost + lines.len().saturating_sub(TOLD_AT_ONCE);
        lines.truncate(TOLD_AT_ONCE);
        if more > 0 {
            lines.push(format!("and {more} more: `quipu doctor` lists all"));
        }
        lines
    }

    /// Tells what is odd about notes that came or changed, and who has seen an older version of them.
    pub(crate) fn note_changes(&self, before: &Snapshot, after: &Snapshot, changed: &[NoteKey]) {
        for key in changed {
            let old = before.get(*key);
            let Some(new) = after.get(*key) else {
                if let Some(old) = old {
                    self.add(Entry::Changed { id: old.id.clone(), now: None });
                }
                continue;
            };
            if old.is_some_and(|old| old.hash == new.hash && old.path == new.path) {
                continue;
            }
            let path = new.path.to_string();
            for message in &new.warnings {
                self.push(Warning { path: path.clone(), message: message.clone() });
            }
            if after.is_shadowed(*key) {
                self.push(Warning {
                    path: path.clone(),
                    message: "another file has this path in other capitals and owns the id; rename one of them".into(),
                });
            }
            for link in after.broken_links(*key) {
                self.push(Warning { path: path.clone(), message: format!("broken link to {}", link.target) });
            }
            if old.is_some() {
                self.add(Entry::Changed { id: new.id.clone(), now: Some(new.hash) });
            }
        }
    }

    fn add(&self, entry: Entry) {
        let mut log = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        log.count += 1;
        log.entries.push_back(entry);
        if log.entries.len() > KEPT {
            log.entries.pop_front();
        }
    }
}

impl Entry {
    fn line(&self, session: &Session) -> Option<String> {
        match self {
            Self::Odd(warning) => Some(warning.to_string()),
            Self::Changed { id, now } => {
                let shown = session.shown(id)?;
                match now {
                    Some(now) if *now == shown => None,
                    Some(_) => Some(format!("{id}: changed on disk since you read it; read it again before writing")),
                    None => Some(format!("{id}: no longer in the vault")),
                }
            }
        }
    }
}
