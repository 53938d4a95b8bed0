//! `cargo xtask bench --meaning`: how long after a fresh vault words, coarse vectors and full vectors are there.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::generate;

use super::measure::{SEED, children_cpu_seconds, megabytes_of};
use crate::shell::{self, Profile};

/// Megabytes of Markdown. The full vectors of the last take ten minutes on two cores.
const SIZES: [u64; 3] = [1, 10, 50];

/// Another server on 5 MB. Not run by this command: it was measured once by hand, on two cores of an AMD EPYC under other work.
const PEER: &str = "| 5 MB, basic-memory 0.24.1 (quoted, see below) | 1000 | 396 s (184 CPU-s) | – | – | 407 MB |";

/// Notes generated to learn how large one is.
const SAMPLE: usize = 200;

const ASSETS: &str = "crates/embed/assets";
const MODEL: &str = "granite-embedding-30m-english.bin";
const COARSE: &str = "coarse-encoder.bin";

const START: &str = "<!-- `cargo xtask bench --meaning --write` -->";
const END: &str = "<!-- end -->";

/// The times of one command.
struct Run {
    wall: f64,
    cpu: f64,
    peak_megabytes: f64,
}

pub(crate) fn run(write: bool) -> anyhow::Result<()> {
    let binary = shell::build_binary(Profile::Release)?;
    let mut page = String::from(
        "| Markdown | notes | words and links | coarse vectors | full vectors | largest memory |\n|---|---:|---|---|---|---:|\n",
    );
    for megabytes in SIZES {
        println!("measuring {megabytes} MB");
        writeln!(page, "{}", row(&binary, megabytes)?)?;
    }
    let [program, model, coarse] = ["", MODEL, COARSE].map(|asset| {
        let file = if asset.is_empty() { binary.clone() } else { shell::root().join(ASSETS).join(asset) };
        size_of(&file) as f64 / 1e6
    });
    writeln!(page, "{PEER}")?;
    writeln!(
        page,
        "\nThe program has {program:.1} MB: {model:.1} MB are the model, {coarse:.1} MB the coarse encoder."
    )?;
    println!("\n{page}");
    if write {
        let file = shell::root().join("docs/embedding.md");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let start = text.find(START).context("docs/embedding.md has no place for the table")? + START.len();
        let end = start + text[start..].find(END).context("docs/embedding.md has no end of the table")?;
        fs::write(&file, format!("{}\n{page}{}", &text[..start], &text[end..]))?;
    }
    Ok(())
}

/// Three commands on one vault: each does what the one before has left.
fn row(binary: &Path, megabytes: u64) -> anyhow::Result<String> {
    let home = tempfile::Builder::new().prefix("meaning").tempdir_in(shell::target())?;
    let sample = home.path().join("sample");
    let per_note = generate::vault(&sample, SAMPLE, SEED)?.iter().map(|path| size_of(&sample.join(path))).sum::<u64>();
    let notes = usize::try_from(megabytes * 1_000_000 * SAMPLE as u64 / per_note)?;
    let vault = home.path().join("vault");
    generate::vault(&vault, notes, SEED)?;
    let words = index(binary, &vault, "--no-embed")?;
    let coarse = index(binary, &vault, "--")?;
    let runs = [words, coarse, index(binary, &vault, "--wait")?];
    let largest = runs.iter().map(|run| run.peak_megabytes).fold(0.0, f64::max);
    let shown = runs.map(|run| format!("{:.1} s ({:.1} CPU-s)", run.wall, run.cpu)).join(" | ");
    Ok(format!("| {megabytes} MB | {notes} | {shown} | {largest:.0} MB |"))
}

fn index(binary: &Path, vault: &Path, option: &str) -> anyhow::Result<Run> {
    let (started, cpu) = (Instant::now(), children_cpu_seconds()?);
    let mut command = Command::new(binary);
    command.arg("index").arg("--vault").arg(vault).arg(option).env_remove("QUIPU_VAULT");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak_megabytes: f64 = 0.0;
    let status = loop {
        // The peak of a process that has ended can no longer be read.
        peak_megabytes = megabytes_of(child.id(), "VmHWM:").unwrap_or(0.0).max(peak_megabytes);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    ensure!(status.success(), "`quipu index {option}` failed");
    Ok(Run { wall: started.elapsed().as_secs_f64(), cpu: children_cpu_seconds()? - cpu, peak_megabytes })
}

fn size_of(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}
