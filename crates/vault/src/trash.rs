//! The trash: every version that a write displaced, under its own path in a folder named by time and reason.
//!
//! A person can read it with `ls`: `.quipu/trash/20260131T093000.123456789Z-000-replaced/notes/a.md`.

use std::collections::BTreeSet;
use std::io;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use quipu_core::model::{ContentHash, FileStat, VaultPath};
use quipu_core::ports::{Clock, FileChange, Kept, KeptReason, SystemClock, VaultError, VaultFiles, WriteError};

use crate::beneath::{Dir, Kind};
use crate::effect::{self, Version};
use crate::folder::{join, split};
use crate::folder_vault::FolderVault;
use crate::permissions::{SPECIAL_BITS, copy_permissions};
use crate::read::read_in;
use crate::rules::OWN_FOLDER;
use crate::step;
use crate::walk::find_any_case;
use crate::write::{Like, apply_like, with_door};
use crate::write_lock::explain_closed;

const TRASH: &str = "trash";
/// Versions removed before others may write.
const PRUNED_AT_ONCE: usize = 100;
const TIME: &str = "%Y%m%dT%H%M%S";

/// Everything kept, newest first. What is not named as we name it is somebody else's and ignored.
pub(crate) fn kept(vault: &FolderVault) -> Result<Vec<Kept>, VaultError> {
    let fail = |source| VaultError::Read { path: join(OWN_FOLDER, TRASH), source };
    let root = vault.open_root().map_err(fail)?;
    let trash = match root.open_below(&join(OWN_FOLDER, TRASH)) {
        Ok(trash) => trash,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut kept = Vec::new();
    for (name, kind) in trash.entries().map_err(fail)? {
        if kind == Kind::Folder
            && let Some(name) = name.to_str()
            && let Some((at_ns, reason)) = parse_name(name)
        {
            let folder = trash.open(name).map_err(fail)?;
            collect(&folder, name, "", (at_ns, reason), &mut kept).map_err(fail)?;
        }
    }
    kept.sort_unstable_by(|a, b| folder_of(b).cmp(folder_of(a)).then_with(|| a.path.cmp(&b.path)));
    Ok(kept)
}

/// Brings a version back through the write door.
pub(crate) fn restore(vault: &FolderVault, kept: &Kept) -> Result<FileStat, WriteError> {
    let path = &kept.path;
    let gone = || WriteError::Missing { path: path.clone() };
    // The version came from outside: only one that we could have given is looked up.
    if !is_version(&kept.version) {
        return Err(gone());
    }
    let fail = |source| WriteError::Write { path: path.to_string(), source };
    let root = vault.open_root().map_err(fail)?;
    let content = match open_folder_of(&root, &kept.version) {
        Ok((folder, name)) => read_in(&folder, name).map_err(fail)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    let (content, seen) = content.ok_or_else(gone)?;
    let current = vault.read(path).map_err(|VaultError::Read { source, .. }| fail(source))?;
    let change = match current {
        Some(current) if current.hash == content.hash => return Ok(current.stat),
        Some(current) => FileChange::Replace { path: path.clone(), expected: current.hash, bytes: content.bytes },
        None => match in_other_case(vault, path)? {
            Some((from, expected)) => FileChange::Move { from, to: path.clone(), expected, bytes: content.bytes },
            None => FileChange::Create { path: path.clone(), bytes: content.bytes },
        },
    };
    // A note that was private when it was deleted is private when it comes back.
    let (folder, name) = split(&kept.version);
    let like = Like { folder: format!("{OWN_FOLDER}/{TRASH}/{folder}"), name: name.to_owned(), seen };
    let stats = apply_like(vault, &[change], None, Some(like))?;
    Ok(stats.into_iter().next().flatten().expect("a change that leaves a file answers with its stat"))
}

/// Removes for good what was put aside before a moment; says how many versions that were. A few at a time, so that no
/// write waits long. Whoever holds the door knows that no journal is open, which may still need a version.
pub(crate) fn prune(vault: &FolderVault, before_ns: i64) -> io::Result<usize> {
    let fail = |VaultError::Read { source, .. }| source;
    let old: Vec<Kept> = kept(vault).map_err(fail)?.into_iter().filter(|kept| kept.at_ns < before_ns).collect();
    for some in old.chunks(PRUNED_AT_ONCE) {
        with_door(vault, |root| some.iter().try_for_each(|kept| forget(root, &kept.version)))?;
    }
    Ok(old.len())
}

/// The one note that has a path in other capitals, as after a rename that changed only those: it gives way to the version
/// that comes back, and is kept in its turn. Of several none is meant.
fn in_other_case(vault: &FolderVault, path: &VaultPath) -> Result<Option<(VaultPath, ContentHash)>, WriteError> {
    let found = find_any_case(vault, path).map_err(|source| WriteError::Write { path: path.to_string(), source })?;
    let [other] = found.as_slice() else { return Ok(None) };
    match vault.read(other) {
        Ok(content) => Ok(content.map(|content| (other.clone(), content.hash))),
        Err(VaultError::Read { path, source }) => Err(WriteError::Write { path, source }),
    }
}

/// Whether a text names a version as we name them, there or not.
pub(crate) fn is_version(text: &str) -> bool {
    text.split_once('/').is_some_and(|(folder, path)| parse_name(folder).is_some() && VaultPath::parse(path).is_ok())
}

/// Picks the folder names for one write: the same time for all reasons, and used by no other write.
pub(crate) struct Shelf {
    stem: String,
}

impl Shelf {
    pub(crate) fn new(root: &Dir) -> io::Result<Self> {
        let stamp = stamp(SystemClock.now_ns());
        let trash = match root.open_below(&join(OWN_FOLDER, TRASH)) {
            Ok(trash) => Some(trash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(explain_closed(error, &root.open(OWN_FOLDER)?, TRASH)),
        };
        // Two writes in one tick of the clock: the counter keeps them apart and in order.
        for count in 0..1000 {
            let stem = format!("{stamp}-{count:03}");
            let reasons = [KeptReason::Deleted, KeptReason::Replaced, KeptReason::Moved];
            let mut is_free = true;
            for reason in reasons {
                let name = format!("{stem}-{}", reason_name(reason));
                is_free &= trash.as_ref().map(|trash| trash.see(&name)).transpose()?.flatten().is_none();
            }
            if is_free {
                return Ok(Self { stem });
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "the trash has a thousand versions of this very moment"))
    }

    /// Where a version is kept, from the trash.
    pub(crate) fn place(&self, reason: KeptReason, path: &str) -> String {
        format!("{}-{}/{path}", self.stem, reason_name(reason))
    }
}

/// Keeps a file under a second name, or as a copy where it cannot have one. Adds the folders to sync to `touched`.
pub(crate) fn keep(
    root: &Dir,
    (dir, name): (&Dir, &str),
    kept: &str,
    touched: &mut BTreeSet<String>,
) -> io::Result<()> {
    step::before("keep")?;
    let mut folder = root.open(OWN_FOLDER)?;
    let mut path = OWN_FOLDER.to_owned();
    let (kept_folder, kept_name) = split(kept);
    for part in [TRASH].into_iter().chain(kept_folder.split('/')) {
        if folder.make_private_folder(part)? {
            touched.insert(path.clone());
        }
        folder = folder.open(part)?;
        path = join(&path, part);
    }
    touched.insert(path);
    // What an editor has just saved may still be on its way to the disk.
    dir.open_file(name)?.sync_all()?;
    link_or_copy((dir, name), (&folder, kept_name))
}

/// Keeps, while undoing, a version whose place was taken in the meantime.
pub(crate) fn keep_late(root: &Dir, dir: &Dir, name: &str, path: &str) -> io::Result<()> {
    let kept = Shelf::new(root)?.place(KeptReason::Replaced, path);
    let mut touched = BTreeSet::new();
    keep(root, (dir, name), &kept, &mut touched)?;
    touched.iter().try_for_each(|path| root.open_below(path)?.sync())
}

/// The version kept at a place, if any.
pub(crate) fn version_of(root: &Dir, kept: &str) -> io::Result<Option<Version>> {
    match open_folder_of(root, kept) {
        Ok((folder, name)) => effect::version_of(&folder, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Brings a kept version to a new name in a folder of the vault.
pub(crate) fn copy_out(root: &Dir, kept: &str, dir: &Dir, name: &str) -> io::Result<()> {
    let (folder, kept_name) = open_folder_of(root, kept)?;
    link_or_copy((&folder, kept_name), (dir, name))
}

/// Removes a kept version and the folders that become empty with it.
pub(crate) fn forget(root: &Dir, kept: &str) -> io::Result<()> {
    step::before("forget")?;
    let trash = match root.open_below(&join(OWN_FOLDER, TRASH)) {
        Ok(trash) => trash,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let (mut folder, name) = split(kept);
    match trash.open_below(folder) {
        Ok(dir) => dir.remove_file(name)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    while !folder.is_empty() {
        let (above, name) = split(folder);
        if let Ok(dir) = trash.open_below(above)
            && dir.remove_folder(name).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        {
            break;
        }
        folder = above;
    }
    Ok(())
}

fn open_folder_of<'a>(root: &Dir, kept: &'a str) -> io::Result<(Dir, &'a str)> {
    let (folder, name) = split(kept);
    Ok((root.open_below(&format!("{OWN_FOLDER}/{TRASH}/{folder}"))?, name))
}

/// A file that is set-uid or set-gid is copied without those bits. A link to it would keep them.
fn link_or_copy((from, name): (&Dir, &str), (to, new_name): (&Dir, &str)) -> io::Result<()> {
    if from.see(name)?.is_none_or(|seen| seen.mode & SPECIAL_BITS == 0) {
        match from.link(name, to, new_name) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // Another device, no links here, too many of them, or not allowed for another user's file.
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
    (at_ns, reason): (i64, KeptReason),
    kept: &mut Vec<Kept>,
) -> io::Result<()> {
    for (name, kind) in folder.entries()? {
        let Some(name) = name.to_str() else { continue };
        let path = join(at, name);
        match kind {
            Kind::Folder => collect(&folder.open(name)?, trash_name, &path, (at_ns, reason), kept)?,
            Kind::File => {
                if let (Ok(path), Some(seen)) = (VaultPath::parse(&path), folder.see(name)?) {
                    let version = format!("{trash_name}/{path}");
                    kept.push(Kept { version, path, at_ns, reason, size: seen.stat.size });
                }
            }
            Kind::Link | Kind::Other => {}
        }
    }
    Ok(())
}

fn folder_of(kept: &Kept) -> &str {
    kept.version.split_once('/').map_or("", |(folder, _)| folder)
}

/// A time as a name, in the order of time.
pub(crate) fn stamp(at_ns: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    let seconds = time.to_zoned(TimeZone::UTC).strftime(TIME).to_string();
    format!("{seconds}.{:09}Z", at_ns.rem_euclid(1_000_000_000))
}

/// The time and reason that a trash folder's name tells.
fn parse_name(name: &str) -> Option<(i64, KeptReason)> {
    let mut parts = name.split('-');
    let (time, count, reason) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = time.strip_suffix('Z')?.split_once('.')?;
    let is_number = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || !is_number(fraction, 9) || !is_number(count, 3) {
        return None;
    }
    let time = DateTime::strptime(TIME, seconds).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let at_ns = i64::try_from(time.as_nanosecond()).ok()?.checked_add(fraction.parse().ok()?)?;
    let reasons = [KeptReason::Deleted, KeptReason::Replaced, KeptReason::Moved];
    Some((at_ns, reasons.into_iter().find(|known| reason_name(*known) == reason)?))
}

fn reason_name(reason: KeptReason) -> &'static str {
    match reason {
        KeptReason::Deleted => "deleted",
        KeptReason::Replaced => "replaced",
        KeptReason::Moved => "moved",
    }
}
