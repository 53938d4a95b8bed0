//! `cargo xtask bench --meaning`: how long after a fresh vault words, coarse vectors and full vectors are there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::generate;

use super::measure::{SEED, children_cpu_seconds, megabytes_of};
use crate::shell::{self, Profile};

/// Another server on 5 MB. Not run by this command: it was measured once by hand, on two cores of an AMD EPYC under other work.
const PEER: &str = "| 5 MB, basic-memory 0.24.1 (quoted, see above) | 1000 | 396 s (184 CPU-s) | – | – | 407 MB |";

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

const HEAD: &str = "| Markdown | notes | words and links | coarse vectors | full vectors | largest memory |
|---|---:|---|---|---|---:|";

/// `sizes` are megabytes of Markdown.
pub(crate) fn run(sizes: &[usize], write: bool) -> anyhow::Result<()> {
    let binary = shell::build_binary(Profile::Release)?;
    let mut rows = BTreeMap::new();
    for megabytes in sizes {
        println!("measuring {megabytes} MB");
        rows.insert(*megabytes, row(&binary, *megabytes)?);
    }
    let file = shell::root().join("docs/embedding.md");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let start = text.find(START).context("docs/embedding.md has no place for the table")? + START.len();
    let end = start + text[start..].find(END).context("docs/embedding.md has no end of the table")?;
    add_other_sizes(&mut rows, &text[start..end]);
    let rows = rows.into_values().collect::<Vec<_>>().join("\n");
    let [program, model, coarse] = ["", MODEL, COARSE].map(|asset| {
        let file = if asset.is_empty() { binary.clone() } else { shell::root().join(ASSETS).join(asset) };
        size_of(&file) as f64 / 1e6
    });
    let page = format!(
        "{HEAD}\n{rows}\n{PEER}\n\n\
         The program has {program:.1} MB: {model:.1} MB are the model, {coarse:.1} MB the coarse encoder.\n"
    );
    println!("\n{page}");
    if write {
        fs::write(&file, format!("{}\n{page}{}", &text[..start], &text[end..]))?;
    }
    Ok(())
}

/// Keeps the rows of sizes that were not measured this time, so that a long run can be cut into parts.
fn add_other_sizes(rows: &mut BTreeMap<usize, String>, page: &str) {
    for row in page.lines() {
        let size = row.strip_prefix("| ").and_then(|row| row.split_once(" MB |")?.0.parse().ok());
        if let Some(size) = size {
            rows.entry(size).or_insert_with(|| row.to_owned());
        }
    }
}

/// Three commands on one vault: each does what the one before has left. Full vectors take a minute per MB and core.
fn row(binary: &Path, megabytes: usize) -> anyhow::Result<String> {
    let home = tempfile::Builder::new().prefix("meaning").tempdir_in(shell::target())?;
    let sample = home.path().join("sample");
    let per_note = generate::vault(&sample, SAMPLE, SEED)?.iter().map(|path| size_of(&sample.join(path))).sum::<u64>();
    let notes = megabytes * 1_000_000 * SAMPLE / usize::try_from(per_note)?;
    let vault = home.path().join("vault");
    generate::vault(&vault, notes, SEED)?;
    let words = index(binary, &vault, &["--no-embed"])?;
    let coarse = index(binary, &vault, &[])?;
    let runs = [words, coarse, index(binary, &vault, &["--wait"])?];
    let largest = runs.iter().map(|run| run.peak_megabytes).fold(0.0, f64::max);
    let shown = runs.map(|run| format!("{:.1} s ({:.1} CPU-s)", run.wall, run.cpu)).join(" | ");
    Ok(format!("| {megabytes} MB | {notes} | {shown} | {largest:.0} MB |"))
}

fn index(binary: &Path, vault: &Path, options: &[&str]) -> anyhow::Result<Run> {
    let (started, cpu) = (Instant::now(), children_cpu_seconds()?);
    let mut command = Command::new(binary);
    command.arg("index").arg("--vault").arg(vault).args(options).env_remove("QUIPU_VAULT");
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
    ensure!(status.success(), "`quipu index {}` failed", options.join(" "));
    Ok(Run { wall: started.elapsed().as_secs_f64(), cpu: children_cpu_seconds()? - cpu, peak_megabytes })
}

fn size_of(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_other_sizes_are_kept_in_order() {
        let mut rows = BTreeMap::from([(10, "| 10 MB | new |".to_owned())]);
        add_other_sizes(&mut rows, &format!("{HEAD}\n| 1 MB | old |\n| 10 MB | old |\n| 50 MB | old |\n{PEER}\n"));
        let rows: Vec<String> = rows.into_values().collect();
        assert_eq!(rows, ["| 1 MB | old |", "| 10 MB | new |", "| 50 MB | old |"]);
    }
}
