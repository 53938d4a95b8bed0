//! The lock that a writer holds: one thread of one process writes at a time, and others wait for a limited time.
//!
//! The folder `.quipu` and the file `write.lock` in it are both locked. The file alone is not enough: if another program
//! removes it, the next writer creates and locks a new one. The folder cannot be removed while it contains a journal. The
//! file is for file systems that cannot lock folders.

#![expect(clippy::disallowed_methods, reason = "/proc/locks and /proc/PID/stat are not notes")]

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::dir::{Dir, MAX_PID_DIGITS, Metadata, is_unsupported};
use crate::own_folder::{self, OWN_FOLDER, explain_denied};

const NAME: &str = "write.lock";
/// Longer than a write takes, unless it changes thousands of notes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 30 });
/// A write takes milliseconds.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_millis(500);
/// How often the kernel's table is read before a lock is treated as absent from it.
const TABLE_READS: usize = 10;
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Held while writing. Dropping it, or the end of the process, unlocks.
pub(crate) struct WriteLock<'a> {
    /// The vault's root.
    pub(crate) root: Dir,
    /// The folder `.quipu`.
    pub(crate) own: Dir,
    _file: File,
    _threads: MutexGuard<'a, ()>,
}

/// Another process or thread held the lock for longer than a writer waits.
#[derive(Debug, thiserror::Error)]
#[error("{holder} holds the write lock of the vault ({OWN_FOLDER}/{NAME}); retry, and end that process if it hangs")]
struct LockBusy {
    holder: String,
}

/// The holder of the lock, if an error means that waiting for it timed out.
pub(crate) fn holder_of(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<LockBusy>().map(|busy| busy.holder.clone())
}

impl<'a> WriteLock<'a> {
    /// Waits for the lock, for a limited time. `threads` locks out the other threads of this process. Creates `.quipu`.
    pub(crate) fn acquire(threads: &'a Mutex<()>, root: Dir, patience: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + patience;
        let open_own = || own_folder::open_or_create(&root).map_err(|error| explain_denied(error, &root, OWN_FOLDER));
        let Some(guard) = threads.try_lock_until(deadline) else { return Err(busy(&open_own()?)) };
        loop {
            let own = open_own()?;
            let folder_lock = lock_folder(&own, deadline)?;
            if folder_lock == LockOutcome::TimedOut {
                return Err(busy(&own));
            }
            let mut file = own.open_lock(NAME).map_err(|error| explain_denied(error, &own, NAME))?;
            match wait(&file, deadline)? {
                LockOutcome::Locked => {}
                LockOutcome::TimedOut => return Err(busy(&own)),
                LockOutcome::Unsupported if folder_lock == LockOutcome::Locked => {}
                LockOutcome::Unsupported => {
                    let message = "the file system supports no file locks";
                    return Err(io::Error::new(io::ErrorKind::Unsupported, message));
                }
            }
            // Another program may have removed or replaced either of them: then this lock protects nothing.
            let is_same =
                |current: Option<Metadata>, locked: Metadata| current.is_some_and(|it| it.id() == locked.id());
            if is_same(own.metadata(NAME)?, Metadata::of(&file)?)
                && is_same(root.metadata(OWN_FOLDER)?, Metadata::of(&own)?)
            {
                // For waiting processes, on systems without /proc/locks. A full disk does not prevent a write.
                let _ = write_pid(&mut file);
                return Ok(Self { root, own, _file: file, _threads: guard });
            }
            if Instant::now() >= deadline {
                return Err(busy(&own));
            }
            std::thread::sleep(LONGEST_PAUSE);
        }
    }
}

/// Locks the folder. Another account may have opened a folder that was readable before, and lock it without end: then the lock
/// file, which only accounts that may write here can open, has to be enough.
fn lock_folder(own: &Dir, deadline: Instant) -> io::Result<LockOutcome> {
    loop {
        let outcome = wait(own, deadline.min(Instant::now() + PATIENCE_WITH_OTHERS))?;
        if outcome != LockOutcome::TimedOut {
            return Ok(outcome);
        }
        if !own.is_shared()? && !is_held_by_trusted_account(&Metadata::of(own)?) {
            return Ok(LockOutcome::Unsupported);
        }
        if Instant::now() >= deadline {
            return Ok(LockOutcome::TimedOut);
        }
    }
}

