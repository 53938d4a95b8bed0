//! The files of the text index, written without syncing: syncing takes most of the time of a commit, a search waits for the
//! commit, and lost files can be rebuilt.
//!
//! A power cut may therefore leave wrong content in files. `synced.json` is a copy of tantivy's `meta.json`, written after
//! every file named in it was synced. If the two are equal the files are sound; if not (after a kill or a crash), the next
//! opening verifies their checksums.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;
use rustix::fs::OFlags;
use tantivy::Index;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback, WatchHandle,
    WritePtr,
};

use quipu_own_folder::{FileStamp, OwnFolder};

const META: &str = "meta.json";
const SYNCED: &str = "synced.json";

/// A folder of memory-mapped files that are synced only on request. Writes go through the handle of the folder, so a link put in
/// its place is not followed. Files to be mapped are opened by path.
#[derive(Clone, Debug)]
pub(super) struct UnsyncedDirectory {
    mapped: MmapDirectory,
    folder: Arc<OwnFolder>,
    /// Whether another index uses the folder by now. Merges of this one may still be running and must not overwrite its files.
    is_abandoned: Arc<RwLock<bool>>,
    /// The files that were mapped, as they were then.
    mapped_files: Arc<Mutex<FxHashMap<PathBuf, FileStamp>>>,
}

impl UnsyncedDirectory {
    pub(super) fn open(folder: OwnFolder) -> Result<Self, OpenDirectoryError> {
        let mapped = MmapDirectory::open(folder.path())?;
        Ok(Self { mapped, folder: Arc::new(folder), is_abandoned: Arc::default(), mapped_files: Arc::default() })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Fails every write from now on.
    pub(super) fn abandon(&self) {
        *self.is_abandoned.write() = true;
    }

    /// Makes the next opening verify all checksums.
    pub(super) fn forget_sync(&self) -> io::Result<()> {
        self.folder.remove(SYNCED)
    }

    /// A mapped file that another program truncated, changed or replaced. A deleted one can still be read where it is mapped.
    pub(super) fn changed_file(&self) -> Option<PathBuf> {
        let mapped = self.mapped_files.lock();
        let is_changed = |(path, then): &(&PathBuf, &FileStamp)| {
            self.stamp(path).is_ok_and(|now| now.is_some_and(|now| now != **then))
        };
        mapped.iter().find(is_changed).map(|(path, _)| path.clone())
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<FileStamp>> {
        self.folder.stamp(name(path)?)
    }

    /// Fails once abandoned. While the guard is held, it is not abandoned.
    fn lock_owned(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_abandoned = self.is_abandoned.read();
        if *is_abandoned { Err(io::Error::other("the text index was reset")) } else { Ok(is_abandoned) }
    }

    /// Whether the files were synced as they are now.
    pub(super) fn is_synced(&self) -> bool {
        matches!((self.read(META), self.read(SYNCED)), (Ok(meta), Ok(synced)) if meta == synced)
    }

    /// Syncs every file of the index as it is now. Nothing may write to it meanwhile.
    pub(super) fn sync(&self, index: &Index) -> tantivy::Result<()> {
        if self.is_synced() {
            return Ok(());
        }
        let meta = self.read(META)?;
        for file in index.load_metas()?.list_segment_files() {
            match self.sync_file(&file) {
                Ok(()) => {}
                // The list names every file that a segment may have, such as deletions.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.sync_file(Path::new(META))?;
        self.folder.sync()?;
        tantivy::Directory::atomic_write(self, Path::new(SYNCED), &meta)?;
        Ok(())
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        self.folder.file(name(file)?, OFlags::WRONLY)?.sync_data()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.folder.file(name, OFlags::RDONLY)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The folder has no folders in it.
fn name(path: &Path) -> io::Result<&str> {
    path.to_str().filter(|name| !name.contains('/')).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

impl tantivy::Directory for UnsyncedDirectory {
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
        let failed = |error| OpenReadError::wrap_io_error(error, path.to_owned());
        self.folder.check_place().map_err(failed)?;
        if let Some(stamp) = self.stamp(path).map_err(failed)? {
            self.mapped_files.lock().entry(path.to_owned()).or_insert(stamp);
        }
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let remove = || {
            let _owned = self.lock_owned()?;
            self.mapped_files.lock().remove(path);
            self.folder.remove(name(path)?)
        };
        remove()
            .map_err(|error: io::Error| DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.mapped.atomic_read(path)
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

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(callback)
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
