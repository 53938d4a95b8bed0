//! The lock that a writer holds: one thread of one process writes at a time, and nobody waits for it without end.
//!
//! Locked are the folder `.quipu` and the file `write.lock` in it. The file alone would not do: when somebody removes it
//! under a writer, the next one makes another and locks that. The folder cannot be removed while a journal is in it.
//! The file is for file systems that lock no folders.

#![expect(clippy::disallowed_methods, reason = "the system tells about processes in files")]

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::beneath::{Dir, Seen, is_unsupported, see_open};
use crate::rules::OWN_FOLDER;

const NAME: &str = "write.lock";
/// Longer than a write takes, unless it changes thousands of notes.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 30 });
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// Far above any process id.
const MAX_PID_BYTES: u64 = 32;

/// Lets one thread of this process write at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// A thread's turn, until it is dropped: by a panic too, which leaves a journal that the next writer finishes first.
struct Turn<'a>(&'a Turns);

/// Held while writing. Dropping it, or the end of the process, unlocks.
pub(crate) struct WriteLock<'a> {
    /// The folder `.quipu`.
    pub(crate) own: Dir,
    _file: File,
    _turn: Turn<'a>,
}

/// Another process, or another thread, has been writing for longer than a writer waits.
#[derive(Debug, thiserror::Error)]
#[error("{holder} holds {OWN_FOLDER}/{NAME}; retry, and end that process if it hangs")]
struct Busy {
    holder: String,
}

/// Who has the lock, if an error says that it could not be had in time.
pub(crate) fn holder_of(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<Busy>().map(|busy| busy.holder.clone())
}

impl<'a> WriteLock<'a> {
    /// Waits for the lock, for a limited time. `open_own` opens the folder `.quipu` of the root.
    pub(crate) fn acquire(turns: &'a Turns, root: &Dir, open_own: impl Fn() -> io::Result<Dir>) -> io::Result<Self> {
        let until = Instant::now() + PATIENCE;
        let Some(turn) = turns.take(until) else { return Err(busy(&open_own()?)) };
        loop {
            let own = open_own().map_err(|error| explain_closed(error, root, OWN_FOLDER))?;
            let folder_lock = wait(&own, until)?;
            if folder_lock == Outcome::TimedOut {
                return Err(busy(&own));
            }
            let mut file = own.open_lock(NAME).map_err(|error| explain_closed(error, &own, NAME))?;
            match wait(&file, until)? {
                Outcome::Locked => {}
                Outcome::TimedOut => return Err(busy(&own)),
                Outcome::Unsupported if folder_lock == Outcome::Locked => {}
                Outcome::Unsupported => return Err(io::Error::new(io::ErrorKind::Unsupported, "no locks here")),
            }
            // Somebody may have removed either meanwhile: then this is the lock of nothing.
            let is_same = |there: Option<Seen>, opened: Seen| there.is_some_and(|there| there.id() == opened.id());
            if is_same(own.see(NAME)?, see_open(&file)?) && is_same(root.see(OWN_FOLDER)?, own.see_self()?) {
                // For those who wait, where the system does not tell. A full disk is no reason not to write.
                let _ = write_pid(&mut file);
                return Ok(Self { own, _file: file, _turn: turn });
            }
            if Instant::now() >= until {
                return Err(busy(&own));
            }
            std::thread::sleep(LONGEST_PAUSE);
        }
    }
}

/// What is closed to this account because another one made it, and what that one can do about it.
pub(crate) fn explain_closed(error: io::Error, dir: &Dir, name: &str) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    match dir.see(name) {
        Ok(Some(seen)) if seen.owner.0 != rustix::process::geteuid().as_raw() => {
            let place = if name == OWN_FOLDER { String::new() } else { format!("{OWN_FOLDER}/") };
            let message = format!(
                "{place}{name} belongs to another account (user id {}) and is closed to this one; to share the vault, that \
                 account runs in it: chgrp -R GROUP {OWN_FOLDER}; chmod -R g+rwX {OWN_FOLDER}; find {OWN_FOLDER} -type d \
                 -exec chmod g+s {{}} +",
                seen.owner.0
            );
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        }
        _ => error,
    }
}

