//! One server, many graphs.

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
use super::{Measurement, exponents, started, without_meaning};
use crate::load::client::Client;
use crate::peers::http::Server;

const COUNTS: [usize; 3] = [1, 100, 1000];

/// Notes of each graph.
const NOTES: usize = 20;

/// Folders with a server each: more would need more memory than a machine has.
const MOST_FOLDERS: usize = 100;

/// Clients that ask, one graph after the other.
const CLIENTS: usize = 8;

pub(super) fn measure(of: &Measurement<'_>) -> anyhow::Result<String> {
    let Measurement { binary, url, database, .. } = *of;
    let mut page = format!(
        "One server, graphs of {NOTES} notes, {CLIENTS} clients that each call a graph after the other. The first call \
         opens the graph. The last columns are of as many folders with a server each, whose first call includes its start; there \
         are at most {MOST_FOLDERS}.\n\n| graphs | first call p50 ms | p99 ms | next call p50 ms | p99 ms | resident MB | KB a graph | \
         embedded: first call p50 ms | p99 ms | next call p50 ms | resident MB, all servers \
         |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
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
        drop(server);
        let of_graph = resident.saturating_sub(before) / count / 1000;
        let embedded = if count <= MOST_FOLDERS { Some(folders(binary, count)?) } else { None };
        let of_folders = embedded.map_or_else(
            || "– | – | – | –".to_owned(),
            |[first, slowest, next, resident]| format!("{first:.1} | {slowest:.1} | {next:.1} | {resident:.0}"),
        );
        let values =
            [percentile(&first, 0.5), percentile(&first, 0.99), percentile(&next, 0.5), percentile(&next, 0.99)];
        let [a, b, c, d] = values;
        let e = resident as f64 / 1e6;
        page += &format!("| {count} | {a:.1} | {b:.1} | {c:.1} | {d:.1} | {e:.0} | {of_graph} | {of_folders} |\n");
        rows.push((count as f64, [a, b, c, d, e]));
        of.save("Graphs", &page)?;
    }
    page += &format!("| exponent | {} | | | | | |\n", exponents(&rows));
    Ok(page)
}

/// A server for each folder: the time from its start to its first answer, p50 and p99, that of the next call, and the memory of
/// all servers in MB.
fn folders(binary: &Path, count: usize) -> anyhow::Result<[f64; 4]> {
    let (mut servers, mut first, mut next) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let folder = without_meaning(tempfile::tempdir()?)?;
        for note in 0..NOTES {
            std::fs::write(folder.path().join(format!("note{note}.md")), text(note, number))?;
        }
        let begun = Instant::now();
        let (server, _) = Server::start_in(binary, &[], folder, tempfile::tempdir()?)?;
        await_notes(&server.url)?;
        first.push(begun.elapsed());
        let begun = Instant::now();
        await_notes(&server.url)?;
        next.push(begun.elapsed());
        servers.push(server);
    }
    let resident = servers.iter().map(|server| crate::load::resident_bytes(server.process.id()));
    let resident = resident.sum::<anyhow::Result<usize>>()? as f64 / 1e6;
    Ok([percentile(&first, 0.5), percentile(&first, 0.99), percentile(&next, 0.5), resident])
}

fn text(note: usize, graph: usize) -> String {
    format!("# Note {note} of graph {graph}\n\nSome words, and a link to [[note{}]].\n", note / 2)
}

fn create(database: &Arc<PostgresDatabase>, number: usize) -> anyhow::Result<()> {
    let vault = PostgresVault::new(database.clone(), &database.create_graph(&name(number))?);
    let note = |note: usize| -> anyhow::Result<FileChange> {
        let bytes = text(note, number).into_bytes();
        Ok(FileChange::Create { path: VaultPath::parse(&format!("note{note}.md"))?, bytes })
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
            await_notes(&url(&name(number)))?;
            took.push(asked.elapsed());
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        let took = clients.into_iter().map(|client| client.join().expect("a client returns its errors"));
        Ok(took.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Calls until an answer covers all notes.
fn await_notes(url: &str) -> anyhow::Result<()> {
    let asked = Instant::now();
    loop {
        let mut client = Client::connect_as("graphs", url, "", Duration::from_secs(60))?;
        let listed = client.call("list_nodes", &json!({ "limit": 1 }))?;
        if listed["structuredContent"]["total"] == NOTES {
            return Ok(());
        }
        ensure!(asked.elapsed() < Duration::from_secs(60), "{listed}");
    }
}
