//! The segments of the line index: a file each, with a checksum at its end. Not synced: one that a power cut damages is
//! built again.

use std::io::{self, Read, Write};

use quipu_own_folder::OwnFolder;
use rustix::fs::OFlags;

/// A segment takes less; a cloned vault may bring a file that would fill the memory.
const MAX_BYTES: u64 = 512 << 20;

const CHECKSUM_BYTES: usize = 4;

/// The folder of the files.
pub(crate) const FOLDER: &str = "lines";

/// The files; without a folder, nothing is kept.
pub(crate) struct LineFiles(Option<OwnFolder>);

impl LineFiles {
    pub(crate) fn open(store: &OwnFolder) -> io::Result<Self> {
        Ok(Self(Some(store.folder(FOLDER)?)))
    }

    pub(crate) fn in_memory() -> Self {
        Self(None)
    }

    pub(crate) fn store(&self, segment: u32, bytes: &[u8]) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let (name, draft) = (segment.to_string(), format!("{segment}.draft"));
        let mut file = folder.file(&draft, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(bytes)?;
        file.write_all(&crc32fast::hash(bytes).to_le_bytes())?;
        folder.rename(&draft, &name)
    }

    /// `None` if the file is missing or damaged.
    pub(crate) fn read(&self, segment: u32) -> io::Result<Option<Vec<u8>>> {
        let Some(folder) = &self.0 else { return Ok(None) };
        let mut file = match folder.file(&segment.to_string(), OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if file.metadata()?.len() > MAX_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let Some(end) = bytes.len().checked_sub(CHECKSUM_BYTES) else { return Ok(None) };
        let is_sound = crc32fast::hash(&bytes[..end]).to_le_bytes() == bytes[end..];
        bytes.truncate(end);
        Ok(is_sound.then_some(bytes))
    }

    /// Deletes all files.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        folder.names()?.iter().try_for_each(|name| folder.remove(name))
    }
}
