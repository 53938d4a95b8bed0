//! What became of sources according to git. In few processes for any number of notes: every step asks for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use quipu_core::ports::{SinceThen, SourcedNote, TracedSource};
use quipu_core::staleness::SourceRef;

use super::lookup::{Mark, Named, Place};
use super::pattern::Pattern;
use crate::dir::FileKind;
use crate::git::{Advance, AtHead, GitError, Touch};

/// One question.
pub(super) struct Asked<'a> {
    pub(super) place: &'a Place,
    pub(super) notes: &'a [SourcedNote<'a>],
    pub(super) named: &'a HashMap<SourceRef, Named>,
    pub(super) now_ns: i64,
}

/// A source as git sees it. Where git knows nothing of it, the index must.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) since: Option<SinceThen>,
}

impl Source {
    pub(super) fn known(self) -> Option<TracedSource> {
        Some(TracedSource { path: self.path, since: self.since? })
    }
}

/// What git can say of a note's sources.
pub(super) enum Past {
    /// This.
    Known(Vec<Source>),
    /// Nothing: the note is not committed as it is.
    NotCommitted,
    /// Nothing yet: there was no time to read history as far back as the note, or it does not reach there.
    NotReached,
}

/// A note whose present bytes are committed.
struct Committed<'a> {
    note: &'a SourcedNote<'a>,
    /// The last commit that changed it.
    commit: usize,
    sources: Vec<Candidate>,
}

/// A path that one of a note's references names, or named.
struct Candidate {
    key: String,
    shown: String,
    /// The reference is this very path.
    is_exact: bool,
}

/// For each note what became of its sources.
pub(super) fn trace(head: &mut AtHead, asked: &Asked<'_>, warnings: &mut Vec<String>) -> Result<Vec<Past>, GitError> {
    let keys: Vec<Option<String>> = committed_keys(head, asked)?;
    let is_found = |history: &crate::git::History, key: &String| history.last_change(key).is_some();
    let wanted: Vec<&String> = keys.iter().flatten().collect();
    let advance = head.advance(|history| wanted.iter().all(|key| is_found(history, key)));
    if advance == Advance::TooSlow {
        warnings.push(
            "the git history is too long to be read at once; of notes that did not change lately it is not known yet \
             whether their sources did, and asking again goes on from here"
                .to_owned(),
        );
    }
    let changes = last_changes(head, &keys)?;
    // The oldest commit of a shallow clone has every file, whenever that last changed.
    let is_cut_off = |head: &AtHead, commit: usize| head.is_shallow && head.history.commit(commit).is_first;
    if changes.iter().flatten().any(|commit| is_cut_off(head, *commit)) {
        warnings.push(
            "this is a shallow clone: of notes older than its history it is not known whether their sources changed since; \
             `git fetch --unshallow` brings the rest (in CI: a checkout with full depth)"
                .to_owned(),
        );
    }
    let named_now: BTreeMap<String, Mark> = asked
        .named
        .values()
        .flat_map(|named| &named.files)
        .filter(|file| !file.is_link)
        .map(|file| (file.key.clone(), file.mark))
        .collect();
    head.learn_contents_of(&named_now, asked.now_ns)?;
    let is_all_read = read_on_for_the_missing(head, asked, &changes, warnings);

    let mut committed: Vec<Option<Committed<'_>>> = Vec::with_capacity(asked.notes.len());
    for (note, change) in asked.notes.iter().zip(&changes) {
        let sources = |commit: usize| candidates(head, asked, note, commit);
        committed.push(change.map(|commit| Committed { note, commit, sources: sources(commit) }));
    }
    let pairs =
        committed.iter().flatten().flat_map(|one| one.sources.iter().map(|source| (one.commit, source.key.clone())));
    head.learn_contents_at(pairs.collect::<BTreeSet<_>>().into_iter())?;
    read_on_for_the_changed(head, &committed);
    let past = |(key, one): (&Option<String>, &Option<Committed<'_>>)| match (key, one) {
        (_, Some(one)) => {
            let mut sources = judged(head, asked, one);
            for source in &mut sources {
                let is_doubtful = match source.since {
                    Some(SinceThen::Same) => is_cut_off(head, one.commit),
                    Some(SinceThen::NeverSeen) => head.is_shallow || !is_all_read,
                    _ => false,
                };
                if is_doubtful {
                    source.since = Some(SinceThen::Unknown);
                }
            }
            Past::Known(sources)
        }
        (Some(_), None) => Past::NotReached,
        (None, None) => Past::NotCommitted,
    };
    Ok(keys.iter().zip(&committed).map(past).collect())
}

/// Each note's path from the repository's root, if its bytes on disk are those of HEAD.
fn committed_keys(head: &mut AtHead, asked: &Asked<'_>) -> Result<Vec<Option<String>>, GitError> {
    let mut marks = BTreeMap::new();
    let keys: Vec<Option<String>> = asked
        .notes
        .iter()
        .map(|note| {
            let key = format!("{}{}", asked.place.vault, note.path);
            let seen = asked.place.see(&key).filter(|seen| seen.kind == FileKind::File)?;
            head.tree.get(&key)?;
            marks.insert(key.clone(), Mark::from(&seen));
            Some(key)
        })
        .collect();
    head.learn_contents_of(&marks, asked.now_ns)?;
    let is_committed = |key: &String| head.content_of(key) == head.tree.get(key).map(|entry| entry.id.as_str());
    Ok(keys.into_iter().map(|key| key.filter(is_committed)).collect())
}

