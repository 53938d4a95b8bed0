//! Checks the changes of a write and plans its operations, without changing a file.

use std::collections::BTreeSet;
use std::io;

use quipu_core::model::{ContentHash, FileStat, VaultPath, fold};
use quipu_core::ports::{FileChange, LoggedFile, LoggedVersion, NoteAction, TrashReason, WriteError};

use crate::dir::{Dir, FileKind, Metadata, if_exists, is_no_folder};
use crate::file_op::{FileOp, JournalEntry};
use crate::folder::{FileLocation, ResolvedPath, join, resolve};
use crate::folder_vault::FolderVault;
use crate::kept_file::KeptFile;
use crate::read::read_in;
use crate::rules::ExclusionReason;
use crate::temporary;
use crate::trash::TrashBatch;
use crate::walk::find_any_case;

/// Every folder of a path is opened many times in a write.
const MAX_DEPTH: usize = 64;

const TWICE: ExclusionReason = "one write may change a file only once";
const IS_LINK: ExclusionReason = "it is a symbolic link to another note; change that note";
const TOO_DEEP: ExclusionReason = "it lies more than 64 folders deep";
const NOT_A_FILE_NAME: ExclusionReason = "only a file beside the notes can be renamed";
const IS_FOLDER: ExclusionReason = "it is a folder";

/// Checks the rules before the lock is taken, so that a refused write leaves no trace in the vault.
pub(crate) fn check_rules(vault: &FolderVault, changes: &[FileChange]) -> Result<(), WriteError> {
    let mut changed = BTreeSet::new();
    // Existing files may differ only in case or Unicode form; two new ones may not.
    let mut created = BTreeSet::new();
    for change in changes {
        let (old, new) = match change {
            FileChange::Create { path, .. } => (None, Some(path)),
            FileChange::Replace { path, .. } | FileChange::Delete { path, .. } => (Some(path), None),
            FileChange::Move { from, to, .. } | FileChange::Rename { from, to } => (Some(from), Some(to)),
        };
        if let Some(path) = new
            && path.depth() > MAX_DEPTH
        {
            return Err(WriteError::Refused { path: path.clone(), reason: TOO_DEEP });
        }
        for path in old.into_iter().chain(new) {
            match change {
                FileChange::Rename { .. } => drop(other_location(vault, path)?),
                _ => drop(resolve_allowed(vault, path)?),
            }
            if !changed.insert(path) || new == Some(path) && !created.insert(fold(path.as_str())) {
                return Err(WriteError::Refused { path: path.clone(), reason: TWICE });
            }
        }
    }
    Ok(())
}

/// The operations of a write whose changes were all checked.
pub(crate) struct WritePlan<'a> {
    pub(crate) ops: Vec<PlannedOp<'a>>,
    /// Folders to create, outermost first.
    pub(crate) created_folders: Vec<String>,
    /// For each change the stat of its file; set when the new version is written.
    pub(crate) stats: Vec<Option<FileStat>>,
    trash: TrashBatch,
    /// The history's entry for each file.
    pub(crate) files: Vec<LoggedFile>,
    /// Whether a version from the trash is written.
    is_restore: bool,
}

pub(crate) struct PlannedOp<'a> {
    pub(crate) entry: JournalEntry,
    /// The path that the caller uses, which may lead through a link.
    pub(crate) path: VaultPath,
    /// The index of its change.
    pub(crate) change: usize,
    pub(crate) bytes: Option<&'a [u8]>,
    pub(crate) template: Option<Template>,
}

/// A file whose permissions a new version gets, and whose modification time it must not have.
pub(crate) struct Template {
    /// The path that errors name.
    pub(crate) path: VaultPath,
    /// The real folder, from the root.
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) metadata: Metadata,
}

impl Template {
    fn new(path: &VaultPath, location: &FileLocation, metadata: Metadata) -> Self {
        Self { path: path.clone(), folder: location.folder.clone(), name: location.name.clone(), metadata }
    }
}