/// Whether the process that locked a folder is known, and may write in it. A lock passes to the children of its process, and the
/// table goes on naming that process after its end, or another one that has got its id.
fn is_held_by_trusted_account(folder: &Metadata) -> bool {
    let trusted = [0, folder.owner.0, rustix::process::geteuid().as_raw()];
    // As in `holder`: a line may be missing.
    (0..TABLE_READS).any(|_| {
        std::thread::sleep(FIRST_PAUSE);
        let holder = std::fs::read_to_string("/proc/locks").ok().and_then(|table| holder_in(&table, folder));
        let Some(pid) = holder else { return false };
        let process = std::fs::metadata(format!("/proc/{pid}"));
        process.is_ok_and(|process| trusted.contains(&process.uid())) && has_lock(pid, folder)
    })
}

/// Whether a process has an open file that locks this one. True if its open files cannot be read.
fn has_lock(pid: u32, locked: &Metadata) -> bool {
    let files = match std::fs::read_dir(format!("/proc/{pid}/fdinfo")) {
        Ok(files) => files,
        Err(error) => return error.kind() == io::ErrorKind::PermissionDenied,
    };
    files.flatten().any(|file| {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix("lock:")).any(|line| holder_in(line, locked).is_some())
    })
}

#[derive(Debug, PartialEq, Eq)]
enum LockOutcome {
    Locked,
    TimedOut,
    /// The file system cannot lock this.
    Unsupported,
}

fn wait(file: impl AsFd, deadline: Instant) -> io::Result<LockOutcome> {
    let mut pause = FIRST_PAUSE;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(LockOutcome::Locked),
            Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => return Ok(LockOutcome::TimedOut),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(pause),
            Err(Errno::INTR) => {}
            Err(error) if is_unsupported(error) || error == Errno::BADF => {
                return Ok(LockOutcome::Unsupported);
            }
            Err(error) => return Err(error.into()),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(std::process::id().to_string().as_bytes())
}

fn busy(own: &Dir) -> io::Error {
    let holder = match holder(own) {
        Some(pid) => format!("process {pid}{}", details(pid)),
        None => "another process".to_owned(),
    };
    io::Error::new(io::ErrorKind::TimedOut, LockBusy { holder })
}

/// The process that holds the lock. The file first: the holder of the folder may be waiting for the file.
fn holder(own: &Dir) -> Option<u32> {
    let locked = [own.metadata(NAME).ok().flatten(), Metadata::of(own).ok()];
    let mut last = None;
    // The kernel returns the table in pieces, and a line may be missing when locks change meanwhile. This process is named
    // only if no other is found: one of its threads may hold the folder and wait for the file.
    for _ in 0..TABLE_READS {
        let Ok(table) = std::fs::read_to_string("/proc/locks") else { return written_holder(own) };
        let found = locked.iter().flatten().find_map(|metadata| holder_in(&table, metadata));
        if found.is_some_and(|pid| pid != std::process::id()) {
            return found;
        }
        last = last.or(found);
        std::thread::sleep(FIRST_PAUSE);
    }
    last
}

/// The last process that wrote its id into the lock file, for systems without /proc/locks.
fn written_holder(own: &Dir) -> Option<u32> {
    let mut text = String::new();
    own.open_file(NAME).ok()?.take(MAX_PID_DIGITS).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Finds a line like `1: FLOCK  ADVISORY  WRITE 4242 fe:00:5562427 0 EOF`. The line of a waiting process has an arrow.
fn holder_in(table: &str, locked: &Metadata) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(locked.device), rustix::fs::minor(locked.device));
    let file = format!("{major:02x}:{minor:02x}:{}", locked.inode);
    table.lines().find_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        [_, "FLOCK", _, _, pid, id, ..] if *id == file => pid.parse().ok().filter(|pid| *pid != 0),
        _ => None,
    })
}

