//! The trash: every version that a write displaced, under its own path in a folder named by time and reason.
//!
//! A person can read it with `ls`: `.quipu/trash/20260131T093000.123456789Z-000-replaced/notes/a.md`.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use quipu_core::model::{ContentHash, FileStat, VaultPath};
use quipu_core::ports::{
    Clock, FileChange, SystemClock, TrashReason, TrashedFile, VaultError, VaultFiles, WriteError, WriteOrigin,
};
use rustix::fs::Mode;

use crate::dir::{Dir, FileKind, Metadata, if_exists};
use crate::failpoint;
use crate::file_op::{self, FileVersion};
use crate::folder::{join, split};
use crate::folder_vault::FolderVault;
use crate::history;
use crate::own_folder::{self, OWN_FOLDER, explain_denied};
use crate::permissions::{GroupRights, SPECIAL_BITS, copy_permissions};
use crate::read::read_in;
use crate::walk::find_any_case;
use crate::write;
use crate::written;

pub(crate) const TRASH: &str = "trash";
/// Deeper folders are not listed: they hold no version of a note, and may have come with a cloned vault.
const MAX_DEPTH: usize = 256;
/// Versions removed before the lock is released for other writers.
const PRUNE_BATCH: usize = 100;
const TIME: &str = "%Y%m%dT%H%M%S";
const REASONS: [TrashReason; 3] = [TrashReason::Deleted, TrashReason::Replaced, TrashReason::Moved];

/// Every version in the trash, newest first. Folders with names of another form are ignored.
pub(crate) fn list(vault: &FolderVault) -> Result<Vec<TrashedFile>, VaultError> {
    list_all(vault).map_err(|source| VaultError::Read { path: join(OWN_FOLDER, TRASH), source })
}

pub(crate) fn list_all(vault: &FolderVault) -> io::Result<Vec<TrashedFile>> {
    let mut kept = Vec::new();
    let Some(trash) = if_exists(own_folder::open_below(&vault.open_root()?, TRASH))? else { return Ok(kept) };
    for (name, kind) in trash.entries()? {
        if kind == FileKind::Folder
            && let Some(name) = name.to_str()
            && let Some(origin) = parse_name(name)
        {
            let Some(folder) = if_permitted(trash.open(name))? else { continue };
            collect(&folder, name, "", origin, &mut kept)?;
        }
    }
    kept.sort_unstable_by(|a, b| folder_of(b).cmp(folder_of(a)).then_with(|| a.path.cmp(&b.path)));
    Ok(kept)
}

/// The files in one folder of the trash, and when they were modified.
pub(crate) fn files_of(root: &Dir, name: &str) -> io::Result<Vec<(String, i64)>> {
    let mut files = Vec::new();
    if let Some(folder) = if_exists(own_folder::open_below(root, &join(TRASH, name)))? {
        collect(&folder, name, "", (0, TrashReason::Replaced), &mut files)?;
    }
    let modified = |file: TrashedFile| -> io::Result<(String, i64)> {
        let (folder, name) = open_folder_of(root, &file.version)?;
        let modified_ns = folder.metadata(name)?.map_or(i64::MIN, |metadata| metadata.stat.modified_ns);
        Ok((file.version, modified_ns))
    };
    files.into_iter().map(modified).collect()
}

/// Restores a version through [`write::apply`].
pub(crate) fn restore(vault: &FolderVault, kept: &TrashedFile) -> Result<FileStat, WriteError> {
    let path = &kept.path;
    let missing = || WriteError::Missing { path: path.clone() };
    // The version comes from a client: only the names of this module are looked up.
    if note_of(&kept.version).is_none() {
        return Err(missing());
    }
    let fail = |source| WriteError::Write { path: path.to_string(), source };
    let root = vault.open_root().map_err(fail)?;
    let content = match if_exists(open_folder_of(&root, &kept.version)).map_err(fail)? {
        Some((folder, name)) => read_in(&folder, name).map_err(fail)?,
        None => None,
    };
    let (content, _) = content.ok_or_else(missing)?;
    let change = match vault.read(path)? {
        Some(current) if current.hash == content.hash => return Ok(current.stat),
        Some(current) => FileChange::Replace { path: path.clone(), expected: current.hash, bytes: content.bytes },
        // A deleted note has no file: one whose path differs in case is another note.
        None if kept.reason == TrashReason::Deleted => FileChange::Create { path: path.clone(), bytes: content.bytes },
        None => match in_other_case(vault, path)? {
            Some((from, expected)) => FileChange::Move { from, to: path.clone(), expected, bytes: content.bytes },
            None => FileChange::Create { path: path.clone(), bytes: content.bytes },
        },
    };
    let versions = [Some(kept.version.clone())];
    let stats = write::apply(vault, &[change], &WriteOrigin { kept: &versions, ..WriteOrigin::RESTORE })?;
    Ok(stats.into_iter().next().flatten().expect("a change that leaves a file returns its stat"))
}

