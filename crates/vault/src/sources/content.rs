//! What named files hold, by hash. A file that has not changed is not read twice.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use parking_lot::Mutex;
use quipu_core::model::ContentHash;

use super::lookup::{Mark, NamedFile, Place};
use crate::folder::split;

/// More files than this are not kept in mind.
const MAX_KEPT: usize = 100_000;

/// The hashes of files that were read before.
#[derive(Default)]
pub(super) struct Contents {
    known: Mutex<HashMap<String, (Mark, ContentHash)>>,
}

impl Contents {
    /// What a file holds; a link, where it leads. `None` where it cannot be read.
    pub(super) fn hash(&self, place: &Place, file: &NamedFile, now_ns: i64) -> Option<ContentHash> {
        let known = || self.known.lock();
        if let Some((mark, hash)) = known().get(&file.key)
            && *mark == file.mark
        {
            return Some(*hash);
        }
        let hash = if file.is_link {
            let target = std::fs::read_link(place.base.join(&file.key)).ok()?;
            ContentHash::of(target.as_os_str().as_bytes())
        } else {
            let opened = place.open_folder_of(&file.key).ok()?.open_file(split(&file.key).1).ok()?;
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(opened).ok()?;
            ContentHash(*hasher.finalize().as_bytes())
        };
        let mut known = known();
        if known.len() > MAX_KEPT {
            known.clear();
        }
        // The mark was taken before the reading: a change in between shows as another mark next time.
        if file.mark.is_settled(now_ns) {
            known.insert(file.key.clone(), (file.mark, hash));
        } else {
            known.remove(&file.key);
        }
        Some(hash)
    }
}
