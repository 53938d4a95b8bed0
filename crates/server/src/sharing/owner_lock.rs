//! Which process owns a vault, and how to reach it: a lock file that the system releases when its holder exits, the owner's
//! information in that file, and a socket that only this user can use.
//!
//! The socket is in the vault's `.quipu/`, so that every process that can open the vault finds it, in a container too. Where
//! that is impossible (the path is too long for a socket, the file system has no sockets, the disk is full), it is in a folder
//! of this user below `/tmp`, under a hash of the vault's path.

#![expect(clippy::disallowed_methods, reason = "the lock and the socket are not notes")]

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use quipu_own_folder::OwnFolder;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// Names in the vault's `.quipu/` folder.
const LOCK: &str = "owner.lock";
const FOLDER: &str = "share";
const SOCKET: &str = "owner.sock";

/// How often the lock file may be deleted between its creation and the lock before this process gives up.
const DELETIONS: usize = 10;

/// Far above the length of any owner information.
const MAX_INFO_BYTES: u64 = 4096;

/// The shortest limit there is, on macOS, with the byte that ends the name.
const MAX_SOCKET_PATH: usize = 103;

/// What the lock file says about its holder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerInfo {
    pub pid: u32,
    pub version: String,
    #[serde(rename = "hold")]
    pub mode: OwnerMode,
    /// The command that the process runs; empty if an older version wrote it.
    #[serde(default)]
    pub command: String,
}

impl OwnerInfo {
    /// Reads the lock file without trying the lock. It may be out of date.
    pub fn read(own_folder: &Path) -> Option<Self> {
        let file = OwnFolder::open(own_folder).and_then(|folder| folder.file(LOCK, OFlags::RDONLY)).ok()?;
        Self::of(file).ok()
    }

    /// Whether the process is stopped, as by Ctrl-Z, and cannot answer. `false` where the system does not tell.
    pub(super) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // The state follows the name, which the process chooses.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
    }

    fn of(file: File) -> io::Result<Self> {
        let mut text = Vec::new();
        file.take(MAX_INFO_BYTES).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text).unwrap_or_default())
    }
}

/// The holder in a message: `quipu index` (process 12).
impl std::fmt::Display for OwnerInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pid, self.command.as_str()) {
            (0, _) => write!(f, "the owner process"),
            (pid, "") => write!(f, "the owner process (process {pid})"),
            (pid, command) => write!(f, "`quipu {command}` (process {pid})"),
        }
    }
}

/// How long a process owns a vault, and whether others can share it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerMode {
    /// A server that answers at a socket, or is about to.
    #[default]
    Shared,
    /// A server that could not create a socket.
    #[serde(rename = "alone")]
    Exclusive,
    /// A command that ends soon.
    #[serde(rename = "passing")]
    Temporary,
}

/// The right to open a vault's index. Released when dropped, or when the process exits.
#[derive(Debug)]
pub struct OwnerLock {
    lock: File,
    /// Identifies the lock file.
    file: FileId,
    /// The command that this process runs.
    command: String,
    /// Where other processes connect.
    socket: Option<OwnerSocket>,
}

/// A socket that this process created.
#[derive(Debug, Clone)]
struct OwnerSocket {
    path: PathBuf,
    /// Another socket may have this path by now.
    file: FileId,
}

/// Device and inode.
pub(crate) type FileId = (u64, u64);

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

fn file_at(path: &Path) -> io::Result<FileId> {
    Ok(id(&std::fs::symlink_metadata(path)?))
}

/// Whether the files of an owner are still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockState {
    Intact,
    /// The lock file was deleted or replaced: another process may get a lock.
    LockRemoved,
    /// The socket was deleted or replaced.
    SocketRemoved,
}

/// The identity of an owner's files, to be checked without holding the lock.
#[derive(Debug, Clone)]
pub(crate) struct LockFingerprint {
    lock: FileId,
    socket: Option<OwnerSocket>,
}

