//! A note under a new title: its file renamed, and every link to it rewritten in the same step.
//!
//! A title is a name that links may use, so even one that leaves the file where it is can break them.

use std::collections::BTreeMap;

use super::NoteError;
use crate::index::{IndexError, RenamePreview, Respelled, Snapshot, Writer, WrittenFile};
use crate::model::{ContentHash, Link, Note, NoteKey, VaultPath};
use crate::parse;
use crate::ports::FileChange;
use crate::{Knowledge, RequestKey};

/// Each is a file to be written and synced while everyone else waits.
const MAX_REWRITTEN: usize = 2000;

/// What is renamed to what.
pub(super) struct Rename<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) key: NoteKey,
    /// Where it goes; possibly where it is.
    pub(super) to: VaultPath,
    /// The version on disk now.
    pub(super) expected: ContentHash,
    /// The version it becomes, its own links not yet rewritten.
    pub(super) bytes: Vec<u8>,
    /// Whether links to it may be rewritten.
    pub(super) update_links: bool,
}

/// What came of it.
pub(super) struct Renamed {
    /// The note's final bytes.
    pub(super) bytes: Vec<u8>,
    /// The files whose links were rewritten, by real path, with the versions before and after.
    pub(super) rewritten: Vec<(VaultPath, ContentHash, ContentHash)>,
    /// Symbolic links that led to the note and lead nowhere now. They are the user's files and stay as they are.
    pub(super) dangling: Vec<VaultPath>,
}

impl Knowledge {
    /// Moves the file and rewrites the links, all or nothing.
    pub(super) fn rename(
        &self,
        writer: &mut Writer,
        request: Option<RequestKey>,
        rename: Rename<'_>,
    ) -> Result<Renamed, NoteError> {
        let Rename { snapshot, key, to, expected, bytes, update_links } = rename;
        let note = snapshot.note(key);
        let renamed = self.indexer.preview(&to, &bytes);
        let sources = snapshot.incoming(key, usize::MAX);
        let mut preview = writer.preview_rename(snapshot, key, &renamed);
        refuse_breaking(&mut preview, &sources, update_links)?;
        if let Some((source, other)) = preview.captured() {
            let path_of = |key| snapshot.note(key).path.clone();
            let (source_path, other) = (path_of(source), path_of(other));
            return Err(NoteError::LinkCaptured { path: note.path.clone(), to, source_path, other });
        }

        // Its own links are part of what is being written, so they follow without being asked for.
        let bytes = follow_links(&mut preview, note, &bytes)?;
        let mut changes = vec![if to == note.path {
            FileChange::Replace { path: to, expected, bytes: bytes.clone() }
        } else {
            FileChange::Move { from: note.path.clone(), to, expected, bytes: bytes.clone() }
        }];
        let aliases = if renamed.path == note.path { Vec::new() } else { self.other_paths_to(snapshot, note)? };
        let mut other_paths: Vec<(usize, VaultPath)> = Vec::new();
        let mut rewritten_files = Vec::new();
        for (path, others) in self.linking_files(snapshot, note, if update_links { &sources } else { &[] })? {
            let source = snapshot.note(snapshot.find_exact(&path).expect("it is one of the sources"));
            let Some(content) = self.vault.read(&path).map_err(IndexError::from)? else { continue };
            if content.hash != source.hash {
                return Err(NoteError::ChangedElsewhere { path });
            }
            let rewritten = follow_links(&mut preview, source, &content.bytes)?;
            if rewritten != content.bytes {
                let real = self.vault.real_path(&path).map_err(IndexError::from)?;
                rewritten_files.push((real, content.hash, ContentHash::of(&rewritten)));
                other_paths.extend(others.into_iter().map(|other| (changes.len(), other)));
                changes.push(FileChange::Replace { path, expected: content.hash, bytes: rewritten });
            }
        }

        let ties = self.ties_for_rename(&mut preview).inspect_err(|error| self.warn_lost(&error.to_string()));
        let ties = ties.unwrap_or_default();
        // Before the files: whatever happens in between, no link of memory is lost.
        self.repoint_links(&ties);
        let stats = match self.vault.apply_for(&changes, request) {
            Ok(stats) => stats,
            Err(error) => {
                self.repoint_links(&ties.reversed());
                return Err(error.into());
            }
        };
        let other_paths = other_paths.into_iter().filter_map(|(index, path)| match &changes[index] {
            FileChange::Replace { bytes, .. } => Some(WrittenFile::new(path, bytes.clone(), stats[index]?)),
            _ => None,
        });
        let other_paths: Vec<WrittenFile> = other_paths.collect();
        let written = changes.into_iter().zip(stats).filter_map(|(change, stat)| match change {
            FileChange::Move { from, to, bytes, .. } => {
                Some(WrittenFile { renamed_from: Some(from), ..WrittenFile::new(to, bytes, stat?) })
            }
            FileChange::Replace { path, bytes, .. } => Some(WrittenFile::new(path, bytes, stat?)),
            FileChange::Create { .. } | FileChange::Delete { .. } => None,
        });
        self.indexer.apply_written(writer, written.chain(other_paths).collect());
        Ok(Renamed { bytes, rewritten: rewritten_files, dangling: self.left_dangling(aliases) })
    }

