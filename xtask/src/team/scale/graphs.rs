//! One server, many graphs.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_store_postgres::{PostgresDatabase, PostgresVault};
use serde_json::json;

use super::load::percentile;
use super::{exponents, started};
use crate::load::client::Client;

const COUNTS: [usize; 3] = [1, 100, 1000];

/// Notes of each graph.
const NOTES: usize = 20;

/// Clients that ask, one graph after the other.
const CLIENTS: usize = 8;

pub(super) fn measure(
    binary: &Path,
    url: &str,
    database: &Arc<PostgresDatabase>,
    page: &mut String,
) -> anyhow::Result<()> {
    let _ = write!(
        page,
        "\n## Graphs\nOne server, graphs of {NOTES} notes, {CLIENTS} clients that each call a graph after the other. The first call \
         opens the graph.\n\n| graphs | first call p50 ms | p99 ms | next call p50 ms | p99 ms | resident MB | KB a graph \
         |\n|---|---|---|---|---|---|---|\n"
    );
    let mut created = 0;
    let mut rows = Vec::new();
    for count in COUNTS {
        for number in created..count {
            create(database, number)?;
        }
        created = count;
        let server = started(binary, url)?;
        server.await_listening()?;
        let before = server.resident_bytes()?;
        let first = call_each(&|graph| server.url_of(graph), count)?;
        let next = call_each(&|graph| server.url_of(graph), count)?;
        let resident = server.resident_bytes()?;
        let values =
            [percentile(&first, 0.5), percentile(&first, 0.99), percentile(&next, 0.5), percentile(&next, 0.99)];
        let [a, b, c, d] = values;
        let of_graph = resident.saturating_sub(before) / count / 1000;
        let _ =
            writeln!(page, "| {count} | {a:.1} | {b:.1} | {c:.1} | {d:.1} | {} | {of_graph} |", resident / 1_000_000);
        rows.push((count as f64, values));
    }
    let _ = writeln!(page, "| exponent | {} | | |", exponents(&rows));
    Ok(())
}

fn create(database: &Arc<PostgresDatabase>, number: usize) -> anyhow::Result<()> {
    let vault = PostgresVault::new(database.clone(), &database.create_graph(&name(number))?);
    let note = |note: usize| -> anyhow::Result<FileChange> {
        let bytes = format!("# Note {note} of graph {number}\n\nSome words, and a link to [[note{}]].\n", note / 2);
        Ok(FileChange::Create { path: VaultPath::parse(&format!("note{note}.md"))?, bytes: bytes.into_bytes() })
    };
    vault.apply(&(0..NOTES).map(note).collect::<anyhow::Result<Vec<_>>>()?)?;
    Ok(())
}

fn name(number: usize) -> String {
    format!("graph{number}")
}

/// One call to each graph; how long each took until it covered all notes.
fn call_each(url: &(dyn Fn(&str) -> String + Sync), count: usize) -> anyhow::Result<Vec<Duration>> {
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<Duration>> {
        let mut took = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(took);
            }
            let asked = Instant::now();
            loop {
                let mut client = Client::connect_as("graphs", &url(&name(number)), "", Duration::from_secs(60))?;
                let listed = client.call("list_nodes", &json!({ "limit": 1 }))?;
                if listed["structuredContent"]["total"] == NOTES {
                    break;
                }
                ensure!(asked.elapsed() < Duration::from_secs(60), "{listed}");
            }
            took.push(asked.elapsed());
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        let took = clients.into_iter().map(|client| client.join().expect("a client returns its errors"));
        Ok(took.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}
