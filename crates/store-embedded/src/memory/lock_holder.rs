//! The process that has locked a database for writing.
#![expect(clippy::disallowed_methods, reason = "files of /proc are not notes")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Another process that has a write lock on the database or its shared memory, as `process 7 (name)`. `None` on systems without
/// /proc.
pub(super) fn of(file: &Path) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut shared_memory = file.as_os_str().to_owned();
    shared_memory.push("-shm");
    let pid = [Path::new(&shared_memory), file].into_iter().find_map(|path| holder_in(&locks, path))?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.chars().filter(char::is_ascii_graphic).collect();
    Some(format!("process {pid} ({name})"))
}

/// Finds a line like `1: POSIX  ADVISORY  WRITE 4242 fe:00:5562427 120 120`.
fn holder_in(locks: &str, path: &Path) -> Option<u32> {
    let metadata = path.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    locks.lines().find_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        [_, "POSIX", _, "WRITE", pid, id, ..] if *id == file => {
            pid.parse().ok().filter(|pid| *pid != std::process::id())
        }
        _ => None,
    })
}