/// Deletes the versions that are older than a time, and their entries in the history; returns the number of versions. In batches, so that writers do not wait long. Under
/// the lock no journal is open that could need a version.
pub(crate) fn prune(vault: &FolderVault, before_ns: i64) -> io::Result<usize> {
    let old: Vec<TrashedFile> = list_all(vault)?.into_iter().filter(|kept| kept.at_ns < before_ns).collect();
    for batch in old.chunks(PRUNE_BATCH) {
        let lock = write::lock(vault)?;
        batch.iter().try_for_each(|kept| remove(&lock.root, &kept.version))?;
    }
    let lock = write::lock(vault)?;
    written::prune(&lock.root, before_ns)?;
    history::prune(vault, &lock.own, before_ns)?;
    Ok(old.len())
}

/// The note whose path differs only in case, as after a rename that changed only the case: the restored version replaces it,
/// and it goes to the trash. `None` if there are several.
fn in_other_case(vault: &FolderVault, path: &VaultPath) -> Result<Option<(VaultPath, ContentHash)>, WriteError> {
    let found = find_any_case(vault, path).map_err(|source| WriteError::Write { path: path.to_string(), source })?;
    let [other] = found.as_slice() else { return Ok(None) };
    Ok(vault.read(other)?.map(|content| (other.clone(), content.hash)))
}

/// The path of the note that a version in the trash is of; `None` if the text has not the form of a version.
pub(crate) fn note_of(version: &str) -> Option<VaultPath> {
    let (folder, path) = version.split_once('/')?;
    parse_name(folder).and_then(|_| VaultPath::parse(path).ok())
}

/// The trash folders of one write: the same time for all reasons, used by no other write.
pub(crate) struct TrashBatch {
    stem: String,
    pub(crate) at_ns: i64,
}

impl TrashBatch {
    pub(crate) fn new(root: &Dir, at_ns: i64) -> io::Result<Self> {
        let time = timestamp(at_ns);
        let trash = match if_exists(own_folder::open_below(root, TRASH)) {
            Err(error) => return Err(explain_denied(error, &root.open(OWN_FOLDER)?, TRASH)),
            trash => trash?,
        };
        // The counter separates and orders writes with the same time.
        for count in 0..1000 {
            let batch = Self { stem: format!("{time}-{count:03}"), at_ns };
            let Some(trash) = &trash else { return Ok(batch) };
            let mut is_free = true;
            for reason in REASONS {
                is_free &= trash.metadata(batch.folder(reason))?.is_none();
            }
            if is_free {
                return Ok(batch);
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "the trash has 1000 versions with the same time; retry"))
    }

    /// The path of a version, from the trash.
    pub(crate) fn version(&self, reason: TrashReason, path: impl Display) -> String {
        format!("{}/{path}", self.folder(reason))
    }

    fn folder(&self, reason: TrashReason) -> String {
        format!("{}-{}", self.stem, reason_name(reason))
    }
}

/// A file that goes to the trash: its folder, open, the path of that folder, and its name there.
pub(crate) struct Original<'a> {
    pub(crate) dir: &'a Dir,
    pub(crate) folder: &'a str,
    pub(crate) name: &'a str,
}

/// Adds a file, which the caller has synced, to the trash as a hard link, or as a copy if that is not possible. Adds the folders
/// to sync to `changed`.
pub(crate) fn add(
    root: &Dir,
    original: &Original<'_>,
    version: &str,
    changed: &mut BTreeSet<String>,
) -> io::Result<()> {
    failpoint::hit("trash")?;
    let (version_folder, version_name) = split(version);
    let folder = create_folder(root, version_folder, (original.dir, original.folder), changed)?;
    link_or_copy((original.dir, original.name), (&folder, version_name))
}

/// Like [`add`], for a file that is in the trash already; its folder is not reported as changed, so it is not synced.
pub(crate) fn add_version(root: &Dir, existing: &str, version: &str) -> io::Result<()> {
    let (dir, name) = open_folder_of(root, existing)?;
    let folder = join(&join(OWN_FOLDER, TRASH), split(existing).0);
    add(root, &Original { dir: &dir, folder: &folder, name }, version, &mut BTreeSet::new())
}

