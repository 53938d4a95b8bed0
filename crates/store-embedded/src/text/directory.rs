//! The files of the text index, held in memory and written without syncing.
//!
//! Each file is read whole and its checksum is verified before it is used. So another program that truncates or changes a file
//! cannot end the process, as it could with mapped files, and cannot change what a search finds. The next start finds the damage.
//!
//! Syncing takes most of the time of a commit, a search waits for the commit, and lost files can be rebuilt. After a power cut
//! the checksums show what was lost.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;
use rustix::fs::OFlags;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::footer::Footer;
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, FileSlice, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use quipu_own_folder::OwnFolder;

/// The two numbers at the end of a file. Tantivy subtracts their length before it compares.
const MIN_BYTES: usize = 8;

/// A folder of files that are read whole. All access goes through the handle of the folder, so a link put in its place is not
/// followed.
#[derive(Clone, Debug)]
pub(super) struct IndexDirectory {
    folder: Arc<OwnFolder>,
    /// Whether another index uses the folder by now. Merges of this one may still be running and must not overwrite its files.
    is_abandoned: Arc<RwLock<bool>>,
    /// The files in use. They never change, so the readers of two commits share them.
    loaded: Arc<Mutex<FxHashMap<PathBuf, Weak<dyn FileHandle>>>>,
}

impl IndexDirectory {
    pub(super) fn new(folder: OwnFolder) -> Self {
        Self { folder: Arc::new(folder), is_abandoned: Arc::default(), loaded: Arc::default() }
    }

    /// Fails every write from now on.
    pub(super) fn abandon(&self) {
        *self.is_abandoned.write() = true;
    }

    /// Fails once abandoned. While the guard is held, it is not abandoned.
    fn lock_owned(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_abandoned = self.is_abandoned.read();
        if *is_abandoned { Err(io::Error::other("the text index was reset")) } else { Ok(is_abandoned) }
    }

    /// Reads a file of a segment from the disk. Fails if its checksum is wrong.
    pub(super) fn load(&self, path: &Path) -> io::Result<OwnedBytes> {
        let bytes = OwnedBytes::new(self.read(path)?);
        if bytes.len() < MIN_BYTES {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is too short"));
        }
        let (footer, body) = Footer::extract_footer(FileSlice::new(Arc::new(bytes.clone())))?;
        footer.is_compatible().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{error:?}")))?;
        if crc32fast::hash(&body.read_bytes()?) == footer.crc {
            return Ok(bytes);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.folder.file(name(path)?, OFlags::RDONLY)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The folder has no folders in it.
fn name(path: &Path) -> io::Result<&str> {
    path.to_str().filter(|name| !name.contains('/')).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn cannot_read(path: &Path, error: io::Error) -> OpenReadError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(path.to_owned()),
        _ => OpenReadError::wrap_io_error(error, path.to_owned()),
    }
}

impl tantivy::Directory for IndexDirectory {
    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let open = || {
            let _owned = self.lock_owned()?;
            self.folder.file(name(path)?, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
        };
        match open() {
            Ok(file) => Ok(BufWriter::new(Box::new(UnsyncedWriter(file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.to_owned()))
            }
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.to_owned())),
        }
    }

    fn atomic_write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let _owned = self.lock_owned()?;
        let target = name(path)?;
        let draft = format!("{target}.draft");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        self.folder.file(&draft, flags)?.write_all(bytes)?;
        self.folder.rename(&draft, target)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let mut loaded = self.loaded.lock();
        if let Some(file) = loaded.get(path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file: Arc<dyn FileHandle> = Arc::new(self.load(path).map_err(|error| cannot_read(path, error))?);
        loaded.retain(|_, file| file.strong_count() > 0);
        loaded.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let remove = || {
            let _owned = self.lock_owned()?;
            self.folder.remove(name(path)?)
        };
        remove()
            .map_err(|error: io::Error| DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        name(path).and_then(|name| self.folder.check(name)).map_err(|error| cannot_read(path, error))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.read(path).map_err(|error| cannot_read(path, error))
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let failed = |error: io::Error| LockError::IoError(Arc::new(error));
        let open = || self.folder.file(name(&lock.filepath)?, OFlags::WRONLY | OFlags::CREATE);
        let file = open().map_err(failed)?;
        let locked = if lock.is_blocking { file.lock().map_err(TryLockError::Error) } else { file.try_lock() };
        match locked {
            Ok(()) => Ok(DirectoryLock::from(Box::new(file))),
            Err(TryLockError::WouldBlock) => Err(LockError::LockBusy),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Only this process commits.
    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// Flushes where tantivy's own writer syncs the file.
struct UnsyncedWriter(File);

impl Write for UnsyncedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TerminatingWrite for UnsyncedWriter {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.flush()
    }
}
