//! The program's small files: replaced atomically, and readable only by their owner.
//!
//! They are in two places: the vault's `.quipu/`, which may have come with a copied or cloned vault, and the user's own
//! folder, which cannot. Trust decisions are stored only in the second.
#![expect(clippy::disallowed_methods, reason = "none of these files is a note or an index")]

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use quipu_own_folder::OwnFolder;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// The lock file's name in the folder that it protects.
const LOCK: &str = "own-files.lock";

/// A command that holds the lock takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// Far above any process id.
const MAX_PID_BYTES: u64 = 32;

/// The name of the index's folder.
const INDEX: &str = "index";

/// The program's folder in a vault.
pub fn own_folder(root: &Path) -> PathBuf {
    root.join(".quipu")
}

/// The folder of a vault's index. In a `.quipu` that is shared with a group each account has its own.
pub fn index_folder(root: &Path) -> PathBuf {
    let own = own_folder(root);
    let name = OwnFolder::open(&own).map_or_else(|_| INDEX.to_owned(), |own| own.private_name(INDEX));
    own.join(name)
}

/// Opens the folder of a vault's index if there is one. Fails if it, or `.quipu`, belongs to an account that could replace what is
/// in it.
pub(crate) fn existing_index(root: &Path) -> io::Result<OwnFolder> {
    let own = OwnFolder::open(&own_folder(root))?;
    own.check_owner(root.metadata()?.uid())?;
    let index = own.private_name(INDEX);
    std::fs::symlink_metadata(own.path().join(&index))?;
    own.private_folder(&index)
}

/// Where the user's own folder is; `XDG_STATE_HOME` moves it.
pub fn user_folder() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    Ok(state.context("there is no home folder; set HOME or XDG_STATE_HOME")?.join("quipu"))
}

/// Removes permissions of other accounts from `.quipu` and from files that an earlier version left there. Fails if the folder
/// belongs to another account.
pub fn tighten(own_folder: &Path) -> io::Result<()> {
    let folder = OwnFolder::open(own_folder)?;
    let vault = own_folder.parent().unwrap_or(Path::new(".")).metadata()?;
    folder.check_owner(vault.uid())?;
    // Versions in the trash keep the permissions of their notes, and are restored with them.
    let faults = folder.tighten(&|name| [INDEX, "text", "lines", "backups", "share"].contains(&name))?;
    faults.into_iter().for_each(|fault| tracing::warn!("{fault}"));
    Ok(())
}

/// Opens a folder of the program, created if missing. The user's own may be a symlink, one in a vault may not.
fn open_folder(folder: &Path) -> io::Result<OwnFolder> {
    quipu_own_folder::create_private(folder)?;
    let is_in_vault = folder.file_name().is_some_and(|name| name == ".quipu");
    if is_in_vault { OwnFolder::open(folder) } else { OwnFolder::open(&folder.canonicalize()?) }
}

/// Opens a regular file. Anything else, such as a pipe or a device, could block forever and is rejected. A symlink is followed
/// unless the flags say otherwise.
pub fn open(path: &Path, options: &mut OpenOptions, flags: OFlags) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file; replace or remove it");
    let file = match options.custom_flags((flags | OFlags::NONBLOCK).bits().cast_signed()).open(path) {
        // A socket, or a pipe without a reader.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(refused()),
        // A symlink where none is followed.
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Err(refused()),
        file => file?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Settings and tokens take less; a cloned vault may bring a file that would fill the memory.
const MAX_BYTES: u64 = 8 << 20;

/// The text of a file of any owner; `None` if it does not exist.
pub fn text(file: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    match open(file, File::options().read(true), OFlags::empty())
        .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_string(&mut text))
    {
        Ok(_) if text.len() as u64 > MAX_BYTES => Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 8 MiB")),
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The text of one of the program's files; `None` if it does not exist.
pub fn read(file: &Path) -> anyhow::Result<Option<String>> {
    text(file).with_context(|| format!("while reading {}", file.display()))
}

/// Replaces a file atomically. Creates its folder if missing.
pub fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let name = file.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
        let folder = open_folder(file.parent().unwrap_or(Path::new(".")))?;
        let draft = format!(".{name}.{}", crate::sharing::new_key());
        let put = || {
            let mut new = folder.file(&draft, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
            // Also in a folder that a group shares.
            new.set_permissions(Permissions::from_mode(0o600))?;
            new.write_all(text.as_bytes())?;
            new.sync_all()?;
            folder.rename(&draft, name)
        };
        put().inspect_err(|_| drop(folder.remove(&draft)))?;
        folder.sync()
    };
    write().with_context(|| format!("while writing {}", file.display()))
}

/// Held while a file is read and replaced; another process waits, for a limited time.
pub fn lock(folder: &Path) -> anyhow::Result<File> {
    let take = || {
        let mut file = open_folder(folder)?.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(busy(&mut file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
            }
        }
        // For processes that wait. A full disk does not prevent a write elsewhere.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok::<_, io::Error>(file)
    };
    take().with_context(|| format!("while locking {}", folder.join(LOCK).display()))
}

/// The error of a process that waited too long. The holder wrote its id into the file.
fn busy(file: &mut File) -> io::Error {
    let mut text = String::new();
    let holder = match file.take(MAX_PID_BYTES).read_to_string(&mut text).ok().and_then(|_| text.parse::<u32>().ok()) {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    };
    io::Error::new(io::ErrorKind::TimedOut, format!("{holder} holds it; retry, and end that process if it hangs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each would be waited for without end, but for the folder.
    #[test]
    fn non_regular_files_are_refused_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        for name in ["pipe", "socket", "device", "folder"] {
            let error = text(&at(name)).unwrap_err();
            assert!(error.to_string().starts_with("not a regular file"), "{name}: {error}");
        }
        assert_eq!(text(&at("nothing")).unwrap(), None);
        std::fs::write(at("file"), "x").unwrap();
        assert_eq!(text(&at("file")).unwrap().as_deref(), Some("x"));
    }

    #[test]
    fn symlink_in_place_of_the_lock_is_refused_and_its_target_not_created() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = elsewhere.path().join("made");
        std::os::unix::fs::symlink(&target, folder.path().join(LOCK)).unwrap();
        for is_there in [false, true] {
            assert_eq!(target.exists(), is_there);
            let error = format!("{:#}", lock(folder.path()).unwrap_err());
            assert!(error.contains(LOCK) && error.contains("is a link"), "{error}");
            assert_eq!(target.exists(), is_there);
            std::fs::write(&target, "x").unwrap();
        }
    }

    #[test]
    fn lock_that_another_process_keeps_times_out_and_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let started = Instant::now();
        let error = format!("{:#}", lock(folder.path()).unwrap_err());
        assert!(started.elapsed() < LOCK_TIMEOUT * 5, "{:?}", started.elapsed());
        assert!(error.contains(&format!("process {} holds it; retry", std::process::id())), "{error}");
        drop(held);
        lock(folder.path()).unwrap();
    }

    #[test]
    fn file_larger_than_settings_can_be_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_BYTES).unwrap();
        assert_eq!(text(file.path()).unwrap().unwrap().len() as u64, MAX_BYTES);
        file.as_file().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(text(file.path()).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn pipe_in_place_of_the_lock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(std::process::Command::new("mkfifo").arg(folder.path().join(LOCK)).status().unwrap().success());
        let error = format!("{:#}", lock(folder.path()).unwrap_err());
        assert!(error.contains(LOCK) && error.contains("not a file"), "{error}");
    }
}
