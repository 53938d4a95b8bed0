//! Content hashes of sources. An unchanged file is not read again.

use std::collections::HashMap;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_core::model::ContentHash;
use quipu_core::staleness::NOT_READ;

use super::lookup::{FileFingerprint, MatchedFile, SourceRoot};

/// The cache is cleared beyond this number of files.
const MAX_CACHED: usize = 100_000;

const PIECE: usize = 64 << 10;

/// A cache of content hashes.
#[derive(Default)]
pub(super) struct HashCache {
    hashes: Mutex<HashMap<String, (FileFingerprint, ContentHash)>>,
}

/// The reading of sources in one call.
pub(super) struct SourceReading {
    pub(super) now_ns: i64,
    pub(super) deadline: Instant,
    /// Whether a file was not read, since the deadline had passed.
    pub(super) is_late: bool,
}

impl HashCache {
    /// The hash of a file's content, or of a link's target. `None` if it cannot be read; `NOT_READ` if it is too large or there is
    /// no time.
    pub(super) fn hash(
        &self,
        root: &SourceRoot,
        file: &MatchedFile,
        reading: &mut SourceReading,
    ) -> Option<ContentHash> {
        if let Some((fingerprint, hash)) = self.hashes.lock().get(&file.key)
            && *fingerprint == file.fingerprint
        {
            return Some(*hash);
        }
        let hash = if file.is_link {
            ContentHash::of(&root.link_target(&file.key).ok()?)
        } else if file.fingerprint.is_too_large() {
            return Some(NOT_READ);
        } else {
            match hash_of(root, &file.key, reading.deadline) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    reading.is_late = true;
                    return Some(NOT_READ);
                }
                hash => hash.ok()?,
            }
        };
        let mut hashes = self.hashes.lock();
        if hashes.len() > MAX_CACHED {
            hashes.clear();
        }
        // The fingerprint is older than the content: a change in between gives another fingerprint next time.
        if file.fingerprint.is_settled(reading.now_ns) {
            hashes.insert(file.key.clone(), (file.fingerprint, hash));
        } else {
            hashes.remove(&file.key);
        }
        Some(hash)
    }
}

/// Fails after the deadline, which also ends the reading of a file that grows.
fn hash_of(root: &SourceRoot, key: &str, deadline: Instant) -> io::Result<ContentHash> {
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE]);
    let mut file = root.open(key)?;
    loop {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match file.read(&mut piece)? {
            0 => return Ok(ContentHash(*hasher.finalize().as_bytes())),
            length => hasher.update(&piece[..length]),
        };
    }
}

/// The time that sources may take while notes are indexed: some at first, then as much as everything else takes. Without it, notes
/// with many patterns or large sources would delay the index of all notes.
pub(super) struct IndexingTime {
    left: Mutex<(Duration, Instant)>,
}

impl IndexingTime {
    const FIRST: Duration = Duration::from_secs(60);

    pub(super) fn new() -> Self {
        Self { left: Mutex::new((Self::FIRST, Instant::now())) }
    }

    /// When a call that starts now has to end.
    pub(super) fn deadline(&self) -> Instant {
        let mut left = self.left.lock();
        let now = Instant::now();
        let earned = now.saturating_duration_since(left.1) / 2;
        *left = ((left.0 + earned).min(Self::FIRST), now);
        now + left.0
    }

    /// Takes off what a call needed.
    pub(super) fn spend(&self, spent: Duration) {
        let mut left = self.left.lock();
        left.0 = left.0.saturating_sub(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_for_sources_is_spent_and_earned_again() {
        let time = IndexingTime::new();
        let left = |time: &IndexingTime| time.deadline().saturating_duration_since(Instant::now());
        assert!(left(&time) > Duration::from_secs(50));
        time.spend(Duration::from_secs(1000));
        assert!(left(&time) < Duration::from_secs(5));
        let earned_since = Instant::now().checked_sub(Duration::from_secs(40)).unwrap();
        time.left.lock().1 = earned_since;
        assert!(left(&time) > Duration::from_secs(15));
    }
}
