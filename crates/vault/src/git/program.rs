//! Runs `git` for one answer: in a cleaned environment, and never for longer than it is given.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::GitOptions;

/// Variables that would point git at another repository, or make it do more than answer. A hook that starts us sets some.
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

/// Settings of a repository or a user that would change an answer or run a program.
const SETTINGS: [&str; 8] = [
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.commitGraph=true",
    "log.showSignature=false",
    "log.showRoot=true",
    "log.follow=false",
    "log.mailmap=false",
    "diff.noprefix=false",
];

/// Why git gave no answer. Its words reach clients: no paths but the vault's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GitError {
    /// There is no such program.
    #[error("the `git` program is not installed")]
    Missing,
    /// There is no repository, or one without commits.
    #[error("there is no git history")]
    NoHistory,
    /// The repository belongs to someone else.
    #[error(
        "git does not trust the repository, since another user owns it; `git config --global --add safe.directory` \
         with its folder makes it trusted"
    )]
    Untrusted,
    /// It took too long.
    #[error("git took longer than {} seconds", .0.as_secs_f32())]
    TooSlow(Duration),
    /// Anything else; what git said is in the log.
    #[error("git failed; the server's log has the details")]
    Failed,
}

/// The program, at one folder.
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

    /// How long is waited for one answer.
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
            // Messages are read below, so they must not be translated.
            .env("LC_ALL", "C")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            // A partial clone would otherwise fetch what it lacks.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .current_dir(&self.folder)
            // Of its own, so that whatever it starts ends with it.
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
        child.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => failed(arguments, &error.to_string()),
        })
    }

    /// The whole output of a command that is given a text. One that fails is an error.
    pub(super) fn answer(&self, arguments: &[&str], input: String) -> Result<Vec<u8>, GitError> {
        let (output, error) = self.output(arguments, input)?;
        match error {
            None => Ok(output),
            Some(said) => Err(judged(arguments, &said)),
        }
    }

    /// The whole output, and what was said on stderr if the command failed.
    pub(super) fn output(&self, arguments: &[&str], input: String) -> Result<(Vec<u8>, Option<String>), GitError> {
        let deadline = Instant::now() + self.patience;
        let mut child = self.spawn(arguments, Stdio::piped())?;
        let (mut stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        std::thread::spawn(move || {
            // A command that wants no more of it has its reasons, and gives them.
            let _ = stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        });
        let (sender, receiver) = channel();
        let reader = sender.clone();
        std::thread::spawn(move || reader.send((false, read_all(stdout))));
        std::thread::spawn(move || sender.send((true, read_all(stderr))));
        let (mut output, mut said) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((true, bytes)) => said = bytes,
                Ok((false, bytes)) => output = bytes,
                Err(_) => {
                    end(&mut child);
                    return Err(GitError::TooSlow(self.patience));
                }
            }
        }
        let status = child.wait().map_err(|error| failed(arguments, &error.to_string()))?;
        Ok((output, (!status.success()).then(|| String::from_utf8_lossy(&said).into_owned())))
    }
}

/// Ends a command that is not wanted any more, and what it started. It only reads, so it may be killed.
pub(super) fn end(child: &mut Child) {
    // Its group has its number for as long as it has not been waited for.
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
    // Where reading fails the command has failed too, and that is seen.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}

/// What a failure means.
pub(super) fn judged(arguments: &[&str], said: &str) -> GitError {
    if said.contains("dubious ownership") || said.contains("safe.directory") {
        return GitError::Untrusted;
    }
    if said.contains("not a git repository")
        || said.contains("unknown revision")
        || said.contains("Needed a single revision")
    {
        return GitError::NoHistory;
    }
    failed(arguments, said)
}

fn failed(arguments: &[&str], said: &str) -> GitError {
    tracing::warn!("git {} failed: {}", arguments.join(" "), said.trim());
    GitError::Failed
}
