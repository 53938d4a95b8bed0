//! Directory handles. Every access below the vault's root opens one name in an open folder and follows no symbolic link, so
//! a folder that another program replaces by a link cannot redirect a read or a write out of the vault.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use quipu_core::model::FileStat;
use quipu_core::ports::{Clock, SystemClock};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use crate::failpoint;
use crate::trash::timestamp;

/// Digits of the largest process id.
pub(crate) const MAX_PID_DIGITS: u64 = 10;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Folder,
    Link,
    /// A pipe, socket or device; never opened.
    Other,
}

/// The metadata of a file, folder or symbolic link itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) kind: FileKind,
    pub(crate) stat: FileStat,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) changed_ns: i64,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
}

impl Dir {
    /// Opens the vault's root. Only here are symbolic links followed.
    pub(crate) fn open_root(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(root, flags, Mode::empty())?))
    }

    /// Opens a folder in this one.
    pub(crate) fn open(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(&self.0, name.as_ref(), flags, Mode::empty())?))
    }

    /// Opens a folder at a relative path; the empty path is this folder. A path with `.` or `..` is an error.
    pub(crate) fn open_below(&self, path: &str) -> io::Result<Self> {
        if path.is_empty() {
            return self.open(".");
        }
        if !is_below(path) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not lie below the vault's root"));
        }
        #[cfg(target_os = "linux")]
        match self.open_with_openat2(path) {
            // An old kernel, a sandbox that forbids openat2, a concurrent rename, or a path that is too long.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::NAMETOOLONG) => {}
            outcome => return Ok(outcome?),
        }
        path.split('/').try_fold(self.open(".")?, |dir, part| dir.open(part))
    }

    /// Opens a whole path in one system call, which follows no symbolic link either.
    #[cfg(target_os = "linux")]
    fn open_with_openat2(&self, path: &str) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
        Ok(Self(rustix::fs::openat2(&self.0, path, flags, Mode::empty(), resolve)?))
    }

    /// The metadata of a name; `None` if it does not exist.
    pub(crate) fn metadata(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Metadata>> {
        match rustix::fs::statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Metadata::new(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Every entry of the folder, unordered.
    pub(crate) fn entries(&self) -> io::Result<Vec<(OsString, FileKind)>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type here.
                FileType::Unknown => match self.metadata(name)? {
                    Some(metadata) => metadata.kind,
                    None => continue,
                },
                known => FileKind::of(known),
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Opens a regular file for reading. Anything else is an error; a pipe does not block.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        regular(rustix::fs::openat(&self.0, name.as_ref(), flags, Mode::empty())?.into())
    }

    /// Opens a regular file for reading and writing.
    pub(crate) fn open_file_to_write(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        regular(rustix::fs::openat(&self.0, name, flags, Mode::empty())?.into())
    }

    /// Creates a file that must not exist, with the default permissions of the user's new files.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        self.create(name, 0o666)
    }

    /// Creates a file that must not exist, readable by this user only.
    pub(crate) fn create_private_file(&self, name: &str) -> io::Result<File> {
        self.create(name, 0o600)
    }

    /// Creates a file for this user only, or in a shared folder for the group.
    pub(crate) fn create_own_file(&self, name: &str) -> io::Result<File> {
        let file = self.create_private_file(name)?;
        if self.is_shared()? {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o660))?;
        }
        Ok(file)
    }

    fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, name, flags, mode_of(mode))?.into())
    }

    /// Opens or creates a lock file. Only accounts that may write in this folder can open it: its owner, and in a shared
    /// folder the group.
    pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
        let is_shared = self.is_shared()?;
        let allowed = if is_shared { 0o660 } else { 0o600 };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        loop {
            let file = regular(rustix::fs::openat(&self.0, name, flags, mode_of(allowed))?.into())?;
            let metadata = Metadata::of(&file)?;
            if !is_lock(&file, &metadata, is_shared)? {
                // Any file of this account that a member of the group has renamed. It keeps its text and its mode.
                self.set_lock_aside(name, &metadata)?;
                continue;
            }
            if metadata.mode & 0o7777 != allowed {
                // Created by an older version, before the folder was shared, or with a strict umask. The mode of another user's
                // file cannot be changed, and some file systems have no modes.
                let _ = rustix::fs::fchmod(&file, mode_of(allowed));
            }
            return Ok(file);
        }
    }

    /// Renames a file that is not a lock. Another writer may have done so since it was opened, and have created a lock under its
    /// name, which then stays.
    fn set_lock_aside(&self, name: &str, refused: &Metadata) -> io::Result<()> {
        let aside = format!("{name}.refused-{}", timestamp(SystemClock.now_ns()));
        failpoint::hit("set a file aside")?;
        if if_exists(self.rename_no_replace(name, &aside))?.is_some()
            && self.metadata(&aside)?.is_some_and(|moved| moved.id() != refused.id())
        {
            self.rename_no_replace(&aside, name)?;
        }
        Ok(())
    }

    /// Whether the folder is shared with its group on purpose: it has the set-group-ID bit and the group may write.
    pub(crate) fn is_shared(&self) -> io::Result<bool> {
        Ok(Metadata::of(self)?.mode & 0o2020 == 0o2020)
    }

    /// Creates a folder with the default permissions of the user's new folders. `false` if the name exists.
    pub(crate) fn create_folder(&self, name: &str) -> io::Result<bool> {
        self.mkdir(name, 0o777)
    }

    /// Creates a folder for this user only. `false` if the name exists.
    pub(crate) fn create_unshared_folder(&self, name: &str) -> io::Result<bool> {
        self.mkdir(name, 0o700)
    }

    /// Creates a folder for this user only, or in a shared folder for the group. `false` if the name exists.
    pub(crate) fn create_private_folder(&self, name: &str) -> io::Result<bool> {
        let is_new = self.mkdir(name, 0o700)?;
        if !self.is_shared()? {
            return Ok(is_new);
        }
        let folder = self.open(name)?;
        // A process may have ended between creating an empty one and sharing it. Others stay as they are.
        if is_new {
            failpoint::hit("share the new folder")?;
            quipu_own_folder::share_new(folder)?;
        } else if Metadata::of(&folder)?.mode & 0o077 == 0 {
            let _ = quipu_own_folder::share_new(folder);
        }
        Ok(is_new)
    }

    fn mkdir(&self, name: &str, mode: u32) -> io::Result<bool> {
        match rustix::fs::mkdirat(&self.0, name, mode_of(mode)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a file if it exists.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a file within the folder; replaces an existing one.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Renames a file within the folder; fails if the new name exists.
    pub(crate) fn rename_no_replace(&self, from: &str, to: &str) -> io::Result<()> {
        self.move_no_replace(from, self, to)
    }

    /// Moves a file to another folder; fails if the new name exists.
    pub(crate) fn move_no_replace(&self, from: &str, to_folder: &Self, to: &str) -> io::Result<()> {
        if !failpoint::lacks("no-replace") {
            match rustix::fs::renameat_with(&self.0, from, &to_folder.0, to, RenameFlags::NOREPLACE) {
                Err(error) if is_unsupported(error) => {}
                other => return Ok(other?),
            }
        }
        match self.link(from, to_folder, to) {
            Ok(()) => {
                failpoint::hit("remove the first name")?;
                self.remove_file(from)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // The file system has neither RENAME_NOREPLACE nor hard links: check, then rename.
            Err(_) if to_folder.metadata(to)?.is_none() => Ok(rustix::fs::renameat(&self.0, from, &to_folder.0, to)?),
            Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Exchanges two names atomically; `false` if the file system does not support it.
    pub(crate) fn exchange(&self, one: &str, other: &str) -> io::Result<bool> {
        if failpoint::lacks("exchange") {
            return Ok(false);
        }
        match rustix::fs::renameat_with(&self.0, one, &self.0, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(error) if is_unsupported(error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a hard link to a file.
    pub(crate) fn link(&self, name: &str, to_folder: &Self, to: &str) -> io::Result<()> {
        if failpoint::lacks("link") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(rustix::fs::linkat(&self.0, name, &to_folder.0, to, AtFlags::empty())?)
    }

    /// Makes changes of the folder's entries durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.0) {
            // Some network file systems do not support this and do not need it.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a path consists of plain names: no empty part, no `.`, no `..`.
pub(crate) fn is_below(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// The permissions of a mode, whose type depends on the system.
pub(crate) fn mode_of(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as RawMode)
}

/// Whether a file holds no more than the id of a process. In a shared folder, a lock with text is open to the group: a file that is
/// not may be a private note of digits.
fn is_lock(file: &File, metadata: &Metadata, is_shared: bool) -> io::Result<bool> {
    if is_shared && metadata.stat.size > 0 && metadata.mode & 0o060 != 0o060 {
        return Ok(false);
    }
    let mut text = Vec::new();
    file.take(MAX_PID_DIGITS + 1).read_to_end(&mut text)?;
    Ok(text.len() as u64 <= MAX_PID_DIGITS && text.iter().all(u8::is_ascii_digit))
}

fn regular(file: File) -> io::Result<File> {
    match Metadata::of(&file)?.kind {
        FileKind::File => Ok(file),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Turns the error that something does not exist into `None`.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Whether an error means that a folder of the path does not exist, or is a file or a symbolic link now.
pub(crate) fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Whether the process or the system is out of file handles or memory, an error that says nothing about the file.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].iter().any(|full| error.raw_os_error() == Some(full.raw_os_error()))
}

/// Whether an error says nothing about the file: the system lacks something, was interrupted, or its disk failed.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    is_exhausted(error) || [Errno::INTR, Errno::IO].iter().any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

impl FileKind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl Metadata {
    /// The metadata of an open file or folder.
    pub(crate) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(file)?))
    }

    pub(crate) fn has_permissions_of(&self, other: &Self) -> bool {
        (self.mode, self.owner) == (other.mode, other.owner)
    }

    /// Identifies a file on this machine.
    pub(crate) fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    fn new(stat: &rustix::fs::Stat) -> Self {
        // The widths of these fields differ between platforms.
        #[expect(clippy::unnecessary_cast, reason = "not unnecessary on every platform")]
        Self {
            kind: FileKind::of(FileType::from_raw_mode(stat.st_mode)),
            stat: FileStat {
                modified_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                size: stat.st_size as u64,
            },
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            changed_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            mode: stat.st_mode as u32,
            owner: (stat.st_uid, stat.st_gid),
        }
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

pub(crate) fn is_unsupported(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&error)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the other writer")]
mod tests {
    use super::*;
    use crate::failpoint::fault::with_hook;

    #[test]
    fn new_lock_of_another_writer_is_not_set_aside() {
        let home = tempfile::tempdir().unwrap();
        let lock = home.path().join("lock");
        std::fs::write(&lock, "a note").unwrap();
        let dir = Dir::open_root(home.path()).unwrap();
        let (at, mut is_done) = (lock.clone(), false);
        let hook = move |step: &str| {
            if step == "set a file aside" && !std::mem::replace(&mut is_done, true) {
                std::fs::rename(&at, at.with_extension("refused")).unwrap();
                std::fs::write(&at, "1").unwrap();
            }
            Ok(())
        };
        let file = with_hook(hook, || dir.open_lock("lock")).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), "1");
        assert_eq!(Some(Metadata::of(&file).unwrap().id()), dir.metadata("lock").unwrap().map(|there| there.id()));
        assert_eq!(std::fs::read_to_string(home.path().join("lock.refused")).unwrap(), "a note");
    }

    #[test]
    fn new_folder_that_a_crash_left_unshared_is_shared_later() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open_root(home.path()).unwrap();
        rustix::fs::fchmod(&dir, mode_of(0o2770)).unwrap();
        let mode = |name: &str| dir.metadata(name).unwrap().unwrap().mode & 0o7777;
        for name in ["new", "full"] {
            dir.create_unshared_folder(name).unwrap();
            assert_eq!(mode(name) & 0o777, 0o700);
        }
        dir.open("full").unwrap().create_private_file("a").unwrap();
        for name in ["new", "full"] {
            assert!(!dir.create_private_folder(name).unwrap());
        }
        assert_eq!((mode("new"), mode("full") & 0o777), (0o2770, 0o700));
    }
}
