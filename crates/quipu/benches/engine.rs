//! Engine time: every read tool through `Registry::call`, without a wire. Run by `cargo xtask bench`; prints one JSON line
//! for each kind of call, in milliseconds of CPU over all threads: a busy machine then says nearly what a quiet one says.
#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]

#[path = "common/open.rs"]
mod open;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use quipu_core::Session;
use quipu_testkit::workload::{self, percentiles};
use quipu_tools::{Registry, RegistryOptions, Reply};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use open::open;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let vault = PathBuf::from(arguments.next().context("usage: engine VAULT CALLS")?);
    let calls: usize = arguments.next().context("usage: engine VAULT CALLS")?.parse()?;

    let knowledge = Arc::new(open(&vault)?.0);
    knowledge.start(&|_| {})?;
    let snapshot = knowledge.snapshot();
    let ids: Vec<String> = snapshot.notes().map(|key| snapshot.note(key).id.to_string()).collect();
    let registry = Registry::new(knowledge, RegistryOptions::default());
    let session = Session::default();
    for kind in workload::kinds(&ids, calls) {
        let mut times = Vec::with_capacity(calls);
        for arguments in kind.arguments {
            let started = cpu_time();
            let called = registry.call(kind.tool, arguments, &session);
            times.push((cpu_time() - started).as_secs_f64() * 1e3);
            ensure!(matches!(called.reply, Reply::Answer(_)), "{} failed: {:?}", kind.label, called.reply);
        }
        let first = times[0];
        let (p50, p95) = percentiles(times);
        println!("{}", json!({ "label": kind.label, "p50": p50, "p95": p95, "first": first }));
    }
    Ok(())
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("CPU time is not negative")
}
