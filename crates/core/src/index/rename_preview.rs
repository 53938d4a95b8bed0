//! What links would resolve to if some notes had other names or paths. Asked before a rename or a move; nothing changes.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::resolve::{Resolver, is_relative, name_hashes};
use super::snapshot::Snapshot;
use super::writer::Writer;
use crate::model::{Link, LinkSyntax, Note, NoteKey, VaultPath};

/// Notes that get other names or paths.
#[derive(Default)]
pub(crate) struct RenamedNotes {
    /// The notes after the rename; also under those of their other paths (through links in the file system) that change with it.
    pub(crate) notes: BTreeMap<NoteKey, Note>,
    /// Every other path to the file of a renamed note, through links in the file system, and that note. A path that is not in
    /// `notes` has no file after the rename.
    pub(crate) aliases: BTreeMap<NoteKey, NoteKey>,
}

impl RenamedNotes {
    pub(crate) fn contains(&self, key: NoteKey) -> bool {
        self.notes.contains_key(&key) || self.aliases.contains_key(&key)
    }

    /// The renamed notes, each by one of its paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (NoteKey, &Note)> {
        self.notes.iter().map(|(key, note)| (*key, note)).filter(|(key, _)| !self.aliases.contains_key(key))
    }

    /// The other paths that have no file after the rename.
    pub(crate) fn lost_aliases(&self) -> impl Iterator<Item = NoteKey> {
        self.aliases.keys().copied().filter(|key| !self.notes.contains_key(key))
    }

    /// Whether a link now leads to the file that it led to before, by whichever path.
    fn is_same_file(&self, one: Option<NoteKey>, other: Option<NoteKey>) -> bool {
        let file = |key: NoteKey| self.aliases.get(&key).copied().unwrap_or(key);
        one.map(file) == other.map(file)
    }

    /// A note after the rename; for a path that has no file then, the note of that file.
    fn note_then<'a>(&'a self, snapshot: &'a Snapshot, key: NoteKey) -> &'a Note {
        let renamed = self.notes.get(&key).or_else(|| self.notes.get(self.aliases.get(&key)?));
        renamed.unwrap_or_else(|| snapshot.note(key))
    }
}

/// Notes and their renamed versions.
pub(crate) struct RenamePreview<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) renamed: &'a RenamedNotes,
    resolver: &'a mut Resolver,
    sources_by_target: &'a FxHashMap<u64, Vec<NoteKey>>,
}

/// Links of one note: all that its new text has.
pub(crate) struct SourceLinks<'a> {
    pub(crate) source: NoteKey,
    pub(crate) links: Vec<&'a Link>,
}

/// A link to respell.
pub(crate) struct LinkToRespell<'a> {
    pub(crate) link: &'a Link,
    /// The folder of its note then.
    pub(crate) folder: &'a str,
    /// The path of its target then.
    pub(crate) target: &'a VaultPath,
    /// Whether it is a path from the folder of its note.
    pub(crate) is_relative: bool,
}

/// How to write a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Respelled {
    /// Unchanged.
    Kept,
    /// With this target.
    As(String),
    /// No way to write it keeps its target.
    Stuck,
}

impl Writer {
    pub(crate) fn preview_rename<'a>(
        &'a mut self,
        snapshot: &'a Snapshot,
        renamed: &'a RenamedNotes,
    ) -> RenamePreview<'a> {
        let (resolver, sources_by_target) = self.link_tables(snapshot);
        RenamePreview { snapshot, renamed, resolver, sources_by_target }
    }
}

