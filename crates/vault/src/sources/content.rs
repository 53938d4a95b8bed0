//! Content hashes of sources. An unchanged file is not read again.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use parking_lot::Mutex;
use quipu_core::model::ContentHash;

use super::lookup::{FileFingerprint, MatchedFile, SourceRoot};

/// The cache is cleared beyond this number of files.
const MAX_CACHED: usize = 100_000;

/// A cache of content hashes.
#[derive(Default)]
pub(super) struct HashCache {
    hashes: Mutex<HashMap<String, (FileFingerprint, ContentHash)>>,
}

impl HashCache {
    /// The hash of a file's content, or of a link's target. `None` if it cannot be read.
    pub(super) fn hash(&self, root: &SourceRoot, file: &MatchedFile, now_ns: i64) -> Option<ContentHash> {
        if let Some((fingerprint, hash)) = self.hashes.lock().get(&file.key)
            && *fingerprint == file.fingerprint
        {
            return Some(*hash);
        }
        let hash = if file.is_link {
            let target = std::fs::read_link(root.base.join(&file.key)).ok()?;
            ContentHash::of(target.as_os_str().as_bytes())
        } else {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(root.open(&file.key).ok()?).ok()?;
            ContentHash(*hasher.finalize().as_bytes())
        };
        let mut hashes = self.hashes.lock();
        if hashes.len() > MAX_CACHED {
            hashes.clear();
        }
        // The fingerprint is older than the content: a change in between gives another fingerprint next time.
        if file.fingerprint.is_settled(now_ns) {
            hashes.insert(file.key.clone(), (file.fingerprint, hash));
        } else {
            hashes.remove(&file.key);
        }
        Some(hash)
    }
}