/// Opens a folder of the trash, which is created if it does not exist, for files of another folder, which is open.
pub(crate) fn create_folder(
    root: &Dir,
    version_folder: &str,
    original: (&Dir, &str),
    changed: &mut BTreeSet<String>,
) -> io::Result<Dir> {
    let mut folder = root.open(OWN_FOLDER)?;
    let parts: Vec<&str> =
        [TRASH].into_iter().chain(version_folder.split('/')).filter(|part| !part.is_empty()).collect();
    // A folder of the vault that the group cannot enter has one in the trash that it cannot enter either.
    let closed = if folder.is_shared()? {
        closed_folders(root, Metadata::of(&folder)?.owner.1, original, &parts[2..])?
    } else {
        Vec::new()
    };
    let mut path = OWN_FOLDER.to_owned();
    for (at, part) in parts.into_iter().enumerate() {
        let below = join(&path, part);
        let is_closed = at.checked_sub(2).and_then(|at| closed.get(at)).is_some_and(|is_closed| *is_closed);
        let is_new = if is_closed { folder.create_unshared_folder(part) } else { folder.create_private_folder(part) };
        if is_new? {
            changed.insert(path);
        }
        folder = folder.open(part)?;
        path = below;
        if is_closed {
            close(&folder, &path)?;
        }
    }
    changed.insert(path);
    Ok(folder)
}

/// Makes a folder private that may have been there before: one that another account planted is refused.
fn close(folder: &Dir, path: &str) -> io::Result<()> {
    let metadata = Metadata::of(folder)?;
    if metadata.owner.0 != rustix::process::geteuid().as_raw() {
        let message = format!("{path} belongs to another account");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if metadata.mode & 0o077 != 0 {
        rustix::fs::fchmod(folder, Mode::from_raw_mode(0o700))?;
    }
    Ok(())
}

/// For each folder of a version's path, whether the members of the group cannot list the folder that it stands for. Each is opened
/// in the one before, up to the open folder of the file: if the path leads elsewhere by now, or through a link, all are closed.
fn closed_folders(root: &Dir, group: u32, (dir, path): (&Dir, &str), wanted: &[&str]) -> io::Result<Vec<bool>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut open = root.open(".")?;
    let mut closed = Vec::new();
    for part in &parts {
        let Ok(below) = open.open(part) else { return Ok(vec![true; wanted.len()]) };
        closed.push(!GroupRights::of(&below, group)?.can_list());
        open = below;
    }
    if !parts.ends_with(wanted) || Metadata::of(&open)?.id() != Metadata::of(dir)?.id() {
        return Ok(vec![true; wanted.len()]);
    }
    Ok(closed.split_off(parts.len() - wanted.len()))
}

/// Adds a version to the trash that an undo removes.
pub(crate) fn add_undone(root: &Dir, dir: &Dir, name: &str, path: &str) -> io::Result<()> {
    let version = TrashBatch::new(root, SystemClock.now_ns())?.version(TrashReason::Replaced, path);
    let mut changed = BTreeSet::new();
    dir.open_file(name)?.sync_all()?;
    add(root, &Original { dir, folder: split(path).0, name }, &version, &mut changed)?;
    changed.iter().try_for_each(|path| root.open_below(path)?.sync())
}

/// The content version of a file in the trash; `None` if it does not exist.
pub(crate) fn version_of(root: &Dir, version: &str) -> io::Result<Option<FileVersion>> {
    match if_exists(open_folder_of(root, version))? {
        Some((folder, name)) => file_op::version_of(&folder, name),
        None => Ok(None),
    }
}

/// The bytes of a version; `None` if it does not exist.
pub(crate) fn read(root: &Dir, version: &str) -> io::Result<Option<Vec<u8>>> {
    let Some((folder, name)) = if_exists(open_folder_of(root, version))? else { return Ok(None) };
    Ok(read_in(&folder, name)?.map(|(content, _)| content.bytes))
}

