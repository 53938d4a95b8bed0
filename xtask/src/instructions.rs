//! `cargo xtask instructions`: how many instructions the hot paths take, compared with the counts in the repository.
//!
//! Counts repeat where times do not: two runs differ by about one percent at most. They are of the test build, which
//! `cargo xtask test` has anyway: our own code is not optimised in it, so the counts show when a path does more work, not how
//! well the compiler optimises it. `cargo xtask bench` times the release build.
//!
//! Callgrind is called directly: iai-callgrind would add a runner to install and a second build in the bench profile.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use quipu_testkit::generate;

use crate::peers;
use crate::shell::{self, cargo, command};
use crate::steps::Tally;

const NOTES: usize = 300;
const SEED: u64 = 29;

/// A count that differs from the stored one by more than this many percent fails: more is a loss, and fewer would let the next
/// loss pass.
const TOLERANCE: u64 = 10;

/// The stored counts, below the root.
const TABLE: &str = "crates/cli/benches/instructions.tsv";

/// Functions of the program before which callgrind writes the counts so far.
const STARTS: &str = "counting_starts";
const ENDS: &str = "counting_ends";

/// Each path and its instructions, in order of the run.
type Counts = Vec<(String, u64)>;

/// Compares the counts with the stored ones, or stores them.
pub(crate) fn run(write: bool, tally: &mut Tally) -> anyhow::Result<()> {
    if let Some(reason) = why_not() {
        println!("skipped: {reason}");
        return Ok(());
    }
    let made_by = toolchain()?;
    let file = shell::root().join(TABLE);
    if write {
        let counts = counted(&built()?)?;
        fs::write(&file, table(&made_by, &counts)).with_context(|| file.display().to_string())?;
        print!("{}", table(&made_by, &counts));
        return Ok(());
    }
    let stored = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let (stored_by, stored) = read(&stored)?;
    if stored_by != made_by {
        println!(
            "skipped: the counts of {TABLE} are of {stored_by}, and {made_by} compiles to other instructions; \
             `cargo xtask instructions --write` stores those of this compiler"
        );
        return Ok(());
    }
    compare(&stored, &counted(&built()?)?, tally)
}

/// Why instructions cannot be counted here.
fn why_not() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("the counts are of x86-64 on Linux".to_owned());
    }
    if !fs::read_to_string("/proc/cpuinfo").is_ok_and(|cpu| cpu.contains(" avx2 ")) {
        return Some("the counts are of a processor with AVX2".to_owned());
    }
    peers::system_package("valgrind", &["valgrind"]).err().map(|error| format!("{error:#}"))
}