impl Turns {
    fn take(&self, until: Instant) -> Option<Turn<'_>> {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            let left = until.checked_duration_since(Instant::now())?;
            self.freed.wait_for(&mut is_taken, left);
        }
        *is_taken = true;
        Some(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock() = false;
        self.0.freed.notify_one();
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Locked,
    TimedOut,
    /// The file system has no locks for this.
    Unsupported,
}

fn wait(file: impl AsFd, until: Instant) -> io::Result<Outcome> {
    let mut pause = FIRST_PAUSE;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Outcome::Locked),
            Err(Errno::WOULDBLOCK) if Instant::now() >= until => return Ok(Outcome::TimedOut),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(pause),
            Err(Errno::INTR) => {}
            Err(error) if is_unsupported(error) || error == Errno::BADF => {
                return Ok(Outcome::Unsupported);
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
    io::Error::new(io::ErrorKind::TimedOut, Busy { holder })
}

/// The process that has the lock. The file first: who has the folder may be waiting for it.
fn holder(own: &Dir) -> Option<u32> {
    let locked = [own.see(NAME).ok().flatten(), own.see_self().ok()];
    let mut last = None;
    // The table comes in pieces, and a line may be missing when others lock and unlock meanwhile. This process is named only
    // when no other is found: one of its threads may have the folder and wait for the file.
    for _ in 0..10 {
        let Ok(table) = std::fs::read_to_string("/proc/locks") else { return written_holder(own) };
        let found = locked.iter().flatten().find_map(|seen| holder_in(&table, seen));
        if found.is_some_and(|pid| pid != std::process::id()) {
            return found;
        }
        last = last.or(found);
        std::thread::sleep(FIRST_PAUSE);
    }
    last
}

/// The last process that wrote itself into the lock file, for systems without a table of locks.
fn written_holder(own: &Dir) -> Option<u32> {
    let mut text = String::new();
    own.open_file(NAME).ok()?.take(MAX_PID_BYTES).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Looks for a line like `1: FLOCK  ADVISORY  WRITE 4242 fe:00:5562427 0 EOF`. One of a waiting process has an arrow in it.
fn holder_in(table: &str, locked: &Seen) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(locked.device), rustix::fs::minor(locked.device));
    let file = format!("{major:02x}:{minor:02x}:{}", locked.inode);
    table.lines().find_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        [_, "FLOCK", _, _, pid, id, ..] if *id == file => pid.parse().ok().filter(|pid| *pid != 0),
        _ => None,
    })
}

/// What program a process is and whether it is stopped, in parentheses, where the system tells. Its name is whatever that
/// program chose.
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

    use super::PATIENCE;
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

    /// What another process runs: the test runs itself again.
    #[test]
    fn holds_a_lock_when_told_to() {
        let Some(locked) = std::env::var_os(LOCKED) else { return };
        let file = std::fs::File::open(locked).unwrap();
        file.lock().unwrap();
        std::thread::sleep(Duration::from_secs(600));
    }

    /// Another process that holds a lock for as long as it lives.
    struct Holder(Child);

    impl Holder {
        fn of(locked: &Path) -> Self {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "write_lock::tests::holds_a_lock_when_told_to", "--nocapture"]);
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
        for locked in [own.join("write.lock"), own] {
            let holder = Holder::of(&locked);
            let pid = rustix::process::Pid::from_child(&holder.0);
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
            let start = Instant::now();
            // All threads wait for the same limited time, not each for the one before it.
            let errors: Vec<WriteError> = std::thread::scope(|scope| {
                let waiting = ["a.md", "b.md", "c.md"].map(|name| scope.spawn(|| create(&vault, name).unwrap_err()));
                waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(start.elapsed() < PATIENCE * 2, "{:?}", start.elapsed());
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
        // A group that may enter but not write holds no lock either.
        std::fs::set_permissions(home.path().join(".quipu"), PermissionsExt::from_mode(0o2750)).unwrap();
        create(&vault, "c.md").unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(home.path().join(".quipu"), PermissionsExt::from_mode(0o2770)).unwrap();
        create(&vault, "d.md").unwrap();
        assert_eq!(mode(), 0o660, "the folder is shared with its group");
    }
}
