//! `cargo xtask team --scale`: what more servers, more notes and more graphs cost, beside the embedded store in the same run.
//!
//! Database, servers and clients share one machine, so more servers show what sharing costs, not what more machines give.

mod bounds;
mod entities;
mod graphs;
mod load;
mod vectors;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_store_postgres::{PostgresDatabase, PostgresVault};
use quipu_testkit::generate;
use serde_json::json;
use tempfile::TempDir;

use super::cluster::{self, Cluster};
use super::server::TeamServer;
use crate::load::client::Client;
use crate::peers::http::Server;
use crate::postgres;
use crate::shell;
use bounds::Bounds;

/// The page that `--write` replaces.
const PAGE: &str = "docs/team-measurements.md";

/// Seed of the generated notes.
const SEED: u64 = 5;

/// Notes of the graph under load, and servers that share it.
const NOTES_UNDER_LOAD: usize = 1000;
const SERVERS: [usize; 3] = [1, 2, 4];

/// Notes written by one transaction.
const AT_ONCE: usize = 500;

/// Writes whose visibility on another server is measured.
const WRITES: usize = 60;

pub(crate) fn run(binary: &Path, sizes: &[usize], write: bool) -> anyhow::Result<()> {
    let programs = postgres::installed()?;
    let cluster = Cluster::alone(&programs)?;
    let url = cluster::url(&cluster.ports()[..1]);
    let database = Arc::new(PostgresDatabase::connect(&url)?);
    database.migrate()?;
    let (mut page, mut bounds) = (String::new(), Bounds::default());
    servers(binary, &url, &database, &mut page)?;
    notes(binary, &cluster, &database, sizes, &mut page, &mut bounds)?;
    entities::measure(binary, &url, &database, sizes, &mut page, &mut bounds)?;
    graphs::measure(binary, &url, &database, &mut page)?;
    vectors::measure(binary, &programs.join("bin/psql"), &url, &database, sizes, &mut page)?;
    let page = format!("{}{}{page}", intro(binary), bounds.table());
    println!("{page}");
    if write {
        fs::write(shell::root().join(PAGE), page)?;
    }
    bounds.ensure_kept()
}

fn intro(binary: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let profile = if binary.to_string_lossy().contains("release") { " --release" } else { "" };
    format!(
        "# Measurements of servers on PostgreSQL\n\nWritten by `cargo xtask team --scale{profile} --write`. Database, servers and \
         clients ran on one machine with {cores} cores; commits waited for its disk. Search by meaning was off. Exponents say how a \
         value grows with the number in the first column: 1 is linear, 0 is constant.\n"
    )
}

/// Generated notes of a folder, in a new graph too.
struct Prepared {
    folder: TempDir,
    notes: Vec<String>,
    graph: String,
}

fn prepare(database: &Arc<PostgresDatabase>, graph: &str, count: usize) -> anyhow::Result<Prepared> {
    let folder = without_meaning(tempfile::tempdir()?)?;
    let notes = generate::vault(folder.path(), count, SEED)?;
    push(database, graph, folder.path(), &notes)?;
    Ok(Prepared { folder, notes, graph: graph.to_owned() })
}

/// Creates a graph with notes of a folder.
fn push(database: &Arc<PostgresDatabase>, graph: &str, folder: &Path, notes: &[String]) -> anyhow::Result<()> {
    let vault = PostgresVault::new(database.clone(), &database.create_graph(graph)?);
    for paths in notes.chunks(AT_ONCE) {
        let create = |path: &String| -> anyhow::Result<FileChange> {
            Ok(FileChange::Create { path: VaultPath::parse(path)?, bytes: fs::read(folder.join(path))? })
        };
        vault.apply(&paths.iter().map(create).collect::<anyhow::Result<Vec<_>>>()?)?;
    }
    Ok(())
}