    /// Which of the paths that led to a file still exist without it: a path through a linked folder went with the file, a link
    /// to the file itself leads nowhere now.
    pub(super) fn left_dangling(&self, mut aliases: Vec<VaultPath>) -> Vec<VaultPath> {
        aliases.retain(|path| self.vault.find_any_case(path).is_ok_and(|found| found.contains(path)));
        aliases
    }

    /// The other paths by which the vault has a note's file, through links in the file system.
    pub(super) fn other_paths_to(&self, snapshot: &Snapshot, note: &Note) -> Result<Vec<VaultPath>, NoteError> {
        let real = self.vault.real_path(&note.path).map_err(IndexError::from)?;
        let mut paths = Vec::new();
        // Only a note with the same bytes can be the same file.
        for other in snapshot.files().map(|key| snapshot.note(key)) {
            if other.hash == note.hash
                && other.path != note.path
                && self.vault.real_path(&other.path).map_err(IndexError::from)? == real
            {
                paths.push(other.path.clone());
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// The files of some notes but for the renamed one, each once: the path to write it by, and the other paths that lead to
    /// it through links in the file system.
    fn linking_files(
        &self,
        snapshot: &Snapshot,
        renamed: &Note,
        sources: &[NoteKey],
    ) -> Result<Vec<(VaultPath, Vec<VaultPath>)>, NoteError> {
        let own = self.vault.real_path(&renamed.path).map_err(IndexError::from)?;
        let mut files: BTreeMap<VaultPath, Vec<VaultPath>> = BTreeMap::new();
        for source in sources {
            let path = &snapshot.note(*source).path;
            let real = self.vault.real_path(path).map_err(IndexError::from)?;
            if real != own {
                files.entry(real).or_default().push(path.clone());
            }
        }
        let path_to_write = |(real, mut paths): (VaultPath, Vec<VaultPath>)| {
            paths.sort_by_key(|path| (*path != real, path.clone()));
            let path = paths.remove(0);
            (path, paths)
        };
        Ok(files.into_iter().map(path_to_write).collect())
    }
}

/// A note that others link to gets a new id, or loses a name they use, only together with their links.
fn refuse_breaking(preview: &mut RenamePreview<'_>, sources: &[NoteKey], update_links: bool) -> Result<(), NoteError> {
    let path = preview.note().path.clone();
    if update_links {
        let (count, limit) = (sources.len(), MAX_REWRITTEN);
        let too_many = count > limit;
        return if too_many { Err(NoteError::TooManyLinks { path, count, limit }) } else { Ok(()) };
    }
    let count = if preview.renamed.path.note_id() == path.note_id() {
        notes_losing_it(preview, sources)
    } else {
        sources.len()
    };
    if count > 0 { Err(NoteError::LinkIntegrity { path, count }) } else { Ok(()) }
}

/// How many of these notes have a link that means the note now and would not once it is renamed.
fn notes_losing_it(preview: &mut RenamePreview<'_>, sources: &[NoteKey]) -> usize {
    let (snapshot, key) = (preview.snapshot, preview.key);
    let links = sources.iter().flat_map(|source| {
        let note = snapshot.note(*source);
        note.links.iter().map(move |link| (note, link))
    });
    let links: Vec<(&Note, &Link)> = links.collect();
    let meant = preview.targets(&links).into_iter();
    let lost = links.iter().zip(meant).filter(|(_, (now, then))| *now == Some(key) && then != now);
    let mut losing: Vec<&VaultPath> = lost.map(|((source, _), _)| &source.path).collect();
    losing.dedup();
    losing.len()
}

/// A source's bytes with every link that would mean another note than now rewritten so that it means the same. The source
/// may be the renamed note itself.
fn follow_links(preview: &mut RenamePreview<'_>, source: &Note, bytes: &[u8]) -> Result<Vec<u8>, NoteError> {
    let (note, renamed) = (preview.snapshot.note(preview.key), preview.renamed);
    let stuck = |link: &Link| {
        let name = renamed.path.stem();
        if !parse::can_be_linked(name) {
            let reason = "links to a name with `#`, `|`, `^`, `[[` or `]]` cannot be written".to_owned();
            return NoteError::BadTitle { title: name.to_owned(), reason };
        }
        NoteError::LinkNotRewritable {
            path: note.path.clone(),
            source_path: source.path.clone(),
            target: link.target.clone(),
        }
    };
    let (snapshot, key) = (preview.snapshot, preview.key);
    let ways = |link: &Link, meant: NoteKey| {
        let path = if meant == key { &renamed.path } else { &snapshot.note(meant).path };
        spellings(path, link)
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        // Byte ranges are those of the decoded text; only a whole one maps back.
        let respelled = preview.respelled(source, source.links.iter(), ways);
        return match source.links.iter().zip(respelled).find(|(_, respelled)| *respelled != Respelled::Kept) {
            Some((link, _)) => Err(stuck(link)),
            None => Ok(bytes.to_vec()),
        };
    };
    let mut failed = None;
    let rewritten = parse::rewrite_all_targets(text, |sites| {
        let respelled = preview.respelled(source, sites.iter().map(|site| &site.link), ways);
        let target = |(site, respelled): (&parse::LinkSite, Respelled)| match respelled {
            Respelled::Kept => None,
            Respelled::As(target) => Some(target),
            Respelled::Stuck => {
                failed = Some(stuck(&site.link));
                None
            }
        };
        sites.iter().zip(respelled).map(target).collect()
    });
    match failed.or_else(|| rewritten.refused.first().map(|refused| stuck(&refused.link))) {
        Some(error) => Err(error),
        None => Ok(rewritten.text.into_bytes()),
    }
}

/// The ways to write a link to a path, nearest to how the link was written first.
fn spellings(to: &VaultPath, link: &Link) -> Vec<String> {
    // The address of a page may end with a slash.
    let target = link.target.trim_end_matches('/');
    let slash = if target.len() < link.target.len() { "/" } else { "" };
    let had_extension = [".md", ".markdown"].iter().any(|end| target.to_lowercase().ends_with(end));
    let name = if had_extension { to.file_name() } else { to.stem() };
    let folder = target.rfind('/').map_or("", |slash| &target[..=slash]);
    let whole = if had_extension { to.as_str() } else { without_extension(to) };
    let from_root = format!("/{whole}{slash}");
    if target.starts_with('/') {
        // The page of a folder may have become a page in it.
        vec![format!("{folder}{name}{slash}"), format!("{target}/{name}{slash}"), from_root]
    } else {
        vec![format!("{folder}{name}{slash}"), format!("{whole}{slash}"), from_root]
    }
}

fn without_extension(path: &VaultPath) -> &str {
    path.as_str().rsplit_once('.').map_or(path.as_str(), |(rest, _)| rest)
}