/// The name of a process and whether it is stopped, in parentheses, on systems with /proc. The process chooses its name.
fn details(pid: u32) -> String {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return String::new() };
    let (Some((head, tail)), Some(start)) = (stat.rsplit_once(')'), stat.find('(')) else { return String::new() };
    let name: String = head[start + 1..].chars().filter(char::is_ascii_graphic).collect();
    let is_stopped = matches!(tail.trim_start().chars().next(), Some('T' | 't'));
    format!(" ({name}{})", if is_stopped { ", stopped" } else { "" })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use quipu_core::model::VaultPath;
    use quipu_core::ports::{FileChange, VaultFiles, WriteError};

    use super::TIMEOUT;
    use crate::{FolderVault, VaultOptions};

    fn vault() -> (tempfile::TempDir, FolderVault) {
        let home = tempfile::tempdir().unwrap();
        let vault = FolderVault::open(home.path(), VaultOptions::default()).unwrap();
        (home, vault)
    }

    fn create(vault: &FolderVault, name: &str) -> Result<(), WriteError> {
        let path = VaultPath::parse(name).unwrap();
        vault.apply(&[FileChange::Create { path, bytes: b"text".to_vec() }]).map(drop)
    }

    const LOCKED: &str = "QUIPU_TEST_LOCKED";

    /// Runs in another process, which the test binary starts as itself.
    #[test]
    fn hold_lock_in_child_process() {
        let Some(locked) = std::env::var_os(LOCKED) else { return };
        let file = std::fs::File::open(locked).unwrap();
        file.lock().unwrap();
        std::thread::sleep(Duration::from_secs(600));
    }

    /// A process that holds a lock until it is dropped.
    struct Holder(Child);

    impl Holder {
        fn of(locked: &Path) -> Self {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "write_lock::tests::hold_lock_in_child_process", "--nocapture"]);
            let held = Self(command.env(LOCKED, locked).stdout(Stdio::null()).spawn().unwrap());
            let deadline = Instant::now() + Duration::from_secs(20);
            while std::fs::File::open(locked).unwrap().try_lock().is_ok() {
                assert!(Instant::now() < deadline, "never locked");
                std::thread::sleep(Duration::from_millis(5));
            }
            held
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn lock_held_by_a_stopped_process_times_out_and_names_it() {
        let (home, vault) = vault();
        create(&vault, "first.md").unwrap();
        let own = home.path().join(".quipu");
        // Elsewhere the holder of the folder is unknown, and the file decides.
        let locks =
            if cfg!(target_os = "linux") { vec![own.join("write.lock"), own] } else { vec![own.join("write.lock")] };
        for locked in locks {
            let holder = Holder::of(&locked);
            let pid = rustix::process::Pid::from_child(&holder.0);
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
            let start = Instant::now();
            // The threads wait in parallel, not one after the other.
            let errors: Vec<WriteError> = std::thread::scope(|scope| {
                let waiting = ["a.md", "b.md", "c.md"].map(|name| scope.spawn(|| create(&vault, name).unwrap_err()));
                waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(start.elapsed() < TIMEOUT * 2, "{:?}", start.elapsed());
            for error in errors {
                assert!(matches!(error, WriteError::Busy { .. }), "{error:?}");
                let text = error.to_string();
                assert!(text.starts_with("cannot write ") && text.contains("retry"), "{text}");
                if cfg!(target_os = "linux") {
                    let pid = holder.0.id();
                    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
                    assert!(text.contains(&format!("process {pid} ({}, stopped)", name.trim())), "{text}");
                }
            }
            drop(holder);
            create(&vault, if locked.is_dir() { "d.md" } else { "e.md" }).unwrap();
        }
    }

    #[test]
    fn lock_file_is_private_and_an_existing_one_is_tightened() {
        let (home, vault) = vault();
        let lock = home.path().join(".quipu/write.lock");
        let mode = || std::fs::metadata(&lock).unwrap().permissions().mode() & 0o7777;
        create(&vault, "a.md").unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&lock, PermissionsExt::from_mode(0o664)).unwrap();
        create(&vault, "b.md").unwrap();
        assert_eq!(mode(), 0o600);
        // A group that may enter but not write may not lock either.
        std::fs::set_permissions(home.path().join(".quipu"), PermissionsExt::from_mode(0o2750)).unwrap();
        create(&vault, "c.md").unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(home.path().join(".quipu"), PermissionsExt::from_mode(0o2770)).unwrap();
        create(&vault, "d.md").unwrap();
        assert_eq!(mode(), 0o660, "the folder is shared with its group");
    }
}
