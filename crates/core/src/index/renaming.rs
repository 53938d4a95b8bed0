//! What links would mean if a note had other names. Asked before a note is renamed; nothing is changed by asking.

use rustc_hash::FxHashMap;

use super::indexer::Writer;
use super::publish::wanted_by;
use super::resolve::{Resolver, name_hashes};
use super::snapshot::Snapshot;
use crate::model::{Link, Note, NoteKey};

/// A note and what it may become.
pub(crate) struct Renaming<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) key: NoteKey,
    pub(crate) renamed: &'a Note,
    resolver: &'a mut Resolver,
    wanted: &'a FxHashMap<u64, Vec<NoteKey>>,
}

/// How a link is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Respelled {
    /// As it is.
    Kept,
    /// With this target.
    As(String),
    /// No way to write it means the same.
    Stuck,
}

impl Writer {
    /// Prepares to ask about a note of the snapshot, and what it may become.
    pub(crate) fn renaming<'a>(&'a mut self, snapshot: &'a Snapshot, key: NoteKey, renamed: &'a Note) -> Renaming<'a> {
        Renaming {
            snapshot,
            key,
            renamed,
            resolver: self.resolver.get_or_insert_with(|| snapshot.resolver()),
            wanted: self.wanted.get_or_insert_with(|| wanted_by(snapshot.entries())),
        }
    }
}

impl Renaming<'_> {
    /// The note as it is.
    pub(crate) fn note(&self) -> &Note {
        self.snapshot.note(self.key)
    }

    /// What links of notes mean now, and would mean once the note is renamed.
    pub(crate) fn meant(&mut self, links: &[(&Note, &Link)]) -> Vec<(Option<NoteKey>, Option<NoteKey>)> {
        let all =
            |resolver: &Resolver| links.iter().map(|(source, link)| resolver.resolve(source, link)).collect::<Vec<_>>();
        let now = all(self.resolver);
        now.into_iter().zip(self.as_if_renamed(all)).collect()
    }

    /// How links of `source` are to be written so that each means the same once the note is renamed. A link that means nothing
    /// yet may come to mean the renamed note, as it may with any new note. `ways` has the ways to write a link to a note, the
    /// best first.
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

    /// What a link that stands in no note means now, and would mean then.
    pub(crate) fn meant_from_top(&mut self, links: &[&Link]) -> Vec<(Option<NoteKey>, Option<NoteKey>)> {
        let all = |resolver: &Resolver| links.iter().map(|link| resolver.resolve_from_top(link)).collect::<Vec<_>>();
        let now = all(self.resolver);
        now.into_iter().zip(self.as_if_renamed(all)).collect()
    }

    /// A link in another note that means a third one and would mean the renamed one, or no note any more since both would
    /// answer to it: who has it, and what it means. The renamed note's own links are rewritten with it.
    pub(crate) fn captured(&mut self) -> Option<(NoteKey, NoteKey)> {
        let (snapshot, key, wanted) = (self.snapshot, self.key, self.wanted);
        let hashes = name_hashes(self.renamed);
        let mut sources: Vec<NoteKey> = hashes.iter().filter_map(|hash| wanted.get(hash)).flatten().copied().collect();
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
