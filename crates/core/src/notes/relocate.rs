//! Notes under new names or paths: their files moved, and every link that would lose its target rewritten in the same step.
//!
//! A title is a name that links may use, so even one that leaves the file where it is can break them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::NoteError;
use super::aliases::AliasMove;
use super::follow_links::{FollowedText, SourceText, follow_links, follow_other_files, links_to_file};
use crate::index::{IndexError, RenamePreview, RenamedNotes, Snapshot, Writer, WrittenFile};
use crate::memory::MemoryError;
use crate::model::{ContentHash, FileStat, NoteKey, VaultPath, fold};
use crate::ports::{FileChange, NoteAction, VaultFiles};
use crate::session::Session;
use crate::{Knowledge, RequestKey};

/// Each is a file to be written and synced while every other writer waits.
const MAX_REWRITTEN: usize = 2000;

/// Notes and where they go.
pub(super) struct Relocation<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) files: Vec<RelocatedFile>,
    /// Files that are not notes, with their new paths.
    pub(super) others: BTreeMap<VaultPath, VaultPath>,
    /// Folders that move as a whole.
    pub(super) folders: BTreeMap<VaultPath, VaultPath>,
    pub(super) links: LinkPolicy,
}

/// One note and where it goes.
pub(super) struct RelocatedFile {
    pub(super) key: NoteKey,
    /// Possibly where it is.
    pub(super) to: VaultPath,
    /// The version on disk now.
    pub(super) expected: ContentHash,
    /// The version it becomes, its own links not yet rewritten.
    pub(super) bytes: Vec<u8>,
}

/// What may happen to the links of other notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    /// None is changed: notes that others link to keep their ids.
    KeepIds,
    /// None is changed, and none may lose its target.
    KeepTargets,
    /// Links to the notes are rewritten. A link to another note must not come to mean one of them.
    RewriteIncoming,
    /// Every link that would lose its target is rewritten.
    RewriteAll,
}

impl LinkPolicy {
    fn rewrites(self) -> bool {
        matches!(self, Self::RewriteIncoming | Self::RewriteAll)
    }
}

/// The notes after they were relocated.
#[derive(Default)]
pub(super) struct Relocated {
    /// The bytes of each relocated note, in the order given.
    pub(super) bytes: Vec<Vec<u8>>,
    /// Other files whose links were rewritten.
    pub(super) rewritten: Vec<RewrittenFile>,
    /// The notes whose links were rewritten, relocated ones included, by their path now.
    pub(super) updated: BTreeSet<VaultPath>,
    /// Symbolic links that led to a note and lead nowhere now. They are the user's files and stay as they are.
    pub(super) dangling: Vec<VaultPath>,
    /// Symbolic links to folders that led to a note and lead to it no more. They dangle if the folder is removed.
    pub(super) folder_links: Vec<VaultPath>,
    /// Notes with a link that could not be rewritten, and its target.
    pub(super) lost_links: Vec<(VaultPath, String)>,
}

/// A file whose links were rewritten.
pub(super) struct RewrittenFile {
    pub(super) real: VaultPath,
    pub(super) before: ContentHash,
    pub(super) after: ContentHash,
}

/// Another file with links to rewrite.
struct LinkingFile {
    path: VaultPath,
    real: VaultPath,
    /// Further paths that lead to it through links in the file system.
    others: Vec<VaultPath>,
    hash: ContentHash,
}

/// Folders with symbolic links resolved, each asked for once.
struct RealFolders<'a> {
    vault: &'a dyn VaultFiles,
    known: Mutex<FxHashMap<VaultPath, VaultPath>>,
}

impl RealFolders<'_> {
    /// A path with the symbolic links to its folder resolved.
    fn resolve<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let Some((folder, name)) = path.rsplit_once('/') else { return path.into() };
        let Ok(folder) = VaultPath::parse(folder) else { return path.into() };
        let mut known = self.known.lock();
        let real = known
            .entry(folder)
            .or_insert_with_key(|folder| self.vault.real_path(folder).unwrap_or_else(|_| folder.clone()));
        format!("{real}/{name}").into()
    }
}

