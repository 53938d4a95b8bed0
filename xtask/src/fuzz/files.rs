//! `cargo xtask fuzz files`: changes the files of a vault under a running server, and compares what the server says with what
//! one says that has just indexed a copy: notes, links, tags, text and ranks.
//!
//! The names are few, so that operations meet: files that differ only in case, links to what is not there yet, folders that
//! go and come back under a link, patterns of `.gitignore` that change meanwhile.

mod operations;

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, bail, ensure};
use quipu_testkit::client::Wire;
use quipu_testkit::generate::Random;

use crate::crash::{Answered, ask_index, ask_text, ids};
use crate::{crash, shell};

/// Rounds by default.
pub(crate) const ROUNDS: u64 = 150;

/// Rounds in the test command.
pub(crate) const SHORT: u64 = 12;

/// Operations between two comparisons.
const OPERATIONS: usize = 10;

/// A vault is used for so many rounds, then another is begun.
const ROUNDS_OF_VAULT: u64 = 6;

/// Within this time the server has seen a change. A machine under load is slow; one that is idle needs a fraction.
const PATIENCE: Duration = Duration::from_secs(20);

const WORDS: [&str; 4] = ["anchor", "storm knot", "one", "嵐"];

pub(crate) fn run(binary: &Path, rounds: u64, seed: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut done = 0;
    let mut operations = 0;
    while done < rounds {
        let vault_seed = seed.wrapping_add(done);
        let in_vault = ROUNDS_OF_VAULT.min(rounds - done);
        operations += one_vault(binary, in_vault, vault_seed)
            .with_context(|| format!("repeat with `cargo xtask fuzz files --rounds {in_vault} --seed {vault_seed}`"))?;
        done += in_vault;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{operations} operations on files in {rounds} rounds, each equal to a fresh index, in {seconds:.1} s");
    Ok(())
}

/// Rounds on a vault of their own; gives the operations that changed something.
fn one_vault(binary: &Path, rounds: u64, seed: u64) -> anyhow::Result<usize> {
    let home = tempfile::Builder::new().prefix("fuzz").tempdir_in(shell::target())?;
    let vault = home.path().join("vault");
    // Vectors come in the background, so ranks by meaning depend on the moment.
    fs::create_dir_all(vault.join(".quipu"))?;
    fs::write(vault.join(".quipu/config.toml"), "[embedding]\nprovider = \"none\"\n")?;
    let mut random = Random(seed);
    let mut history = operations::apply(&vault, &mut random, 4 * OPERATIONS)?;
    let (mut child, mut wire) = crash::serve(binary, &vault)?.into_parts();
    let mut outcome = Ok(());
    for round in 0..rounds {
        history.extend(operations::apply(&vault, &mut random, OPERATIONS)?);
        outcome = compare(binary, &vault, home.path(), &mut wire).with_context(|| format!("round {round}"));
        if outcome.is_err() {
            break;
        }
    }
    drop(wire);
    let status = child.wait()?;
    if let Err(error) = outcome {
        fs::write(home.path().join("operations.txt"), history.join("\n"))?;
        return Err(error.context(format!("the vault and its operations are kept in {}", home.keep().display())));
    }
    ensure!(status.success(), "the server ended with {status}");
    Ok(history.len())
}

/// Waits until the running server says what a fresh one says of the notes and their links, then asks for all the rest once:
/// reading a note would update what the index has missed.
fn compare(binary: &Path, vault: &Path, home: &Path, wire: &mut Wire) -> anyhow::Result<()> {
    let copy = home.join("copy");
    copy_tree(vault, &copy)?;
    let (mut child, mut fresh) = crash::serve(binary, &copy)?.into_parts();
    let expected_index = ask_index(&mut fresh, &operations::TAGS)?;
    let ids = ids(&expected_index)?;
    let expected_text = ask_text(&mut fresh, &WORDS, &ids)?;
    drop(fresh);
    child.wait()?;
    fs::remove_dir_all(&copy)?;

    let deadline = Instant::now() + PATIENCE;
    loop {
        let index = ask_index(wire, &operations::TAGS)?;
        match difference(&index, &expected_index) {
            None => break,
            Some(difference) if Instant::now() > deadline => bail!("the index missed a change: {difference}"),
            Some(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
    match difference(&ask_text(wire, &WORDS, &ids)?, &expected_text) {
        Some(difference) => bail!("the index differs from a fresh one: {difference}"),
        None => Ok(()),
    }
}

fn difference(found: &[Answered], expected: &[Answered]) -> Option<String> {
    let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
    match differs {
        Some(((question, found), (fresh_question, expected))) if question == fresh_question => {
            Some(format!("{question}\n  says {found}\n fresh {expected}"))
        }
        Some((found, expected)) => Some(format!("{found:?}\n fresh {expected:?}")),
        None => (found.len() != expected.len()).then(|| format!("{} answers, fresh {}", found.len(), expected.len())),
    }
}

/// Copies a vault without its index, links as links, times included.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &copy)?;
        } else if kind.is_dir() && entry.file_name() == ".quipu" {
            fs::create_dir_all(&copy)?;
            fs::copy(source.join("config.toml"), copy.join("config.toml"))?;
        } else if kind.is_dir() {
            copy_tree(&source, &copy)?;
        } else {
            fs::copy(&source, &copy)?;
            fs::File::options().write(true).open(&copy)?.set_modified(fs::metadata(&source)?.modified()?)?;
        }
    }
    Ok(())
}
