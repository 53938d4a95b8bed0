//! `cargo test`; the few tests that fail are run once more, alone.
//!
//! Thousands of tests start real servers and wait for them. Where other programs take the processor, one of them may run out of
//! patience. Run alone it passes, and is named as unstable; what is wrong fails again.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::bail;

use crate::shell;
use crate::steps::Tally;

/// More failures than this are not bad luck.
const MAX_UNSTABLE: usize = 3;

/// Names the file to which a test that is skipped adds a line: its name, a tab, and why. Test programs show what a test prints
/// only if it fails.
const SKIPPED: &str = "QUIPU_TEST_SKIPPED";

/// Runs the tests of a `cargo test` command whose names contain one of `names`; all without names. Prints which were skipped.
pub(crate) fn run(tests: impl Fn() -> Command, names: &[&str], tally: &mut Tally) -> anyhow::Result<()> {
    let skipped = tempfile::NamedTempFile::new()?;
    let tests = || {
        let mut tests = tests();
        tests.env(SKIPPED, skipped.path());
        tests
    };
    let outcome = run_twice(tests, names, tally);
    print!("{}", summary(&std::fs::read_to_string(skipped.path())?));
    outcome
}

/// The tests that were skipped, by the reason.
fn summary(skipped: &str) -> String {
    let mut by_reason: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (test, why) in skipped.lines().filter_map(|line| line.split_once('\t')) {
        by_reason.entry(why).or_default().insert(test);
    }
    let line = |(why, tests): (&str, BTreeSet<&str>)| {
        let tests: Vec<&str> = tests.into_iter().collect();
        format!("\nskipped, since {why}: {}\n", tests.join(", "))
    };
    by_reason.into_iter().map(line).collect()
}

fn run_twice(tests: impl Fn() -> Command, names: &[&str], tally: &mut Tally) -> anyhow::Result<()> {
    let mut failures = Failures::default();
    let outcome = shell::run_watched(tests().arg("--no-fail-fast").args(names), |line| {
        tally.read(line);
        failures.read(line);
    });
    let failed = failures.names;
    // A process that died named no test, or not all.
    if failed.is_empty() || failed.len() != tally.failed || failed.len() > MAX_UNSTABLE {
        return outcome;
    }
    println!("\nonce more, alone: {}", failed.join(", "));
    let mut again = Tally::default();
    let alone = ["--no-fail-fast", "--", "--exact", "--test-threads", "1"];
    shell::run_watched(tests().args(alone).args(&failed), |line| again.read(line))?;
    if again.passed < failed.len() {
        bail!("{} of {} failed tests were found again", again.passed, failed.len());
    }
    println!("\nUNSTABLE, passed when run alone: {}", failed.join(", "));
    *tally = Tally { passed: tally.passed + failed.len(), failed: 0 };
    Ok(())
}

/// The names that test programs list after `failures:`, without the output of each.
#[derive(Default)]
struct Failures {
    names: Vec<String>,
    is_listing: bool,
}

impl Failures {
    fn read(&mut self, line: &str) {
        let name = line.strip_prefix("    ").filter(|name| !name.is_empty() && !name.contains(' '));
        match name {
            Some(name) if self.is_listing => self.names.push(name.to_owned()),
            _ => self.is_listing = line == "failures:",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_listed_once_by_reason() {
        let skipped = "b::two\tonly root can\na::one\tonly root can\nb::two\tonly root can\nc\tno git\n";
        let told = "\nskipped, since no git: c\n\nskipped, since only root can: a::one, b::two\n";
        assert_eq!((summary(skipped).as_str(), summary("").as_str()), (told, ""));
    }

    #[test]
    fn only_the_names_of_failed_tests_are_read() {
        let printed = "running 3 tests\n\
                       failures:\n\n\
                       ---- team::reads stdout ----\n\
                       \x20   indented_output\n\n\
                       failures:\n\
                       \x20   team::reads\n\
                       \x20   team::writes\n\n\
                       test result: FAILED. 1 passed; 2 failed\n\
                       \x20   after_the_list";
        let mut failures = Failures::default();
        printed.lines().for_each(|line| failures.read(line));
        assert_eq!(failures.names, ["team::reads", "team::writes"]);
    }
}