impl<'a> WritePlan<'a> {
    pub(crate) fn new(trash: TrashBatch, is_restore: bool) -> Self {
        let (files, stats) = (Vec::new(), Vec::new());
        Self { ops: Vec::new(), created_folders: Vec::new(), stats, trash, files, is_restore }
    }

    /// Checks a change against the files and adds its operations. Returns what the history says of it; `None` if nothing is to
    /// be done.
    pub(crate) fn add_change(
        &mut self,
        vault: &FolderVault,
        root: &Dir,
        change: &'a FileChange,
        action: NoteAction,
    ) -> Result<Option<LoggedFile>, WriteError> {
        self.stats.push(None);
        let at_ns = self.trash.at_ns;
        let logged = |path: VaultPath| LoggedFile { action, path, from: None, before: None, after: None, kept: None };
        match change {
            FileChange::Create { path, bytes } => {
                let location =
                    if self.is_restore { absent_location(vault, path)? } else { free_location(vault, path, None)? };
                let after = Some(LoggedVersion::of(bytes, at_ns));
                let file = LoggedFile { after, ..logged(location.path(path)) };
                self.create(path, location, bytes, None);
                Ok(Some(file))
            }
            FileChange::Replace { path, expected, bytes } => {
                let (location, metadata, old) = expected_location(vault, root, path, *expected)?;
                let new = LoggedVersion::of(bytes, at_ns);
                if new.hash == *expected {
                    *self.stats.last_mut().expect("pushed above") = Some(metadata.stat);
                    return Ok(None);
                }
                let trashed = self.trash.version(TrashReason::Replaced, location.path(path));
                let (before, after, kept) = (Some(old), Some(new), Some(trashed.clone()));
                let file = LoggedFile { before, after, kept, ..logged(location.path(path)) };
                let op = FileOp::Replace { old: (*expected).into(), new: new.hash.into(), trashed };
                let template = Template::new(path, &location, metadata);
                self.add(path, location, op, Some(bytes), Some(template));
                Ok(Some(file))
            }
            FileChange::Move { from, to, expected, bytes } => {
                let (location, metadata, old) = expected_location(vault, root, from, *expected)?;
                refuse_link(from, &location)?;
                let is_case_change = fold(from.as_str()) == fold(to.as_str());
                let free = free_location(vault, to, is_case_change.then_some(from))?;
                let (before, after) = (Some(old), Some(LoggedVersion::of(bytes, at_ns)));
                let moved_from = location.path(from);
                let kept = Some(self.trash.version(TrashReason::Moved, &moved_from));
                let file = LoggedFile { from: Some(moved_from), before, after, kept, ..logged(free.path(to)) };
                let template = Some(Template::new(from, &location, metadata));
                // If the file system ignores case, the name is free only after the old file is deleted. Otherwise the new
                // file comes first, so that the note always exists.
                if is_case_change {
                    self.delete(from, location, *expected, TrashReason::Moved);
                    self.create(to, free, bytes, template);
                } else {
                    self.create(to, free, bytes, template);
                    self.delete(from, location, *expected, TrashReason::Moved);
                }
                Ok(Some(file))
            }
            FileChange::Rename { from, to } => {
                let (from, path) = self.rename(vault, root, from, to)?;
                Ok(Some(LoggedFile { from: Some(from), ..logged(path) }))
            }
            FileChange::Delete { path, expected } => {
                let (location, _, old) = expected_location(vault, root, path, *expected)?;
                refuse_link(path, &location)?;
                let kept = Some(self.trash.version(TrashReason::Deleted, location.path(path)));
                let file = LoggedFile { before: Some(old), kept, ..logged(location.path(path)) };
                self.delete(path, location, *expected, TrashReason::Deleted);
                Ok(Some(file))
            }
        }
    }

