//! Search by words, meaning and links, on a vault of as many sections: engine and query embedding apart, and what a server holds
//! in memory with the model and the vectors loaded.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::client::Client;
use quipu_testkit::{generate, workload};
use serde_json::{Value, json};

use super::measure::{CALLS, FIRST_BUDGET, MEMORY_BUDGET, SEED, STARTS, resident_megabytes};
use super::table::{Budget, Table};
use crate::shell::{self, cargo};

/// Sections of a generated note.
const SECTIONS_A_NOTE: usize = 3;

const WITHOUT: Budget = Some([5.0, 10.0, 25.0]);
const WITH: Budget = Some([25.0, 30.0, 50.0]);

pub(super) fn run(binary: &Path, home: &Path, sections: usize, table: &mut Table) -> anyhow::Result<()> {
    let vault = home.join("sections");
    generate::vault(&vault, sections.div_ceil(SECTIONS_A_NOTE), SEED)?;
    let mut index = Command::new(binary);
    index.arg("index").arg("--no-embed").arg(&vault).env_remove("QUIPU_VAULT");
    shell::output(index.stderr(Stdio::null()))?;
    let mut bench = cargo(&["bench", "--quiet", "--package", "quipu", "--bench", "search", "--"]);
    let figures = shell::output(bench.arg(&vault).arg(CALLS.to_string()))?;
    for line in figures.lines().filter(|line| line.starts_with('{')) {
        let figure: Value = serde_json::from_str(line)?;
        if let Some(passages) = figure["passages"].as_f64() {
            table.add("passages with vectors", sections, passages, None);
            continue;
        }
        let label = figure["label"].as_str().context("label")?;
        let budget = match label {
            label if label.contains("without query embedding") => WITHOUT,
            label if label.contains("with query embedding") => WITH,
            _ => None,
        };
        let time = |key: &str| figure[key].as_f64().context("a time");
        let name = format!("{label}: engine CPU, p50 / p95");
        table.add_percentiles(&name, sections, (time("p50")?, time("p95")?), budget);
    }
    resident(binary, &vault, sections, table)?;
    starts(binary, &vault, sections, table)
}

/// A start with the default settings and stored vectors: the first answer, and right after it the first search and a saved file,
/// while the background reads vectors and lines.
fn starts(binary: &Path, vault: &Path, sections: usize, table: &mut Table) -> anyhow::Result<()> {
    let (mut answers, mut searches, mut saves) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..STARTS {
        let mut started = Instant::now();
        let mut since_last = || {
            let took = started.elapsed().as_secs_f64() * 1e3;
            started = Instant::now();
            took
        };
        let mut server = server(binary, vault)?;
        answers.push(since_last());
        let answer = server.call("search", &json!({ "query": generate::word(30) }))?;
        searches.push(since_last());
        answer.value().with_context(|| answer.message.to_string())?;
        let id = format!("saved-after-start-{number}.md");
        fs::write(vault.join(&id), format!("Saved after start {number}.\n"))?;
        while server.call("nodes_exist", &json!({ "ids": [id] }))?.value().context("nodes_exist")?[&id] != true {
            thread::sleep(Duration::from_millis(1));
        }
        saves.push(since_last());
        ensure!(server.close()?.success(), "the server ended badly");
    }
    for (what, times) in [
        ("warm start to first answer", answers),
        ("first search after a start: over stdio", searches),
        ("saved file visible after a start", saves),
    ] {
        let (middle, _) = workload::percentiles(times);
        table.add(&format!("{what}, with model and vectors"), sections, middle, FIRST_BUDGET);
    }
    Ok(())
}

/// A server with the default settings that has answered its first call.
fn server(binary: &Path, vault: &Path) -> anyhow::Result<Client> {
    let mut command = Command::new(binary);
    command.arg("serve").arg(vault).env_remove("QUIPU_VAULT").stderr(Stdio::null());
    let mut server = Client::spawn(&mut command)?;
    server.call("random_node", &json!({}))?.value().context("the first call failed")?;
    Ok(server)
}

/// What a server of the same vault holds before the first search by meaning, and after.
fn resident(binary: &Path, vault: &Path, sections: usize, table: &mut Table) -> anyhow::Result<()> {
    let mut server = server(binary, vault)?;
    let before = resident_megabytes(server.pid())?;
    table.add("resident before the first search, MB", sections, before, MEMORY_BUDGET);
    for rank in 0..50 {
        let answer = server.call("search", &json!({ "query": generate::word(rank * 7) }))?;
        answer.value().with_context(|| answer.message.to_string())?;
    }
    // The background reads the lines of all notes, too.
    let mut held = resident_megabytes(server.pid())?;
    loop {
        thread::sleep(Duration::from_secs(2));
        let now = resident_megabytes(server.pid())?;
        if now <= held * 1.01 {
            break;
        }
        held = now;
    }
    let after = resident_megabytes(server.pid())?;
    table.add("resident with model, vectors and lines, MB", sections, after, MEMORY_BUDGET);
    ensure!(server.close()?.success(), "the server ended badly");
    Ok(())
}