/// The commit that gave each note its present bytes. A merge may have dropped the newest change of one: then it is an
/// earlier commit, known by its content.
fn last_changes(head: &mut AtHead, keys: &[Option<String>]) -> Result<Vec<Option<usize>>, GitError> {
    let found: Vec<Option<(usize, String)>> = keys.iter().map(|key| head.history.last_change(key.as_ref()?)).collect();
    head.learn_contents_at(found.iter().flatten().cloned())?;
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
        // Rare enough to read all of the history for it.
        if head.advance(|_| false) == Advance::TooSlow {
            changes.push(None);
            continue;
        }
        let earlier: Vec<usize> = head.history.touches(&name).iter().map(|touch| touch.commit).take(100).collect();
        head.learn_contents_at(earlier.iter().map(|commit| (*commit, name.clone())))?;
        let same = earlier.iter().copied().find(|commit| head.content_at(*commit, &name) == Some(&id));
        changes.push(Some(same.unwrap_or(commit)));
    }
    Ok(changes)
}

/// Whether a reference that names nothing ever named something is known only from the whole history: `false` where there
/// was no time to read it.
fn read_on_for_the_missing(
    head: &mut AtHead,
    asked: &Asked<'_>,
    changes: &[Option<usize>],
    warnings: &mut Vec<String>,
) -> bool {
    let committed = asked.notes.iter().zip(changes).filter(|(_, change)| change.is_some());
    let missing: BTreeSet<&SourceRef> = committed
        .flat_map(|(note, _)| &note.refs)
        .filter(|named| asked.named[*named].files.is_empty() && in_tree(head, asked, named).is_none())
        .collect();
    let patterns: Vec<Vec<Pattern>> = missing
        .iter()
        .map(|named| asked.place.spaces().map(|space| Pattern::new(space, named.as_str())).collect())
        .collect();
    let was_seen = |history: &crate::git::History, pattern: &Pattern| {
        let start = if pattern.is_glob() { pattern.folder() } else { &pattern.plain };
        history.paths_from(start).any(|path| pattern.names(path))
    };
    let advance = head.advance(|history| patterns.iter().all(|both| both.iter().any(|one| was_seen(history, one))));
    if advance == Advance::TooSlow {
        warnings.push("the git history is too long to be searched at once for sources that are missing".to_owned());
    }
    advance != Advance::TooSlow
}

/// A change may have come over a side branch, from a commit older than the note's own: it is yet to be read.
fn read_on_for_the_changed(head: &mut AtHead, committed: &[Option<Committed<'_>>]) {
    let sources = committed.iter().flatten().flat_map(|one| one.sources.iter().map(|source| (one.commit, &source.key)));
    let changed: Vec<&String> = sources
        .filter(|(commit, key)| head.content_at(*commit, key) != head.tree.get(*key).map(|entry| entry.id.as_str()))
        .map(|(_, key)| key)
        .collect();
    // Where there is no time for it, the file's own time stands in.
    head.advance(|history| changed.iter().all(|key| !history.touches(key).is_empty()));
}

/// The space in which HEAD has files that a reference names.
fn in_tree<'a>(head: &AtHead, asked: &'a Asked<'_>, named: &SourceRef) -> Option<&'a str> {
    asked.place.spaces().find(|space| {
        let pattern = Pattern::new(space, named.as_str());
        tree_paths(head, &pattern).next().is_some()
    })
}

fn tree_paths<'a>(head: &'a AtHead, pattern: &'a Pattern) -> impl Iterator<Item = &'a str> {
    let start = if pattern.is_glob() { pattern.folder() } else { &pattern.plain };
    let from = head.tree.range::<str, _>((Bound::Included(start), Bound::Unbounded)).map(|(path, _)| path.as_str());
    from.take_while(move |path| path.starts_with(start)).filter(|path| pattern.names(path))
}

/// Every path that the references of a note name, or named since the note last changed.
fn candidates(head: &AtHead, asked: &Asked<'_>, note: &SourcedNote<'_>, commit: usize) -> Vec<Candidate> {
    let mut found: BTreeMap<String, Candidate> = BTreeMap::new();
    for named in &note.refs {
        let now = &asked.named[named];
        let space = match now.files.is_empty() {
            false => Some(now.space.as_str()),
            true => in_tree(head, asked, named),
        };
        let space = space.or_else(|| {
            asked.place.spaces().find(|space| {
                let pattern = Pattern::new(space, named.as_str());
                let start = if pattern.is_glob() { pattern.folder() } else { &pattern.plain };
                head.history.paths_from(start).any(|path| pattern.names(path))
            })
        });
        let Some(space) = space else {
            // Named by nobody, ever.
            found.insert(named.as_str().to_owned(), Candidate::exact(named.as_str(), named.as_str()));
            continue;
        };
        let pattern = Pattern::new(space, named.as_str());
        let start = if pattern.is_glob() { pattern.folder() } else { &pattern.plain };
        let was_touched_since =
            |path: &&str| head.history.touches(path).iter().any(|touch| touch.commit < commit) && pattern.names(path);
        let gone_since = head.history.paths_from(start).filter(was_touched_since);
        let now = now.files.iter().map(|file| file.key.as_str());
        let mut any = false;
        for key in now.chain(tree_paths(head, &pattern)).chain(gone_since).take(2 * super::lookup::MAX_FILES) {
            any = true;
            let shown = key.strip_prefix(space).unwrap_or(key).to_owned();
            let is_exact = key == pattern.plain;
            found.insert(shown.clone(), Candidate { key: key.to_owned(), shown, is_exact });
        }
        if !any {
            found.insert(named.as_str().to_owned(), Candidate::exact(&pattern.plain, named.as_str()));
        }
    }
    found.into_values().collect()
}

impl Candidate {
    fn exact(key: &str, shown: &str) -> Self {
        Self { key: key.to_owned(), shown: shown.to_owned(), is_exact: true }
    }
}

fn judged(head: &AtHead, asked: &Asked<'_>, one: &Committed<'_>) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::with_capacity(one.sources.len());
    for candidate in &one.sources {
        match since(head, asked, one.commit, candidate) {
            Verdict::Known(since) => sources.push(Source { path: candidate.shown.clone(), since: Some(since) }),
            Verdict::Unknown => sources.push(Source { path: candidate.shown.clone(), since: None }),
            Verdict::NoSource => {}
        }
    }
    if sources.is_empty() {
        // Every file of a pattern went before the note last changed.
        let gone = one
            .note
            .refs
            .iter()
            .map(|named| Source { path: named.as_str().to_owned(), since: Some(SinceThen::Gone { at_ns: None }) });
        sources.extend(gone);
    }
    sources
}

