//! Resolves a link to its note.
//!
//! The names of notes are indexed by a loose hash: one look-up gives a few candidates, and the rules compare the real strings.
//! The same hash tells which notes to resolve again when a note is added, removed or renamed.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::site_pages::{PageForm, common_folders, folder_of, folder_page, frontmatter_pages, tail, without_language};
use crate::model::{Link, LinkSyntax, Note, NoteKey, VaultPath, fold, hash_of_folded, loose_hash, without_extension};

/// Everything needed to resolve a link.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    names: Vec<Option<NoteNames>>,
    by_hash: FxHashMap<u64, Vec<NoteKey>>,
    /// By the whole path, for links that are paths: a vault may have ten thousand files called README.
    by_path: FxHashMap<u64, Vec<NoteKey>>,
    /// By the last two parts of the path of a page, for links to pages: a site may have a thousand called `overview`.
    by_tail: FxHashMap<u64, Vec<NoteKey>>,
}

/// The folded names of one note.
#[derive(Debug, PartialEq, Eq)]
struct NoteNames {
    path: VaultPath,
    /// Without extension.
    folded_path: Box<str>,
    folded_folder_length: usize,
    /// In the order of [`loose_order`], since a note may have thousands.
    aliases: Box<[Box<str>]>,
    title: Box<str>,
    /// Page paths in its frontmatter.
    pages: Box<[Box<str>]>,
}

impl NoteNames {
    fn new(note: &Note) -> Self {
        let folded_path: Box<str> = without_extension(&fold(note.path.as_str())).into();
        let mut aliases: Box<[Box<str>]> = note.aliases.iter().map(|alias| fold(alias).into()).collect();
        aliases.sort_unstable_by(|a, b| loose_order(a, b).then_with(|| a.cmp(b)));
        Self {
            path: note.path.clone(),
            folded_folder_length: folded_path.rfind('/').unwrap_or(0),
            pages: frontmatter_pages(note, &folded_path),
            folded_path,
            aliases,
            title: fold(&note.title).into(),
        }
    }

    fn has_alias(&self, name: &str, spelling: Spelling) -> bool {
        let found = match spelling {
            Spelling::Exact => {
                self.aliases.binary_search_by(|alias| loose_order(alias, name).then_with(|| (**alias).cmp(name)))
            }
            Spelling::Loose => self.aliases.binary_search_by(|alias| loose_order(alias, name)),
        };
        found.is_ok()
    }

    fn stem(&self) -> &str {
        self.folded_path.rsplit('/').next().unwrap_or(&self.folded_path)
    }

    fn folder(&self) -> &str {
        &self.folded_path[..self.folded_folder_length]
    }

    /// The pages of a site that it may be, best first.
    fn pages(&self) -> impl Iterator<Item = (&str, PageForm)> {
        let given = self.pages.iter().map(|page| (&**page, PageForm::Frontmatter));
        std::iter::once((&*self.folded_path, PageForm::File)).chain(folder_page(&self.folded_path)).chain(given)
    }

    fn hashes(&self) -> Vec<u64> {
        let mut hashes: Vec<u64> = self
            .pages()
            .map(|(page, _)| page.rsplit('/').next().unwrap_or(page))
            .chain(self.aliases.iter().map(|alias| &**alias))
            .chain([&*self.title])
            .map(loose_hash)
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }
}

