//! Number and duration of the calls of each tool, in the Prometheus text format.
//!
//! Written by hand: the format is a few lines of text, and the libraries for it bring registries, macros and background
//! threads.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the histogram's buckets, in seconds: from a cached read to the longest wait for a first index.
const BUCKETS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The calls of every tool.
pub(super) struct ToolMeter(BTreeMap<&'static str, ToolCalls>);

#[derive(Default)]
struct ToolCalls {
    /// Calls per bucket; the last bucket has no upper end.
    within: [AtomicU64; BUCKETS.len() + 1],
    total_us: AtomicU64,
    failed: AtomicU64,
}

impl ToolMeter {
    /// Only for existing tools: names invented by clients would fill memory.
    pub(super) fn of(tools: impl Iterator<Item = &'static str>) -> Self {
        Self(tools.map(|tool| (tool, ToolCalls::default())).collect())
    }

    pub(super) fn called(&self, tool: &str, took: Duration, failed: bool) {
        let Some(calls) = self.0.get(tool) else { return };
        let bucket = BUCKETS.partition_point(|end| *end < took.as_secs_f64());
        calls.within[bucket].fetch_add(1, Ordering::Relaxed);
        calls.total_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        calls.failed.fetch_add(u64::from(failed), Ordering::Relaxed);
    }

    /// Leaves out tools without calls.
    pub(super) fn write(&self, page: &mut String) {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let called = || {
            let with_counts = self.0.iter().map(|(tool, calls)| (tool, calls, calls.within.each_ref().map(count)));
            with_counts.filter(|(.., within)| within.iter().any(|number| *number > 0))
        };
        page.push_str("# HELP quipu_tool_seconds How long calls of a tool took, waiting included.\n");
        page.push_str("# TYPE quipu_tool_seconds histogram\n");
        for (tool, calls, within) in called() {
            let mut below = 0;
            for (number, end) in
                within.iter().zip(BUCKETS.map(|end| end.to_string()).iter().chain([&"+Inf".to_owned()]))
            {
                below += number;
                let _ = writeln!(page, "quipu_tool_seconds_bucket{{tool=\"{tool}\",le=\"{end}\"}} {below}");
            }
            let seconds = Duration::from_micros(count(&calls.total_us)).as_secs_f64();
            let _ = writeln!(page, "quipu_tool_seconds_sum{{tool=\"{tool}\"}} {seconds}");
            let _ = writeln!(page, "quipu_tool_seconds_count{{tool=\"{tool}\"}} {below}");
        }
        page.push_str("# HELP quipu_tool_failures_total Calls of a tool that failed.\n");
        page.push_str("# TYPE quipu_tool_failures_total counter\n");
        for (tool, calls, _) in called() {
            let _ = writeln!(page, "quipu_tool_failures_total{{tool=\"{tool}\"}} {}", count(&calls.failed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_only_known_tools_are_counted() {
        let meter = ToolMeter::of(["search", "get_node"].into_iter());
        meter.called("search", Duration::from_micros(500), false);
        meter.called("search", Duration::from_millis(30), true);
        meter.called("search", Duration::from_secs(60), false);
        meter.called("made up", Duration::from_secs(1), true);
        let mut page = String::new();
        meter.write(&mut page);
        for line in [
            r#"quipu_tool_seconds_bucket{tool="search",le="0.0005"} 1"#,
            r#"quipu_tool_seconds_bucket{tool="search",le="0.05"} 2"#,
            r#"quipu_tool_seconds_bucket{tool="search",le="30"} 2"#,
            r#"quipu_tool_seconds_bucket{tool="search",le="+Inf"} 3"#,
            r#"quipu_tool_seconds_sum{tool="search"} 60.0305"#,
            r#"quipu_tool_seconds_count{tool="search"} 3"#,
            r#"quipu_tool_failures_total{tool="search"} 1"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
        assert!(!page.contains("get_node") && !page.contains("made up"));
    }
}
