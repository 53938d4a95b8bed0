//! The status of sources by git history. Each step handles all notes, so any number of notes needs few processes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::time::{Duration, Instant};

use quipu_core::ports::{SourceStatus, SourcedNote, TracedSource};
use quipu_core::staleness::SourceRef;

use super::finder::{MAX_FILES, MatchedFiles};
use super::lookup::{FileFingerprint, SourceRoot};
use super::pattern::SourcePattern;
use crate::dir::FileKind;
use crate::git::{Advance, GitError, GitHistory, HeadCache, PathChange};

/// One call of `Sources::trace`.
pub(super) struct TraceRequest<'a> {
    pub(super) root: &'a SourceRoot,
    pub(super) notes: &'a [SourcedNote<'a>],
    pub(super) lookups: &'a HashMap<SourceRef, MatchedFiles>,
    pub(super) now_ns: i64,
    /// The time limit for comparing paths with references.
    pub(super) patience: Duration,
}

/// A source and its status by git; `None` if git does not track the file.
#[derive(Debug, Clone)]
pub(super) struct PastSource {
    pub(super) path: String,
    pub(super) status: Option<SourceStatus>,
}

impl PastSource {
    pub(super) fn known(self) -> Option<TracedSource> {
        Some(TracedSource { path: self.path, status: self.status? })
    }
}

/// The result of git for one note.
pub(super) enum GitTrace {
    /// The status of its sources.
    Known(Vec<PastSource>),
    /// The note has uncommitted changes.
    NotCommitted,
    /// History was not read as far back as the note, or does not reach it.
    NotReached,
}

/// A note whose present bytes are committed.
struct Committed<'a> {
    note: &'a SourcedNote<'a>,
    /// The last commit that changed it.
    commit: usize,
    sources: Vec<SourceCandidate>,
}

/// A path that matches, or matched, one of a note's references.
struct SourceCandidate {
    key: String,
    shown: String,
    /// Whether the reference is exactly this path.
    is_exact: bool,
}

