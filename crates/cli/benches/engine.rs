//! Engine time: every read tool, and reads right after a write, through `Registry::call`, without a wire. Run by `cargo xtask bench`; prints one JSON line
//! for each kind of call, in milliseconds of CPU over all threads: a busy machine then says nearly what a quiet one says.
#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]

#[path = "common/open.rs"]
mod open;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use quipu_core::Session;
use quipu_testkit::workload::{self, percentiles};
use quipu_tools::{Registry, RegistryOptions, Reply};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use open::open;

/// Writes before a read of each kind.
const WRITES: usize = 20;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let vault = PathBuf::from(arguments.next().context("usage: engine VAULT CALLS")?);
    let calls: usize = arguments.next().context("usage: engine VAULT CALLS")?.parse()?;

    let knowledge = Arc::new(open(&vault, "index")?.0);
    knowledge.start(&|_| {})?;
    let snapshot = knowledge.snapshot();
    let ids: Vec<String> = snapshot.files().map(|key| snapshot.note(key).id.to_string()).collect();
    let registry = Registry::new(knowledge, RegistryOptions::default());
    let session = Session::default();
    let call = |name: &str, arguments: Value| {
        let started = cpu_time();
        let tool = registry.find(name).map_err(|reply| anyhow!("{reply:?}"))?;
        let response = registry.call(tool, arguments, &session, None);
        let took = (cpu_time() - started).as_secs_f64() * 1e3;
        ensure!(matches!(response.reply, Reply::Answer(_)), "{name} failed: {:?}", response.reply);
        Ok(took)
    };
    for kind in workload::kinds(&ids, calls) {
        let times =
            kind.arguments.into_iter().map(|arguments| call(kind.tool, arguments)).collect::<Result<Vec<_>, _>>()?;
        let first = times[0];
        let (p50, p95) = percentiles(times);
        println!("{}", json!({ "label": kind.label, "p50": p50, "p95": p95, "first": first }));
    }
    // What reads share is made for one state of the vault: the first of them after a write pays for what must be rebuilt.
    let mut writes = Vec::new();
    for kind in workload::kinds(&ids, WRITES) {
        let mut times = Vec::with_capacity(WRITES);
        for (id, arguments) in ids.iter().step_by(ids.len().div_ceil(WRITES)).zip(kind.arguments) {
            call("get_node", json!({ "id": id }))?;
            let text = format!("Written {} times, and points at [[{}]].", writes.len(), ids[0]);
            writes.push(call("update_node", json!({ "id": id, "content": text }))?);
            times.push(call(kind.tool, arguments)?);
        }
        let (p50, p95) = percentiles(times);
        println!("{}", json!({ "label": kind.label, "after": "a write", "p50": p50, "p95": p95 }));
    }
    let (p50, p95) = percentiles(writes);
    println!("{}", json!({ "label": "update_node", "p50": p50, "p95": p95, "first": 0 }));
    Ok(())
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("CPU time is not negative")
}