/// The compiler: another version generates other instructions.
fn toolchain() -> anyhow::Result<String> {
    let version = shell::output(&mut command("rustc", &["--version"]))?;
    Ok(version.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

/// Builds the program in the profile of the tests.
fn built() -> anyhow::Result<PathBuf> {
    // Of the whole workspace, or dependencies would be built once more with fewer features.
    let build = ["test", "--quiet", "--workspace", "--locked", "--bench", "instructions", "--no-run"];
    shell::built(cargo(&build).arg("--message-format=json-render-diagnostics"), "instructions")
}

/// Runs the program under callgrind, which leaves a file of counts at the start and at the end of each path.
fn counted(program: &Path) -> anyhow::Result<Counts> {
    let home = tempfile::Builder::new().prefix("instructions").tempdir()?;
    let (vault, out) = (home.path().join("vault"), home.path().join("counts"));
    generate::vault(&vault, NOTES, SEED)?;
    // On one core, so that neither rayon nor tantivy divides the work by chance.
    let mut valgrind = command("taskset", &["--cpu-list"]);
    valgrind.arg(first_core()?).args(["valgrind", "--tool=callgrind"]);
    valgrind.args([format!("--dump-before=*{STARTS}*"), format!("--dump-before=*{ENDS}*")]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    // Not on the terminal: an older valgrind reports every call of the system that it does not know.
    valgrind.arg(format!("--log-file={}", home.path().join("log").display()));
    let printed = shell::output(valgrind.arg(program).arg(&vault).env("RAYON_NUM_THREADS", "1"))?;
    let names = printed.lines().map(str::to_owned);
    let counts = names.enumerate().map(|(place, name)| {
        let file = format!("{}.{}", out.display(), 2 * place + 2);
        let counts = fs::read_to_string(&file).with_context(|| format!("callgrind did not count `{name}`"))?;
        Ok((name, total(&counts)?))
    });
    counts.collect()
}

/// A core that this process may use.
fn first_core() -> anyhow::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).context("Cpus_allowed_list")?;
    Ok(cores.trim().chars().take_while(char::is_ascii_digit).collect())
}

/// The instructions in a file of callgrind that was written at the end of a path.
fn total(counts: &str) -> anyhow::Result<u64> {
    let line = |start: &str| counts.lines().find_map(|line| line.strip_prefix(start));
    let trigger = line("desc: Trigger: ").context("the counts have no trigger")?;
    ensure!(trigger.contains(ENDS), "the counts are not of the end of a path: {trigger}");
    Ok(line("totals: ").context("the counts have no total")?.trim().parse()?)
}

fn table(made_by: &str, counts: &[(String, u64)]) -> String {
    let mut text = format!("# {made_by}\n");
    for (path, count) in counts {
        let _ = writeln!(text, "{path}\t{count}");
    }
    text
}

fn read(table: &str) -> anyhow::Result<(String, BTreeMap<String, u64>)> {
    let (first, rows) = table.split_once('\n').context("the table is empty")?;
    let made_by = first.strip_prefix("# ").context("the table does not begin with its compiler")?;
    let row = |line: &str| {
        let (path, count) = line.split_once('\t').with_context(|| format!("not a row: {line}"))?;
        Ok((path.to_owned(), count.parse()?))
    };
    Ok((made_by.to_owned(), rows.lines().map(row).collect::<anyhow::Result<_>>()?))
}

/// Fails if a path takes more or fewer instructions than it did, or is not in the table.
fn compare(stored: &BTreeMap<String, u64>, counts: &[(String, u64)], tally: &mut Tally) -> anyhow::Result<()> {
    for (path, count) in counts {
        let (is_other, change) = match stored.get(path) {
            Some(before) => {
                let change = *count as f64 / *before as f64 - 1.0;
                (count.abs_diff(*before) * 100 > *before * TOLERANCE, format!("{:+.1} %", change * 100.0))
            }
            None => (true, "not in the table".to_owned()),
        };
        let word = if is_other { "FAILED" } else { "ok" };
        println!("{path}: {:.2} million instructions, {change}: {word}", *count as f64 / 1e6);
        tally.passed += usize::from(!is_other);
        tally.failed += usize::from(is_other);
    }
    let counted: Vec<&str> = counts.iter().map(|(path, _)| path.as_str()).collect();
    let lost: Vec<&String> = stored.keys().filter(|path| !counted.contains(&path.as_str())).collect();
    if tally.failed > 0 || !lost.is_empty() {
        bail!(
            "hot paths take over {TOLERANCE} % more or fewer instructions than {TABLE} says, or differ from its paths {lost:?}; find \
             out why with `callgrind_annotate`, or store the counts with `cargo xtask instructions --write` and give the reason in the \
             commit"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(stored: u64, count: u64) -> (bool, Tally) {
        let mut tally = Tally::default();
        let text = table("rustc 1.2.3", &[("parse".to_owned(), stored)]);
        let (made_by, stored) = read(&text).unwrap();
        assert_eq!(made_by, "rustc 1.2.3");
        (compare(&stored, &[("parse".to_owned(), count)], &mut tally).is_ok(), tally)
    }

    #[test]
    fn over_a_tenth_more_or_fewer_instructions_fail() {
        for (count, passes) in [(1000, true), (1100, true), (1101, false), (900, true), (899, false)] {
            let (is_ok, tally) = compared(1000, count);
            assert_eq!((is_ok, tally.failed == 0), (passes, passes), "{count}");
        }
    }

    #[test]
    fn a_path_that_only_one_side_has_fails() {
        let mut tally = Tally::default();
        let counts = [("parse".to_owned(), 1)];
        assert!(compare(&BTreeMap::new(), &counts, &mut tally).is_err());
        let stored = BTreeMap::from([("parse".to_owned(), 1), ("index".to_owned(), 1)]);
        let error = compare(&stored, &counts, &mut Tally::default()).unwrap_err().to_string();
        assert!(error.contains("\"index\"") && error.contains("cargo xtask instructions --write"), "{error}");
    }

    #[test]
    fn counts_of_a_path_are_read_at_its_end_only() {
        let counts = |trigger: &str| format!("version: 1\ndesc: Trigger: --dump-before={trigger}\n\ntotals: 42\n");
        assert_eq!(total(&counts("instructions::counting_ends")).unwrap(), 42);
        assert!(total(&counts("instructions::counting_starts")).is_err());
    }
}