/// The status of the sources of each note.
pub(super) fn trace(
    head: &mut HeadCache,
    asked: &TraceRequest<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<GitTrace>, GitError> {
    let keys: Vec<Option<String>> = committed_keys(head, asked)?;
    let is_found = |history: &GitHistory, key: &String| history.last_change(key).is_some();
    let wanted: Vec<&String> = keys.iter().flatten().collect();
    let advance = head.advance(|history| wanted.iter().all(|key| is_found(history, key)));
    warnings.extend(history_warning(advance, "the sources of notes that did not change lately are not checked"));
    let changes = last_changes(head, &keys)?;
    // The oldest commit of a shallow clone has every file, whenever it last changed.
    let is_cut_off = |head: &HeadCache, commit: usize| head.is_shallow && head.history.commit(commit).is_first;
    if changes.iter().flatten().any(|commit| is_cut_off(head, *commit)) {
        warnings.push(
            "this is a shallow clone: the sources of notes older than its history cannot be checked; run \
             `git fetch --unshallow` (in CI: check out with full depth)"
                .to_owned(),
        );
    }
    let files_now: BTreeMap<String, FileFingerprint> = asked
        .lookups
        .values()
        .flat_map(|named| &named.files)
        .filter(|file| !file.is_link)
        .map(|file| (file.key.clone(), file.fingerprint))
        .collect();
    head.load_contents_of(asked.root, &files_now, asked.now_ns)?;
    let until = Instant::now() + asked.patience;
    let is_all_read = read_on_for_missing(head, asked, &changes, until, warnings);

    let mut committed: Vec<Option<Committed<'_>>> = Vec::with_capacity(asked.notes.len());
    for (note, change) in asked.notes.iter().zip(&changes) {
        let with_sources =
            |commit: usize| Some(Committed { note, commit, sources: candidates(head, asked, note, commit, until)? });
        committed.push(change.and_then(with_sources));
    }
    if committed.iter().zip(&changes).any(|(one, change)| one.is_none() && change.is_some()) {
        warnings.push(
            "there are too many paths in the git history to compare them with all patterns: the sources of some notes are not \
             checked; name folders or files instead of patterns"
                .to_owned(),
        );
    }
    let pairs =
        committed.iter().flatten().flat_map(|one| one.sources.iter().map(|source| (one.commit, source.key.clone())));
    head.load_contents_at(pairs.collect::<BTreeSet<_>>().into_iter())?;
    read_on_for_changed(head, &committed);
    let past = |(key, one): (&Option<String>, &Option<Committed<'_>>)| match (key, one) {
        (_, Some(one)) => {
            let mut sources = statuses(head, asked, one);
            for source in &mut sources {
                let is_doubtful = match source.status {
                    Some(SourceStatus::Same) => is_cut_off(head, one.commit),
                    Some(SourceStatus::NeverSeen) => head.is_shallow || !is_all_read,
                    _ => false,
                };
                if is_doubtful {
                    source.status = Some(SourceStatus::Unknown);
                }
            }
            GitTrace::Known(sources)
        }
        (Some(_), None) => GitTrace::NotReached,
        (None, None) => GitTrace::NotCommitted,
    };
    Ok(keys.iter().zip(&committed).map(past).collect())
}

/// A warning if the history was not read to its end.
fn history_warning(advance: Advance, effect: &str) -> Option<String> {
    let cause = match advance {
        Advance::Enough | Advance::End => return None,
        Advance::TooSlow => "is too long to read at once; call again to continue",
        Advance::TooLong => "is too long to be read to its end",
        Advance::Failed => "cannot be read to its end; the server's log has the details",
    };
    Some(format!("{effect}: the git history {cause}"))
}

/// Each note's path in the repository, if its content is that of HEAD.
fn committed_keys(head: &mut HeadCache, asked: &TraceRequest<'_>) -> Result<Vec<Option<String>>, GitError> {
    let mut fingerprints = BTreeMap::new();
    let keys: Vec<Option<String>> = asked
        .notes
        .iter()
        .map(|note| {
            let key = format!("{}{}", asked.root.vault, note.path);
            let seen = asked.root.see(&key).filter(|seen| seen.kind == FileKind::File)?;
            head.tree.get(&key)?;
            fingerprints.insert(key.clone(), FileFingerprint::from(&seen));
            Some(key)
        })
        .collect();
    head.load_contents_of(asked.root, &fingerprints, asked.now_ns)?;
    let is_committed = |key: &String| head.tree.get(key).is_some_and(|entry| head.contents_of(key).contains(&entry.id));
    Ok(keys.into_iter().map(|key| key.filter(is_committed)).collect())
}

/// The commit of each note's present content. If a merge dropped the newest change of a note, it is an earlier commit with
/// the same content.
fn last_changes(head: &mut HeadCache, keys: &[Option<String>]) -> Result<Vec<Option<usize>>, GitError> {
    let found: Vec<Option<(usize, String)>> = keys.iter().map(|key| head.history.last_change(key.as_ref()?)).collect();
    head.load_contents_at(found.iter().flatten().cloned())?;
    let mut changes = Vec::with_capacity(keys.len());
    for (key, found) in keys.iter().zip(found) {
        let (Some(key), Some((commit, name))) = (key, found) else {
            changes.push(None);
            continue;
        };
        let id = head.tree[key].id.clone();
        if head.content_at(commit, &name) == Some(&id) {
            changes.push(Some(commit));
            continue;
        }
        // Rare, so reading the whole history is acceptable.
        if head.advance(|_| false) != Advance::End {
            changes.push(None);
            continue;
        }
        let earlier: Vec<usize> = head.history.touches(&name).iter().map(|touch| touch.commit).take(100).collect();
        head.load_contents_at(earlier.iter().map(|commit| (*commit, name.clone())))?;
        let same = earlier.iter().copied().find(|commit| head.content_at(*commit, &name) == Some(&id));
        changes.push(Some(same.unwrap_or(commit)));
    }
    Ok(changes)
}

/// Reads on until every reference without files has matched some path. A reference that never matched needs the whole
/// history; `false` if there was no time.
fn read_on_for_missing(
    head: &mut HeadCache,
    asked: &TraceRequest<'_>,
    changes: &[Option<usize>],
    until: Instant,
    warnings: &mut Vec<String>,
) -> bool {
    let committed = asked.notes.iter().zip(changes).filter(|(_, change)| change.is_some());
    let missing: BTreeSet<&SourceRef> = committed
        .flat_map(|(note, _)| &note.refs)
        .filter(|named| asked.lookups[*named].files.is_empty() && in_tree(head, asked, named, until).is_none())
        .collect();
    let patterns: Vec<Vec<SourcePattern>> = missing
        .iter()
        .map(|named| asked.root.prefixes().map(|prefix| SourcePattern::new(prefix, named.as_str())).collect())
        .collect();
    let was_seen =
        |history: &GitHistory, both: &Vec<SourcePattern>| both.iter().any(|one| in_history(history, one, until));
    let advance = head.advance(|history| patterns.iter().all(|both| was_seen(history, both)));
    let warning = history_warning(advance, "missing sources are not found in it");
    let is_all_read = warning.is_none();
    warnings.extend(warning);
    is_all_read
}

/// Reads on to the commits of changed sources: a merged branch may have changed them in commits older than the note's.
fn read_on_for_changed(head: &mut HeadCache, committed: &[Option<Committed<'_>>]) {
    let sources = committed.iter().flatten().flat_map(|one| one.sources.iter().map(|source| (one.commit, &source.key)));
    let changed: Vec<&String> = sources
        .filter(|(commit, key)| head.content_at(*commit, key) != head.tree.get(*key).map(|entry| entry.id.as_str()))
        .map(|(_, key)| key)
        .collect();
    // If there is no time, the file's modification time is used.
    head.advance(|history| changed.iter().all(|key| !history.touches(key).is_empty()));
}

/// The prefix under which HEAD has files that match a reference.
fn in_tree<'a>(head: &HeadCache, asked: &'a TraceRequest<'_>, named: &SourceRef, until: Instant) -> Option<&'a str> {
    let has_files =
        |prefix: &&str| tree_paths(head, &SourcePattern::new(prefix, named.as_str()), until).next().is_some();
    asked.root.prefixes().find(has_files)
}

fn in_history(history: &GitHistory, pattern: &SourcePattern, until: Instant) -> bool {
    in_time(history.paths_from(pattern.start()), until).any(|path| pattern.names(path))
}

fn tree_paths<'a>(head: &'a HeadCache, pattern: &'a SourcePattern, until: Instant) -> impl Iterator<Item = &'a str> {
    let start = pattern.start();
    let from = head.tree.range::<str, _>((Bound::Included(start), Bound::Unbounded)).map(|(path, _)| path.as_str());
    in_time(from.take_while(move |path| path.starts_with(start)), until).filter(|path| pattern.names(path))
}

/// Ends early when the time is over.
fn in_time<'a>(paths: impl Iterator<Item = &'a str>, until: Instant) -> impl Iterator<Item = &'a str> {
    paths.take_while(move |_| Instant::now() < until)
}