impl LockFingerprint {
    /// Compares it with the disk. An error other than a missing file counts as intact.
    pub(crate) fn compare(&self, own_folder: &Path) -> LockState {
        let is_other = |there: io::Result<FileId>, own: FileId| match there {
            Ok(there) => there != own,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_other(identity(own_folder), self.lock) {
            return LockState::LockRemoved;
        }
        match &self.socket {
            Some(socket) if is_other(file_at(&socket.path), socket.file) => LockState::SocketRemoved,
            _ => LockState::Intact,
        }
    }
}

/// The outcome of trying the lock.
#[derive(Debug)]
pub(crate) enum LockAttempt {
    Acquired(OwnerLock),
    /// Another process holds it.
    HeldByOther(OwnerInfo),
    /// The folder cannot be written, or the file system has no locks.
    Unavailable(io::Error),
}

/// The outcome of locking the file.
enum FileLock {
    Locked(File, FileId),
    /// Another process holds the lock.
    Held(OwnerInfo),
    /// The file was deleted before it was locked: the lock protects nothing.
    Deleted,
}

impl OwnerLock {
    /// Tries the lock of a vault that has a `.quipu/` folder.
    pub(crate) fn acquire(own_folder: &Path, mode: OwnerMode, command: &str) -> LockAttempt {
        for _ in 0..DELETIONS {
            match Self::lock(own_folder) {
                Ok(FileLock::Locked(lock, file)) => {
                    let mut owner = Self { lock, file, command: command.to_owned(), socket: None };
                    owner.write_info(mode);
                    return LockAttempt::Acquired(owner);
                }
                Ok(FileLock::Held(info)) => return LockAttempt::HeldByOther(info),
                Ok(FileLock::Deleted) => {}
                Err(error) => return LockAttempt::Unavailable(error),
            }
        }
        LockAttempt::Unavailable(io::Error::other(format!("another program keeps deleting {LOCK}")))
    }

