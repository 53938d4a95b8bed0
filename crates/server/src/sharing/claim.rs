//! Whose a vault is, and where its owner is found: a lock that the system lets go of when its holder dies, a card that says
//! who holds it, and a socket that only this user can reach.
//!
//! The socket lies in the vault's own folder, so that whoever can open the vault finds it, in a container too. Where it
//! cannot (its path is too long for a socket, the file system has none, the disk is full), it lies in a folder of this
//! user's below `/tmp`, under a name made from the vault's path.
//!
//! On Windows the lock would be the same call, over a file beside the card, since nobody can read a file that another has
//! locked; the socket would be a named pipe under the name that is made from the vault's path, with an access list of this
//! user alone, and the other end told by the session and user of its process.

#![expect(clippy::disallowed_methods, reason = "the lock and the socket are no notes")]

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use quipu_own_folder::OwnFolder;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// Names in the vault's own folder.
const LOCK: &str = "owner.lock";
const FOLDER: &str = "share";
const SOCKET: &str = "owner.sock";

/// Far above any card.
const MAX_CARD: u64 = 4096;

/// The shortest limit there is, on macOS, with the byte that ends the name.
const MAX_SOCKET_PATH: usize = 103;

/// What others read of whoever has the vault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    pub pid: u32,
    pub version: String,
    pub hold: Hold,
    /// The command that the process runs; empty where an older version wrote the card.
    #[serde(default)]
    pub command: String,
}

impl Card {
    /// What the lock file says of its holder, without asking for the lock. It may be out of date.
    pub fn read(own_folder: &Path) -> Option<Self> {
        let file = OwnFolder::open(own_folder).and_then(|folder| folder.file(LOCK, OFlags::RDONLY)).ok()?;
        Self::of(file).ok()
    }

    fn of(file: File) -> io::Result<Self> {
        let mut text = Vec::new();
        file.take(MAX_CARD).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text).unwrap_or_default())
    }
}

/// The holder as people know it: `quipu index` (process 12).
impl std::fmt::Display for Card {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pid, self.command.as_str()) {
            (0, _) => write!(f, "another quipu process"),
            (pid, "") => write!(f, "another quipu process (process {pid})"),
            (pid, command) => write!(f, "`quipu {command}` (process {pid})"),
        }
    }
}

/// How long a vault is had, and whether others can share it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// By a server that answers at a socket, or is about to.
    #[default]
    Shared,
    /// By a server that could make no socket.
    Alone,
    /// By a command that will be over soon.
    Passing,
}

/// The right to open a vault's index. Let go of when dropped, or when the process ends.
#[derive(Debug)]
pub struct Claim {
    lock: File,
    /// Which file that is.
    file: FileId,
    /// The command that this process runs.
    command: String,
    /// Where others are let in.
    socket: Option<Socket>,
}

/// A socket that was made here.
#[derive(Debug, Clone)]
struct Socket {
    path: PathBuf,
    /// Another may have its path by now.
    file: FileId,
}

/// Tells a file from every other of this machine.
pub(crate) type FileId = (u64, u64);

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

fn file_at(path: &Path) -> io::Result<FileId> {
    Ok(id(&std::fs::symlink_metadata(path)?))
}

/// How a claim stands, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Firm,
    /// The locked file is no longer where others look for it: another process may get a lock.
    NoLock,
    /// The socket is no longer where others look for it.
    NoSocket,
}

/// What a claim looks like on disk, to be compared without it.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    lock: FileId,
    socket: Option<Socket>,
}

impl Marks {
    /// Compares it with what is there. A disk that says nothing changes nothing.
    pub(crate) fn look(&self, own_folder: &Path) -> Standing {
        let is_another = |there: io::Result<FileId>, own: FileId| match there {
            Ok(there) => there != own,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_another(identity(own_folder), self.lock) {
            return Standing::NoLock;
        }
        match &self.socket {
            Some(socket) if is_another(file_at(&socket.path), socket.file) => Standing::NoSocket,
            _ => Standing::Firm,
        }
    }
}

/// What came of asking for a vault.
#[derive(Debug)]
pub(crate) enum Asked {
    Had(Claim),
    /// Somebody else has it.
    Taken(Card),
    /// Nobody can have it for himself here: the folder cannot be written, or the file system has no locks.
    Impossible(io::Error),
}

impl Claim {
    /// Asks for a vault whose own folder is there.
    pub(crate) fn ask(own_folder: &Path, hold: Hold, command: &str) -> Asked {
        match Self::lock(own_folder) {
            Ok(Ok((lock, file))) => {
                let mut claim = Self { lock, file, command: command.to_owned(), socket: None };
                claim.write_card(hold);
                Asked::Had(claim)
            }
            Ok(Err(card)) => Asked::Taken(card),
            Err(error) => Asked::Impossible(error),
        }
    }