/// Every path that matches the references of a note, or matched since the note last changed. `None` if there was no time.
fn candidates(
    head: &HeadCache,
    asked: &TraceRequest<'_>,
    note: &SourcedNote<'_>,
    commit: usize,
    until: Instant,
) -> Option<Vec<SourceCandidate>> {
    let mut found: BTreeMap<String, SourceCandidate> = BTreeMap::new();
    for named in &note.refs {
        let now = &asked.lookups[named];
        let was_in = |prefix: &&str| in_history(&head.history, &SourcePattern::new(prefix, named.as_str()), until);
        let prefix = match now.files.is_empty() {
            false => Some(now.prefix.as_str()),
            true => in_tree(head, asked, named, until).or_else(|| asked.root.prefixes().find(was_in)),
        };
        if Instant::now() >= until {
            return None;
        }
        let Some(prefix) = prefix else {
            // No such file ever existed.
            found.insert(named.as_str().to_owned(), SourceCandidate::exact(named.as_str(), named.as_str()));
            continue;
        };
        let pattern = SourcePattern::new(prefix, named.as_str());
        let was_touched_since = |path: &&str| {
            head.history.touches(path).first().is_some_and(|touch| touch.commit < commit) && pattern.names(path)
        };
        let gone_since = in_time(head.history.paths_from(pattern.start()), until).filter(was_touched_since);
        let now = now.files.iter().map(|file| file.key.as_str());
        let mut any = false;
        for key in now.chain(tree_paths(head, &pattern, until)).chain(gone_since).take(2 * MAX_FILES) {
            any = true;
            let shown = key.strip_prefix(prefix).unwrap_or(key).to_owned();
            let is_exact = key == pattern.plain;
            found.insert(shown.clone(), SourceCandidate { key: key.to_owned(), shown, is_exact });
        }
        if !any {
            found.insert(named.as_str().to_owned(), SourceCandidate::exact(&pattern.plain, named.as_str()));
        }
    }
    (Instant::now() < until).then(|| found.into_values().collect())
}

