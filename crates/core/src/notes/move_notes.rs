//! A note or a folder under another path, with every link to it and every link in it. Files of a folder that are not notes move
//! along.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::relocate::{LinkPolicy, Relocated, RelocatedFile, Relocation};
use super::{NoteError, Writing, updated_ids};
use crate::index::{FileBatch, IndexError, Snapshot};
use crate::model::{ContentHash, NoteId, NoteKey, VaultPath, fold};
use crate::ports::{NoteAction, OtherFiles};
use crate::session::Session;
use crate::{Knowledge, RequestKey};

/// A move is one write; the writer's lock is held for all of it.
const MAX_MOVED: usize = 10_000;

/// A move of a note or a folder.
#[derive(Debug, Clone)]
pub struct NoteMove<'a> {
    /// A note, or a folder with `/` at the end, in any case.
    pub id: &'a str,
    /// The new path, its case kept; with `/` at the end a folder; `/` is the vault's root folder.
    pub to: &'a str,
    /// Whether links of other notes are rewritten; without it, a move that breaks one is refused.
    pub update_links: bool,
}

/// Notes after a move.
#[derive(Debug, Default)]
pub struct MovedNotes {
    /// Each note's old id and its new one, by old id.
    pub moved: Vec<(NoteId, NoteId)>,
    /// The notes whose links were rewritten, moved ones included, by id.
    pub updated_links: Vec<NoteId>,
    /// Symbolic links that led to a moved file or folder and lead nowhere now.
    pub dangling: Vec<VaultPath>,
    /// Notes with a link that was not rewritten, since its place cannot hold the new target, and its target.
    pub lost_links: Vec<(VaultPath, String)>,
    /// How many files that are not notes moved with a folder.
    pub other_files: usize,
    /// Files and folders that stay in a moved folder: the vault's rules exclude them, or they are symbolic links.
    pub kept: Vec<String>,
}

/// The new paths of a move.
#[derive(Default)]
struct Destinations {
    notes: Vec<(NoteKey, VaultPath)>,
    /// Files that are not notes.
    others: BTreeMap<VaultPath, VaultPath>,
    /// Folders of which nothing stays.
    folders: BTreeMap<VaultPath, VaultPath>,
    kept: Vec<String>,
}

