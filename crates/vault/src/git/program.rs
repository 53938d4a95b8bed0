//! Runs `git` commands with a clean environment and limits of time, memory and output.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::GitOptions;

/// Variables that would select another repository or have side effects. A git hook that starts Quipu sets some.
const REMOVED: [&str; 17] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_PAGER",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
    "GIT_REPLACE_REF_BASE",
];

/// Overrides settings that would change the output, run a program or have git read any file. A repository may set
/// `core.attributesFile` as the user may, so that the attributes of the user do not count.
const SETTINGS: [&str; 9] = [
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.commitGraph=true",
    "log.showSignature=false",
    "log.showRoot=true",
    "log.follow=false",
    "log.mailmap=false",
    "diff.noprefix=false",
];

/// Git reads some files of a repository whole: one that leads to an endless device would take all memory. Files that it maps do
/// not count.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 1 << 30;

/// A list of a million files is shorter.
const MAX_OUTPUT: u64 = 256 << 20;

/// Why git failed. The message reaches clients: it has no paths outside the vault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GitError {
    /// The program was not found.
    #[error("the `git` program is not installed")]
    Missing,
    /// There is no repository, or one without commits.
    #[error("there is no git history")]
    NoHistory,
    /// The repository belongs to another user.
    #[error(
        "git does not trust the repository, since another user owns it; to trust it, run \
         `git config --global --add safe.directory` with its folder"
    )]
    Untrusted,
    /// The command timed out.
    #[error("git took longer than {} seconds", .0.as_secs_f32())]
    TooSlow(Duration),
    /// The files on disk were not all read in time.
    #[error("reading the files took longer than {} seconds; call again to continue", .0.as_secs_f32())]
    SlowFiles(Duration),
    /// Anything else; git's message is in the log.
    #[error("git failed; the server's log has the details")]
    Failed,
}

/// The program, run in one folder.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    folder: PathBuf,
    program: PathBuf,
    patience: Duration,
}

impl Git {
    pub(crate) fn at(folder: &Path, options: &GitOptions) -> Self {
        Self { folder: folder.to_owned(), program: options.program.clone(), patience: options.patience }
    }

    /// The time limit of one command.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// A command ready for its arguments.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        REMOVED.iter().for_each(|name| {
            command.env_remove(name);
        });
        command
            // Errors are classified by their text, so it must not be translated.
            .env("LC_ALL", "C")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            // A partial clone would otherwise fetch missing objects.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .current_dir(&self.folder)
            // Its own group, so that its child processes can be killed with it.
            .process_group(0)
            .arg("--no-pager");
        SETTINGS.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        command
    }

    /// Starts a command whose output the caller reads.
    pub(super) fn spawn(&self, arguments: &[&str], stdin: Stdio) -> Result<Child, GitError> {
        let child = self.command().args(arguments).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => failed(arguments, &error.to_string()),
        })?;
        limit_memory(&child);
        Ok(child)
    }

    /// The output of a command with this input. A failure is an error.
    pub(super) fn answer(&self, arguments: &[&str], input: String) -> Result<Vec<u8>, GitError> {
        let (output, error) = self.output(arguments, input)?;
        match error {
            None => Ok(output),
            Some(stderr) => Err(classify(arguments, &stderr)),
        }
    }

    /// The output, and stderr if the command failed.
    pub(super) fn output(&self, arguments: &[&str], input: String) -> Result<(Vec<u8>, Option<String>), GitError> {
        let deadline = Instant::now() + self.patience;
        let mut child = self.spawn(arguments, Stdio::piped())?;
        let (mut stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        std::thread::spawn(move || {
            // A command that closes its input early reports the cause itself.
            let _ = stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        });
        let (sender, receiver) = channel();
        let reader = sender.clone();
        std::thread::spawn(move || reader.send((false, read_all(stdout))));
        std::thread::spawn(move || sender.send((true, read_all(stderr))));
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((true, bytes)) => errors = bytes,
                Ok((false, bytes)) => output = bytes,
                Err(_) => {
                    kill(&mut child);
                    return Err(GitError::TooSlow(self.patience));
                }
            }
        }
        if output.len().max(errors.len()) as u64 == MAX_OUTPUT {
            kill(&mut child);
            return Err(failed(arguments, "its output is too long"));
        }
        let status = child.wait().map_err(|error| failed(arguments, &error.to_string()))?;
        Ok((output, (!status.success()).then(|| String::from_utf8_lossy(&errors).into_owned())))
    }
}

/// Kills a command and its child processes. It only reads, so this is safe.
pub(super) fn kill(child: &mut Child) {
    // Until it is waited for, its id is the id of its group.
    if let (Ok(None), Ok(id)) = (child.try_wait(), i32::try_from(child.id()))
        && let Some(group) = rustix::process::Pid::from_raw(id)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // If reading fails, the command fails too, which its status shows.
    let _ = pipe.map(|pipe| pipe.take(MAX_OUTPUT).read_to_end(&mut bytes));
    bytes
}

#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let limit = Rlimit { current: Some(MAX_MEMORY), maximum: Some(MAX_MEMORY) };
    if let Err(error) = prlimit(Some(Pid::from_child(child)), Resource::Data, limit) {
        // It has ended, or its limit is lower already.
        tracing::debug!("the memory of git is not limited: {error}");
    }
}

/// Other systems cannot limit the memory of a running process.
#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child) {}

/// The kind of a failure, by git's message.
pub(super) fn classify(arguments: &[&str], stderr: &str) -> GitError {
    if stderr.contains("dubious ownership") || stderr.contains("safe.directory") {
        return GitError::Untrusted;
    }
    if stderr.contains("not a git repository")
        || stderr.contains("unknown revision")
        || stderr.contains("Needed a single revision")
    {
        return GitError::NoHistory;
    }
    failed(arguments, stderr)
}

fn failed(arguments: &[&str], stderr: &str) -> GitError {
    tracing::warn!("git {} failed: {}", arguments.join(" "), stderr.trim());
    GitError::Failed
}