impl SourceCandidate {
    fn exact(key: &str, shown: &str) -> Self {
        Self { key: key.to_owned(), shown: shown.to_owned(), is_exact: true }
    }
}

fn statuses(head: &HeadCache, asked: &TraceRequest<'_>, one: &Committed<'_>) -> Vec<PastSource> {
    let mut sources: Vec<PastSource> = Vec::with_capacity(one.sources.len());
    for candidate in &one.sources {
        let status = match status_since(head, asked, one.commit, candidate) {
            Verdict::Known(status) => Some(status),
            Verdict::Untracked => None,
            Verdict::NoSource => continue,
        };
        sources.push(PastSource { path: candidate.shown.clone(), status });
    }
    if sources.is_empty() {
        // Every file of a pattern was deleted before the note last changed.
        let gone = one.note.refs.iter().map(|named| PastSource {
            path: named.as_str().to_owned(),
            status: Some(SourceStatus::Deleted { at_ns: None }),
        });
        sources.extend(gone);
    }
    sources
}

enum Verdict {
    Known(SourceStatus),
    /// Git does not track the file, or the content it would store for it is unknown.
    Untracked,
    /// A file that once matched a pattern, deleted before the note last changed.
    NoSource,
}

fn status_since(head: &HeadCache, asked: &TraceRequest<'_>, commit: usize, candidate: &SourceCandidate) -> Verdict {
    let key = candidate.key.as_str();
    let then = head.content_at(commit, key);
    let at_head = head.tree.get(key);
    let seen = asked.root.see(key).filter(|seen| matches!(seen.kind, FileKind::File | FileKind::Link));
    let now: &[String] = match (seen.as_ref().map(|seen| seen.kind), at_head) {
        // The content of a link is its target; it is assumed to be as committed.
        (Some(FileKind::Link), Some(entry)) if entry.is_link => std::slice::from_ref(&entry.id),
        (Some(FileKind::File), _) => head.contents_of(key),
        _ => &[],
    };
    let touches = head.history.touches(key);
    match (then, now, &seen) {
        (Some(then), now, _) if now.iter().any(|id| id == then) => Verdict::Known(SourceStatus::Same),
        (Some(_), _, None) => {
            Verdict::Known(SourceStatus::Deleted { at_ns: deleted_at(head, at_head.is_some(), touches) })
        }
        (None, _, None) if candidate.is_exact && !touches.is_empty() => {
            Verdict::Known(SourceStatus::Deleted { at_ns: deleted_at(head, at_head.is_some(), touches) })
        }
        (None, _, None) if candidate.is_exact => Verdict::Known(SourceStatus::NeverSeen),
        (None, _, None) => Verdict::NoSource,
        (None, _, Some(_)) if at_head.is_none() => Verdict::Untracked,
        (_, [], Some(_)) if at_head.map(|entry| entry.id.as_str()) == then => Verdict::Untracked,
        (_, now, Some(seen)) => {
            let is_committed = at_head.is_some_and(|entry| now.contains(&entry.id));
            let differs_at_head = at_head.map(|entry| entry.id.as_str()) != then;
            let at_ns = match first_since(head, commit, touches) {
                // The history has the change, even if the file was edited since.
                Some(at_ns) if differs_at_head => at_ns,
                _ if is_committed => {
                    touches.first().map_or(seen.stat.modified_ns, |touch| head.history.commit(touch.commit).at_ns)
                }
                _ => seen.stat.modified_ns,
            };
            Verdict::Known(SourceStatus::Changed { at_ns })
        }
    }
}

/// When a path was first changed after a commit. The first change counts: later ones do not make a note fresher.
fn first_since(head: &HeadCache, commit: usize, touches: &[PathChange]) -> Option<i64> {
    let since = touches.iter().take_while(|touch| touch.commit < commit);
    since.map(|touch| head.history.commit(touch.commit).at_ns).min()
}

/// When a path that is not on disk was deleted: in the last commit that changed it, unless HEAD has it.
fn deleted_at(head: &HeadCache, is_at_head: bool, touches: &[PathChange]) -> Option<i64> {
    touches.first().filter(|_| !is_at_head).map(|touch| head.history.commit(touch.commit).at_ns)
}
