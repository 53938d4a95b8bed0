//! What a write is about to do, told to whoever comes after a crash.
//!
//! Written before the first file is touched and given another name when the last one is in place: several effects that a
//! crash cut short are undone before that moment, unless all of them took place, and tidied up after it. One effect alone is
//! a single rename, done or not: its journal is only for tidying up, is never synced, and so must never undo.
//!
//! A write that failed gets a third name before it is undone: its caller is told that it failed, so where the undo fails too,
//! or is cut short, recovery undoes the write, even if all of its effects took place.
//!
//! A vault that was cloned or unpacked can hold a journal that somebody else wrote, and another account of this machine may
//! be able to write `.quipu`. So a journal must have the owner and mode that this user's Quipu gives it, and it names the
//! folders and the machine it was written in. One that names others, or that reaches for anything but notes, is set aside
//! and never carried out.

#![expect(clippy::disallowed_methods, reason = "the machine's id is no note")]

use std::io::{self, Read, Write};
use std::sync::OnceLock;

use quipu_core::RequestKey;
use quipu_core::model::VaultPath;
use quipu_core::ports::{Clock, SystemClock};
use serde::{Deserialize, Serialize};

use crate::adopt;
use crate::beneath::{Dir, Kind, Seen, is_no_folder, see_open};
use crate::effect::{Effect, is_among_notes, remove_made};
use crate::folder::join;
use crate::folder_vault::FolderVault;
use crate::requests;
use crate::rules::OWN_FOLDER;
use crate::step;
use crate::trash::stamp;

const NAME: &str = "journal.json";
const DONE_NAME: &str = "journal.done.json";
const UNDO_NAME: &str = "journal.undo.json";
const UNSYNCED_NAME: &str = "journal.json.new";
/// Far above what any write needs.
const MAX_BYTES: u64 = 256 << 20;

/// One write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    format: u32,
    home: Home,
    pub(crate) effects: Vec<Effect>,
    /// Folders that are made on the way, outermost first, by real path.
    pub(crate) made: Vec<String>,
    /// The request it is made for, which may come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Asked>,
}

/// A request, and where it leaves its first file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    request: String,
    place: String,
}

impl Asked {
    pub(crate) fn new(request: RequestKey, place: &VaultPath) -> Self {
        Self { request: request.to_string(), place: place.to_string() }
    }

    /// Notes that it was carried out.
    pub(crate) fn remember(&self, own: &Dir) -> io::Result<()> {
        match self.request.parse() {
            Ok(request) => requests::remember(own, request, &self.place),
            // A journal that somebody else wrote.
            Err(_) => Ok(()),
        }
    }
}

const FORMAT: u32 = 2;

/// What every format tells, so that a newer one can be told from a foreign one.
#[derive(Deserialize)]
struct Header {
    format: u32,
    home: Home,
}

/// The vault that a journal was written in: the inodes of its root and of our folder in it, and the machine. Devices are
/// left out: their numbers may change when the machine starts anew, and a journal must outlast that.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Home {
    root: u64,
    own: u64,
    /// Inodes may change too: of a network drive that is mounted again, of a vault that is copied or comes out of a backup.
    /// Then the journal is still good on the machine that wrote it, since it knows files by their content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
}

impl Home {
    fn of(root: &Dir, own: &Dir) -> io::Result<Self> {
        Ok(Self { root: root.see_self()?.inode, own: own.see_self()?.inode, machine: machine() })
    }

    fn has_inodes_of(&self, other: &Self) -> bool {
        (self.root, self.own) == (other.root, other.own)
    }

    fn is_on_machine_of(&self, other: &Self) -> bool {
        self.machine.is_some() && self.machine == other.machine
    }
}

/// What tells this machine from others, where the system has such a thing. Whoever made a vault elsewhere does not know it.
/// Hashed: the id itself is to be kept on the machine.
fn machine() -> Option<String> {
    static MACHINE: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/etc/machine-id").ok()?;
        let id = id.trim();
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| {
            blake3::Hash::from(blake3::derive_key("quipu journal machine", id.as_bytes())).to_hex().to_string()
        })
    };
    MACHINE.get_or_init(read).clone()
}