impl RenamePreview<'_> {
    /// A note as it will be.
    pub(crate) fn note_then(&self, key: NoteKey) -> &Note {
        self.renamed.note_then(self.snapshot, key)
    }

    /// How many of these notes have a link to a renamed note that would no longer resolve to it.
    pub(crate) fn sources_losing_links(&mut self, sources: &[NoteKey]) -> usize {
        let (snapshot, renamed) = (self.snapshot, self.renamed);
        self.as_if_renamed(|resolver| {
            let is_lost = |source: &&NoteKey| {
                let note = snapshot.note(**source);
                let mut to_renamed = snapshot.links(**source).filter_map(|link| Some((link.link, link.target?)));
                to_renamed.any(|(link, target)| {
                    renamed.contains(target) && !renamed.is_same_file(resolver.resolve(note, link), Some(target))
                })
            };
            sources.iter().filter(is_lost).count()
        })
    }

    /// How to write the links of some notes so that each keeps its target after the rename. A broken link may come to resolve
    /// to a renamed note, as to any new note. `ways` has the ways to write a link, best first.
    pub(crate) fn respelled(
        &mut self,
        sources: &[SourceLinks<'_>],
        ways: impl Fn(&LinkToRespell<'_>) -> Vec<String> + Sync,
    ) -> Vec<Vec<Respelled>> {
        let (snapshot, renamed) = (self.snapshot, self.renamed);
        let targets_now = |source: &SourceLinks<'_>| -> Vec<Option<NoteKey>> {
            let note = snapshot.note(source.source);
            source.links.iter().map(|link| self.resolver.resolve(note, link)).collect()
        };
        let now: Vec<Vec<Option<NoteKey>>> = sources.par_iter().map(targets_now).collect();
        self.as_if_renamed(|resolver| {
            let respelled = |(source, now): (&SourceLinks<'_>, &Vec<Option<NoteKey>>)| -> Vec<Respelled> {
                let respelling = Respelling { snapshot, renamed, resolver, source: source.source };
                source.links.iter().zip(now).map(|(link, now)| respelling.respell(link, *now, &ways)).collect()
            };
            sources.par_iter().zip(&now).map(respelled).collect()
        })
    }

    /// The targets of links that are in no note, now and after the rename.
    pub(crate) fn resolve_from_root(&mut self, links: &[&Link]) -> Vec<(Option<NoteKey>, Option<NoteKey>)> {
        let all = |resolver: &Resolver| links.iter().map(|link| resolver.resolve_from_root(link)).collect::<Vec<_>>();
        let now = all(self.resolver);
        now.into_iter().zip(self.as_if_renamed(all)).collect()
    }

    /// The other notes with a link to a third note that would resolve to a renamed note, or become ambiguous: the source and
    /// the target of its first such link. The renamed notes' own links are rewritten with them.
    pub(crate) fn captured(&mut self) -> Vec<(NoteKey, NoteKey)> {
        let (snapshot, renamed) = (self.snapshot, self.renamed);
        let hashes = renamed.notes.values().flat_map(name_hashes);
        let sources = hashes.filter_map(|hash| self.sources_by_target.get(&hash)).flatten().copied();
        let mut sources: Vec<NoteKey> = sources.filter(|source| !renamed.contains(*source)).collect();
        sources.sort_unstable();
        sources.dedup();
        self.as_if_renamed(|resolver| {
            let captured = |source: NoteKey| {
                let is_third = |target: NoteKey| !renamed.contains(target);
                let mut links = snapshot.links(source).filter(|link| link.target.is_some_and(is_third));
                let taken = links.find(|link| resolver.resolve(snapshot.note(source), link.link) != link.target)?;
                Some((source, taken.target?))
            };
            sources.into_iter().filter_map(captured).collect()
        })
    }

    fn as_if_renamed<Answer>(&mut self, ask: impl FnOnce(&Resolver) -> Answer) -> Answer {
        for (key, note) in &self.renamed.notes {
            self.resolver.insert(*key, note);
        }
        for key in self.renamed.lost_aliases() {
            self.resolver.remove(key);
        }
        let answer = ask(self.resolver);
        for key in self.renamed.notes.keys().copied().chain(self.renamed.lost_aliases()) {
            self.resolver.insert(key, self.snapshot.note(key));
        }
        answer
    }
}

/// The links of one note, among the renamed notes.
struct Respelling<'a> {
    snapshot: &'a Snapshot,
    renamed: &'a RenamedNotes,
    resolver: &'a Resolver,
    source: NoteKey,
}

impl Respelling<'_> {
    fn respell(
        &self,
        link: &Link,
        now: Option<NoteKey>,
        ways: impl Fn(&LinkToRespell<'_>) -> Vec<String>,
    ) -> Respelled {
        let Some(meant) = now else { return Respelled::Kept };
        let source = self.renamed.note_then(self.snapshot, self.source);
        let target = &self.renamed.note_then(self.snapshot, meant).path;
        let (folder_now, target_now) = (self.snapshot.note(self.source).path.folder(), &self.snapshot.note(meant).path);
        let is_relative_now = is_relative(folder_now, &link.target, target_now);
        // Other programs read a Markdown link from the folder of its note only, so it stays such a path.
        let stays_relative = link.syntax != LinkSyntax::Markdown
            || !is_relative_now
            || is_relative(source.path.folder(), &link.target, target);
        let means_it = |link: &Link| self.renamed.is_same_file(self.resolver.resolve(source, link), now);
        if stays_relative && means_it(link) {
            return Respelled::Kept;
        }
        let respelled = LinkToRespell { link, folder: source.path.folder(), target, is_relative: is_relative_now };
        let is_way = |target: &String| means_it(&Link { target: target.clone(), ..link.clone() });
        ways(&respelled).into_iter().find(is_way).map_or(Respelled::Stuck, Respelled::As)
    }
}
