//! Running other programs: from the repository's root, with their failure as an error that names them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command to its end, passing its stdout on line by line.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    for line in BufReader::new(child.stdout.take().expect("stdout was piped")).lines() {
        let line = line?;
        println!("{line}");
        see(&line);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// What a command writes to stdout.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout).context("output is not UTF-8")
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
    let mut build = cargo(&["build", "--quiet", "--bin", "quipu"]);
    let folder = match profile {
        // With the features that the whole workspace asks of a dependency: with fewer, all of them are built once more.
        Profile::Dev => {
            build.arg("--workspace");
            "debug"
        }
        Profile::Release => {
            build.args(["--package", "quipu", "--release"]);
            "release"
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
