//! `cargo xtask crash`: ends the server with SIGKILL at a random moment of many writes, restarts it, and checks.
//!
//! Each time: every acknowledged write is present byte for byte, a write in progress was applied whole or not at all, the vault
//! has no other files, the index equals a fresh one, and the history has one entry for every write, with the versions that it
//! names.

mod history;
mod memory;
mod model;
mod questions;
mod write_load;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{fs, io, thread};

use anyhow::{Context, ensure};
use quipu_testkit::client::Client;
use quipu_testkit::generate::Random;

use crate::shell;
pub(crate) use memory::run as run_memory;
use model::Model;
pub(crate) use questions::{Answered, ask_index, ask_text, ids};

/// Rounds by default.
pub(crate) const ROUNDS: u64 = 200;

/// Seed by default. The moments of the kill are real time and differ from run to run all the same.
pub(crate) const SEED: u64 = 1;

/// Vaults that are tested in parallel. A round waits for the disk, for its own kill and for a dozen processes to start,
/// so one alone leaves a machine idle for half of the time.
const LANES: u64 = 4;

pub(crate) fn run(binary: &Path, rounds: u64, seed: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    let lanes = LANES.min(rounds).max(1);
    let acknowledged = thread::scope(|scope| {
        let share = |lane: u64| rounds / lanes + u64::from(lane < rounds % lanes);
        let start = |lane| scope.spawn(move || run_lane(binary, share(lane), seed + lane));
        let running: Vec<_> = (0..lanes).map(start).collect();
        let acknowledged = running.into_iter().map(|lane| lane.join().expect("a lane tells its errors"));
        acknowledged.collect::<anyhow::Result<Vec<u64>>>()
    })?;
    let acknowledged: u64 = acknowledged.iter().sum();
    ensure!(acknowledged > rounds, "only {acknowledged} writes in {rounds} rounds: this tested nothing");
    let seconds = started.elapsed().as_secs_f64();
    println!("{rounds} kills, {acknowledged} acknowledged writes, nothing lost, in {seconds:.1} s");
    Ok(())
}

/// Rounds on a vault of their own; gives the writes that were acknowledged.
fn run_lane(binary: &Path, rounds: u64, seed: u64) -> anyhow::Result<u64> {
    // Below target/, which is on a disk; the system's folder for temporary files often is not.
    let home = tempfile::Builder::new().prefix("crash").tempdir_in(shell::target())?;
    let vault = home.path().join("vault");
    fs::create_dir(&vault)?;
    let mut random = Random(seed);
    let mut model = Model::default();
    model.lay_out(&vault)?;
    let (mut acknowledged, mut entries) = (0, 0);
    for round in 0..rounds {
        let outcome = write_load::run(binary, &vault, &mut model, &mut random).and_then(|acknowledged| {
            inspect(binary, &vault, &mut model, home.path())?;
            let found = history::inspect(&vault)?;
            let new = found.checked_sub(entries).context("the history lost entries")?;
            // A redaction is two entries.
            let least = acknowledged.writes + acknowledged.redactions;
            let most = least + 2 * write_load::IN_PROGRESS as u64;
            ensure!((least..=most).contains(&new), "{acknowledged:?}, and {new} entries are in the history");
            entries = found;
            Ok(acknowledged.writes)
        });
        match outcome {
            Ok(count) => acknowledged += count,
            Err(error) => {
                let kept = home.keep();
                return Err(
                    error.context(format!("round {round}, seed {seed}; the vault is kept in {}", kept.display()))
                );
            }
        }
    }
    Ok(acknowledged)
}

/// Starts the server on what the kill left, and holds it against the model and against a server without an index.
fn inspect(binary: &Path, vault: &Path, model: &mut Model, home: &Path) -> anyhow::Result<()> {
    let server = asked(binary, vault)?;
    history::await_redactions(vault)?;
    let mut left = questions::ask(server).context("of the server that was started again")?;
    left.extend(questions::ask_command_line(binary, vault).context("of the vault that was opened again")?);
    model.settle(vault)?;
    compare(binary, vault, home, &left)
}

/// Holds what a server and the command line say of a vault against what they say of a copy that has no index.
pub(crate) fn compare_with_fresh(binary: &Path, vault: &Path, home: &Path) -> anyhow::Result<()> {
    let mut left = questions::ask(asked(binary, vault)?)?;
    left.extend(questions::ask_command_line(binary, vault)?);
    compare(binary, vault, home, &left)
}

fn compare(binary: &Path, vault: &Path, home: &Path, left: &[Answered]) -> anyhow::Result<()> {
    let copy = home.join("copy");
    copy_notes(vault, &copy)?;
    let mut rebuilt = questions::ask(asked(binary, &copy)?).context("of the server without an index")?;
    rebuilt.extend(questions::ask_command_line(binary, &copy).context("of the vault without an index")?);
    fs::remove_dir_all(&copy)?;
    for (kept, made) in left.iter().zip(&rebuilt) {
        ensure!(kept == made, "the index is not what a fresh one is:\n  kept {kept:?}\n fresh {made:?}");
    }
    ensure!(left.len() == rebuilt.len());
    Ok(())
}

pub(crate) fn serve(binary: &Path, vault: &Path) -> anyhow::Result<Client> {
    Client::spawn(server(binary, vault).stderr(std::process::Stdio::null())).context("the server did not start")
}

/// A server to compare answers of. Without a model: what vectors find depends on how far the background has come.
fn asked(binary: &Path, vault: &Path) -> anyhow::Result<Client> {
    let mut server = server(binary, vault);
    server.env("QUIPU_EMBEDDING_PROVIDER", "none").stderr(std::process::Stdio::null());
    Client::spawn(&mut server).context("the server did not start")
}

fn server(binary: &Path, vault: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg("serve").arg(vault).env_remove("QUIPU_VAULT");
    command
}

/// Every file outside `.quipu`, from the vault's root, sorted.
pub(crate) fn files(vault: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![vault.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            match entry.file_type()?.is_dir() {
                true if entry.file_name() == ".quipu" => {}
                true => folders.push(path),
                false => found.push(path.strip_prefix(vault).expect("below the vault").to_owned()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a vault without its index, times included.
fn copy_notes(vault: &Path, copy: &Path) -> anyhow::Result<()> {
    for file in files(vault)? {
        let (from, to) = (vault.join(&file), copy.join(&file));
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::copy(&from, &to)?;
        fs::File::options().write(true).open(&to)?.set_modified(fs::metadata(&from)?.modified()?)?;
    }
    Ok(())
}