/// The hashes of the path ends under which a note is found as a page.
fn tail_hashes(names: &NoteNames) -> Vec<u64> {
    let mut hashes: Vec<u64> = names.pages().filter_map(|(page, _)| tail(page)).map(loose_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

impl Resolver {
    /// Indexes the names of notes, each in its slot.
    pub(super) fn new(notes: &[Option<&Note>]) -> Self {
        let names: Vec<Option<NoteNames>> = notes.par_iter().map(|note| note.map(NoteNames::new)).collect();
        let hashes: Vec<Vec<u64>> =
            names.par_iter().map(|names| names.as_ref().map(NoteNames::hashes).unwrap_or_default()).collect();
        let mut resolver = Self::default();
        resolver.by_hash.reserve(names.len());
        resolver.by_path.reserve(names.len());
        resolver.by_tail.reserve(names.len());
        for (slot, (names, hashes)) in names.iter().zip(hashes).enumerate() {
            let Some(names) = names else { continue };
            for hash in hashes {
                resolver.by_hash.entry(hash).or_default().push(NoteKey::of_slot(slot));
            }
            resolver.add_paths(NoteKey::of_slot(slot), names);
        }
        resolver.names = names;
        resolver
    }

    /// Indexes a note's names. Returns the hashes under which links may resolve differently now; none when its names are
    /// unchanged.
    pub(super) fn insert(&mut self, key: NoteKey, note: &Note) -> Vec<u64> {
        let names = NoteNames::new(note);
        if self.names.get(key.slot()).is_some_and(|known| known.as_ref() == Some(&names)) {
            return Vec::new();
        }
        let mut touched = self.remove(key);
        let hashes = names.hashes();
        for hash in &hashes {
            self.by_hash.entry(*hash).or_default().push(key);
        }
        self.add_paths(key, &names);
        if self.names.len() <= key.slot() {
            self.names.resize_with(key.slot() + 1, || None);
        }
        self.names[key.slot()] = Some(names);
        touched.extend(hashes);
        touched
    }

    fn add_paths(&mut self, key: NoteKey, names: &NoteNames) {
        self.by_path.entry(loose_hash(&names.folded_path)).or_default().push(key);
        for hash in tail_hashes(names) {
            self.by_tail.entry(hash).or_default().push(key);
        }
    }

    /// Removes a note's names; returns the hashes under which links may resolve differently now.
    pub(super) fn remove(&mut self, key: NoteKey) -> Vec<u64> {
        let Some(names) = self.names.get_mut(key.slot()).and_then(Option::take) else { return Vec::new() };
        let hashes = names.hashes();
        for hash in &hashes {
            forget(&mut self.by_hash, *hash, key);
        }
        forget(&mut self.by_path, loose_hash(&names.folded_path), key);
        for hash in tail_hashes(&names) {
            forget(&mut self.by_tail, hash, key);
        }
        hashes
    }

    /// The target of a link of `source`.
    pub(super) fn resolve(&self, source: &Note, link: &Link) -> Option<NoteKey> {
        self.resolve_in(&fold(source.path.folder()), link)
    }

    /// The target of each link of a note, in order.
    pub(super) fn resolve_all(&self, source: &Note) -> Arc<[Option<NoteKey>]> {
        let folder = if source.links.is_empty() { String::new() } else { fold(source.path.folder()) };
        source.links.iter().map(|link| self.resolve_in(&folder, link)).collect()
    }

    /// The target of a link that is in no note, as in a note at the vault's root.
    pub(super) fn resolve_from_root(&self, link: &Link) -> Option<NoteKey> {
        self.resolve_in("", link)
    }

    fn resolve_in(&self, source_folder: &str, link: &Link) -> Option<NoteKey> {
        let target = fold(&link.target);
        let candidates = self.by_hash.get(&hash_of_folded(&target))?;
        let target = without_extension(&target);
        let ask = LinkQuery { resolver: self, candidates, source_folder, written: &link.target };
        let rooted = target.trim_start_matches('/');
        match link.syntax {
            LinkSyntax::Markdown => {
                let relative = if target.starts_with('/') { None } else { join(source_folder, target) };
                let file = relative.and_then(|path| ask.path(&path)).or_else(|| ask.path(&join("", rooted)?));
                file.or_else(|| if target.starts_with('/') { ask.page(&join("", rooted)?) } else { None })
            }
            LinkSyntax::Shortcode => {
                let relative = if target.starts_with('/') { None } else { join(source_folder, target) };
                relative.and_then(|path| ask.page_at(&path)).or_else(|| ask.page(&join("", rooted)?))
            }
            LinkSyntax::Wiki | LinkSyntax::Embed | LinkSyntax::Frontmatter if target.contains('/') => {
                let dotted = target.starts_with("./") || target.starts_with("../");
                let relative = if dotted { join(source_folder, target).and_then(|path| ask.path(&path)) } else { None };
                relative.or_else(|| ask.path(rooted)).or_else(|| ask.suffix(rooted))
            }
            LinkSyntax::Wiki | LinkSyntax::Embed | LinkSyntax::Frontmatter => ask
                .best(|names, spelling| spelling.same(names.stem(), target))
                .or_else(|| ask.best(|names, spelling| names.has_alias(target, spelling)))
                .or_else(|| ask.best(|names, spelling| spelling.same(&names.title, target))),
        }
    }
}

/// The hashes of all names of a note.
pub(crate) fn name_hashes(note: &Note) -> Vec<u64> {
    NoteNames::new(note).hashes()
}

/// One link's candidates and its place.
struct LinkQuery<'a> {
    resolver: &'a Resolver,
    candidates: &'a [NoteKey],
    source_folder: &'a str,
    /// The target as written, to prefer the file that it spells exactly.
    written: &'a str,
}

/// How a link may spell a name, best first.
const SPELLINGS: [Spelling; 2] = [Spelling::Exact, Spelling::Loose];

#[derive(Clone, Copy)]
enum Spelling {
    Exact,
    /// With spaces and dashes exchanged.
    Loose,
}

impl Spelling {
    fn same(self, a: &str, b: &str) -> bool {
        match self {
            Self::Exact => a == b,
            Self::Loose => a.len() == b.len() && loose_order(a, b).is_eq(),
        }
    }
}

impl LinkQuery<'_> {
    fn path(&self, path: &str) -> Option<NoteKey> {
        let candidates = self.resolver.by_path.get(&loose_hash(path))?;
        Self { candidates, ..*self }.best(|names, spelling| spelling.same(&names.folded_path, path))
    }

    fn suffix(&self, path: &str) -> Option<NoteKey> {
        self.best(|names, spelling| ends_with(&names.folded_path, path, spelling))
    }

    /// The page at a path from the root of the vault.
    fn page_at(&self, path: &str) -> Option<NoteKey> {
        self.pages(path, |page, spelling| spelling.same(page, path))?
    }

    /// The page at a path from the root of the site: the one at that path in the vault, else the only one whose path ends
    /// so, with a language in front of the path or without.
    fn page(&self, path: &str) -> Option<NoteKey> {
        let ending = |path: &str| self.pages(path, |page, spelling| ends_with(page, path, spelling));
        let found = self.page_at(path).map(Some).or_else(|| ending(path));
        found.or_else(|| without_language(path).find_map(ending))?
    }

    /// The page that a rule admits, among those with the last parts of a path. Of several, the one that has the most
    /// folders in common with the link's note: a site in several languages, or versions, has a tree for each with the
    /// same paths in it, and a page links to its own tree. `Some(None)` where two are equally near.
    fn pages(&self, path: &str, admits: impl Fn(&str, Spelling) -> bool) -> Option<Option<NoteKey>> {
        let candidates = match tail(path) {
            Some(tail) => self.resolver.by_tail.get(&loose_hash(tail))?,
            None => self.candidates,
        };
        SPELLINGS.into_iter().find_map(|spelling| {
            let mut found: Vec<_> = candidates
                .iter()
                .filter_map(|key| Some((*key, self.resolver.names[key.slot()].as_ref()?)))
                .filter_map(|(key, names)| {
                    let (page, form) = names.pages().find(|(page, _)| admits(page, spelling))?;
                    let lies_in = if form == PageForm::Frontmatter { names.folder() } else { folder_of(page) };
                    let distance = Reverse(common_folders(lies_in, self.source_folder));
                    Some((distance, form, names.path.as_str(), page, key))
                })
                .collect();
            found.sort_unstable();
            let (nearest, _, _, page, key) = *found.first()?;
            let is_only = found.iter().all(|(distance, _, _, other, _)| *distance != nearest || *other == page);
            Some(is_only.then_some(key))
        })
    }

    /// The best candidate a rule admits: the exact spelling before one with spaces and dashes exchanged; then same folder,
    /// shallowest, same case and Unicode form, alphabetical.
    fn best(&self, admits: impl Fn(&NoteNames, Spelling) -> bool) -> Option<NoteKey> {
        SPELLINGS.into_iter().find_map(|spelling| {
            self.candidates
                .iter()
                .filter_map(|key| Some((*key, self.resolver.names[key.slot()].as_ref()?)))
                .filter(|(_, names)| admits(names, spelling))
                .min_by_key(|(_, names)| self.preference(names))
                .map(|(key, _)| key)
        })
    }

    fn preference<'n>(&self, names: &'n NoteNames) -> (bool, usize, bool, &'n str) {
        let is_elsewhere = names.folder() != self.source_folder;
        (is_elsewhere, names.path.depth(), !spells(self.written, &names.path), names.path.as_str())
    }
}