/// Throughput and latency by number of servers.
fn servers(binary: &Path, url: &str, database: &Arc<PostgresDatabase>, page: &mut String) -> anyhow::Result<()> {
    let Prepared { folder, notes, graph } = prepare(database, "load", NOTES_UNDER_LOAD)?;
    let _ = write!(
        page,
        "\n## Servers\n{} clients, {NOTES_UNDER_LOAD} notes; a read is `get_node` or `search_docs`, a write `edit_node` or \
         `create_entity`.\n\n| servers | reads/s | p50 ms | p99 ms | writes/s | p50 ms | p99 ms | connections |\n|---|---|---|---|---|---|---|---|\n",
        load::CLIENTS
    );
    let mut row = |name: &str, urls: &[String], connections: &dyn Fn() -> anyhow::Result<String>| {
        let reads = load::run(urls, &notes, load::Kind::Read)?;
        let writes = load::run(urls, &notes, load::Kind::Write)?;
        let _ = writeln!(page, "| {name} | {reads} | {writes} | {} |", connections()?);
        anyhow::Ok(())
    };
    for count in SERVERS {
        let servers = (0..count).map(|_| started(binary, url)).collect::<anyhow::Result<Vec<_>>>()?;
        let urls: Vec<String> = servers.iter().map(|server| server.url_of(&graph)).collect();
        for url in &urls {
            await_loaded(url, NOTES_UNDER_LOAD)?;
        }
        // Of the pool, and one that listens.
        let connections = || {
            let open = servers.iter().map(|server| server.metric("quipu_database_connections"));
            anyhow::Ok((open.sum::<anyhow::Result<f64>>()? + count as f64).to_string())
        };
        row(&count.to_string(), &urls, &connections)?;
    }
    let (server, _) = Server::start_in(binary, &[], folder, tempfile::tempdir()?)?;
    await_loaded(&server.url, NOTES_UNDER_LOAD)?;
    row("embedded store", std::slice::from_ref(&server.url), &|| Ok("0".to_owned()))
}

