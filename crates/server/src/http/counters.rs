//! Counters of HTTP connections and requests for `/metrics`.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) accepted: Count,
    pub(super) evicted: Count,
    pub(super) over_streams: Count,
    pub(super) revoked: Count,
    pub(super) unread: Count,
    pub(super) limited: Count,
    /// Responses by the first digit of their status.
    answers: [Count; 6],
}

/// A number that only grows.
#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn answered(&self, status: u16) {
        if let Some(count) = self.answers.get(usize::from(status / 100)) {
            count.add();
        }
    }

    pub(super) fn write(&self, page: &mut String, open: usize) {
        let mut family = |name: &str, kind: &str, what: &str, values: &[(&str, u64)]| {
            let _ = write!(page, "# HELP {name} {what}\n# TYPE {name} {kind}\n");
            for (label, value) in values {
                let _ = writeln!(page, "{name}{label} {value}");
            }
        };
        family("quipu_http_connections", "gauge", "Open connections.", &[("", open as u64)]);
        family(
            "quipu_http_connections_total",
            "counter",
            "Connections accepted since the start.",
            &[("", self.accepted.get())],
        );
        let closed = [
            ("{why=\"full\"}", self.evicted.get()),
            ("{why=\"streams\"}", self.over_streams.get()),
            ("{why=\"revoked\"}", self.revoked.get()),
            ("{why=\"unread\"}", self.unread.get()),
        ];
        let what = "Connections closed: too many in all, too many event streams of one client, a token that is no \
                    longer valid, or a response that its client did not read.";
        family("quipu_http_closed_total", "counter", what, &closed);
        family(
            "quipu_http_limited_total",
            "counter",
            "Requests rejected because of a limit.",
            &[("", self.limited.get())],
        );
        let labels = ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| format!("{{status=\"{class}\"}}"));
        let answers: Vec<(&str, u64)> =
            labels.iter().zip(&self.answers[1..]).map(|(label, count)| (label.as_str(), count.get())).collect();
        family("quipu_http_answers_total", "counter", "Responses by class of status.", &answers);
    }
}