/// Whether a write was left unfinished.
pub(crate) fn is_pending(root: &Dir) -> io::Result<bool> {
    match root.open(OWN_FOLDER) {
        Ok(own) => Ok(own.see(NAME)?.is_some() || own.see(DONE_NAME)?.is_some() || own.see(UNDO_NAME)?.is_some()),
        // A file of that name holds no journal. The notes can still be read; the first write says what is wrong.
        Err(error) if is_no_folder(&error) => Ok(false),
        // So it is with a folder that is closed to this account.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

/// Finishes or undoes what the last writer left. The caller holds the lock.
pub(crate) fn recover(vault: &FolderVault, root: &Dir, own: &Dir) -> io::Result<()> {
    // First: a copy made in the middle of a write can hold the same journal under two names, and a failed write is undone.
    if let Some(failed) = read_or_refuse(vault, root, own, UNDO_NAME)? {
        failed.undo_effects(root)?;
        remove_made(root, &failed.made)?;
    }
    if let Some(done) = read_or_refuse(vault, root, own, DONE_NAME)? {
        done.effects.iter().try_for_each(|effect| effect.drop_displaced(root))?;
        done.remember(own)?;
    }
    if let Some(journal) = read_or_refuse(vault, root, own, NAME)? {
        match journal.effects.as_slice() {
            [only] => {
                if only.took_place(root)? {
                    journal.remember(own)?;
                }
                only.finish(root)?;
            }
            effects if adopt::is_complete(effects, root)? => {
                journal.remember(own)?;
                for effect in effects {
                    effect.drop_displaced(root)?;
                    root.open_below(&effect.folder)?.sync()?;
                }
            }
            _ => journal.undo_effects(root)?,
        }
        remove_made(root, &journal.made)?;
    }
    // The mark goes last: cut short before, the journal is still that of a failed write.
    for name in [DONE_NAME, NAME, UNDO_NAME] {
        if own.see(name)?.is_some() {
            own.remove_file(name)?;
            own.sync()?;
        }
    }
    Ok(())
}

/// Why a failed write could not be undone.
#[derive(Debug)]
pub(crate) struct UndoError {
    source: io::Error,
    is_marked: bool,
}

impl UndoError {
    /// What the caller of the failed write has to know.
    pub(crate) fn told_with(&self, failure: &io::Error) -> io::Error {
        let later = if self.is_marked {
            "the next write undoes it first"
        } else {
            "the next write undoes or completes it; then read the notes again"
        };
        io::Error::new(failure.kind(), format!("{failure}; undoing the write failed too ({}); {later}", self.source))
    }
}

/// Marks the journal, if it is there, as that of a write that failed. From here on no crash makes the write count as done.
fn mark_failed(own: &Dir) -> io::Result<()> {
    step::before("mark")?;
    for name in [NAME, DONE_NAME] {
        if own.see(name)?.is_some() {
            // The journal of a single effect was not synced yet, and an incomplete one would undo nothing.
            own.open_file(name)?.sync_all()?;
            own.rename(name, UNDO_NAME)?;
            own.sync()?;
        }
    }
    Ok(())
}

/// What lies under a journal's name.
enum Record {
    Journal(Journal),
    /// The trace of a single effect, cut short. One that must be heeded was synced before it got its name.
    Torn,
    /// Not written by us in this vault, or not as we write.
    Foreign,
}

fn read_or_refuse(vault: &FolderVault, root: &Dir, own: &Dir, name: &str) -> io::Result<Option<Journal>> {
    match read(root, own, name)? {
        Record::Journal(journal) => Ok(Some(journal)),
        Record::Torn => Ok(None),
        Record::Foreign => {
            let refused = format!("journal.refused-{}.json", stamp(SystemClock.now_ns()));
            own.rename(name, &refused)?;
            own.sync()?;
            let message = format!(
                "this was {name}, the record of an unfinished write, but not of one in this folder; nothing of it was \
                 carried out. If the vault was copied or moved in the middle of a write, look at the notes it names; \
                 else delete it"
            );
            vault.notice(join(OWN_FOLDER, &refused), message);
            Ok(None)
        }
    }
}

fn read(root: &Dir, own: &Dir, name: &str) -> io::Result<Record> {
    let Some(seen) = own.see(name)? else { return Ok(Record::Torn) };
    if seen.kind != Kind::File || seen.stat.size > MAX_BYTES {
        return Ok(Record::Foreign);
    }
    let file = match own.open_file(name) {
        // Another account's, in a folder that both may write: it is not trusted, read or not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Record::Foreign),
        file => file?,
    };
    if !is_as_we_write(own, &see_open(&file)?)? {
        return Ok(Record::Foreign);
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let is_torn = |error: serde_json::Error| if error.is_data() { Record::Foreign } else { Record::Torn };
    let here = Home::of(root, own)?;
    let Header { format, home } = match serde_json::from_slice::<Header>(&bytes) {
        Ok(header) if header.home.has_inodes_of(&here) || header.home.is_on_machine_of(&here) => header,
        Ok(_) => return Ok(Record::Foreign),
        Err(error) => return Ok(is_torn(error)),
    };
    if format > FORMAT {
        let message = format!("the journal has format {format}; a newer Quipu must finish it");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let journal = match serde_json::from_slice::<Journal>(&bytes) {
        Ok(journal) if journal.is_confined() => journal,
        Ok(_) => return Ok(Record::Foreign),
        Err(error) => return Ok(is_torn(error)),
    };
    // Nothing of a finished write is undone, so it needs no preparation.
    let is_finished = name == DONE_NAME;
    if !is_finished && !home.has_inodes_of(&here) && !adopt::adopt(&journal.effects, root)? {
        return Ok(Record::Foreign);
    }
    Ok(Record::Journal(journal))
}

/// Whether a file in our folder has the owner and the mode that this user's Quipu gives it. Compared with a new file, since
/// not every file system keeps owners and modes. Root is trusted; root itself trusts whose folder it is.
fn is_as_we_write(own: &Dir, seen: &Seen) -> io::Result<bool> {
    own.remove_file(UNSYNCED_NAME)?;
    let ours = see_open(&own.create_private_file(UNSYNCED_NAME)?)?;
    own.remove_file(UNSYNCED_NAME)?;
    let (user, us) = (seen.owner.0, ours.owner.0);
    let is_trusted = user == us || user == 0 || us == 0 && user == own.see_self()?.owner.0;
    Ok(is_trusted && seen.mode & 0o777 == ours.mode & 0o777)
}

impl Journal {
    pub(crate) fn new(
        root: &Dir,
        own: &Dir,
        effects: Vec<Effect>,
        made: Vec<String>,
        asked: Option<Asked>,
    ) -> io::Result<Self> {
        Ok(Self { format: FORMAT, home: Home::of(root, own)?, effects, made, asked })
    }

    /// Whether all of it stays among the notes.
    fn is_confined(&self) -> bool {
        self.effects.iter().all(Effect::is_confined) && self.made.iter().all(|folder| is_among_notes(folder))
    }

    /// Says what is about to happen.
    pub(crate) fn write(&self, own: &Dir) -> io::Result<()> {
        step::before("journal")?;
        own.remove_file(UNSYNCED_NAME)?;
        let mut file = own.create_private_file(UNSYNCED_NAME)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        if self.must_be_undone() {
            file.sync_all()?;
        }
        step::before("journal in place")?;
        own.rename(UNSYNCED_NAME, NAME)?;
        if self.must_be_undone() {
            own.sync()?;
        }
        Ok(())
    }

    /// The end of the write: once this returns, or the program ends behind it, nothing is undone.
    pub(crate) fn close(&self, root: &Dir, own: &Dir) -> io::Result<()> {
        step::before("close")?;
        if self.must_be_undone() {
            own.rename(NAME, DONE_NAME)?;
            // Should this fail, the write failed: the mark of a failed write then replaces this name.
            step::before("sync the end")?;
            own.sync()?;
        }
        // Should this fail, the one who asks again finds the journal carried out, or is told the place is taken.
        let _ = self.remember(own);
        // What cannot be tidied up now is left, with the journal, to the next writer: the write itself is done.
        let tidied = self.effects.iter().try_for_each(|effect| effect.drop_displaced(root));
        let _ = tidied.and_then(|()| own.remove_file(if self.must_be_undone() { DONE_NAME } else { NAME }));
        Ok(())
    }

    /// Undoes all of it, wherever it stopped. Where that fails, the next writer undoes it.
    pub(crate) fn undo(&self, root: &Dir, own: &Dir) -> Result<(), UndoError> {
        let marked = mark_failed(own);
        if let Err(source) = &marked
            && !matches!(own.see(DONE_NAME), Ok(None))
        {
            // Recovery completes a write of that name, so it must not be undone in part.
            return Err(UndoError { source: io::Error::new(source.kind(), source.to_string()), is_marked: false });
        }
        // Tried even without the mark: recovery undoes what is left of an incomplete write.
        let undone = self.undo_effects(root).and_then(|()| remove_made(root, &self.made)).and_then(|()| {
            step::before("remove the journal")?;
            for name in [UNSYNCED_NAME, DONE_NAME, NAME, UNDO_NAME] {
                own.remove_file(name)?;
            }
            own.sync()
        });
        undone.map_err(|source| UndoError { source, is_marked: marked.is_ok() })
    }

    fn remember(&self, own: &Dir) -> io::Result<()> {
        self.asked.as_ref().map_or(Ok(()), |asked| asked.remember(own))
    }

    fn undo_effects(&self, root: &Dir) -> io::Result<()> {
        self.effects.iter().rev().try_for_each(|effect| effect.undo(root))
    }

    fn must_be_undone(&self) -> bool {
        self.effects.len() > 1
    }
}
