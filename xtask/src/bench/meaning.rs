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

/// Megabytes of Markdown, and whether every passage is embedded with the full model too.
const SIZES: [(u64, bool); 3] = [(1, true), (10, true), (50, false)];

/// Notes generated to learn how large one is.
const SAMPLE: usize = 200;

const START: &str = "<!-- `cargo xtask bench --meaning --write` -->";
const END: &str = "<!-- end -->";

/// What one command took.
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
    for (megabytes, in_full) in SIZES {
        println!("measuring {megabytes} MB");
        writeln!(page, "{}", row(&binary, megabytes, in_full)?)?;
    }
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
fn row(binary: &Path, megabytes: u64, in_full: bool) -> anyhow::Result<String> {
    let home = tempfile::Builder::new().prefix("meaning").tempdir_in(shell::target())?;
    let sample = home.path().join("sample");
    let per_note = generate::vault(&sample, SAMPLE, SEED)?.iter().map(|path| size_of(&sample.join(path))).sum::<u64>();
    let notes = usize::try_from(megabytes * 1_000_000 * SAMPLE as u64 / per_note)?;
    let vault = home.path().join("vault");
    generate::vault(&vault, notes, SEED)?;
    let words = index(binary, &vault, "--no-embed")?;
    let coarse = index(binary, &vault, "--")?;
    let full = in_full.then(|| index(binary, &vault, "--wait")).transpose()?;
    let shown = |run: &Run| format!("{:.1} s ({:.1} CPU-s)", run.wall, run.cpu);
    let largest = [Some(&words), Some(&coarse), full.as_ref()].into_iter().flatten();
    let largest = largest.map(|run| run.peak_megabytes).fold(0.0, f64::max);
    Ok(format!(
        "| {megabytes} MB | {notes} | {} | {} | {} | {largest:.0} MB |",
        shown(&words),
        shown(&coarse),
        full.as_ref().map_or("not measured".to_owned(), shown)
    ))
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