    /// Returns the real paths before and after.
    fn rename(
        &mut self,
        vault: &FolderVault,
        root: &Dir,
        from: &VaultPath,
        to: &VaultPath,
    ) -> Result<(VaultPath, VaultPath), WriteError> {
        let fail = |source| WriteError::Write { path: from.to_string(), source };
        let (location, target) = (other_location(vault, from)?, other_location(vault, to)?);
        let folder = if_exists(root.open_below(&location.folder)).map_err(fail)?;
        let metadata = folder.map(|folder| folder.metadata(&location.name)).transpose().map_err(fail)?.flatten();
        let metadata = metadata.filter(|metadata| metadata.kind == FileKind::File);
        let size = metadata.ok_or_else(|| WriteError::Missing { path: from.clone() })?.stat.size;
        let existing = find_any_case(vault, to).map_err(fail)?;
        if let Some(existing) = existing.into_iter().find(|existing| existing != from) {
            return Err(WriteError::Exists { existing });
        }
        self.create_missing_folders(&target);
        let paths = (location.path(from), target.path(to));
        let op = FileOp::Rename { to_folder: target.folder, to_name: target.name, size };
        self.add(from, location, op, None, None);
        Ok(paths)
    }

    fn create_missing_folders(&mut self, location: &FileLocation) {
        for folder in &location.missing_folders {
            if !self.created_folders.contains(folder) {
                self.created_folders.push(folder.clone());
            }
        }
    }

    fn create(&mut self, path: &VaultPath, location: FileLocation, bytes: &'a [u8], template: Option<Template>) {
        self.create_missing_folders(&location);
        self.add(path, location, FileOp::Create { new: ContentHash::of(bytes).into() }, Some(bytes), template);
    }

    fn delete(&mut self, path: &VaultPath, location: FileLocation, expected: ContentHash, reason: TrashReason) {
        let trashed = self.trash.version(reason, location.path(path));
        self.add(path, location, FileOp::Delete { old: expected.into(), trashed }, None, None);
    }

    fn add(
        &mut self,
        path: &VaultPath,
        location: FileLocation,
        op: FileOp,
        bytes: Option<&'a [u8]>,
        template: Option<Template>,
    ) {
        let temporary = temporary::name(self.ops.len());
        let entry = JournalEntry { folder: location.folder, name: location.name, temporary, op };
        self.ops.push(PlannedOp { entry, path: path.clone(), change: self.stats.len() - 1, bytes, template });
    }

    /// Checks each kept version whose text is written, and takes the permissions of a new file from it.
    pub(crate) fn follow_kept(&mut self, root: &Dir, kept: &[Option<String>]) -> Result<(), WriteError> {
        for op in self.ops.iter_mut().filter(|op| op.bytes.is_some()) {
            let Some(Some(version)) = kept.get(op.change) else { continue };
            let fail = |source| WriteError::Write { path: op.path.to_string(), source };
            let missing = || WriteError::Missing { path: op.path.clone() };
            let kept = KeptFile::open(root, version).map_err(fail)?.ok_or_else(missing)?;
            if !kept.has_text(op.bytes.unwrap_or_default()).map_err(fail)? {
                return Err(missing());
            }
            let replaced = op.template.as_ref().map(|template| (template.folder.as_str(), template.name.as_str()));
            let refused = kept.refusal(root, &op.entry.folder, replaced).map_err(fail)?;
            if let Some(reason) = refused {
                return Err(fail(io::Error::new(io::ErrorKind::PermissionDenied, reason)));
            }
            if op.template.is_none() {
                op.template = Some(kept.template(&op.path, version));
            }
        }
        Ok(())
    }

    /// Two paths may lead to one file through a link. A change of case deletes and creates the same name, which is allowed.
    pub(crate) fn refuse_same_file(&self) -> Result<(), WriteError> {
        let mut files = BTreeSet::new();
        for PlannedOp { entry, path, .. } in &self.ops {
            let is_create = matches!(entry.op, FileOp::Create { .. });
            if !files.insert((is_create, join(&entry.folder, &entry.name))) {
                return Err(WriteError::Refused { path: path.clone(), reason: TWICE });
            }
        }
        Ok(())
    }
}

