//! Quipu's own folders in a vault, held open: `.quipu` and those below it. The vault may be shared or come from elsewhere, so
//! every step is one name in an open folder, no link is followed or deleted through, and only regular files of a trusted account
//! are opened.
//!
//! Folders are created for their owner only (0700, files 0600). A folder with the set-group-ID bit that its group may write was
//! shared on purpose: what is created in it is for the group too (2770, files 0660).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

/// An open folder.
#[derive(Debug)]
pub struct OwnFolder {
    dir: OwnedFd,
    path: PathBuf,
    is_shared: bool,
    owner: u32,
}

/// Changes when another program changes or replaces a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    identity: (u64, u64),
    modified: (i64, i64),
    bytes: u64,
}

impl FileStamp {
    fn new(stat: &Stat) -> Self {
        #[expect(clippy::unnecessary_cast, reason = "the widths of these fields differ between platforms")]
        Self {
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            bytes: stat.st_size as u64,
        }
    }

    /// The size of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Creates a folder for its owner only, and the folders above it. An existing one stays as it is.
pub fn create_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a new folder in a shared one to the group. A member of the group may have put another folder of this account in its
/// place since it was created: only an empty and private one is new.
pub fn share_new(folder: impl AsFd) -> io::Result<()> {
    let stat = rustix::fs::fstat(&folder)?;
    let mut is_new = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 == 0;
    for entry in rustix::fs::Dir::read_from(&folder)? {
        is_new &= matches!(entry?.file_name().to_bytes(), b"." | b"..");
    }
    if !is_new {
        let message = "another folder was put in the place of a new one";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(rustix::fs::fchmod(folder, Mode::from_raw_mode(0o2770))?)
}

impl OwnFolder {
    /// Opens an existing folder. Folders above it may be links; the folder itself may not.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| not_a_folder(path, error))?;
        Self::of(dir, path.to_owned())
    }

    /// Opens or creates a folder in this one, for the same accounts.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        self.open_or_create(name, self.is_shared)
    }

    /// Like [`OwnFolder::folder`], but for this account only. In a shared folder, another account may have created it first, with
    /// content of its own; then it is refused.
    pub fn private_folder(&self, name: &str) -> io::Result<Self> {
        let folder = self.open_or_create(name, false)?;
        let is_own = folder.owner == rustix::process::geteuid().as_raw();
        // The owner of a folder that is not shared can replace everything in it anyway; the caller has checked that account.
        if !is_own && (self.is_shared || folder.owner != self.owner) {
            return Err(refused(&folder.path, "belongs to another account"));
        }
        if is_own && (self.is_shared || folder.is_shared) {
            rustix::fs::fchmod(&folder.dir, Mode::from_raw_mode(0o700))?;
        }
        Ok(Self { is_shared: false, ..folder })
    }

