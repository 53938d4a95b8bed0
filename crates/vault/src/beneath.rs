//! Folder handles: every step below the root is one name in an open folder, and no step follows a link.
//!
//! So a folder that is swapped for a link while we work cannot lead a read or a write out of the vault.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use quipu_core::model::FileStat;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::step;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a socket, a device: never opened.
    Other,
}

/// What the file system says of a name, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) stat: FileStat,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) changed_ns: i64,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
}

impl Dir {
    /// Opens the vault's root, which is the one place where links on the way are followed.
    pub(crate) fn open_root(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(root, flags, Mode::empty())?))
    }

    /// Opens a folder in this one.
    pub(crate) fn open(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(&self.0, name.as_ref(), flags, Mode::empty())?))
    }

    /// Opens a folder some levels down; an empty path is this one. A path that could lead up is an error.
    pub(crate) fn open_below(&self, path: &str) -> io::Result<Self> {
        if path.is_empty() {
            return self.open(".");
        }
        if !leads_down(path) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path below the vault's root"));
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        match self.open_below_at_once(path) {
            // An old kernel, a sandbox that forbids the call, a name that moved meanwhile, or a path too long for it.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::NAMETOOLONG) => {}
            outcome => return Ok(outcome?),
        }
        let mut parts = path.split('/');
        let mut dir = self.open(parts.next().unwrap_or_default())?;
        for part in parts {
            dir = dir.open(part)?;
        }
        Ok(dir)
    }

    /// The same in one call, which follows no link on the way either.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn open_below_at_once(&self, path: &str) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
        Ok(Self(rustix::fs::openat2(&self.0, path, flags, Mode::empty(), resolve)?))
    }

    /// What a name stands for; `None` when there is nothing.
    pub(crate) fn see(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Seen>> {
        match rustix::fs::statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Seen::new(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What this folder is itself.
    pub(crate) fn see_self(&self) -> io::Result<Seen> {
        Ok(Seen::new(&rustix::fs::fstat(&self.0)?))
    }

    /// Every name in the folder, in no order.
    pub(crate) fn entries(&self) -> io::Result<Vec<(OsString, Kind)>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say; then the name is looked at.
                FileType::Unknown => match self.see(name)? {
                    Some(seen) => seen.kind,
                    None => continue,
                },
                known => Kind::of(known),
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Opens a regular file for reading. Anything else, a pipe for example, is an error and never waited for.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name.as_ref(), flags, Mode::empty())?);
        match see_open(&file)?.kind {
            Kind::File => Ok(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// Makes a file that must not be there yet, with the permissions that the user's other new files have.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        self.create(name, 0o666)
    }

    /// Makes a file that must not be there yet and that only this user can open.
    pub(crate) fn create_private_file(&self, name: &str) -> io::Result<File> {
        self.create(name, 0o600)
    }

    fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?))
    }

    /// Opens a file that is only there to be locked, making it where needed. Only accounts that may write in this folder
    /// can open it: its owner, and in a shared folder the group.
    pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
        let allowed = if self.is_shared()? { 0o660 } else { 0o600 };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(allowed))?);
        let seen = see_open(&file)?;
        if seen.kind != Kind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        if seen.mode & 0o7777 != allowed {
            // One of an older version, from before the folder was shared, or narrowed by the umask. Another user's cannot be
            // changed, and file systems without modes keep theirs.
            let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(allowed));
        }
        Ok(file)
    }

    /// Whether the folder was shared with its group on purpose: it has the set-group-ID bit and the group may write.
    fn is_shared(&self) -> io::Result<bool> {
        Ok(self.see_self()?.mode & 0o2020 == 0o2020)
    }

    /// Makes a folder, with the permissions that the user's other new folders have; whether it was made, or was there.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<bool> {
        self.make(name, 0o777)
    }

    /// Makes a folder that only this user can enter, or in a shared folder the group; whether it was made, or was there.
    pub(crate) fn make_private_folder(&self, name: &str) -> io::Result<bool> {
        let is_made = self.make(name, 0o700)?;
        if is_made && self.is_shared()? {
            rustix::fs::fchmod(&self.open(name)?.0, Mode::from_raw_mode(0o2770))?;
        }
        Ok(is_made)
    }

    fn make(&self, name: &str, mode: u32) -> io::Result<bool> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a folder if it is empty.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a file another name here, over whatever has that name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Gives a file another name here, which must be free.
    pub(crate) fn rename_to_free(&self, from: &str, to: &str) -> io::Result<()> {
        if !step::lacks("no-replace") {
            match rustix::fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
                Err(error) if is_unsupported(error) => {}
                other => return Ok(other?),
            }
        }
        match self.link(from, self, to) {
            Ok(()) => {
                step::before("remove the first name")?;
                self.remove_file(from)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Neither this nor links: look, then rename, which is what is left.
            Err(_) if self.see(to)?.is_none() => self.rename(from, to),
            Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Exchanges two names in one step; `false` where the file system cannot.
    pub(crate) fn exchange(&self, one: &str, other: &str) -> io::Result<bool> {
        if step::lacks("exchange") {
            return Ok(false);
        }
        match rustix::fs::renameat_with(&self.0, one, &self.0, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(error) if is_unsupported(error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a file a second name in a folder.
    pub(crate) fn link(&self, name: &str, to_folder: &Self, to: &str) -> io::Result<()> {
        if step::lacks("link") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(rustix::fs::linkat(&self.0, name, &to_folder.0, to, AtFlags::empty())?)
    }

    /// Makes the folder's names last.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.0) {
            // Some network file systems cannot sync a folder and need not.
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

/// Whether every part of a path is a name: nothing empty, nothing that stands for this folder or the one above.
pub(crate) fn leads_down(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// What an open file is.
pub(crate) fn see_open(file: &File) -> io::Result<Seen> {
    Ok(Seen::new(&rustix::fs::fstat(file)?))
}

/// Whether an error says that a folder on the way is gone, or is a file or a link by now.
pub(crate) fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Whether an error says that the process or the system has no more of something, and nothing about the file.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].iter().any(|full| error.raw_os_error() == Some(full.raw_os_error()))
}

impl Kind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl Seen {
    /// Tells a file from every other of this machine.
    pub(crate) fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    fn new(stat: &rustix::fs::Stat) -> Self {
        // The widths of these fields differ between platforms.
        #[expect(clippy::unnecessary_cast, reason = "not unnecessary on every platform")]
        Self {
            kind: Kind::of(FileType::from_raw_mode(stat.st_mode)),
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