impl Knowledge {
    /// Moves the files and rewrites the links, all or nothing.
    pub(super) fn relocate(
        &self,
        writer: &mut Writer,
        session: &Session,
        write: (NoteAction, Option<RequestKey>),
        relocation: Relocation<'_>,
    ) -> Result<Relocated, NoteError> {
        // Links in notes that are not in the index yet would break. Waiting here would stop the indexing.
        if self.indexer.is_stepping() {
            return Err(NoteError::Busy);
        }
        let Relocation { snapshot, files, others, folders, links } = relocation;
        let aliases = self.aliases_of(snapshot, &files)?;
        let renamed = self.renamed_notes(&files, &aliases);
        let mut preview = writer.preview_rename(snapshot, &renamed);
        let mut sources = sources_to_rewrite(&mut preview, links)?;
        self.add_sources_of_files(&preview, &others, links, &mut sources)?;
        let linking = self.linking_files(snapshot, &files, &sources)?;
        let mut texts: Vec<SourceText> = Vec::with_capacity(files.len() + linking.len());
        texts.extend(files.iter().map(|file| SourceText { source: file.key, bytes: file.bytes.clone() }));
        let linking = self.read_linking(snapshot, linking, &mut texts)?;

        let sources: Vec<NoteKey> = texts.iter().map(|text| text.source).collect();
        let mut texts = follow_links(&mut preview, texts)?;
        self.follow_files(&preview, &sources, (&others, &folders), &mut texts)?;
        let path_of = |key: &NoteKey| preview.note_then(*key).path.clone();
        let lost = sources.iter().zip(&texts).filter_map(|(key, text)| Some((path_of(key), text.lost.clone()?)));
        let mut relocated = Relocated { lost_links: lost.collect(), ..Relocated::default() };
        let mut changes = Vec::with_capacity(texts.len());
        let linking_texts = texts.split_off(files.len());
        for (file, FollowedText { bytes, .. }) in files.into_iter().zip(texts) {
            if bytes != file.bytes {
                relocated.updated.insert(file.to.clone());
            }
            let (from, to, expected) = (&snapshot.note(file.key).path, file.to, file.expected);
            relocated.bytes.push(bytes.clone());
            changes.push(match *from == to {
                true => FileChange::Replace { path: to, expected, bytes },
                false => FileChange::Move { from: from.clone(), to, expected, bytes },
            });
        }
        let mut other_paths: Vec<(usize, VaultPath)> = Vec::new();
        for (file, FollowedText { bytes, .. }) in linking.into_iter().zip(linking_texts) {
            let after = ContentHash::of(&bytes);
            if after != file.hash {
                relocated.updated.extend(file.others.iter().cloned().chain([file.path.clone()]));
                relocated.rewritten.push(RewrittenFile { real: file.real, before: file.hash, after });
                other_paths.extend(file.others.into_iter().map(|other| (changes.len(), other)));
                changes.push(FileChange::Replace { path: file.path, expected: file.hash, bytes });
            }
        }

        changes.extend(others.into_iter().map(|(from, to)| FileChange::Rename { from, to }));
        let ties = match self.ties_for_rename(&mut preview) {
            // Another attempt finds the links: nothing is lost by refusing this one.
            Err(error @ MemoryError::StillRead(_)) => return Err(NoteError::Memory(error)),
            ties => ties.inspect_err(|error| self.warn_lost(&error.to_string())).unwrap_or_default(),
        };
        // Before the files: whatever happens in between, no link of memory is lost.
        self.repoint_links(&ties);
        let stats = match self.apply_by(session, write, &changes) {
            Ok(stats) => stats,
            Err(error) => {
                self.repoint_links(&ties.reversed());
                return Err(error.into());
            }
        };
        let mut written = written_files(changes, &stats, other_paths);
        written.extend(aliases.iter().map(|alias| alias.written(snapshot, &written)).collect::<Vec<_>>());
        self.indexer.apply_written(writer, written);
        let lost = aliases.into_iter().filter(|alias| alias.to.is_none());
        let (paths, links): (Vec<VaultPath>, Vec<Option<VaultPath>>) =
            lost.map(|alias| (snapshot.note(alias.key).path.clone(), alias.folder_link)).unzip();
        relocated.dangling = self.left_dangling(paths);
        relocated.folder_links = links.into_iter().flatten().collect();
        Ok(relocated)
    }

    /// The notes as they will be, by all their paths.
    fn renamed_notes(&self, files: &[RelocatedFile], aliases: &[AliasMove]) -> RenamedNotes {
        let at = |path: &VaultPath, file: &RelocatedFile| self.indexer.preview(path, &file.bytes);
        let mut renamed = RenamedNotes {
            notes: files.par_iter().map(|file| (file.key, at(&file.to, file))).collect(),
            aliases: aliases.iter().map(|alias| (alias.key, files[alias.file].key)).collect(),
        };
        let moved = aliases.iter().filter_map(|alias| Some((alias.key, at(alias.to.as_ref()?, &files[alias.file]))));
        renamed.notes.extend(moved);
        renamed
    }

