//! Recovery of an interrupted write from its journal.
//!
//! A vault that was cloned or unpacked can contain a journal that another person wrote, and another account of this machine
//! may be able to write in `.quipu`. So a journal must have the owner and mode that this user's Quipu gives it, and it names
//! the folders and the machine it was written on. A journal that names others, or touches anything but notes, is renamed and
//! never applied.
//!
//! In a vault that was copied or restored from a backup, or whose inodes changed when its drive was mounted again, the journal
//! may be older or newer than the notes. There the content of the files decides.

use std::io::{self, Read};

use quipu_core::model::Warning;
use quipu_core::ports::{Clock, SystemClock};
use serde::Deserialize;

use crate::dir::{Dir, FileKind, Metadata, if_exists, is_no_folder};
use crate::file_op::{FileOp, FileVersion, JournalEntry, remove_created_folders, version_of};
use crate::folder::join;
use crate::folder_vault::FolderVault;
use crate::journal::{DONE_NAME, FORMAT, Journal, JournalState, NAME, Origin, UNDO_NAME, UNSYNCED_NAME};
use crate::own_folder::OWN_FOLDER;
use crate::trash;
use crate::write_lock::WriteLock;

/// Far above what any write needs.
const MAX_BYTES: u64 = 256 << 20;

/// Whether there is an interrupted write.
pub(crate) fn is_needed(root: &Dir) -> io::Result<bool> {
    match root.open(OWN_FOLDER) {
        Ok(own) => {
            let journals = [NAME, DONE_NAME, UNDO_NAME].map(|name| own.metadata(name));
            journals.into_iter().try_fold(false, |is_found, journal| Ok(is_found || journal?.is_some()))
        }
        // A file of that name, or a folder that this account may not open: the notes can be read, and the first write reports
        // the error.
        Err(error) if is_no_folder(&error) || error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

/// Completes or undoes an interrupted write.
pub(crate) fn recover(vault: &FolderVault, lock: &WriteLock<'_>) -> io::Result<()> {
    let own = &lock.own;
    // The mark of a failed write of an earlier format goes last, so that an interruption before does not lose it. It is read
    // first, since a copy made during a write can hold the same journal under two names, and a failed write is undone.
    let mut applied = Vec::new();
    for name in [UNDO_NAME, DONE_NAME, NAME] {
        if let Some((state, journal)) = read_or_set_aside(vault, lock, name)? {
            apply(state, &journal, vault, lock)?;
            applied.push(journal);
        }
    }
    applied.iter().try_for_each(Journal::mark_used)?;
    for name in [DONE_NAME, NAME, UNDO_NAME] {
        if own.metadata(name)?.is_some() {
            own.remove_file(name)?;
            own.sync()?;
        }
    }
    Ok(())
}

/// Completes or undoes the write of a journal.
fn apply(state: JournalState, journal: &Journal, vault: &FolderVault, lock: &WriteLock<'_>) -> io::Result<()> {
    let WriteLock { root, own, .. } = lock;
    let record = || journal.record_history(vault, own).and_then(|()| journal.record_request(own));
    match (state, journal.entries.as_slice()) {
        (JournalState::Used, _) => Ok(()),
        (JournalState::Failed, _) => journal.undo_entries(vault, lock),
        (JournalState::Done, entries) => {
            entries.iter().try_for_each(|entry| entry.remove_displaced(root))?;
            record()
        }
        (JournalState::Open, [only]) => {
            if only.took_place(root)? {
                record()?;
            } else if matches!(only.op, FileOp::Rename { .. }) && only.is_renamed(root)? {
                journal.record_history(vault, own)?;
            } else {
                journal.remove_history(vault, own)?;
            }
            only.complete(root)?;
            remove_created_folders(root, &journal.created_folders)
        }
        (JournalState::Open, entries) if is_complete(entries, root)? => {
            record()?;
            entries.iter().try_for_each(|entry| {
                entry.remove_displaced(root)?;
                root.open_below(&entry.folder)?.sync()
            })
        }
        (JournalState::Open, _) => journal.undo_entries(vault, lock),
    }
}

/// The content of a journal file.
enum JournalFile {
    Valid(JournalState, Journal),
    /// Missing, or the incomplete journal of a single operation. Other journals are synced before they get their name.
    Incomplete,
    /// Not written by this user's Quipu in this vault, or an old version that its undo needs is missing or was changed.
    Foreign,
}

fn read_or_set_aside(
    vault: &FolderVault,
    lock: &WriteLock<'_>,
    name: &str,
) -> io::Result<Option<(JournalState, Journal)>> {
    match read(lock, name)? {
        JournalFile::Valid(state, journal) => Ok(Some((state, journal))),
        JournalFile::Incomplete => Ok(None),
        JournalFile::Foreign => {
            let refused = format!("journal.refused-{}.json", trash::timestamp(SystemClock.now_ns()));
            lock.own.rename(name, &refused)?;
            lock.own.sync()?;
            let message = format!(
                "this was {name}, the journal of an interrupted write. It comes from another folder or account, or its old \
                 versions are no longer in the trash, so it was not applied. If a write was interrupted, check the notes \
                 that the file names; then delete it"
            );
            vault.notices.lock().insert(Warning { path: join(OWN_FOLDER, &refused), message });
            Ok(None)
        }
    }
}

/// The fields of every format, to tell a newer format from a foreign journal.
#[derive(Deserialize)]
struct Header {
    format: u32,
    #[serde(rename = "home")]
    origin: Origin,
}

fn read(lock: &WriteLock<'_>, name: &str) -> io::Result<JournalFile> {
    let own = &lock.own;
    let Some(metadata) = own.metadata(name)? else { return Ok(JournalFile::Incomplete) };
    if metadata.kind != FileKind::File || metadata.stat.size > MAX_BYTES {
        return Ok(JournalFile::Foreign);
    }
    let mut file = match own.open_file_to_write(name) {
        // Another account's file in a shared folder is not trusted in any case.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(JournalFile::Foreign),
        file => file?,
    };
    if !has_trusted_owner_and_mode(own, &Metadata::of(&file)?)? {
        return Ok(JournalFile::Foreign);
    }
    let mut bytes = Vec::new();
    (&mut file).take(MAX_BYTES).read_to_end(&mut bytes)?;
    let invalid = |error: serde_json::Error| match error.is_data() {
        true => JournalFile::Foreign,
        false => JournalFile::Incomplete,
    };
    let here = Origin::here(lock)?;
    let Header { format, origin } = match serde_json::from_slice::<Header>(&bytes) {
        Ok(header) if header.origin.has_inodes_of(&here) || header.origin.is_on_machine_of(&here) => header,
        Ok(_) => return Ok(JournalFile::Foreign),
        Err(error) => return Ok(invalid(error)),
    };
    if format > FORMAT {
        let message =
            format!("its journal has format {format}, which a newer Quipu wrote; run that version to recover it");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let journal = match serde_json::from_slice::<Journal>(&bytes) {
        Ok(journal) if journal.is_confined() => journal,
        Ok(_) => return Ok(JournalFile::Foreign),
        Err(error) => return Ok(invalid(error)),
    };
    let Some(state) = journal.state.or_else(|| state_of_name(own, name)) else { return Ok(JournalFile::Foreign) };
    let is_usable = match state {
        // Nothing of a finished write is undone, so it needs no preparation.
        JournalState::Done | JournalState::Used => true,
        JournalState::Open | JournalState::Failed => {
            (origin.has_inodes_of(&here) || prepare_undo_in_copy(&journal.entries, &lock.root)?)
                && has_old_versions(&journal.entries, &lock.root)?
        }
    };
    Ok(if is_usable { JournalFile::Valid(state, journal.with_file(file)) } else { JournalFile::Foreign })
}

/// The state of a journal of an earlier format. `None` where other accounts can rename it.
fn state_of_name(own: &Dir, name: &str) -> Option<JournalState> {
    let is_private = Metadata::of(own).is_ok_and(|own| own.mode & 0o022 == 0);
    is_private.then_some(match name {
        DONE_NAME => JournalState::Done,
        UNDO_NAME => JournalState::Failed,
        _ => JournalState::Open,
    })
}

fn has_old_versions(entries: &[JournalEntry], root: &Dir) -> io::Result<bool> {
    for entry in entries {
        if !entry.has_old_version(root)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file in `.quipu` has the owner and mode that this user's Quipu gives it. Compared with a new file, since some
/// file systems keep no owners and modes. Root's files are trusted; root trusts the owner of the folder.
fn has_trusted_owner_and_mode(own: &Dir, file: &Metadata) -> io::Result<bool> {
    own.remove_file(UNSYNCED_NAME)?;
    let new = Metadata::of(own.create_private_file(UNSYNCED_NAME)?)?;
    own.remove_file(UNSYNCED_NAME)?;
    let (owner, user) = (file.owner.0, new.owner.0);
    let is_trusted = owner == user || owner == 0 || user == 0 && owner == Metadata::of(own)?.owner.0;
    Ok(is_trusted && file.mode & 0o777 == new.mode & 0o777)
}

/// Whether every operation took place and displaced only the expected version: then the write is done.
fn is_complete(entries: &[JournalEntry], root: &Dir) -> io::Result<bool> {
    for entry in entries {
        if matches!(entry.op, FileOp::Rename { .. }) {
            if entry.is_renamed(root)? {
                continue;
            }
            return Ok(false);
        }
        let Some(found) = FoundVersions::of(entry, root)? else { return Ok(false) };
        let (old, new) = old_and_new(&entry.op);
        let displaced = if old.is_some() { old } else { new };
        if found.current != new || found.aside.is_some() && found.aside != displaced {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Prepares the undo of a write in a copy of its vault. `false`, and nothing is changed, if a note was changed since or an old
/// version was not copied.
fn prepare_undo_in_copy(entries: &[JournalEntry], root: &Dir) -> io::Result<bool> {
    let mut duplicates = Vec::new();
    // A renamed file has the same content under either path.
    for entry in entries.iter().filter(|entry| !matches!(entry.op, FileOp::Rename { .. })) {
        let Some(found) = FoundVersions::of(entry, root)? else { continue };
        let (old, new) = old_and_new(&entry.op);
        let can_be_undone = match entry.op.displaced() {
            Some((old, trashed)) => {
                [found.current, found.aside, trash::version_of(root, trashed)?].contains(&Some(old))
            }
            // An interrupted rename in two steps leaves two names of one file, which a copy turns into two files. The
            // temporary one is removed.
            None if found.current == new && found.aside.is_some() => {
                duplicates.push(entry);
                found.aside == found.current
            }
            None => true,
        };
        if !can_be_undone || ![old, new].contains(&found.current) {
            return Ok(false);
        }
    }
    duplicates.iter().try_for_each(|entry| root.open_below(&entry.folder)?.remove_file(&entry.temporary))?;
    Ok(true)
}

/// The versions under the name before and after an operation.
fn old_and_new(op: &FileOp) -> (Option<FileVersion>, Option<FileVersion>) {
    match op {
        FileOp::Create { new } => (None, Some(*new)),
        FileOp::Replace { old, new, .. } => (Some(*old), Some(*new)),
        FileOp::Delete { old, .. } => (Some(*old), None),
        FileOp::Rename { .. } => (None, None),
    }
}

/// The versions under the two names of an entry.
struct FoundVersions {
    current: Option<FileVersion>,
    aside: Option<FileVersion>,
}

impl FoundVersions {
    /// `None` if the folder does not exist.
    fn of(entry: &JournalEntry, root: &Dir) -> io::Result<Option<Self>> {
        let Some(dir) = if_exists(root.open_below(&entry.folder))? else { return Ok(None) };
        Ok(Some(Self { current: version_of(&dir, &entry.name)?, aside: version_of(&dir, &entry.temporary)? }))
    }
}
