//! The text index's files, written without waiting for the disk: that is most of what a commit takes, a search waits for
//! the commit, and what is lost can be made again.
//!
//! The price is that a power cut may leave files that are not what their names say. So `synced.json` is a copy of
//! tantivy's `meta.json`, made after every file named in it was synced. Where the two are equal the files are whole; where
//! they are not (a kill, a crash), their checksums are read at the next opening.

#![expect(clippy::disallowed_methods, reason = "writes the text index's own files")]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tantivy::Index;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback, WatchHandle,
    WritePtr,
};

const META: &str = "meta.json";
const SYNCED: &str = "synced.json";

/// A folder of memory-mapped files that never syncs of itself.
#[derive(Clone, Debug)]
pub(super) struct UnsyncedDirectory {
    mapped: MmapDirectory,
    folder: PathBuf,
    /// Whether another index has taken the folder over. Merges of the one before may still be under way, and must not
    /// write over its files.
    is_abandoned: Arc<RwLock<bool>>,
}

impl UnsyncedDirectory {
    pub(super) fn open(folder: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { mapped: MmapDirectory::open(folder)?, folder: folder.to_owned(), is_abandoned: Arc::default() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes nothing any more.
    pub(super) fn abandon(&self) {
        *self.is_abandoned.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Has every byte looked at when the folder is next opened.
    pub(super) fn distrust(&self) -> io::Result<()> {
        match std::fs::remove_file(self.folder.join(SYNCED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Fails once abandoned; not abandoned while the answer is held.
    fn owned(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_abandoned = self.is_abandoned.read().unwrap_or_else(PoisonError::into_inner);
        if *is_abandoned { Err(io::Error::other("the text index was started anew")) } else { Ok(is_abandoned) }
    }

    /// Whether the files were synced as they are now.
    pub(super) fn is_synced(&self) -> bool {
        let read = |name| std::fs::read(self.folder.join(name));
        matches!((read(META), read(SYNCED)), (Ok(meta), Ok(synced)) if meta == synced)
    }

    /// Syncs every file of the index as it is now. Nothing may write to it meanwhile.
    pub(super) fn sync(&self, index: &Index) -> tantivy::Result<()> {
        if self.is_synced() {
            return Ok(());
        }
        let meta = std::fs::read(self.folder.join(META))?;
        for file in index.load_metas()?.list_segment_files() {
            match self.sync_file(&file) {
                Ok(()) => {}
                // The list has all that a segment may have, deletions for one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.sync_file(Path::new(META))?;
        self.sync_names()?;
        tantivy::Directory::atomic_write(self, Path::new(SYNCED), &meta)?;
        Ok(())
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        // Windows syncs only what is open for writing.
        File::options().write(true).open(self.folder.join(file))?.sync_data()
    }

    /// Makes the names of files last.
    fn sync_names(&self) -> io::Result<()> {
        // Elsewhere a folder cannot be opened, and its names last without.
        if cfg!(unix) { File::open(&self.folder)?.sync_all() } else { Ok(()) }
    }
}

impl tantivy::Directory for UnsyncedDirectory {
    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let _owned = self.owned().map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        let writer = UnsyncedWriter(self.mapped.open_write(path)?);
        // The one below has the buffer.
        Ok(BufWriter::with_capacity(0, Box::new(writer)))
    }

    fn atomic_write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let _owned = self.owned()?;
        let target = self.folder.join(path);
        let mut draft = target.clone().into_os_string();
        draft.push(".draft");
        std::fs::write(&draft, bytes)?;
        std::fs::rename(&draft, target)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let _owned = self
            .owned()
            .map_err(|error| DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() })?;
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.mapped.atomic_read(path)
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.mapped.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(callback)
    }
}

/// Flushes where tantivy's own writer syncs.
struct UnsyncedWriter(WritePtr);

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
