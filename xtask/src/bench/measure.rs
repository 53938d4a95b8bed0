//! The measurements, each on a vault of one size. They run in the order written here: the first makes the index that the
//! others use.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::client::Client;
use quipu_testkit::{generate, workload};
use serde_json::{Value, json};

use super::table::{Budget, Table};
use crate::shell::{self, cargo};

pub(super) const SEED: u64 = 42;
pub(super) const CALLS: usize = 200;
pub(super) const STARTS: u32 = 5;

/// For the first call of a kind after a start, a saved file, and the start itself at 100,000 notes: a person notices no delay.
pub(super) const FIRST_BUDGET: Budget = Some([150.0; 3]);
const READ_BUDGET: Budget = Some([2.0, 5.0, 20.0]);
/// For a query by one field, which is in memory.
const QUERY_BUDGET: Budget = Some([1.0, 2.0, 5.0]);
pub(super) const MEMORY_BUDGET: Budget = Some([120.0, 200.0, 800.0]);

/// A generated vault.
pub(super) struct Vault {
    folder: PathBuf,
    /// Sorted. Generated paths are in lower case, so they are ids too.
    ids: Vec<String>,
}

impl Vault {
    pub(super) fn generate(home: &Path, notes: usize) -> anyhow::Result<Self> {
        let folder = home.join("vault");
        let mut ids = generate::vault(&folder, notes, SEED)?;
        ids.sort();
        Ok(Self { folder, ids })
    }

    fn notes(&self) -> usize {
        self.ids.len()
    }

    fn command(&self, binary: &Path, name: &str) -> Command {
        let mut command = Command::new(binary);
        // Full vectors of 100,000 notes take an hour, and are measured by what one text takes (docs/embedding.md).
        command.arg(name).arg(&self.folder).env_remove("QUIPU_VAULT").env("QUIPU_EMBEDDING_PROVIDER", "none");
        command.stderr(Stdio::null());
        command
    }

    fn server(&self, binary: &Path) -> anyhow::Result<Client> {
        let mut server = Client::spawn(&mut self.command(binary, "serve"))?;
        // The first call waits for the index.
        server.call("get_node", &json!({ "id": self.ids[0] }))?.value().context("the first call failed")?;
        Ok(server)
    }
}

/// `quipu index` without an index: with the default settings, which add coarse vectors, then by words and links only. The others
/// use the index that the second leaves.
pub(super) fn first_index(binary: &Path, vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let mut index = |label: &str, provider: &str, budget| {
        let (started, cpu) = (Instant::now(), children_cpu_seconds()?);
        shell::output(vault.command(binary, "index").env("QUIPU_EMBEDDING_PROVIDER", provider))?;
        let wall = started.elapsed().as_secs_f64();
        table.add(&format!("{label}, CPU s"), vault.notes(), children_cpu_seconds()? - cpu, budget);
        table.add(&format!("{label}, wall s"), vault.notes(), wall, None);
        anyhow::Ok(())
    };
    index("first index with coarse vectors", "builtin", None)?;
    fs::remove_dir_all(vault.folder.join(".quipu"))?;
    index("first index", "none", Some([0.4, 5.0, 60.0]))
}

/// The first search of documents after `quipu index`, by a server that has just started.
pub(super) fn first_search_after_index(binary: &Path, vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let mut server = vault.server(binary)?;
    let started = Instant::now();
    let answer = server.call("search_docs", &json!({ "query": generate::word(30) }))?;
    let took = started.elapsed().as_secs_f64() * 1e3;
    answer.value().with_context(|| answer.message.to_string())?;
    table.add("first search_docs after `quipu index`: over stdio", vault.notes(), took, FIRST_BUDGET);
    ensure!(server.close()?.success(), "the server ended badly");
    Ok(())
}

/// From starting `quipu serve` on an indexed vault to the answer of the first call.
pub(super) fn warm_start(binary: &Path, vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let mut times = Vec::new();
    let cpu = children_cpu_seconds()?;
    for _ in 0..STARTS {
        let started = Instant::now();
        let server = vault.server(binary)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(server.close()?.success(), "the server ended badly");
    }
    let (middle, _) = workload::percentiles(times);
    let cpu = (children_cpu_seconds()? - cpu) * 1e3 / f64::from(STARTS);
    table.add("warm start, CPU until the end", vault.notes(), cpu, None);
    table.add("warm start to first answer", vault.notes(), middle, Some([50.0, 150.0, 150.0]));
    Ok(())
}

/// Every read tool over stdio, and what the process holds in memory before and after.
pub(super) fn over_the_wire(binary: &Path, vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let mut server = vault.server(binary)?;
    table.add("resident after start, MB", vault.notes(), resident_megabytes(server.pid())?, MEMORY_BUDGET);
    for kind in workload::kinds(&vault.ids, CALLS) {
        let mut times = Vec::new();
        for arguments in &kind.arguments {
            let started = Instant::now();
            let answer = server.call(kind.tool, arguments)?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            answer.value().with_context(|| format!("{}: {}", kind.label, answer.message))?;
        }
        let first = times[0];
        let (p50, p95) = workload::percentiles(times);
        let label = format!("{}: over stdio, p50 / p95", kind.label);
        table.add_percentiles(&label, vault.notes(), (p50, p95), None);
        if shows(first, p95) {
            table.add(&format!("{}: over stdio, first call", kind.label), vault.notes(), first, None);
        }
    }
    table.add("resident after all calls, MB", vault.notes(), resident_megabytes(server.pid())?, MEMORY_BUDGET);
    ensure!(server.close()?.success(), "the server ended badly");
    Ok(())
}

