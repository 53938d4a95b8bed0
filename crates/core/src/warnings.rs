//! Warnings for clients, each sent once: kept in short logs that every session reads from where it stopped.
//!
//! An agent's context is precious. Warnings about the notes of a call are sent in full. Broken links and names that differ only
//! by case elsewhere in the vault are sent in full while they are few; many become one line of counts, once per session.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rayon::prelude::*;

use crate::index::Snapshot;
use crate::model::{ContentHash, Note, NoteKey, VaultPath, Warning};
use crate::quote::quoted;
use crate::session::Session;

/// A session that missed more than this many gets only their number.
const KEPT: usize = 1000;

/// Maximum warnings of one kind sent in full at once.
const TOLD_AT_ONCE: usize = 10;

/// Maximum broken links and case variants outside the notes of a call sent in full. More are counted.
const FEW: usize = 3;

/// The start of a warning about a broken link.
const BROKEN_LINK: &str = "broken link to ";

/// The warning about a file whose id is not its lowercased path.
const CASE_VARIANT: &str =
    "another file has this path in other capitals; the id of this one is its exact path. Rename one of them";

/// The newest warnings of a vault, for as long as it is open.
#[derive(Debug)]
pub struct WarningLog {
    /// Unique among the logs of this process.
    id: u64,
    inner: Mutex<Logs>,
}

impl Default for WarningLog {
    fn default() -> Self {
        static LOGS: AtomicU64 = AtomicU64::new(1);
        Self { id: LOGS.fetch_add(1, Ordering::Relaxed), inner: Mutex::default() }
    }
}

/// A session's position in a log.
#[derive(Debug, Default)]
pub(crate) struct LogPosition {
    log: u64,
    warnings: u64,
    changed: u64,
    /// The number of each kind at that position.
    counts: WarningCounts,
    /// Positions of the log that were sent in full. The others were only counted, and are sent with a call about their note.
    sent_in_full: BTreeSet<u64>,
    /// Whether counts were sent.
    is_counted: bool,
}

/// The kinds of warnings that are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WarningKind {
    BrokenLink,
    CaseVariant,
    Other,
}

impl WarningKind {
    fn of(message: &str) -> Self {
        match message {
            CASE_VARIANT => Self::CaseVariant,
            _ if message.starts_with(BROKEN_LINK) => Self::BrokenLink,
            _ => Self::Other,
        }
    }
}

/// The number of warnings of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct WarningCounts {
    broken_links: usize,
    case_variants: usize,
    others: usize,
}

impl WarningCounts {
    fn of(&mut self, kind: WarningKind) -> &mut usize {
        match kind {
            WarningKind::BrokenLink => &mut self.broken_links,
            WarningKind::CaseVariant => &mut self.case_variants,
            WarningKind::Other => &mut self.others,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            broken_links: self.broken_links.saturating_sub(before.broken_links),
            case_variants: self.case_variants.saturating_sub(before.case_variants),
            others: self.others.saturating_sub(before.others),
        }
    }

    fn line(self) -> Option<String> {
        let part = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let parts = [
            part(self.broken_links, "broken link", "broken links"),
            part(self.case_variants, "name that differs from another only by case", "names that differ only by case"),
            part(self.others, "other problem", "other problems"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("the vault has {}; `quipu doctor` lists them", parts.join(", ")))
    }
}

/// A warning about a file.
#[derive(Debug)]
struct LoggedWarning {
    kind: WarningKind,
    /// `None` when it no longer applies.
    warning: Option<Warning>,
}

#[derive(Debug, Default)]
struct Logs {
    /// For every session.
    warnings: Log<LoggedWarning>,
    /// The number of each kind since the start.
    counts: WarningCounts,
    /// For sessions that were shown another version of the note: its current version, if it still exists.
    changed: Log<(VaultPath, Option<ContentHash>)>,
}

/// The last entries of a list that only grows.
#[derive(Debug)]
struct Log<Entry> {
    entries: VecDeque<Entry>,
    /// The number of entries since the start.
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