/// Whether a target as written ends as a path does, in the same case and Unicode form. Steps such as `..` do not count.
fn spells(written: &str, path: &VaultPath) -> bool {
    let written = [".md", ".markdown"].iter().find_map(|end| written.strip_suffix(end)).unwrap_or(written);
    let path = path.as_str().rsplit_once('.').map_or(path.as_str(), |(rest, _)| rest);
    let mut parts = path.rsplit('/');
    let mut spelled = written.rsplit('/').take_while(|part| !matches!(*part, "" | "." | ".."));
    spelled.all(|part| parts.next() == Some(part))
}

/// Whether a target is the path of a note from a folder.
pub(super) fn is_relative(folder: &str, target: &str, path: &VaultPath) -> bool {
    !target.starts_with('/')
        && join(&fold(folder), without_extension(&fold(target))).as_deref()
            == Some(without_extension(&fold(path.as_str())))
}

/// A relative path from a folder, `.` and `..` walked; `None` when it leaves the vault.
pub(crate) fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a path ends with another, by whole parts.
fn ends_with(path: &str, end: &str, spelling: Spelling) -> bool {
    // Spaces and dashes are one byte each, so an exchanged spelling has the same length.
    path.len().checked_sub(end.len()).is_some_and(|start| {
        path.is_char_boundary(start)
            && (start == 0 || path.as_bytes()[start - 1] == b'/')
            && spelling.same(&path[start..], end)
    })
}