/// The tools whose first call needs a table of all notes, each called right after a start of its own, median of the starts.
/// The first server that ran long enough has stored the lines.
pub(super) fn first_calls(binary: &Path, vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let stem = |id: &str| id.rsplit('/').next().unwrap_or(id).trim_end_matches(".md").to_owned();
    let middle = stem(&vault.ids[vault.ids.len() / 2]);
    let calls = [
        ("search_docs", "search_docs", json!({ "query": generate::word(30) })),
        ("resolve_nodes, exact", "resolve_nodes", json!({ "names": [middle], "strategy": "exact" })),
        ("resolve_nodes, fuzzy", "resolve_nodes", json!({ "names": [&middle[1..]] })),
    ];
    for (label, tool, arguments) in calls {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let mut server = vault.server(binary)?;
            let started = Instant::now();
            let answer = server.call(tool, &arguments)?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            answer.value().with_context(|| format!("{label}: {}", answer.message))?;
            ensure!(server.close()?.success(), "the server ended badly");
        }
        let (middle, _) = workload::percentiles(times);
        table.add(&format!("first {label} after a start: over stdio"), vault.notes(), middle, FIRST_BUDGET);
    }
    Ok(())
}

/// From the end of another program's write to the first call that sees it.
pub(super) fn saved_file(binary: &Path, vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let mut server = vault.server(binary)?;
    let mut times = Vec::new();
    for index in 0..10 {
        // An editor's pace: changes that come at once are indexed together.
        thread::sleep(Duration::from_millis(400));
        let id = format!("area0/folder0/saved-{index}.md");
        fs::write(vault.folder.join(&id), format!("Saved by another program, pointing at [[{}]].\n", vault.ids[0]))?;
        let started = Instant::now();
        while server.call("nodes_exist", &json!({ "ids": [id] }))?.value().context("nodes_exist")?[&id] != true {
            ensure!(started.elapsed() < Duration::from_secs(30), "{id} is not seen");
            thread::sleep(Duration::from_millis(1));
        }
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let (_, p95) = workload::percentiles(times);
    table.add("saved file visible, p95", vault.notes(), p95, FIRST_BUDGET);
    ensure!(server.close()?.success(), "the server ended badly");
    Ok(())
}

/// Every read tool in one process, without a wire; then the same after a write each.
pub(super) fn engine(vault: &Vault, table: &mut Table) -> anyhow::Result<()> {
    let mut bench = cargo(&["bench", "--quiet", "--package", "quipu", "--bench", "engine", "--"]);
    let figures = shell::output(bench.arg(&vault.folder).arg(CALLS.to_string()))?;
    let mut usual: HashMap<String, f64> = HashMap::new();
    for line in figures.lines().filter(|line| line.starts_with('{')) {
        let figure: Value = serde_json::from_str(line)?;
        let label = figure["label"].as_str().context("label")?;
        let time = |key: &str| figure[key].as_f64().context("a time");
        let both = (time("p50")?, time("p95")?);
        if figure["after"].is_string() {
            if shows(both.0, usual[label]) {
                let name = format!("{label}, after a write: engine CPU, p50 / p95");
                table.add_percentiles(&name, vault.notes(), both, READ_BUDGET);
            }
            continue;
        }
        let budget = if label.starts_with("query_nodes by") { QUERY_BUDGET } else { READ_BUDGET };
        table.add_percentiles(&format!("{label}: engine CPU, p50 / p95"), vault.notes(), both, budget);
        if shows(time("first")?, both.1) {
            table.add(&format!("{label}: engine CPU, first call"), vault.notes(), time("first")?, None);
        }
        usual.insert(label.to_owned(), both.1);
    }
    Ok(())
}

/// Some tables are made when first asked for, or after a write; printed only if they take noticeable time.
fn shows(first: f64, p95: f64) -> bool {
    first > 1.0 + 5.0 * p95
}

/// CPU time of every child that has ended, all its threads included: fields 16 and 17 of `/proc/self/stat`, in hundredths.
pub(super) fn children_cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The program's name, which may hold spaces, ends at the last parenthesis; field 3 follows it.
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).context("stat")?.parse::<f64>().context("stat");
    Ok((ticks(16)? + ticks(17)?) / 100.0)
}

pub(super) fn resident_megabytes(pid: u32) -> anyhow::Result<f64> {
    megabytes_of(pid, "VmRSS:")
}

/// A size in `/proc/PID/status`.
pub(super) fn megabytes_of(pid: u32, name: &'static str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(name)).context(name)?;
    Ok(line.split_whitespace().nth(1).context(name)?.parse::<f64>()? / 1024.0)
}