    /// The number of entries no longer kept.
    fn dropped(&self) -> u64 {
        self.count - self.entries.len() as u64
    }

    /// The kept entries after the first `sent`.
    fn since(&self, sent: u64) -> impl Iterator<Item = &Entry> {
        let known = sent.saturating_sub(self.dropped());
        self.entries.iter().skip(usize::try_from(known).unwrap_or(usize::MAX))
    }
}

impl WarningLog {
    /// Adds a warning, unless the log has it.
    pub fn push(&self, warning: Warning) {
        let mut logs = self.lock();
        let is_known = logs.warnings.entries.iter().any(|logged| logged.warning.as_ref() == Some(&warning));
        if !is_known {
            let kind = WarningKind::of(&warning.message);
            *logs.counts.of(kind) += 1;
            logs.warnings.push(LoggedWarning { kind, warning: Some(warning) });
        }
    }

    /// Withdraws warnings about a file that no longer apply; sessions that have not received them will not.
    fn withdraw(&self, path: &VaultPath, still_applies: impl Fn(&str) -> bool) {
        let is_over = |warning: &Warning| warning.path == path.as_str() && !still_applies(&warning.message);
        for logged in &mut self.lock().warnings.entries {
            if logged.warning.as_ref().is_some_and(is_over) {
                logged.warning = None;
            }
        }
    }

    /// The warnings that this session has not received. `about`: the files that the call was about.
    pub fn take(&self, session: &Session, about: &BTreeSet<VaultPath>) -> Vec<String> {
        // Held until the session is updated: of two concurrent calls only one gets the warnings.
        let logs = self.lock();
        let mut sent = session.take_log_position();
        // A session outlives a reopened vault, and has received nothing of the new log.
        if sent.log != self.id {
            sent = LogPosition { log: self.id, ..LogPosition::default() };
        }
        let mut lines = logs.changed_lines(&mut sent, session);
        lines.extend(logs.warning_lines(&mut sent, about));
        session.set_log_position(sent);
        lines
    }

    /// Counts the present warnings as received, except those about the files of later calls.
    pub(crate) fn skip(&self, session: &Session) {
        let logs = self.lock();
        let (warnings, changed) = (logs.warnings.count, logs.changed.count);
        session.set_log_position(LogPosition {
            log: self.id,
            warnings,
            changed,
            counts: logs.counts,
            ..LogPosition::default()
        });
    }