    /// Rewrites the relative links to folders and to files that are not notes, where either end moves.
    fn follow_files(
        &self,
        preview: &RenamePreview<'_>,
        sources: &[NoteKey],
        (others, folders): (&BTreeMap<VaultPath, VaultPath>, &BTreeMap<VaultPath, VaultPath>),
        texts: &mut [FollowedText],
    ) -> Result<(), NoteError> {
        let mut known: FxHashMap<VaultPath, Option<VaultPath>> = FxHashMap::default();
        let real_folders = RealFolders { vault: &*self.vault, known: Mutex::default() };
        for (key, text) in sources.iter().zip(texts) {
            let path = &preview.snapshot.note(*key).path;
            let (from, to) = (path.folder(), preview.note_then(*key).path.folder());
            if from == to && others.is_empty() {
                continue;
            }
            let mut failed = None;
            let mut path_after = |path: VaultPath| {
                let real = VaultPath::parse(&real_folders.resolve(path.as_str())).unwrap_or_else(|_| path.clone());
                let find = || self.vault.find_any_case(&real);
                let found = known.entry(path.clone()).or_insert_with(|| match find() {
                    Ok(found) => {
                        let found = found.first();
                        found.map(|found| others.get(found).or_else(|| folders.get(found)).unwrap_or(&path).clone())
                    }
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                });
                found.clone()
            };
            follow_other_files(text, (from, to), &mut path_after);
            if let Some(error) = failed {
                return Err(IndexError::from(error).into());
            }
        }
        Ok(())
    }

    /// Adds the notes that stay and have relative links to files that move. The index does not know these links, so every
    /// note is read.
    fn add_sources_of_files(
        &self,
        preview: &RenamePreview<'_>,
        others: &BTreeMap<VaultPath, VaultPath>,
        links: LinkPolicy,
        sources: &mut Vec<NoteKey>,
    ) -> Result<(), NoteError> {
        if others.is_empty() {
            return Ok(());
        }
        let folded: FxHashSet<String> = others.keys().map(|path| fold(path.as_str())).collect();
        let snapshot = preview.snapshot;
        let staying: Vec<NoteKey> = snapshot.files().filter(|key| !preview.renamed.contains(*key)).collect();
        let real_folders = RealFolders { vault: &*self.vault, known: Mutex::default() };
        let is_moved = |path: &str| folded.contains(&fold(path)) || folded.contains(&fold(&real_folders.resolve(path)));
        let links_to_one = |key: &NoteKey| -> Result<bool, NoteError> {
            let path = &snapshot.note(*key).path;
            let content = self.vault.read(path).map_err(IndexError::from)?;
            Ok(content.is_some_and(|content| links_to_file(&content.bytes, path.folder(), is_moved)))
        };
        let found: Vec<Option<NoteKey>> =
            staying.par_iter().map(|key| Ok(links_to_one(key)?.then_some(*key))).collect::<Result<_, NoteError>>()?;
        let found: Vec<NoteKey> = found.into_iter().flatten().filter(|key| !sources.contains(key)).collect();
        if let (Some((path, _)), false) = (others.first_key_value(), links.rewrites() || found.is_empty()) {
            return Err(NoteError::LinkIntegrity { path: path.clone(), count: found.len() });
        }
        sources.extend(found);
        Ok(())
    }

    /// The files of some notes but for the relocated ones, each once: the path to write it by, and the other paths that lead to
    /// it through links in the file system.
    fn linking_files(
        &self,
        snapshot: &Snapshot,
        relocated: &[RelocatedFile],
        sources: &[NoteKey],
    ) -> Result<Vec<LinkingFile>, NoteError> {
        let real_path = |key: NoteKey| self.vault.real_path(&snapshot.note(key).path).map_err(IndexError::from);
        let own: FxHashSet<VaultPath> = match sources {
            [] => FxHashSet::default(),
            _ => relocated.iter().map(|file| real_path(file.key)).collect::<Result<_, _>>()?,
        };
        let mut files: BTreeMap<VaultPath, Vec<VaultPath>> = BTreeMap::new();
        for source in sources {
            let real = real_path(*source)?;
            if !own.contains(&real) {
                files.entry(real).or_default().push(snapshot.note(*source).path.clone());
            }
        }
        let linking = |(real, mut paths): (VaultPath, Vec<VaultPath>)| {
            // A link may mean another note by each path of its file; the real path decides, if it is the path of a note.
            if snapshot.find_exact(&real).is_some() && !paths.contains(&real) {
                paths.push(real.clone());
            }
            paths.sort_by_key(|path| (*path != real, path.clone()));
            let path = paths.remove(0);
            let key = snapshot.find_exact(&path).expect("each is the path of a note");
            LinkingFile { hash: snapshot.note(key).hash, path, real, others: paths }
        };
        Ok(files.into_iter().map(linking).collect())
    }

