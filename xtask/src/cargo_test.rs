//! `cargo test`; the few tests that fail are run once more, alone.
//!
//! Thousands of tests start real servers and wait for them. Where other programs take the processor, one of them may run out of
//! patience. Run alone it passes, and is named as unstable; what is wrong fails again.

use std::process::Command;

use anyhow::bail;

use crate::shell;
use crate::steps::Tally;

/// More failures than this are not bad luck.
const MAX_UNSTABLE: usize = 3;

/// Runs the tests of a `cargo test` command whose names contain one of `names`; all without names.
pub(crate) fn run(tests: impl Fn() -> Command, names: &[&str], tally: &mut Tally) -> anyhow::Result<()> {
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