    /// Records warnings about changed notes, and the change itself for sessions that were shown an older version.
    pub(crate) fn log_changes(&self, before: &Snapshot, after: &Snapshot, keys: &[NoteKey]) {
        // Most new notes give no reason for a warning, and a start reports every note as new.
        let has_reason = |key: &NoteKey| {
            let has_warning = |note: &Note| {
                !note.warnings.is_empty()
                    || after.case_twin(*key).is_some()
                    || after.broken_links(*key).next().is_some()
            };
            before.get(*key).is_some() || after.get(*key).is_some_and(has_warning)
        };
        let keys: Vec<NoteKey> = keys.par_iter().with_min_len(512).copied().filter(has_reason).collect();
        for key in &keys {
            let (old, new) = (before.get(*key), after.get(*key));
            let same_file = |note: &&Note| new.is_some_and(|new| new.path == note.path);
            if let Some(gone) = old.filter(|old| !same_file(old) && after.find_exact(&old.path).is_none()) {
                self.lock().changed.push((gone.path.clone(), None));
                self.withdraw(&gone.path, |_| false);
            }
            let Some(new) = new else { continue };
            let old = old.filter(same_file);
            if old.is_some_and(|old| old.hash != new.hash) {
                self.lock().changed.push((new.path.clone(), Some(new.hash)));
            }
            let warn = |message: String| self.push(Warning { path: new.path.to_string(), message });
            if old.is_none_or(|old| old.hash != new.hash) {
                new.warnings.iter().cloned().for_each(warn);
            }
            if after.case_twin(*key).is_some() && !(old.is_some() && before.case_twin(*key).is_some()) {
                warn(CASE_VARIANT.into());
            }
            let broken: BTreeSet<String> = after.broken_links(*key).map(|link| quoted(&link.target)).collect();
            if let Some(old) = old {
                self.withdraw(&new.path, |message| match message.strip_prefix(BROKEN_LINK) {
                    Some(target) => broken.contains(target),
                    None if message == CASE_VARIANT => after.case_twin(*key).is_some(),
                    None => old.hash == new.hash || new.warnings.iter().any(|warning| warning == message),
                });
            }
            let known: BTreeSet<String> =
                old.iter().flat_map(|_| before.broken_links(*key)).map(|link| quoted(&link.target)).collect();
            for target in broken.difference(&known) {
                warn(format!("{BROKEN_LINK}{target}"));
            }
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Logs> {
        self.inner.lock()
    }
}

impl Logs {
    /// Only the latest entry of a note counts, and only for a session that was shown another version.
    fn changed_lines(&self, sent: &mut LogPosition, session: &Session) -> Vec<String> {
        let changed = self.changed.since(sent.changed);
        sent.changed = self.changed.count;
        let mut lines: BTreeSet<String> = BTreeSet::new();
        for (path, now) in changed {
            let Some(shown) = session.shown(path) else { continue };
            let path = quoted(path.as_str());
            let stale = format!("{path}: changed since you read it; read it again before writing");
            let gone = format!("{path}: no longer in the vault");
            lines.remove(&stale);
            lines.remove(&gone);
            match now {
                Some(now) if *now == shown => false,
                Some(_) => lines.insert(stale),
                None => lines.insert(gone),
            };
        }
        bounded(lines.into_iter().collect())
    }

    /// The warnings: in full about the files of a call and where there are few, else counted.
    fn warning_lines(&self, sent: &mut LogPosition, about: &BTreeSet<VaultPath>) -> Vec<String> {
        let first = self.warnings.dropped();
        sent.sent_in_full = sent.sent_in_full.split_off(&first);
        let mut counts = self.counts.since(sent.counts);
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for (position, logged) in (first..).zip(&self.warnings.entries) {
            let is_new = position >= sent.warnings;
            let is_here =
                logged.warning.as_ref().is_some_and(|warning| about.iter().any(|path| path.as_str() == warning.path));
            if is_new && (is_here || logged.warning.is_none()) {
                *counts.of(logged.kind) -= 1;
            }
            match &logged.warning {
                Some(warning) if is_here && !sent.sent_in_full.contains(&position) => here.push((position, warning)),
                Some(warning) if is_new && !is_here => elsewhere.push((position, logged.kind, warning)),
                _ => {}
            }
        }
        (sent.warnings, sent.counts) = (self.warnings.count, self.counts);
        let are_links_few = counts.broken_links + counts.case_variants <= FEW;
        let are_others_few = counts.others <= TOLD_AT_ONCE;
        elsewhere.retain(|(_, kind, _)| if *kind == WarningKind::Other { are_others_few } else { are_links_few });
        sent.sent_in_full.extend(here.iter().map(|(position, _)| position));
        sent.sent_in_full.extend(elsewhere.iter().map(|(position, ..)| position));
        let mut lines = bounded(here.into_iter().map(|(_, warning)| warning.to_string()).collect());
        lines.extend(elsewhere.into_iter().map(|(.., warning)| warning.to_string()));
        if are_links_few {
            (counts.broken_links, counts.case_variants) = (0, 0);
        }
        if are_others_few {
            counts.others = 0;
        }
        let counted = counts.line().filter(|_| !sent.is_counted);
        sent.is_counted |= counted.is_some();
        lines.extend(counted);
        lines
    }
}

/// The first few, and how many more.
fn bounded(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(TOLD_AT_ONCE);
    lines.truncate(TOLD_AT_ONCE);
    if more > 0 {
        lines.push(format!("and {more} more like these"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(message: &str) -> Warning {
        Warning { path: "a.md".into(), message: message.into() }
    }

    fn nothing() -> BTreeSet<VaultPath> {
        BTreeSet::new()
    }

    fn about(path: &str) -> BTreeSet<VaultPath> {
        BTreeSet::from([VaultPath::parse(path).unwrap()])
    }

    fn broken(path: &str, target: usize) -> Warning {
        Warning { path: path.into(), message: format!("{BROKEN_LINK}\"{target}\"") }
    }

    #[test]
    fn skipped_warnings_are_sent_with_a_call_about_their_note() {
        let (log, session) = (WarningLog::default(), Session::default());
        log.push(warning("odd"));
        log.skip(&session);
        assert_eq!(log.take(&session, &BTreeSet::new()), [""; 0]);
        let about = BTreeSet::from([VaultPath::parse("a.md").unwrap()]);
        assert_eq!(log.take(&session, &about), ["\"a.md\": odd"]);
        log.push(warning("new"));
        assert_eq!(log.take(&session, &BTreeSet::new()), ["\"a.md\": new"]);
    }

    #[test]
    fn each_warning_is_sent_once() {
        let (log, session) = (WarningLog::default(), Session::default());
        log.push(warning("odd"));
        assert_eq!(log.take(&session, &nothing()), ["\"a.md\": odd"]);
        assert!(log.take(&session, &about("a.md")).is_empty());
        log.push(warning("odder"));
        assert_eq!(log.take(&session, &nothing()), ["\"a.md\": odder"]);
        assert_eq!(log.take(&Session::default(), &nothing()).len(), 2, "another session has heard nothing");
    }

    #[test]
    fn session_moved_to_another_log_gets_all_warnings() {
        let (long, short, session) = (WarningLog::default(), WarningLog::default(), Session::default());
        (0..5).for_each(|number| long.push(warning(&format!("odd {number}"))));
        assert_eq!(long.take(&session, &nothing()).len(), 5);
        short.push(warning("odd"));
        assert_eq!(short.take(&session, &nothing()), ["\"a.md\": odd"]);
        assert_eq!(long.take(&session, &nothing()).len(), 5, "the position in another log is not kept");
    }

    #[test]
    fn broken_links_of_other_notes_are_counted_and_own_ones_listed() {
        let (log, session) = (WarningLog::default(), Session::default());
        (0..12).for_each(|target| log.push(broken("a.md", target)));
        log.push(broken("b.md", 0));
        log.push(Warning { path: "C.md".into(), message: CASE_VARIANT.into() });
        log.push(warning("cannot be read"));
        let counted =
            "the vault has 12 broken links, 1 name that differs from another only by case; `quipu doctor` lists them";
        let first = log.take(&session, &about("b.md"));
        assert_eq!(first, ["\"b.md\": broken link to \"0\"", "\"a.md\": cannot be read", counted]);
        assert!(log.take(&session, &nothing()).is_empty());
        let later = log.take(&session, &about("a.md"));
        assert_eq!((later.len(), later[10].as_str()), (11, "and 2 more like these"), "{later:?}");
        assert!(log.take(&session, &about("a.md")).is_empty() && log.take(&session, &about("b.md")).is_empty());

        (20..24).for_each(|target| log.push(broken("d.md", target)));
        assert!(log.take(&session, &nothing()).is_empty(), "counts are sent once in a session");
        log.push(broken("d.md", 30));
        assert_eq!(log.take(&session, &nothing()), ["\"d.md\": broken link to \"30\""], "a few are sent in full");
        assert_eq!(log.take(&session, &about("d.md")).len(), 4);
    }

    #[test]
    fn counts_include_dropped_warnings_and_exclude_repaired_ones() {
        let (log, session) = (WarningLog::default(), Session::default());
        (0..KEPT + 500).for_each(|target| log.push(broken("a.md", target)));
        log.push(broken("b.md", 0));
        log.withdraw(&VaultPath::parse("b.md").unwrap(), |_| false);
        let counted = format!("the vault has {} broken links; `quipu doctor` lists them", KEPT + 500);
        assert_eq!(log.take(&session, &nothing()), [counted]);
    }
}