/// Start, memory and visibility by number of notes.
fn notes(
    binary: &Path,
    cluster: &Cluster,
    database: &Arc<PostgresDatabase>,
    sizes: &[usize],
    page: &mut String,
    bounds: &mut Bounds,
) -> anyhow::Result<()> {
    page.push_str(
        "\n## Notes\nThe first answer is that of `list_nodes` to a client that connects as soon as the server listens; it may \
         cover a part of the notes. A write is visible when another server, asked after the acknowledgement, has returned \
         it. The last columns are of a folder.\n\n| notes | database MB | first answer s | loaded s | resident MB | visible p50 ms | \
         visible p95 ms | embedded: first answer s | loaded s | resident MB |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let url = cluster::url(&cluster.ports()[..1]);
    let mut rows: Vec<(f64, [f64; 9])> = Vec::new();
    for size in sizes {
        // Not the graph under load, which has more than these notes.
        let before = database_bytes(cluster)?;
        let prepared = prepare(database, &format!("n{size}"), *size)?;
        let stored = database_bytes(cluster)? - before;
        let team = start_of_team(binary, &url, &prepared, *size)?;
        let embedded = start_of_embedded(binary, prepared, *size)?;
        let Start { first, loaded, resident } = team.start;
        let (p50, p95) = (load::percentile(&team.visible, 0.5), load::percentile(&team.visible, 0.95));
        let of_team = [stored / 1e6, first, loaded, resident / 1e6, p50, p95];
        let [a, b, c, d, e, f] = of_team;
        let Start { first: g, loaded: h, resident: i } = Start { resident: embedded.resident / 1e6, ..embedded };
        let _ = writeln!(
            page,
            "| {size} | {a:.0} | {b:.2} | {c:.1} | {d:.0} | {e:.1} | {f:.1} | {g:.2} | {h:.1} | {i:.0} |"
        );
        bounds.first_answer(&format!("{size} notes"), first);
        bounds.visible(&format!("{size} notes"), p95);
        rows.push((*size as f64, [a, b, c, d, e, f, g, h, i]));
    }
    let _ = writeln!(page, "| exponent | {} |", exponents(&rows));
    if let (Some((few, of_few)), Some((many, of_many))) = (rows.first(), rows.last())
        && few < many
    {
        let each = |column: usize| (of_many[column] - of_few[column]) / (many - few) * 1e5;
        let _ = write!(
            page,
            "\n100,000 more notes need {:.0} MB more in each server that has the graph open, {:.0} MB in a server of the folder, and \
             {:.0} MB in the database.\n",
            each(3),
            each(8),
            each(0)
        );
    }
    Ok(())
}

/// The size of the database, after what was written is where it stays.
fn database_bytes(cluster: &Cluster) -> anyhow::Result<f64> {
    cluster.sql("CHECKPOINT")?;
    Ok(cluster.sql("SELECT pg_database_size(current_database())")?.trim().parse()?)
}

/// A folder whose server makes no vectors, as the servers on the database.
fn without_meaning(folder: TempDir) -> anyhow::Result<TempDir> {
    fs::create_dir(folder.path().join(".quipu"))?;
    fs::write(folder.path().join(".quipu/config.toml"), "[embedding]\nprovider = \"none\"\n")?;
    Ok(folder)
}

/// How each value grows between the first and the last size, as cells of a row.
fn exponents<const COLUMNS: usize>(rows: &[(f64, [f64; COLUMNS])]) -> String {
    let exponent = |column: usize| match (rows.first(), rows.last()) {
        (Some((first, at_first)), Some((last, at_last))) if first < last && at_first[column] > 0.0 => {
            format!("{:.2}", (at_last[column] / at_first[column]).ln() / (last / first).ln())
        }
        _ => "–".to_owned(),
    };
    (0..COLUMNS).map(exponent).collect::<Vec<_>>().join(" | ")
}

/// The start of a server, in seconds and bytes.
struct Start {
    first: f64,
    loaded: f64,
    resident: f64,
}

struct Team {
    start: Start,
    /// From the acknowledgement until another server has returned the write.
    visible: Vec<Duration>,
}

fn start_of_team(binary: &Path, url: &str, prepared: &Prepared, size: usize) -> anyhow::Result<Team> {
    let begun = Instant::now();
    let server = TeamServer::start(binary, url.to_owned(), Vec::new())?;
    let (first, loaded) = watch_start(begun, &server.url_of(&prepared.graph), size)?;
    let resident = server.resident_bytes()? as f64;
    let other = started(binary, url)?;
    await_loaded(&other.url_of(&prepared.graph), size)?;
    let mut writer = Client::connect(&server.url_of(&prepared.graph), "")?;
    let mut reader = Client::connect(&other.url_of(&prepared.graph), "")?;
    let mut visible = Vec::new();
    for number in 0..WRITES {
        let id = format!("visible/{number}.md");
        let made = writer.call("create_node", &json!({ "id": id, "content": format!("seen{number}\n") }))?;
        ensure!(made["isError"] == false, "{made}");
        let acknowledged = Instant::now();
        let found = reader.call("search_docs", &json!({ "query": format!("seen{number}"), "maxResults": 5 }))?;
        ensure!(found.to_string().contains(&id), "{id} is not visible: {found}");
        visible.push(acknowledged.elapsed());
    }
    Ok(Team { start: Start { first, loaded, resident }, visible })
}

fn start_of_embedded(binary: &Path, prepared: Prepared, size: usize) -> anyhow::Result<Start> {
    let begun = Instant::now();
    let (server, _) = Server::start_in(binary, &[], prepared.folder, tempfile::tempdir()?)?;
    let (first, loaded) = watch_start(begun, &server.url, size)?;
    Ok(Start { first, loaded, resident: crate::load::resident_bytes(server.process.id())? as f64 })
}

/// The seconds until the first answer, and until an answer covers all notes.
fn watch_start(begun: Instant, url: &str, notes: usize) -> anyhow::Result<(f64, f64)> {
    let mut first = None;
    loop {
        ensure!(begun.elapsed() < Duration::from_secs(600), "the server does not load {notes} notes");
        if let Ok(total) = total(url) {
            let now = begun.elapsed().as_secs_f64();
            let first = *first.get_or_insert(now);
            if total >= notes as u64 {
                return Ok((first, now));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number of notes that an answer covers.
fn total(url: &str) -> anyhow::Result<u64> {
    let mut client = Client::connect(url, "")?;
    let listed = client.call("list_nodes", &json!({ "limit": 1 }))?;
    ensure!(listed["isError"] == false, "{listed}");
    listed["structuredContent"]["total"].as_u64().context("a list has a total")
}

fn started(binary: &Path, url: &str) -> anyhow::Result<TeamServer> {
    TeamServer::start(binary, url.to_owned(), Vec::new())
}

fn await_loaded(url: &str, notes: usize) -> anyhow::Result<()> {
    watch_start(Instant::now(), url, notes).map(|_| ())
}