/// The order of names with dashes as spaces, as in [`loose_hash`].
fn loose_order(a: &str, b: &str) -> Ordering {
    let loose = |byte: u8| if byte == b'-' { b' ' } else { byte };
    a.bytes().map(loose).cmp(b.bytes().map(loose))
}

fn forget(keys_by_hash: &mut FxHashMap<u64, Vec<NoteKey>>, hash: u64, key: NoteKey) {
    if let Some(keys) = keys_by_hash.get_mut(&hash) {
        keys.retain(|other| *other != key);
        if keys.is_empty() {
            keys_by_hash.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ContentHash, FileStat, LinkType, TextCounts};

    fn note(path: &str, title: &str, aliases: &[&str]) -> Note {
        let path = VaultPath::parse(path).unwrap();
        Note {
            id: path.note_id(),
            stat: FileStat { modified_ns: 0, size: 0 },
            hash: ContentHash::of(b""),
            title: title.to_owned(),
            tags: Vec::new(),
            aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
            properties: Vec::new(),
            links: Vec::new(),
            sections: Vec::new(),
            body_start: 0,
            counts: TextCounts::default(),
            warnings: Vec::new(),
            sources: Vec::new(),
            path,
        }
    }

    /// Resolves `target`, written in `source`, in a vault of `path`, `path = title` or `path = title | alias`.
    fn check(vault: &[&str], source: &str, syntax: LinkSyntax, target: &str, expected: Option<&str>) {
        let notes: Vec<Note> = vault
            .iter()
            .map(|line| {
                let (path, names) = line.split_once(" = ").unwrap_or((line, ""));
                let (title, alias) = names.split_once(" | ").unwrap_or((names, ""));
                note(path, title, if alias.is_empty() { &[] } else { std::slice::from_ref(&alias) })
            })
            .collect();
        // Whatever the order of insertion, the answer is the same.
        for reversed in [false, true] {
            let mut resolver = Resolver::default();
            let mut slots: Vec<usize> = (0..notes.len()).collect();
            if reversed {
                slots.reverse();
            }
            for slot in slots {
                resolver.insert(NoteKey(u32::try_from(slot).unwrap()), &notes[slot]);
            }
            let link = Link {
                syntax,
                target: target.to_owned(),
                fragment: None,
                label: None,
                link_type: LinkType::References,
            };
            let found = resolver.resolve(&note(source, "", &[]), &link).map(|key| notes[key.slot()].path.as_str());
            assert_eq!(found, expected, "{target} in {source}");
        }
    }

    #[test]
    fn a_markdown_link_is_relative_to_its_folder_then_to_the_root() {
        let vault = ["guides/setup.md", "setup.md", "guides/deep/more.md", "api/My Page.md"];
        let markdown = LinkSyntax::Markdown;
        check(&vault, "guides/a.md", markdown, "setup.md", Some("guides/setup.md"));
        check(&vault, "guides/a.md", markdown, "./deep/more.md", Some("guides/deep/more.md"));
        check(&vault, "guides/deep/a.md", markdown, "../setup.md", Some("guides/setup.md"));
        check(&vault, "api/a.md", markdown, "setup.md", Some("setup.md"));
        check(&vault, "api/a.md", markdown, "/guides/setup.md", Some("guides/setup.md"));
        check(&vault, "x.md", markdown, "API/my-page.md", Some("api/My Page.md"));
        check(&vault, "x.md", markdown, "../setup.md", None);
        check(&vault, "x.md", markdown, "more.md", None);
    }

    #[test]
    fn a_wikilink_with_a_slash_is_a_path_then_the_end_of_one() {
        let vault = ["a/notes/x.md", "notes/x.md", "b/deep/notes/x.md", "b/onlynotes/x.md"];
        let wiki = LinkSyntax::Wiki;
        check(&vault, "b/s.md", wiki, "notes/x", Some("notes/x.md"));
        check(&vault, "b/s.md", wiki, "deep/notes/x", Some("b/deep/notes/x.md"));
        check(&vault, "b/s.md", wiki, "Deep/Notes/X.md", Some("b/deep/notes/x.md"));
        check(&vault, "b/s.md", wiki, "y/x", None);
        check(&vault, "a/notes/s.md", wiki, "../../notes/x", Some("notes/x.md"));
        check(&vault, "a/s.md", wiki, "./notes/x", Some("a/notes/x.md"));
    }

    #[test]
    fn a_bare_wikilink_is_a_stem_then_an_alias_then_a_title() {
        let vault = ["a/Core.md = The Middle | Kernel", "b/kernel.md = Core", "c/other.md = Kernel | Nothing"];
        let wiki = LinkSyntax::Wiki;
        check(&vault, "s.md", wiki, "core", Some("a/Core.md"));
        check(&vault, "s.md", wiki, "Kernel", Some("b/kernel.md"));
        check(&vault, "s.md", wiki, "the middle", Some("a/Core.md"));
        check(&vault, "s.md", wiki, "nothing", Some("c/other.md"));
        check(&vault, "s.md", wiki, "nobody", None);
    }

    #[test]
    fn ties_go_to_the_same_folder_then_the_shallowest_then_the_first() {
        let vault = ["z/y/x/n.md", "b/n.md", "a/n.md", "c/d/n.md"];
        check(&vault, "c/d/s.md", LinkSyntax::Wiki, "n", Some("c/d/n.md"));
        check(&vault, "q/s.md", LinkSyntax::Wiki, "n", Some("a/n.md"));
    }

    #[test]
    fn exact_case_wins_among_equally_near_files() {
        let vault = ["Moloch.md", "moloch.md", "MOLOCH.md", "deep/moloch.md", "deep/Moloch.md"];
        for (target, expected) in
            [("Moloch", "Moloch.md"), ("moloch", "moloch.md"), ("moloch.md", "moloch.md"), ("mOLOCH", "MOLOCH.md")]
        {
            check(&vault, "s.md", LinkSyntax::Wiki, target, Some(expected));
        }
        check(&vault, "deep/s.md", LinkSyntax::Markdown, "../moloch.md", Some("moloch.md"));
        check(&vault, "deep/s.md", LinkSyntax::Markdown, "./moloch.md", Some("deep/moloch.md"));
        check(&vault, "s.md", LinkSyntax::Wiki, "deep/Moloch", Some("deep/Moloch.md"));
        check(&["d/a.md", "D/a.md"], "s.md", LinkSyntax::Wiki, "a", Some("D/a.md"));
        check(&["a/n.md", "b/N.md"], "s.md", LinkSyntax::Wiki, "N", Some("b/N.md"));
        // The same folder and the smaller depth come first.
        check(&["a/n.md", "b/N.md"], "a/s.md", LinkSyntax::Wiki, "N", Some("a/n.md"));
        check(&["n.md", "b/N.md"], "c/s.md", LinkSyntax::Wiki, "N", Some("n.md"));
    }

    #[test]
    fn spaces_and_dashes_are_exchanged_only_when_nothing_fits_as_written() {
        let vault = ["my note.md", "deep/my-note.md"];
        check(&vault, "s.md", LinkSyntax::Wiki, "my-note", Some("deep/my-note.md"));
        check(&vault, "s.md", LinkSyntax::Wiki, "My Note", Some("my note.md"));
        check(&["my note.md"], "s.md", LinkSyntax::Wiki, "my-note", Some("my note.md"));
        check(&["a-b c.md"], "s.md", LinkSyntax::Wiki, "a b-c", Some("a-b c.md"));
    }

    #[test]
    fn the_exact_spelling_of_an_alias_is_found_among_many() {
        let wiki = LinkSyntax::Wiki;
        check(&["a.md = A | b-c d", "x/z.md = Z | b c-d"], "s.md", wiki, "b c-d", Some("x/z.md"));
        check(&["a.md = A | b-c d", "x/z.md = Z | b c-d"], "s.md", wiki, "b c d", Some("a.md"));
    }

    #[test]
    fn links_to_a_note_with_many_aliases_resolve_by_search() {
        // Half of the aliases differ only in spaces and dashes.
        let variant =
            |n: usize| (0..16).map(|bit| if (n >> bit) & 1 == 0 { "a " } else { "a-" }).collect::<String>() + "a";
        let time = |count: usize| {
            let name = |n| if n % 2 == 0 { variant(n) } else { format!("alias {n}") };
            let aliases: Vec<String> = (0..count).map(name).collect();
            let names: Vec<&str> = aliases.iter().map(String::as_str).collect();
            let mut resolver = Resolver::default();
            resolver.insert(NoteKey(0), &note("many.md", "Many", &names));
            let links = aliases.iter().map(|alias| Link {
                syntax: LinkSyntax::Wiki,
                target: alias.replacen(' ', "-", 3),
                fragment: None,
                label: None,
                link_type: LinkType::References,
            });
            let mut source = note("source.md", "Source", &[]);
            source.links = links.collect();
            let started = std::time::Instant::now();
            let found = resolver.resolve_all(&source);
            let took = started.elapsed();
            assert!(found.iter().all(|key| *key == Some(NoteKey(0))));
            took
        };
        let (few, many) = (time(2_000), time(20_000));
        assert!(many < few * 40, "{many:?}, and {few:?} for a tenth");
    }

    #[test]
    fn names_match_across_case_and_unicode_form() {
        check(&["Cafe\u{301}.md"], "s.md", LinkSyntax::Wiki, "CAFÉ", Some("Cafe\u{301}.md"));
        check(&["日本/が.md"], "s.md", LinkSyntax::Wiki, "か\u{3099}", Some("日本/が.md"));
        check(&["v1.2.md"], "s.md", LinkSyntax::Wiki, "v1.2", Some("v1.2.md"));
        check(&["Node.js.md"], "s.md", LinkSyntax::Wiki, "node.js", Some("Node.js.md"));
    }
}