    fn lock(own_folder: &Path) -> io::Result<Result<(File, FileId), Card>> {
        let path = own_folder.join(LOCK);
        // Whatever takes the folder's or the lock's place is not followed.
        let file = OwnFolder::open(own_folder)?.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let opened = id(&file.metadata()?);
        match file.try_lock() {
            Ok(()) => {
                // Somebody may have tidied the folder up meanwhile: then this is the lock of nothing.
                let is_there = file_at(&path).is_ok_and(|there| there == opened);
                Ok(if is_there { Ok((file, opened)) } else { Err(Card::default()) })
            }
            Err(TryLockError::WouldBlock) => Card::of(file).map(Err),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Lets nobody in any more, and keeps the vault until the process has ended: what it has open is closed only then, and
    /// whoever came before would find it in use.
    pub(crate) fn keep_to_the_end(self) {
        self.close_socket();
        Box::leak(Box::new(self));
    }

    /// Lets nobody in any more. A socket that stays is replaced by the next owner; one of another owner's stays as it is.
    pub(crate) fn close_socket(&self) {
        if let Some(Socket { path, file }) = &self.socket
            && file_at(path).is_ok_and(|there| there == *file)
        {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Which vault this is: see [`identity`].
    pub(crate) fn identity(&self) -> FileId {
        self.file
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks { lock: self.file, socket: self.socket.clone() }
    }

    /// Holds the vault by another lock from now on: the old one is no longer where others look for it.
    pub(crate) fn move_to(&mut self, newer: Self) {
        (self.lock, self.file) = (newer.lock, newer.file);
    }

    /// Writes down who has the vault, and how. Where that cannot be, the lock itself still says that somebody has.
    pub(crate) fn write_card(&mut self, hold: Hold) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let card = Card { pid: std::process::id(), version, hold, command: self.command.clone() };
        let mut write = || {
            self.lock.set_len(0)?;
            self.lock.rewind()?;
            self.lock.write_all(&serde_json::to_vec(&card)?)
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "who has the vault is not written down");
        }
    }

    /// Makes the socket. A claim is needed for it: what is found in its place belongs to nobody any more.
    pub(crate) fn listen(&mut self, own_folder: &Path) -> io::Result<UnixListener> {
        let mut failure = None;
        for place in places(own_folder) {
            match place.listen() {
                Ok(listener) => {
                    let file = file_at(&place.socket)?;
                    self.socket = Some(Socket { path: place.socket, file });
                    return Ok(listener);
                }
                Err(error) => {
                    tracing::debug!(place = %place.socket.display(), %error, "no socket here");
                    failure.get_or_insert(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

/// Connects to whoever owns the vault.
pub(crate) fn connect(own_folder: &Path) -> io::Result<UnixStream> {
    let mut failure = None;
    for place in places(own_folder) {
        match place.connect() {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Whether the process at the other end is this user's.
pub(crate) fn is_ours(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
    }
    // The folder around the socket lets nobody else in.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        true
    }
}

/// Somewhere a socket may lie.
struct Place {
    folder: PathBuf,
    socket: PathBuf,
}

/// In order; both ends look in the same places.
fn places(own_folder: &Path) -> Vec<Place> {
    let user = rustix::process::geteuid().as_raw();
    let at_home = own_folder.join(FOLDER);
    let elsewhere = Path::new("/tmp").join(format!("quipu-{user}"));
    let name = blake3::hash(own_folder.as_os_str().as_encoded_bytes()).to_hex();
    let places = [(at_home, SOCKET.to_owned()), (elsewhere, format!("{}.sock", &name[..32]))];
    let places = places.map(|(folder, name)| Place { socket: folder.join(name), folder });
    places.into_iter().filter(|place| place.socket.as_os_str().len() <= MAX_SOCKET_PATH).collect()
}

impl Place {
    fn listen(&self) -> io::Result<UnixListener> {
        let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let (Some(above), Some(folder), Some(socket)) = (self.folder.parent(), name(&self.folder), name(&self.socket))
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = OwnFolder::open(above)?.private_folder(&folder)?;
        self.check()?;
        folder.remove(&socket)?;
        // A socket is made by its path alone.
        folder.check_place()?;
        UnixListener::bind(&self.socket)
    }

    fn connect(&self) -> io::Result<UnixStream> {
        self.check()?;
        let stream = UnixStream::connect(&self.socket)?;
        if is_ours(&stream) { Ok(stream) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// A folder that others can enter, or that somebody else made, is not used.
    fn check(&self) -> io::Result<()> {
        let metadata = std::fs::symlink_metadata(&self.folder)?;
        let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
        if is_own && metadata.permissions().mode() & 0o077 == 0 {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "the socket's folder is not this user's alone"))
    }
}

/// Tells one vault's lock from another's. Two vaults may have the same path, in two containers that share `/tmp`.
pub(crate) fn identity(own_folder: &Path) -> io::Result<FileId> {
    file_at(&own_folder.join(LOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn had(asked: Asked) -> Claim {
        match asked {
            Asked::Had(claim) => claim,
            other => panic!("not had: {other:?}"),
        }
    }

    #[test]
    fn one_has_the_vault_until_it_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let claim = had(Claim::ask(folder.path(), Hold::Passing, "index"));
        let Asked::Taken(card) = Claim::ask(folder.path(), Hold::Shared, "serve") else { panic!("two owners") };
        assert_eq!((card.pid, card.hold), (std::process::id(), Hold::Passing));
        assert_eq!(card.to_string(), format!("`quipu index` (process {})", std::process::id()));
        assert_eq!(Card::read(folder.path()), Some(card));
        drop(claim);
        had(Claim::ask(folder.path(), Hold::Shared, "serve"));
    }

    #[test]
    fn a_socket_that_nobody_listens_at_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut claim = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        drop(claim.listen(folder.path()).unwrap());
        assert!(connect(folder.path()).is_err());
        let listener = claim.listen(folder.path()).unwrap();
        let stream = connect(folder.path()).unwrap();
        assert!(is_ours(&listener.accept().unwrap().0) && is_ours(&stream));
        let mode = std::fs::metadata(folder.path().join(FOLDER)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "nobody else may come in");
    }

    #[test]
    fn a_path_too_long_for_a_socket_has_one_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let mut claim = had(Claim::ask(&deep, Hold::Shared, "serve"));
        let listener = claim.listen(&deep).unwrap();
        connect(&deep).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(!address.as_pathname().unwrap().starts_with(folder.path()));
        std::fs::remove_file(address.as_pathname().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_where_no_socket_can_be_has_one_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        // A file where the socket's folder would be.
        std::fs::write(folder.path().join(FOLDER), "").unwrap();
        let mut claim = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        let listener = claim.listen(folder.path()).unwrap();
        connect(folder.path()).unwrap();
        std::fs::remove_file(listener.local_addr().unwrap().as_pathname().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_enter_has_its_socket_elsewhere_and_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path().join(FOLDER);
        std::fs::create_dir(&share).unwrap();
        std::fs::set_permissions(&share, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut claim = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        let listener = claim.listen(folder.path()).unwrap();
        assert_eq!(std::fs::metadata(&share).unwrap().permissions().mode() & 0o777, 0o755);
        std::fs::remove_file(listener.local_addr().unwrap().as_pathname().unwrap()).unwrap();
    }

    #[test]
    fn a_claim_whose_files_were_removed_is_told_from_one_that_stands_firm() {
        let folder = tempfile::tempdir().unwrap();
        let mut claim = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        let _listener = claim.listen(folder.path()).unwrap();
        let marks = claim.marks();
        assert_eq!(marks.look(folder.path()), Standing::Firm);
        let socket = folder.path().join(FOLDER).join(SOCKET);
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(marks.look(folder.path()), Standing::NoSocket);
        let _stranger = UnixListener::bind(&socket).unwrap();
        assert_eq!(marks.look(folder.path()), Standing::NoSocket, "that is another's");
        let _listener = claim.listen(folder.path()).unwrap();
        let marks = claim.marks();
        assert_eq!(marks.look(folder.path()), Standing::Firm);
        claim.close_socket();
        assert_eq!(marks.look(folder.path()), Standing::NoSocket, "it was given up, and is wanted again");
        std::fs::remove_file(folder.path().join(LOCK)).unwrap();
        assert_eq!(marks.look(folder.path()), Standing::NoLock);
        let newer = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        assert_eq!(marks.look(folder.path()), Standing::NoLock, "that is another's");
        claim.move_to(newer);
        let _listener = claim.listen(folder.path()).unwrap();
        assert_eq!(claim.marks().look(folder.path()), Standing::Firm);
    }

    #[test]
    fn only_the_own_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        let _listener = first.listen(folder.path()).unwrap();
        std::fs::remove_file(folder.path().join(LOCK)).unwrap();
        let mut second = had(Claim::ask(folder.path(), Hold::Shared, "serve"));
        let _listener = second.listen(folder.path()).unwrap();
        first.close_socket();
        connect(folder.path()).unwrap();
    }

    #[test]
    fn a_pipe_in_place_of_the_lock_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(LOCK)).status().unwrap();
        assert!(made.success());
        assert!(matches!(Claim::ask(folder.path(), Hold::Shared, "serve"), Asked::Impossible(_)));
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join(LOCK)).unwrap();
        assert!(matches!(Claim::ask(folder.path(), Hold::Shared, "serve"), Asked::Impossible(_)));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    }
}