impl Knowledge {
    /// Moves a note or a folder, and not what is behind symbolic links in it. Links are rewritten in the same step. On disk when
    /// this returns, seen by every later call.
    pub fn move_notes(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        wanted: &NoteMove<'_>,
    ) -> Result<MovedNotes, NoteError> {
        self.expect_every_link()?;
        let folder = wanted.id.strip_suffix('/').map(|folder| self.folder_to_move(wanted.id, folder)).transpose()?;
        // No text is replaced, so edits by other programs are indexed first and move along.
        let indexed = match &folder {
            Some(folder) => self.apply(&FileBatch::Paths(vec![folder.clone()]), &|_| {}).map(drop),
            None => self.read(session, wanted.id).map(drop),
        };
        let write = |writer: Writing<'_>| {
            indexed?;
            let snapshot = self.snapshot();
            let destinations = match &folder {
                Some(folder) => self.folder_destinations(&snapshot, folder, wanted.to)?,
                None => {
                    Destinations { notes: vec![self.note_destination(&snapshot, wanted)?], ..Destinations::default() }
                }
            };
            let moved = self.move_to(session, request, (&snapshot, destinations), wanted.update_links, writer);
            let (Some(folder), Ok(_)) = (&folder, &moved) else {
                let moved = moved.map(|(moved, _)| moved);
                return moved.map_err(|error| folder.iter().fold(error, NoteError::about_folder));
            };
            // The notes are moved: an empty folder that cannot be removed does no harm.
            let _ = self.vault.remove_empty_folders(folder);
            moved.map(|(mut moved, links)| {
                moved.dangling.extend(self.left_dangling_folders(links));
                moved
            })
        };
        // The record of a call names one file: what else it changed is no longer known.
        let done = |path: &VaultPath| {
            let moved = vec![(NoteId::new(wanted.id), path.note_id())];
            Ok(MovedNotes { moved, ..MovedNotes::default() })
        };
        self.once(request, write, done)
    }

    fn move_to(
        &self,
        session: &Session,
        request: Option<RequestKey>,
        (snapshot, destinations): (&Snapshot, Destinations),
        update_links: bool,
        mut writer: Writing<'_>,
    ) -> Result<(MovedNotes, Vec<VaultPath>), NoteError> {
        let Destinations { notes: destinations, others, folders, kept } = destinations;
        let is_same = |(key, to): &(NoteKey, VaultPath)| snapshot.note(*key).path == *to;
        if destinations.iter().all(is_same) && others.iter().all(|(from, to)| from == to) {
            let ids = destinations.iter().map(|(key, _)| snapshot.note(*key).id.clone());
            let moved = ids.map(|id| (id.clone(), id)).collect();
            return Ok((MovedNotes { moved, ..MovedNotes::default() }, Vec::new()));
        }
        self.refuse_taken(snapshot, &destinations)?;
        let mut files = Vec::with_capacity(destinations.len());
        for (key, to) in &destinations {
            let path = &snapshot.note(*key).path;
            let content = self.vault.read(path).map_err(IndexError::from)?;
            let changed = || NoteError::ChangedElsewhere { path: path.clone() };
            let content = content.filter(|content| content.hash == snapshot.note(*key).hash).ok_or_else(changed)?;
            files.push(RelocatedFile { key: *key, to: to.clone(), expected: content.hash, bytes: content.bytes });
        }
        let links = if update_links { LinkPolicy::RewriteAll } else { LinkPolicy::KeepTargets };
        let other_files = others.len();
        let new_paths: BTreeSet<String> =
            destinations.iter().map(|(_, to)| to).chain(others.values()).map(VaultPath::to_string).collect();
        let relocation = Relocation { snapshot, files, others, folders, links };
        let relocated = self.relocate(&mut writer, session, (NoteAction::Move, request), relocation);
        let relocated = relocated.map_err(|error| match error {
            NoteError::BadId { id, reason } if new_paths.contains(&id) => bad_destination(&id, &reason),
            other => other,
        })?;
        self.show_moved(session, snapshot, &destinations, &relocated);
        let after = self.snapshot();
        let new_id = |(key, to): &(NoteKey, VaultPath)| {
            let id = after.get(*key).filter(|note| note.path == *to).map(|note| note.id.clone());
            (snapshot.note(*key).id.clone(), id.unwrap_or_else(|| to.note_id()))
        };
        let mut moved: Vec<(NoteId, NoteId)> = destinations.iter().map(new_id).collect();
        moved.sort_unstable();
        let updated_links = updated_ids(&after, &relocated);
        let Relocated { dangling, folder_links, lost_links, .. } = relocated;
        Ok((MovedNotes { moved, updated_links, dangling, lost_links, other_files, kept }, folder_links))
    }

    /// Refuses paths that other notes have, before links are checked.
    fn refuse_taken(&self, snapshot: &Snapshot, destinations: &[(NoteKey, VaultPath)]) -> Result<(), NoteError> {
        let moved: FxHashSet<NoteKey> = destinations.iter().map(|(key, _)| *key).collect();
        let mut new_paths = FxHashSet::default();
        for (_, to) in destinations {
            if !new_paths.insert(fold(to.as_str())) {
                return Err(bad_destination(
                    to.as_str(),
                    "two of the notes differ only in case; rename one of them first",
                ));
            }
            let others = snapshot.with_lowercased(&to.note_id()).iter().filter(|other| !moved.contains(other));
            for other in others.map(|other| &snapshot.note(*other).path) {
                if !matches!(self.vault.read(other), Ok(None)) {
                    return Err(NoteError::Exists { existing: other.clone() });
                }
            }
        }
        Ok(())
    }

    /// What a client was shown of a note it knows under the new path.
    fn show_moved(
        &self,
        session: &Session,
        snapshot: &Snapshot,
        destinations: &[(NoteKey, VaultPath)],
        relocated: &Relocated,
    ) {
        let from: Vec<&VaultPath> = destinations.iter().map(|(key, _)| &snapshot.note(*key).path).collect();
        // What cannot be learned now is not known under the new path either: the client reads it again.
        let _ = self.learn_shown(session, &from);
        for ((key, to), bytes) in destinations.iter().zip(&relocated.bytes) {
            let before = snapshot.note(*key);
            if let Some(whole) = session.shown_whole(&before.path, before.hash) {
                session.show(to, ContentHash::of(bytes), whole);
                session.forget(&before.path);
            }
        }
        self.show_rewritten(session, relocated);
    }

    /// The exact path of a folder that has notes, without symbolic links unless its notes are known only through one.
    fn folder_to_move(&self, id: &str, folder: &str) -> Result<VaultPath, NoteError> {
        let not_found = || NoteError::NotFound { id: NoteId::new(id) };
        if folder.is_empty() {
            return Err(NoteError::bad_id(id, "the vault's root folder cannot be moved"));
        }
        VaultPath::parse(folder).map_err(|error| NoteError::bad_path(id, error))?;
        let folder = self.folder_at(id, folder)?.ok_or_else(not_found)?;
        let real = self.vault.real_path(&folder).map_err(IndexError::from)?;
        let has_notes = |path: &VaultPath| -> Result<bool, NoteError> {
            Ok(!self.vault.list_below(path).map_err(IndexError::from)?.files.is_empty())
        };
        let is_hidden = real != folder && !has_notes(&real)? && has_notes(&folder)?;
        Ok(if is_hidden { folder } else { real })
    }

    fn folder_destinations(
        &self,
        snapshot: &Snapshot,
        folder: &VaultPath,
        to: &str,
    ) -> Result<Destinations, NoteError> {
        let keys = snapshot.files_below(folder);
        let is_below = |key: &NoteKey| below(&snapshot.note(*key).path, folder).is_some();
        let keys = self.without_linked(snapshot, keys.into_iter().filter(is_below).collect(), folder)?;
        let OtherFiles { files, kept } = self.vault.list_others_below(folder).map_err(IndexError::from)?;
        if keys.is_empty() && files.is_empty() {
            return Err(NoteError::NotFound { id: NoteId::new(&format!("{folder}/")) });
        }
        let (count, limit) = (keys.len() + files.len(), MAX_MOVED);
        if count > limit {
            return Err(NoteError::TooManyNotes { folder: folder.clone(), count, limit });
        }
        let target = self.destination_folder(to, Some(folder))?;
        let inside = target.as_ref().is_some_and(|target| below(target, folder).is_some());
        if inside {
            return Err(bad_destination(to, "a folder cannot be moved into itself"));
        }
        let destination = |path: &VaultPath| {
            let rest = below(path, folder).unwrap_or(path.as_str());
            let path = target.as_ref().map_or_else(|| rest.to_owned(), |target| format!("{target}/{rest}"));
            VaultPath::parse(&path).map_err(|error| bad_destination(to, &error.to_string()))
        };
        let moved = keys.iter().map(|key| &snapshot.note(*key).path).chain(&files);
        let mut folders: BTreeMap<VaultPath, VaultPath> = BTreeMap::new();
        for moved in folders_between(folder, moved) {
            let stays = |kept: &String| kept.strip_prefix(moved.as_str()).is_some_and(|rest| rest.starts_with('/'));
            if let Some(target) = target.as_ref().filter(|_| !kept.iter().any(stays)) {
                let to = if moved == *folder { target.clone() } else { destination(&moved)? };
                folders.insert(moved, to);
            }
        }
        let notes = keys.into_iter().map(|key| Ok((key, destination(&snapshot.note(key).path)?)));
        let notes = notes.collect::<Result<_, NoteError>>()?;
        let others = files.into_iter().map(|path| Ok((path.clone(), destination(&path)?)));
        Ok(Destinations { notes, others: others.collect::<Result<_, NoteError>>()?, folders, kept })
    }

    fn note_destination(&self, snapshot: &Snapshot, wanted: &NoteMove<'_>) -> Result<(NoteKey, VaultPath), NoteError> {
        let key = match snapshot.lookup(wanted.id)[..] {
            [] => return Err(NoteError::NotFound { id: NoteId::new(wanted.id) }),
            [key] => key,
            ref several => {
                let matches = several.iter().map(|key| snapshot.note(*key).path.clone()).collect();
                return Err(NoteError::Ambiguous { id: wanted.id.to_owned(), matches });
            }
        };
        let path = &snapshot.note(key).path;
        if wanted.to.ends_with('/') {
            let folder = self.destination_folder(wanted.to, None)?;
            let to =
                folder.map_or_else(|| path.file_name().to_owned(), |folder| format!("{folder}/{}", path.file_name()));
            return Ok((key, VaultPath::parse(&to).map_err(|error| bad_destination(wanted.to, &error.to_string()))?));
        }
        let to = self.spelled_place(wanted.to).map_err(|error| as_destination(wanted.to, error))?;
        if !to.is_markdown() || to.stem().trim().is_empty() {
            return Err(bad_destination(wanted.to, "the path of a note ends in .md, and a folder ends in /"));
        }
        Ok((key, to))
    }

    /// The folder to move to; `None` for the vault's root folder. A folder that is there is used in any case, unless it is the one
    /// that gets another case.
    fn destination_folder(&self, to: &str, moved: Option<&VaultPath>) -> Result<Option<VaultPath>, NoteError> {
        let folder = to.trim_end_matches('/');
        if folder.is_empty() {
            return if to.is_empty() { Err(bad_destination(to, "it is empty")) } else { Ok(None) };
        }
        let spelled = self.spelled_place(folder).map_err(|error| as_destination(to, error))?;
        if moved.is_some() && spelled.is_markdown() {
            return Err(bad_destination(to, "a folder is moved to a folder"));
        }
        let found = self.folder_at(to, spelled.as_str()).map_err(|error| as_destination(to, error))?;
        Ok(Some(found.filter(|found| Some(found) != moved).unwrap_or(spelled)))
    }
}