enum Verdict {
    Known(SinceThen),
    /// Git has never had it.
    Unknown,
    /// A file that a pattern once named, gone before the note last changed.
    NoSource,
}

fn since(head: &AtHead, asked: &Asked<'_>, commit: usize, candidate: &Candidate) -> Verdict {
    let key = candidate.key.as_str();
    let then = head.content_at(commit, key);
    let at_head = head.tree.get(key);
    let seen = asked.place.see(key).filter(|seen| matches!(seen.kind, FileKind::File | FileKind::Link));
    let now = seen.as_ref().and_then(|seen| match (seen.kind, at_head) {
        // What a link holds is where it leads; that this is as committed is taken for granted.
        (FileKind::Link, Some(entry)) if entry.is_link => Some(entry.id.as_str()),
        (FileKind::Link, _) => None,
        _ => head.content_of(key),
    });
    let touches = head.history.touches(key);
    match (then, now, &seen) {
        (Some(then), Some(now), _) if then == now => Verdict::Known(SinceThen::Same),
        (Some(_), _, None) => Verdict::Known(SinceThen::Gone { at_ns: went_at(head, at_head.is_some(), touches) }),
        (None, _, None) if candidate.is_exact && !touches.is_empty() => {
            Verdict::Known(SinceThen::Gone { at_ns: went_at(head, at_head.is_some(), touches) })
        }
        (None, _, None) if candidate.is_exact => Verdict::Known(SinceThen::NeverSeen),
        (None, _, None) => Verdict::NoSource,
        (None, _, Some(_)) if at_head.is_none() => Verdict::Unknown,
        (_, None, Some(_)) => Verdict::Unknown,
        (_, Some(now), Some(seen)) => {
            let is_committed = at_head.is_some_and(|entry| entry.id == now);
            let differs_at_head = at_head.map(|entry| entry.id.as_str()) != then;
            let at_ns = match first_since(head, commit, touches) {
                // The change is in the history, whatever was done to the file since.
                Some(at_ns) if differs_at_head => at_ns,
                _ if is_committed => {
                    touches.first().map_or(seen.stat.modified_ns, |touch| head.history.commit(touch.commit).at_ns)
                }
                _ => seen.stat.modified_ns,
            };
            Verdict::Known(SinceThen::Changed { at_ns })
        }
    }
}

/// When a path was first changed after a commit. Of several changes the first counts: more of them do not make a note
/// fresher.
fn first_since(head: &AtHead, commit: usize, touches: &[Touch]) -> Option<i64> {
    let since = touches.iter().take_while(|touch| touch.commit < commit);
    since.map(|touch| head.history.commit(touch.commit).at_ns).min()
}

/// When a path that is not on disk went: with the last commit that touched it, unless that commit has it.
fn went_at(head: &AtHead, is_at_head: bool, touches: &[Touch]) -> Option<i64> {
    touches.first().filter(|_| !is_at_head).map(|touch| head.history.commit(touch.commit).at_ns)
}