    /// The name of the folder in this one that is for this account only. The account that was first has `name` itself.
    pub fn private_name(&self, name: &str) -> String {
        let user = rustix::process::geteuid().as_raw();
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if self.is_shared && stat.st_uid != user => format!("{name}-{user}"),
            _ => name.to_owned(),
        }
    }

    fn open_or_create(&self, name: &str, is_for_group: bool) -> io::Result<Self> {
        let private = Mode::from_raw_mode(0o700);
        let is_new = match rustix::fs::mkdirat(&self.dir, name, private) {
            Err(Errno::EXIST) => false,
            made => made.map(|()| true)?,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.path.join(name);
        let dir =
            rustix::fs::openat(&self.dir, name, flags, Mode::empty()).map_err(|error| not_a_folder(&path, error))?;
        match (is_new, is_for_group) {
            (true, true) => share_new(&dir)?,
            // Whatever the umask is.
            (true, false) => rustix::fs::fchmod(&dir, private)?,
            // A process may have ended between creating it and sharing it. One with content, or of another account, stays as it is.
            (false, true) if !is_shared(&rustix::fs::fstat(&dir)?) => drop(share_new(&dir)),
            (false, _) => {}
        }
        Self::of(dir, path)
    }

    fn of(dir: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&dir)?;
        let is_shared = is_shared(&stat);
        Ok(Self { dir, path, is_shared, owner: stat.st_uid })
    }

    /// The path that was opened. Another program may have replaced it: see [`OwnFolder::check_place`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if its path leads to another folder by now. For libraries that open files by path only.
    pub fn check_place(&self) -> io::Result<()> {
        let there = rustix::fs::stat(&self.path)?;
        let own = rustix::fs::fstat(&self.dir)?;
        if (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino) {
            return Ok(());
        }
        Err(refused(&self.path, "was replaced by another folder"))
    }

    /// Fails if the folder belongs to another account than this one, root or `trusted`, even if it is shared: anyone can set the
    /// bits that make a folder shared, and its owner can replace everything in it at any time.
    pub fn check_owner(&self, trusted: u32) -> io::Result<()> {
        if [0, trusted, rustix::process::geteuid().as_raw()].contains(&self.owner) {
            return Ok(());
        }
        Err(refused(&self.path, "belongs to another account"))
    }

    /// Opens a regular file, and nothing else. A new one is created for the same accounts as the folder, if the flags say so.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let path = self.path.join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.dir, name, flags, self.file_mode()) {
            // A link, a socket, or a pipe without a reader.
            Err(Errno::LOOP) => return Err(refused(&path, "is a link")),
            Err(Errno::NXIO) => return Err(refused(&path, "is not a file")),
            file => File::from(file?),
        };
        let stat = rustix::fs::fstat(&file)?;
        self.check_stat(&stat, name)?;
        if flags.contains(OFlags::CREATE) && stat.st_size == 0 {
            self.share(&file)?;
        }
        Ok(file)
    }

    /// Lets the group of a shared folder use a new file, whatever the umask is.
    fn share(&self, file: impl AsFd) -> io::Result<()> {
        if self.is_shared { Ok(rustix::fs::fchmod(file, self.file_mode())?) } else { Ok(()) }
    }

    /// Creates a file for the same accounts as the folder. An existing one must be a regular file of a trusted account.
    pub fn create_file(&self, name: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.dir, name, flags, self.file_mode()) {
            // It is not opened: closing it would release the locks that this process has on it.
            Err(Errno::EXIST) => self.check(name).map(drop),
            made => self.share(made?),
        }
    }

    /// Whether the file exists. It must be a regular file of a trusted account.
    pub fn check(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => self.check_stat(&stat, name).map(|()| true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The stamp of a file; `None` if it does not exist.
    pub fn stamp(&self, name: &str) -> io::Result<Option<FileStamp>> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileStamp::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn check_stat(&self, stat: &Stat, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(refused(&path, "is a link")),
            _ => return Err(refused(&path, "is not a file")),
        }
        let is_trusted =
            self.is_shared || stat.st_uid == self.owner || stat.st_uid == rustix::process::geteuid().as_raw();
        if is_trusted { Ok(()) } else { Err(refused(&path, "belongs to another account")) }
    }

    /// Every name in the folder, unordered.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = String::from_utf8_lossy(entry.file_name().to_bytes()).into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Deletes a file of any kind; a link itself, not its target.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Deletes a folder of files, or a link or file of that name.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.dir, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::LOOP | Errno::NOTDIR) => return self.remove(name),
            opened => {
                let folder = Self::of(opened?, self.path.join(name))?;
                for file in folder.names()? {
                    folder.remove(&file)?;
                }
            }
        }
        Ok(rustix::fs::unlinkat(&self.dir, name, AtFlags::REMOVEDIR)?)
    }

    /// Renames a file; an existing one is replaced.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.dir, from, &self.dir, to)?)
    }

    /// Syncs the names of files.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.dir)?)
    }

    /// Removes permissions of other accounts: from the folder, its files, and recursively from the folders that `enter` accepts.
    /// Returns failures, as sentences.
    pub fn tighten(&self, enter: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
        let mut faults = Vec::new();
        let own = rustix::fs::fstat(&self.dir)?;
        let allowed = if self.is_shared { 0o2770 } else { 0o700 };
        if let Some(mode) = narrower(own.st_mode, allowed)
            && let Err(error) = rustix::fs::fchmod(&self.dir, mode)
        {
            faults.push(loose(&self.path, error));
        }
        for name in self.names()? {
            let Ok(stat) = rustix::fs::statat(&self.dir, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let allowed = match kind {
                // Private to another account of the group.
                FileType::Directory if self.is_shared && stat.st_uid != rustix::process::geteuid().as_raw() => continue,
                FileType::Directory if enter(&name) => {
                    faults.extend(self.open_or_create(&name, false)?.tighten(enter)?);
                    continue;
                }
                FileType::Directory => allowed,
                FileType::RegularFile => self.file_mode().as_raw_mode(),
                _ => continue,
            };
            if let Some(mode) = narrower(stat.st_mode, allowed)
                && let Err(error) = change_mode(&self.dir, &name, mode, kind)
            {
                faults.push(loose(&self.path.join(&name), error));
            }
        }
        Ok(faults)
    }

    fn file_mode(&self) -> Mode {
        Mode::from_raw_mode(if self.is_shared { 0o660 } else { 0o600 })
    }
}

fn is_shared(stat: &Stat) -> bool {
    stat.st_mode & 0o2020 == 0o2020
}

/// The mode without forbidden permissions; `None` if it has none. No permission is added.
fn narrower(mode: RawMode, allowed: RawMode) -> Option<Mode> {
    let mode = mode & 0o7777;
    let kept = mode & allowed;
    // A set-group-ID bit that a folder inherited permits nothing.
    let has_more = mode & !allowed & 0o5777 != 0;
    has_more.then(|| Mode::from_raw_mode(kept))
}

/// Changes the mode of a file, and not of a link that replaces it. The file is not opened: closing it would release SQLite's
/// locks on it.
#[cfg(target_os = "linux")]
fn change_mode(dir: &OwnedFd, name: &str, mode: Mode, kind: FileType) -> Result<(), Errno> {
    let handle = rustix::fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode) != kind {
        return Err(Errno::LOOP);
    }
    rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode)
}

#[cfg(not(target_os = "linux"))]
fn change_mode(dir: &OwnedFd, name: &str, mode: Mode, _: FileType) -> Result<(), Errno> {
    rustix::fs::chmodat(dir, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

fn loose(path: &Path, error: Errno) -> String {
    format!(
        "cannot remove the permissions of other accounts from {0}: {error}; run `chmod go= {0}` as its owner",
        path.display()
    )
}

fn refused(path: &Path, what: &str) -> io::Error {
    let name = path.file_name().map_or(path.as_os_str().as_bytes(), |name| name.as_bytes());
    io::Error::other(format!("{} {what}", String::from_utf8_lossy(name)))
}

fn not_a_folder(path: &Path, error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR if std::fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) => {
            io::Error::other(format!("{} is a link", path.display()))
        }
        error => error.into(),
    }
}