impl NoteError {
    /// The error for a move of a whole folder, where it names a note of it.
    fn about_folder(self, folder: &VaultPath) -> Self {
        let path = folder.clone();
        match self {
            Self::LinkIntegrity { count, .. } => Self::LinkIntegrity { path, count },
            Self::TooManyLinks { count, limit, .. } => Self::TooManyLinks { path, count, limit },
            other => other,
        }
    }
}

/// The folders of these files, up to and with a folder above them all.
fn folders_between<'p>(top: &VaultPath, files: impl Iterator<Item = &'p VaultPath>) -> BTreeSet<VaultPath> {
    let mut folders = BTreeSet::new();
    for file in files {
        let parents = std::iter::successors(Some(file.folder()), |folder| Some(folder.rsplit_once('/')?.0));
        let parents = parents.filter_map(|folder| VaultPath::parse(folder).ok());
        folders.extend(parents.take_while(|folder| folder == top || below(folder, top).is_some()));
    }
    folders
}

fn bad_destination(to: &str, reason: &str) -> NoteError {
    NoteError::BadDestination { to: to.to_owned(), reason: reason.to_owned() }
}

/// The error for `to` instead of `id`.
fn as_destination(to: &str, error: NoteError) -> NoteError {
    match error {
        NoteError::BadId { reason, .. } => bad_destination(to, &reason),
        other => other,
    }
}

/// The path of a file from a folder that it lies in.
fn below<'p>(path: &'p VaultPath, folder: &VaultPath) -> Option<&'p str> {
    path.as_str().strip_prefix(folder.as_str())?.strip_prefix('/')
}