    /// Adds the texts of linking files; without those that another program has just deleted.
    fn read_linking(
        &self,
        snapshot: &Snapshot,
        linking: Vec<LinkingFile>,
        texts: &mut Vec<SourceText>,
    ) -> Result<Vec<LinkingFile>, NoteError> {
        let mut found = Vec::with_capacity(linking.len());
        for file in linking {
            let Some(content) = self.vault.read(&file.path).map_err(IndexError::from)? else { continue };
            if content.hash != file.hash {
                return Err(NoteError::ChangedElsewhere { path: file.path });
            }
            let source = snapshot.find_exact(&file.path).expect("it is the path of a note");
            texts.push(SourceText { source, bytes: content.bytes });
            found.push(file);
        }
        Ok(found)
    }
}

/// What the index takes in. `other_paths` lead to the file of a change, given by its number.
fn written_files(
    changes: Vec<FileChange>,
    stats: &[Option<FileStat>],
    other_paths: Vec<(usize, VaultPath)>,
) -> Vec<WrittenFile> {
    let other_paths = other_paths.into_iter().filter_map(|(index, path)| match &changes[index] {
        FileChange::Replace { bytes, .. } => Some(WrittenFile::new(path, bytes.clone(), stats[index]?)),
        _ => None,
    });
    let other_paths: Vec<WrittenFile> = other_paths.collect();
    let written = changes.into_iter().zip(stats).filter_map(|(change, stat)| match change {
        FileChange::Move { from, to, bytes, .. } => {
            Some(WrittenFile { renamed_from: Some(from), ..WrittenFile::new(to, bytes, (*stat)?) })
        }
        FileChange::Replace { path, bytes, .. } => Some(WrittenFile::new(path, bytes, (*stat)?)),
        FileChange::Create { .. } | FileChange::Delete { .. } | FileChange::Rename { .. } => None,
    });
    written.chain(other_paths).collect()
}

/// The notes whose links are rewritten with those of the relocated notes, by id. Refuses what the policy does not allow.
fn sources_to_rewrite(preview: &mut RenamePreview<'_>, links: LinkPolicy) -> Result<Vec<NoteKey>, NoteError> {
    let (snapshot, renamed) = (preview.snapshot, preview.renamed);
    let Some((first, first_renamed)) = renamed.files().next() else { return Ok(Vec::new()) };
    let path_of = |key: NoteKey| snapshot.note(key).path.clone();
    let path = path_of(first);
    let keys = renamed.files().map(|(key, _)| key).chain(renamed.aliases.keys().copied());
    let incoming = keys.flat_map(|key| snapshot.graph().incoming(key)).copied();
    let mut sources: FxHashSet<NoteKey> = incoming.filter(|source| !renamed.contains(*source)).collect();
    if !links.rewrites() {
        let keeps_ids = renamed.files().all(|(key, note)| note.path.note_id() == path_of(key).note_id());
        let count = match links {
            LinkPolicy::KeepIds if !keeps_ids => sources.len(),
            _ => preview.sources_losing_links(&sources.iter().copied().collect::<Vec<_>>()),
        };
        if count > 0 {
            return Err(NoteError::LinkIntegrity { path, count });
        }
        sources.clear();
    }
    let captured = preview.captured();
    if let Some((source, other)) = captured.first().filter(|_| links != LinkPolicy::RewriteAll) {
        let (source_path, other) = (path_of(*source), path_of(*other));
        return Err(NoteError::LinkCaptured { path, to: first_renamed.path.clone(), source_path, other });
    }
    sources.extend(captured.into_iter().map(|(source, _)| source));
    let (count, limit) = (sources.len(), MAX_REWRITTEN);
    if count > limit {
        return Err(NoteError::TooManyLinks { path, count, limit });
    }
    let mut sources: Vec<NoteKey> = sources.into_iter().collect();
    sources.sort_by_key(|source| &snapshot.note(*source).id);
    Ok(sources)
}
