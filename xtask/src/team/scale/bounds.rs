//! The bounds that servers must keep, and whether they did.

use std::fmt::Write as _;
use std::time::Duration;

/// A server has to answer so soon after its start, also while it still reads the notes.
const FIRST_ANSWER: Duration = Duration::from_secs(3);

/// The 95th percentile of the time until another server shows a write.
const VISIBLE: Duration = Duration::from_millis(150);

/// What was measured, beside its bound.
#[derive(Default)]
pub(super) struct Bounds {
    rows: String,
    pub(super) missed: Vec<String>,
}

impl Bounds {
    pub(super) fn first_answer(&mut self, of: &str, seconds: f64) {
        self.check(&format!("first answer, {of}"), seconds * 1000.0, FIRST_ANSWER);
    }

    pub(super) fn visible(&mut self, of: &str, p95_ms: f64) {
        self.check(&format!("visible on another server (p95), {of}"), p95_ms, VISIBLE);
    }

    /// What could not be measured, and what comes after it, has no row.
    pub(super) fn not_measured(&mut self, of: &str, error: &anyhow::Error) {
        println!("not measured: {of}: {error:#}");
        self.missed.push(format!("{of}: {error:#}"));
    }

    fn check(&mut self, what: &str, ms: f64, most: Duration) {
        let most = most.as_secs_f64() * 1000.0;
        let outcome = if ms <= most { "pass" } else { "**fail**" };
        let _ = writeln!(self.rows, "| {what} | {ms:.0} | {most:.0} | {outcome} |");
        if ms > most {
            self.missed.push(format!("{what}: {ms:.0} ms, not {most:.0} ms"));
        }
    }

    /// The bounds of a section; nothing if it has none.
    pub(super) fn table(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        format!("\n| bound | ms | at most | |\n|---|---|---|---|\n{}", self.rows)
    }
}