fn resolve_allowed(vault: &FolderVault, path: &VaultPath) -> Result<ResolvedPath, WriteError> {
    match resolve(vault, path) {
        Ok(ResolvedPath::Excluded(reason)) => Err(WriteError::Refused { path: path.clone(), reason }),
        Ok(resolved) => Ok(resolved),
        Err(source) => Err(WriteError::Write { path: path.to_string(), source }),
    }
}

/// The location of a file that is not a note: where a note beside it would be.
fn other_location(vault: &FolderVault, path: &VaultPath) -> Result<FileLocation, WriteError> {
    let refused = |reason| WriteError::Refused { path: path.clone(), reason };
    let note = VaultPath::parse(&format!("{path}.md")).map_err(|_| refused(NOT_A_FILE_NAME))?;
    let is_hidden = path.file_name().starts_with('.');
    match resolve_allowed(vault, &note)? {
        // A link of that name leads to another folder.
        ResolvedPath::Note(location) | ResolvedPath::Absent(location)
            if !is_hidden && !path.is_markdown() && !location.is_link =>
        {
            Ok(FileLocation { name: path.file_name().to_owned(), is_link: false, ..location })
        }
        _ => Err(refused(NOT_A_FILE_NAME)),
    }
}

/// The location of a path that is free in this spelling: a restored note may differ in case from another, as before.
fn absent_location(vault: &FolderVault, path: &VaultPath) -> Result<FileLocation, WriteError> {
    match resolve_allowed(vault, path)? {
        ResolvedPath::Absent(location) => Ok(location),
        _ => Err(WriteError::Exists { existing: path.clone() }),
    }
}

/// The location of a path that is free in every spelling of case, except for the file that a move `removes`.
fn free_location(
    vault: &FolderVault,
    path: &VaultPath,
    removes: Option<&VaultPath>,
) -> Result<FileLocation, WriteError> {
    let resolved = resolve_allowed(vault, path)?;
    let existing = find_any_case(vault, path).map_err(|source| WriteError::Write { path: path.to_string(), source })?;
    if let Some(existing) = existing.into_iter().find(|existing| Some(existing) != removes) {
        return Err(WriteError::Exists { existing });
    }
    match resolved {
        ResolvedPath::Absent(location) => Ok(location),
        // The file that the move removes, under its new name.
        ResolvedPath::Note(location) if removes.is_some() => Ok(location),
        _ => Err(WriteError::Exists { existing: path.clone() }),
    }
}

/// The location of a file that has the expected version.
fn expected_location(
    vault: &FolderVault,
    root: &Dir,
    path: &VaultPath,
    expected: ContentHash,
) -> Result<(FileLocation, Metadata, LoggedVersion), WriteError> {
    let location = match resolve_allowed(vault, path)? {
        ResolvedPath::Note(location) => location,
        ResolvedPath::Folder(_) => return Err(WriteError::Refused { path: path.clone(), reason: IS_FOLDER }),
        ResolvedPath::Absent(_) | ResolvedPath::Excluded(_) => return Err(WriteError::Missing { path: path.clone() }),
    };
    match root.open_below(&location.folder).and_then(|folder| read_in(&folder, &location.name)) {
        Ok(Some((content, metadata))) if content.hash == expected => {
            let version = LoggedVersion::of(&content.bytes, metadata.stat.modified_ns);
            Ok((location, metadata, version))
        }
        // Another version, or one that another program is writing.
        Ok(_) => Err(WriteError::Changed { path: path.clone() }),
        Err(error) if is_no_folder(&error) => Err(WriteError::Missing { path: path.clone() }),
        Err(source) => Err(WriteError::Write { path: path.to_string(), source }),
    }
}

/// Replace writes through a link. Move and delete would have to choose between the link and its target.
fn refuse_link(path: &VaultPath, location: &FileLocation) -> Result<(), WriteError> {
    if location.is_link { Err(WriteError::Refused { path: path.clone(), reason: IS_LINK }) } else { Ok(()) }
}
