//! How links would resolve if a note had another name. Asked before a rename; nothing changes.

use rustc_hash::FxHashMap;

use super::resolve::{Resolver, name_hashes};
use super::snapshot::Snapshot;
use super::writer::Writer;
use crate::model::{Link, Note, NoteKey};

/// A note and its renamed version.
pub(crate) struct RenamePreview<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) key: NoteKey,
    pub(crate) renamed: &'a Note,
    resolver: &'a mut Resolver,
    sources_by_target: &'a FxHashMap<u64, Vec<NoteKey>>,
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
        key: NoteKey,
        renamed: &'a Note,
    ) -> RenamePreview<'a> {
        let (resolver, sources_by_target) = self.link_tables(snapshot);
        RenamePreview { snapshot, key, renamed, resolver, sources_by_target }
    }
}

impl RenamePreview<'_> {
    /// The note as it is.
    pub(crate) fn note(&self) -> &Note {
        self.snapshot.note(self.key)
    }

    /// The targets of links of notes, now and after the rename.
    pub(crate) fn targets(&mut self, links: &[(&Note, &Link)]) -> Vec<(Option<NoteKey>, Option<NoteKey>)> {
        let all =
            |resolver: &Resolver| links.iter().map(|(source, link)| resolver.resolve(source, link)).collect::<Vec<_>>();
        let now = all(self.resolver);
        now.into_iter().zip(self.as_if_renamed(all)).collect()
    }

    /// How to write the links of `source` so that each keeps its target after the rename. A broken link may come to resolve to
    /// the renamed note, as to any new note. `ways` has the ways to write a link to a note, best first.
    pub(crate) fn respelled<'l>(
        &mut self,
        source: &Note,
        links: impl Iterator<Item = &'l Link> + Clone,
        ways: impl Fn(&Link, NoteKey) -> Vec<String>,
    ) -> Vec<Respelled> {
        let now: Vec<Option<NoteKey>> = links.clone().map(|link| self.resolver.resolve(source, link)).collect();
        self.as_if_renamed(|resolver| {
            let respell = |(link, now): (&Link, Option<NoteKey>)| {
                let Some(meant) = now.filter(|_| resolver.resolve(source, link) != now) else { return Respelled::Kept };
                let means_it = |target: &String| {
                    resolver.resolve(source, &Link { target: target.clone(), ..link.clone() }) == Some(meant)
                };
                ways(link, meant).into_iter().find(means_it).map_or(Respelled::Stuck, Respelled::As)
            };
            links.zip(now).map(respell).collect()
        })
    }

    /// The targets of links that are in no note, now and after the rename.
    pub(crate) fn resolve_from_root(&mut self, links: &[&Link]) -> Vec<(Option<NoteKey>, Option<NoteKey>)> {
        let all = |resolver: &Resolver| links.iter().map(|link| resolver.resolve_from_root(link)).collect::<Vec<_>>();
        let now = all(self.resolver);
        now.into_iter().zip(self.as_if_renamed(all)).collect()
    }

    /// A link in another note to a third one that would resolve to the renamed note, or become ambiguous: its source and its
    /// target. The renamed note's own links are rewritten with it.
    pub(crate) fn captured(&mut self) -> Option<(NoteKey, NoteKey)> {
        let (snapshot, key) = (self.snapshot, self.key);
        let hashes = name_hashes(self.renamed);
        let mut sources: Vec<NoteKey> =
            hashes.iter().filter_map(|hash| self.sources_by_target.get(hash)).flatten().copied().collect();
        sources.sort_unstable();
        sources.dedup();
        self.as_if_renamed(|resolver| {
            sources.into_iter().filter(|source| *source != key).find_map(|source| {
                let mut links = snapshot.links(source).filter(|link| link.target.is_some_and(|target| target != key));
                let taken = links.find(|link| resolver.resolve(snapshot.note(source), link.link) != link.target)?;
                Some((source, taken.target?))
            })
        })
    }

    fn as_if_renamed<Answer>(&mut self, ask: impl FnOnce(&Resolver) -> Answer) -> Answer {
        self.resolver.insert(self.key, self.renamed);
        let answer = ask(self.resolver);
        self.resolver.insert(self.key, self.snapshot.note(self.key));
        answer
    }
}