    fn lock(own_folder: &Path) -> io::Result<FileLock> {
        let path = own_folder.join(LOCK);
        // Links in place of the folder or the lock are not followed.
        let file = OwnFolder::open(own_folder)?.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let opened = id(&file.metadata()?);
        match file.try_lock() {
            Ok(()) => {
                let is_there = file_at(&path).is_ok_and(|there| there == opened);
                Ok(if is_there { FileLock::Locked(file, opened) } else { FileLock::Deleted })
            }
            Err(TryLockError::WouldBlock) => OwnerInfo::of(file).map(FileLock::Held),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Closes the socket and holds the lock until the process has exited: its files are closed only then, and an earlier owner
    /// would find them in use.
    pub(crate) fn hold_until_exit(self) {
        self.close_socket();
        Box::leak(Box::new(self));
    }

    /// Deletes the socket, unless it belongs to another owner by now. A socket that stays is replaced by the next owner.
    pub(crate) fn close_socket(&self) {
        if let Some(OwnerSocket { path, file }) = &self.socket
            && file_at(path).is_ok_and(|there| there == *file)
        {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Which vault this is: see [`identity`].
    pub(crate) fn identity(&self) -> FileId {
        self.file
    }

    pub(crate) fn fingerprint(&self) -> LockFingerprint {
        LockFingerprint { lock: self.file, socket: self.socket.clone() }
    }

    /// Holds another lock file from now on: the old one was deleted.
    pub(crate) fn move_to(&mut self, newer: Self) {
        (self.lock, self.file) = (newer.lock, newer.file);
    }

    /// Writes the owner's information into the lock file. If that fails, the lock alone still counts.
    pub(crate) fn write_info(&mut self, mode: OwnerMode) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let info = OwnerInfo { pid: std::process::id(), version, mode, command: self.command.clone() };
        let mut write = || {
            self.lock.set_len(0)?;
            self.lock.rewind()?;
            self.lock.write_all(&serde_json::to_vec(&info)?)
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "cannot write the owner's information");
        }
    }

    /// Creates the socket. The lock is held, so a socket that is already there belongs to an owner that has exited.
    pub(crate) fn listen(&mut self, own_folder: &Path) -> io::Result<UnixListener> {
        let mut failure = None;
        for location in locations(own_folder) {
            match location.listen() {
                Ok(listener) => {
                    let file = file_at(&location.socket)?;
                    self.socket = Some(OwnerSocket { path: location.socket, file });
                    return Ok(listener);
                }
                Err(error) => {
                    tracing::debug!(location = %location.socket.display(), %error, "no socket here");
                    failure.get_or_insert(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

/// Connects to the owner.
pub(crate) fn connect(own_folder: &Path) -> io::Result<UnixStream> {
    let mut failure = None;
    for location in locations(own_folder) {
        match location.connect() {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Whether the other end is a process of this user.
pub(crate) fn is_ours(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
    }
    // Only this user can enter the folder of the socket.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        true
    }
}

/// A possible path of the socket.
struct SocketLocation {
    folder: PathBuf,
    socket: PathBuf,
}

/// In order; both ends use the same ones.
fn locations(own_folder: &Path) -> Vec<SocketLocation> {
    let user = rustix::process::geteuid().as_raw();
    let at_home = own_folder.join(FOLDER);
    let elsewhere = Path::new("/tmp").join(format!("quipu-{user}"));
    let name = blake3::hash(own_folder.as_os_str().as_encoded_bytes()).to_hex();
    let locations = [(at_home, SOCKET.to_owned()), (elsewhere, format!("{}.sock", &name[..32]))];
    let locations = locations.map(|(folder, name)| SocketLocation { socket: folder.join(name), folder });
    locations.into_iter().filter(|location| location.socket.as_os_str().len() <= MAX_SOCKET_PATH).collect()
}

impl SocketLocation {
    fn listen(&self) -> io::Result<UnixListener> {
        let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let (Some(above), Some(folder), Some(socket)) = (self.folder.parent(), name(&self.folder), name(&self.socket))
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = OwnFolder::open(above)?.private_folder(&folder)?;
        self.check()?;
        folder.remove(&socket)?;
        // A socket can only be created by its path.
        folder.check_place()?;
        UnixListener::bind(&self.socket)
    }

    fn connect(&self) -> io::Result<UnixStream> {
        self.check()?;
        let stream = UnixStream::connect(&self.socket)?;
        if is_ours(&stream) { Ok(stream) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// A folder that others can enter, or of another user, is not used.
    fn check(&self) -> io::Result<()> {
        let metadata = std::fs::symlink_metadata(&self.folder)?;
        let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
        if is_own && metadata.permissions().mode() & 0o077 == 0 {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users can enter the socket's folder"))
    }
}

/// Identifies a vault by its lock file. Two vaults may have the same path, in two containers that share `/tmp`.
pub(crate) fn identity(own_folder: &Path) -> io::Result<FileId> {
    file_at(&own_folder.join(LOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acquired(asked: LockAttempt) -> OwnerLock {
        match asked {
            LockAttempt::Acquired(lock) => lock,
            other => panic!("not acquired: {other:?}"),
        }
    }

    #[test]
    fn one_process_holds_the_lock_until_it_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let lock = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Temporary, "index"));
        let LockAttempt::HeldByOther(info) = OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve") else {
            panic!("two owners")
        };
        assert_eq!((info.pid, info.mode), (std::process::id(), OwnerMode::Temporary));
        assert_eq!(info.to_string(), format!("`quipu index` (process {})", std::process::id()));
        assert_eq!(OwnerInfo::read(folder.path()), Some(info));
        drop(lock);
        acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_stopped_holder_is_known_as_such() {
        let mut holder = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let info = OwnerInfo { pid: holder.id(), ..OwnerInfo::default() };
        assert!(!info.is_stopped());
        let pid = rustix::process::Pid::from_child(&holder);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let start = std::time::Instant::now();
        while !info.is_stopped() {
            assert!(start.elapsed().as_secs() < 60, "never stopped");
            std::thread::yield_now();
        }
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(!info.is_stopped());
    }

    #[test]
    fn an_abandoned_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mut lock = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        drop(lock.listen(folder.path()).unwrap());
        assert!(connect(folder.path()).is_err());
        let listener = lock.listen(folder.path()).unwrap();
        let stream = connect(folder.path()).unwrap();
        assert!(is_ours(&listener.accept().unwrap().0) && is_ours(&stream));
        let mode = std::fs::metadata(folder.path().join(FOLDER)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "other users have access");
    }

    #[test]
    fn a_path_too_long_for_a_socket_uses_the_temporary_folder() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let mut lock = acquired(OwnerLock::acquire(&deep, OwnerMode::Shared, "serve"));
        let listener = lock.listen(&deep).unwrap();
        connect(&deep).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(!address.as_pathname().unwrap().starts_with(folder.path()));
        std::fs::remove_file(address.as_pathname().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_have_a_socket_uses_the_temporary_folder() {
        let folder = tempfile::tempdir().unwrap();
        // A file where the socket's folder would be.
        std::fs::write(folder.path().join(FOLDER), "").unwrap();
        let mut lock = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        let listener = lock.listen(folder.path()).unwrap();
        connect(folder.path()).unwrap();
        std::fs::remove_file(listener.local_addr().unwrap().as_pathname().unwrap()).unwrap();
    }

    #[test]
    fn share_folder_that_others_can_enter_gets_no_socket_and_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path().join(FOLDER);
        std::fs::create_dir(&share).unwrap();
        std::fs::set_permissions(&share, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut lock = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        let listener = lock.listen(folder.path()).unwrap();
        assert_eq!(std::fs::metadata(&share).unwrap().permissions().mode() & 0o777, 0o755);
        std::fs::remove_file(listener.local_addr().unwrap().as_pathname().unwrap()).unwrap();
    }

    #[test]
    fn lock_with_removed_files_is_distinguished_from_an_intact_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut lock = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        let _listener = lock.listen(folder.path()).unwrap();
        let marks = lock.fingerprint();
        assert_eq!(marks.compare(folder.path()), LockState::Intact);
        let socket = folder.path().join(FOLDER).join(SOCKET);
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(marks.compare(folder.path()), LockState::SocketRemoved);
        let _stranger = UnixListener::bind(&socket).unwrap();
        assert_eq!(marks.compare(folder.path()), LockState::SocketRemoved, "that is another's");
        let _listener = lock.listen(folder.path()).unwrap();
        let marks = lock.fingerprint();
        assert_eq!(marks.compare(folder.path()), LockState::Intact);
        lock.close_socket();
        assert_eq!(marks.compare(folder.path()), LockState::SocketRemoved, "it was given up, and is wanted again");
        std::fs::remove_file(folder.path().join(LOCK)).unwrap();
        assert_eq!(marks.compare(folder.path()), LockState::LockRemoved);
        let newer = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        assert_eq!(marks.compare(folder.path()), LockState::LockRemoved, "that is another's");
        lock.move_to(newer);
        let _listener = lock.listen(folder.path()).unwrap();
        assert_eq!(lock.fingerprint().compare(folder.path()), LockState::Intact);
    }

    #[test]
    fn only_the_process_own_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        let _listener = first.listen(folder.path()).unwrap();
        std::fs::remove_file(folder.path().join(LOCK)).unwrap();
        let mut second = acquired(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"));
        let _listener = second.listen(folder.path()).unwrap();
        first.close_socket();
        connect(folder.path()).unwrap();
    }

    #[test]
    fn pipe_in_place_of_the_lock_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(LOCK)).status().unwrap();
        assert!(made.success());
        assert!(matches!(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"), LockAttempt::Unavailable(_)));
    }

    #[test]
    fn symlink_in_place_of_the_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join(LOCK)).unwrap();
        assert!(matches!(OwnerLock::acquire(folder.path(), OwnerMode::Shared, "serve"), LockAttempt::Unavailable(_)));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    }
}
