//! Running other programs: from the repository's root, with their failure as an error that names them.
//!
//! Each program gets a process group. When it ends, or when its step has no time left, the group is killed, so neither a program
//! that hangs nor a process that it left behind can stop a run.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

/// How the binary is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As the tests build it: dependencies optimised, our own code with its checks.
    Dev,
    /// As it ships.
    Release,
}

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// Where things that can be made again are kept.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A command in the repository's root.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// The cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
}

/// Runs a command to its end; its output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    run_watched(command, |_| {})
}

/// Runs a command to its end, passing its stdout on line by line.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
    follow(command, |line| {
        println!("{line}");
        see(line);
    })
}

/// What a command writes to stdout.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let mut output = String::new();
    follow(command, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    Ok(output)
}

/// Another command of this program.
pub(crate) fn xtask(arguments: &[&str]) -> anyhow::Result<Command> {
    Ok(command(std::env::current_exe()?, arguments))
}

/// After this time, processes that a command left behind may no longer hold its output open.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

/// How often a command without output is checked.
const POLL: Duration = Duration::from_millis(50);

/// The lines that the error of a command without time left repeats.
const LAST_LINES: usize = 5;

thread_local! {
    /// When the step that this thread runs has no time left.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs work whose commands are killed after the time limit, all together.
pub(crate) fn limited<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    DEADLINE.set(Some(Instant::now() + limit));
    let done = work();
    DEADLINE.set(None);
    done
}

/// Runs a command to its end, and reads its stdout line by line.
fn follow(command: &mut Command, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
    let mut group = ProcessGroup::start(command)?;
    let lines = lines_of(group.leader.stdout.take().expect("stdout was piped"));
    let (mut last, mut is_open, mut ended) = (VecDeque::new(), true, None);
    while is_open || ended.is_none() {
        match lines.recv_timeout(POLL) {
            Ok(line) => {
                let line = line.with_context(|| format!("cannot read the output of {}", shown(command)))?;
                see(&line);
                last.push_back(line);
                last.drain(..last.len().saturating_sub(LAST_LINES));
            }
            Err(RecvTimeoutError::Timeout) => {
                let has_left = |(_, at): (ExitStatus, Instant)| at.elapsed() > LEFT_BEHIND;
                if ended.is_some_and(has_left) {
                    bail!("{} left a process behind, which was killed{}", shown(command), repeated(&last));
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                is_open = false;
                // Most have ended by now.
                thread::sleep(Duration::from_millis(1));
            }
        }
        if DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline) {
            bail!("{} was killed when the time of its step was over{}", shown(command), repeated(&last));
        }
        if ended.is_none() {
            ended = group.leader.try_wait()?.map(|status| (status, Instant::now()));
        }
    }
    match ended {
        Some((status, _)) if !status.success() => bail!("{} failed: {status}", shown(command)),
        _ => Ok(()),
    }
}

/// A program and what it starts.
struct ProcessGroup {
    leader: Child,
    /// Kills the group when its stdin ends: on drop, and also when this process is killed, by Ctrl-C for example, which does
    /// not reach the group.
    killer: Child,
}

impl ProcessGroup {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let leader = command.spawn().with_context(|| format!("cannot start {}", shown(command)))?;
        let mut killer = Command::new("sh");
        killer.args(["-c", r#"read -r _; kill -s KILL -- "-$1""#, "sh", &leader.id().to_string()]);
        killer.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self { leader, killer: killer.spawn().context("cannot start sh")? })
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        drop(self.killer.stdin.take());
        // It fails where the group has ended by itself.
        let _ = self.killer.wait();
        let _ = self.leader.wait();
    }
}

fn lines_of(stdout: ChildStdout) -> Receiver<io::Result<String>> {
    let (sender, lines) = channel();
    thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| sender.send(line)));
    lines
}

/// The last lines, for an error.
fn repeated(lines: &VecDeque<String>) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

/// Whether a program can be found.
pub(crate) fn exists(program: &str) -> bool {
    place_of(program).is_some()
}

/// The file of a program in the search path.
pub(crate) fn place_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Builds the binary and says where it is.
pub(crate) fn build_binary(profile: Profile) -> anyhow::Result<PathBuf> {
    let (mut build, folder) = match profile {
        // Exactly what the tests build: any other selection of targets selects other features of dependencies, so cargo would
        // build half of the workspace once more.
        Profile::Dev => (cargo(&["test", "--quiet", "--workspace", "--locked", "--no-run"]), "debug"),
        Profile::Release => {
            (cargo(&["build", "--quiet", "--bin", "quipu", "--package", "quipu", "--release"]), "release")
        }
    };
    run(&mut build)?;
    Ok(target().join(folder).join("quipu"))
}

/// Runs a build that reports in JSON, and says where it put the program of this name.
pub(crate) fn built(build: &mut Command, name: &str) -> anyhow::Result<PathBuf> {
    let printed = output(build)?;
    let messages = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == name);
    let built = built.find_map(|message| Some(message["executable"].as_str()?.into()));
    built.with_context(|| format!("{} did not say where it put `{name}`", shown(build)))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        command("sh", &["-c", script])
    }

    fn failure(script: &str, limit: Duration) -> String {
        limited(limit, || run(&mut sh(script))).unwrap_err().to_string()
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children_and_named() {
        let started = Instant::now();
        let mut group = String::new();
        let hangs = || {
            run_watched(&mut sh("echo $$; for n in 1 2 3 4 5; do echo line $n; done; sleep 600; :"), |line| {
                if group.is_empty() {
                    group = line.to_owned();
                }
            })
        };
        let error = limited(Duration::from_millis(500), hangs).unwrap_err().to_string();
        assert!(error.contains("sleep 600") && error.contains("time of its step"), "{error}");
        assert!(error.contains("\n  line 1\n") && error.ends_with("\n  line 5"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        // A killed process whose parent has ended stays as a zombie until the system's first process reads its status.
        let listed = output(&mut command("ps", &["-A", "-o", "pgid=,stat="])).unwrap();
        let is_left = |line: &&str| {
            let mut words = line.split_whitespace();
            words.next() == Some(&group) && !words.next().is_some_and(|state| state.starts_with('Z'))
        };
        assert_eq!(listed.lines().find(is_left), None, "a process of the group {group} is still there");
    }

    #[test]
    fn a_command_that_closes_its_output_and_hangs_is_killed() {
        assert!(failure("exec >&-; sleep 600", Duration::from_millis(300)).contains("time of its step"));
    }

    #[test]
    fn a_process_left_behind_with_the_output_open_is_killed() {
        let error = failure("sleep 600 & echo done", Duration::from_secs(300));
        assert!(error.contains("left a process behind") && error.ends_with("\n  done"), "{error}");
    }

    #[test]
    fn output_and_failures_of_commands_are_read() {
        assert_eq!(output(&mut sh("echo one; echo two")).unwrap(), "one\ntwo\n");
        assert!(output(&mut sh("exit 3")).unwrap_err().to_string().contains("exit status: 3"));
        assert!(run(&mut command("no-such-program", &[])).is_err());
    }
}