/// Copies a version to a new name in a folder of the vault, if its content is the expected one. Its permissions are those of
/// `template`, or else its own. Never a hard link: another account may own the file or have it open.
pub(crate) fn copy_out(
    root: &Dir,
    (version, expected): (&str, FileVersion),
    (dir, name): (&Dir, &str),
    template: Option<&File>,
) -> io::Result<()> {
    let (folder, version_name) = open_folder_of(root, version)?;
    let mut source = folder.open_file(version_name)?;
    dir.remove_file(name)?;
    let mut copy = dir.create_private_file(name)?;
    io::copy(&mut source, &mut copy)?;
    if file_op::version_of(dir, name)? != Some(expected) {
        dir.remove_file(name)?;
        let message = format!("{OWN_FOLDER}/{TRASH}/{version} is not the version that the write replaced");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let trusted = [rustix::process::geteuid().as_raw(), Metadata::of(root.open(OWN_FOLDER)?)?.owner.0];
    match template {
        Some(template) => copy_permissions(template, &copy)?,
        None if trusted.contains(&Metadata::of(&source)?.owner.0) => copy_permissions(&source, &copy)?,
        None => {}
    }
    copy.sync_all()
}

/// Removes a version and the folders that are empty without it.
pub(crate) fn remove(root: &Dir, version: &str) -> io::Result<()> {
    failpoint::hit("remove from trash")?;
    let Some(trash) = if_exists(own_folder::open_below(root, TRASH))? else { return Ok(()) };
    let (mut folder, name) = split(version);
    if let Some(dir) = if_exists(trash.open_below(folder))? {
        dir.remove_file(name)?;
    }
    while !folder.is_empty() {
        let (parent, name) = split(folder);
        if let Ok(dir) = trash.open_below(parent)
            && dir.remove_folder(name).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        {
            break;
        }
        folder = parent;
    }
    Ok(())
}

fn open_folder_of<'a>(root: &Dir, version: &'a str) -> io::Result<(Dir, &'a str)> {
    let (folder, name) = split(version);
    Ok((own_folder::open_below(root, &join(TRASH, folder))?, name))
}

/// A set-uid or set-gid file is copied without those bits; a hard link would keep them.
fn link_or_copy((from, name): (&Dir, &str), (to, new_name): (&Dir, &str)) -> io::Result<()> {
    if from.metadata(name)?.is_none_or(|metadata| metadata.mode & SPECIAL_BITS == 0) {
        match from.link(name, to, new_name) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // Another device, no hard links, too many of them, or not allowed for another user's file.
            Err(_) => {}
        }
    }
    let mut source = from.open_file(name)?;
    to.remove_file(new_name)?;
    let mut copy = to.create_private_file(new_name)?;
    io::copy(&mut source, &mut copy)?;
    copy_permissions(&source, &copy)?;
    copy.sync_all()
}

fn collect(
    folder: &Dir,
    trash_name: &str,
    at: &str,
    (at_ns, reason): (i64, TrashReason),
    kept: &mut Vec<TrashedFile>,
) -> io::Result<()> {
    for (name, kind) in folder.entries()? {
        let Some(name) = name.to_str() else { continue };
        let path = join(at, name);
        match kind {
            FileKind::Folder if path.matches('/').count() >= MAX_DEPTH => {}
            FileKind::Folder => {
                if let Some(folder) = if_permitted(folder.open(name))? {
                    collect(&folder, trash_name, &path, (at_ns, reason), kept)?;
                }
            }
            FileKind::File => {
                if let (Ok(path), Some(metadata)) = (VaultPath::parse(&path), folder.metadata(name)?) {
                    let version = format!("{trash_name}/{path}");
                    kept.push(TrashedFile { version, path, at_ns, reason, size: metadata.stat.size });
                }
            }
            FileKind::Link | FileKind::Other => {}
        }
    }
    Ok(())
}

/// `None` for a folder that is private to another account.
pub(crate) fn if_permitted<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        opened => opened.map(Some),
    }
}

fn folder_of(kept: &TrashedFile) -> &str {
    kept.version.split_once('/').map_or("", |(folder, _)| folder)
}

/// A time as a file name; names sort by time.
pub(crate) fn timestamp(at_ns: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    let seconds = time.to_zoned(TimeZone::UTC).strftime(TIME).to_string();
    format!("{seconds}.{:09}Z", at_ns.rem_euclid(1_000_000_000))
}

/// The time and reason in the name of a trash folder.
fn parse_name(name: &str) -> Option<(i64, TrashReason)> {
    let mut parts = name.split('-');
    let (time, count, reason) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = time.strip_suffix('Z')?.split_once('.')?;
    let is_number = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || !is_number(fraction, 9) || !is_number(count, 3) {
        return None;
    }
    let time = DateTime::strptime(TIME, seconds).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let at_ns = i64::try_from(time.as_nanosecond()).ok()?.checked_add(fraction.parse().ok()?)?;
    Some((at_ns, REASONS.into_iter().find(|known| reason_name(*known) == reason)?))
}

fn reason_name(reason: TrashReason) -> &'static str {
    match reason {
        TrashReason::Deleted => "deleted",
        TrashReason::Replaced => "replaced",
        TrashReason::Moved => "moved",
    }
}
