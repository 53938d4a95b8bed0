//! A run of named steps: a heading before each, its time behind it, one line of totals at the very end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::shell;

/// The counts of a step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// How long a step may take by default: several times what it takes on two cores.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// One check that held.
pub(crate) const ONE: Tally = Tally { passed: 1, failed: 0 };

impl Tally {
    /// Takes in a line such as `test result: FAILED. 12 passed; 1 failed; …` or `3 passed, 0 failed`.
    pub(crate) fn read(&mut self, line: &str) {
        let counts =
            line.strip_prefix("test result: ").map_or(line, |rest| rest.split_once(". ").map_or("", |it| it.1));
        let mut words = counts.split([' ', ',', ';']).filter(|word| !word.is_empty());
        let (Some(passed), Some("passed"), Some(failed), Some("failed")) =
            (words.next().and_then(number), words.next(), words.next().and_then(number), words.next())
        else {
            return;
        };
        self.passed += passed;
        self.failed += failed;
    }
}

fn number(word: &str) -> Option<usize> {
    word.parse().ok()
}

/// The steps so far. One that fails does not keep the others from running: a run tells all that is wrong.
#[derive(Default)]
pub(crate) struct Steps {
    total: Tally,
    errors: Vec<anyhow::Error>,
}

impl Steps {
    /// Runs a step. A step that errs without counting a failure counts as one.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce(&mut Tally) -> anyhow::Result<()>) {
        self.step_within(LIMIT, name, work);
    }

    /// Runs a step whose commands are killed after the time limit.
    pub(crate) fn step_within(
        &mut self,
        limit: Duration,
        name: &str,
        work: impl FnOnce(&mut Tally) -> anyhow::Result<()>,
    ) {
        println!("\n== {name}");
        let started = Instant::now();
        let mut tally = Tally::default();
        let outcome = shell::limited(limit, || work(&mut tally)).with_context(|| name.to_owned());
        if outcome.is_err() && tally.failed == 0 {
            tally.failed = 1;
        }
        self.total.passed += tally.passed;
        self.total.failed += tally.failed;
        let word = if tally.failed == 0 { "ok" } else { "FAILED" };
        println!("-- {name}: {word} in {:.1} s", started.elapsed().as_secs_f64());
        self.errors.extend(outcome.err().or_else(|| (tally.failed > 0).then(|| anyhow::anyhow!("{name} failed"))));
    }

    /// Prints the totals, alone on the last line of stdout; an error is printed before it.
    pub(crate) fn finish(self) -> ExitCode {
        let Tally { passed, failed } = self.total;
        for error in &self.errors {
            println!("\nerror: {error:#}");
        }
        println!("\n{passed} passed, {failed} failed");
        if self.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_and_of_scripts_are_counted() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored",
            "3 passed, 4 failed",
            "running 3 tests",
            "all 9 passed",
        ] {
            tally.read(line);
        }
        assert_eq!((tally.passed, tally.failed), (16, 6));
    }

    #[test]
    fn steps_run_after_one_that_failed() {
        let (mut steps, mut has_run) = (Steps::default(), false);
        steps.step_within(Duration::from_millis(200), "first", |_| shell::run(&mut shell::command("sleep", &["600"])));
        assert!(format!("{:#}", steps.errors[0]).contains("first: sleep 600 was killed"), "{:?}", steps.errors);
        steps.step("second", |_| {
            has_run = true;
            Ok(())
        });
        assert!(has_run);
        assert_eq!(steps.finish(), ExitCode::FAILURE);
    }
}
