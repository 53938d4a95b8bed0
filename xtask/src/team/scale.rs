//! `cargo xtask team --scale`: what more servers, more notes and more graphs cost, beside the embedded store in the same run.
//!
//! Database, servers and clients share one machine, so more servers show what sharing costs, not what more machines give.

mod bounds;
mod entities;
mod graphs;
mod load;
mod sizing;
mod vectors;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_store_postgres::{PostgresDatabase, PostgresVault};
use quipu_testkit::generate;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::{self, Cluster};
use super::server::TeamServer;
use crate::load::client::Client;
use crate::peers::http::Server;
use crate::postgres;
use crate::shell;
use bounds::Bounds;
use sizing::GraphSize;

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

/// How long a server may take to read everything.
const LOADING: Duration = Duration::from_secs(900);

/// The sections of the page, in order.
const SECTIONS: [&str; 5] = ["Servers", "Notes", "Entities", "Graphs", "Vectors"];

/// What every section needs.
struct Measurement<'a> {
    binary: &'a Path,
    programs: &'a Path,
    cluster: &'a Cluster,
    url: &'a str,
    database: &'a Arc<PostgresDatabase>,
    sizes: &'a [usize],
    /// Whether results go into the page.
    write: bool,
}

impl Measurement<'_> {
    /// Writes a section into the page. The rows so far are written too: a run that is ended keeps them.
    fn save(&self, name: &str, text: &str) -> anyhow::Result<()> {
        if !self.write {
            return Ok(());
        }
        let page = shell::root().join(PAGE);
        let known = fs::read_to_string(&page).unwrap_or_default();
        let section = format!("## {name}\n{text}");
        Ok(fs::write(&page, with_section(&intro(self.binary), &known, name, &section))?)
    }
}

/// Measures the sections that were chosen, all if none was. The page keeps the other ones as they are.
pub(crate) fn run(binary: &Path, sizes: &[usize], only: Option<&str>, write: bool) -> anyhow::Result<()> {
    let chosen = chosen(only)?;
    let programs = postgres::installed()?;
    let cluster = Cluster::alone(&programs)?;
    let url = cluster::url(&cluster.ports()[..1]);
    let database = Arc::new(PostgresDatabase::connect(&url)?);
    database.migrate()?;
    let of =
        Measurement { binary, programs: &programs, cluster: &cluster, url: &url, database: &database, sizes, write };
    let mut missed = Vec::new();
    for name in chosen {
        let started = Instant::now();
        let mut bounds = Bounds::default();
        let measured = match name {
            "Servers" => servers(&of),
            "Notes" => notes(&of, &mut bounds),
            "Entities" => entities::measure(&of, &mut bounds),
            "Graphs" => graphs::measure(&of),
            _ => vectors::measure(&of),
        };
        match measured {
            Ok(text) => {
                let text = text + &bounds.table();
                println!("## {name}\n{text}\nmeasured in {:.0?}", started.elapsed());
                of.save(name, &text)?;
            }
            // It costs no other section.
            Err(error) => bounds.not_measured(name, &error),
        }
        missed.extend(bounds.missed);
    }
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

fn chosen(only: Option<&str>) -> anyhow::Result<Vec<&'static str>> {
    let Some(only) = only else { return Ok(SECTIONS.to_vec()) };
    let section = |asked: &str| {
        let found = SECTIONS.into_iter().find(|name| name.eq_ignore_ascii_case(asked));
        found.with_context(|| format!("no section {asked}; there are {}", SECTIONS.join(", ").to_lowercase()))
    };
    only.split(',').map(section).collect()
}

/// The page with a new text of a section.
fn with_section(intro: &str, page: &str, name: &str, section: &str) -> String {
    let known = |name: &str| {
        let start = page.find(&format!("\n## {name}\n"))? + 1;
        let end = page[start..].find("\n## ").map_or(page.len(), |end| start + end + 1);
        Some(page[start..end].trim_end())
    };
    let sections =
        SECTIONS.into_iter().filter_map(|each| if each == name { Some(section.trim_end()) } else { known(each) });
    format!("{intro}\n{}\n", sections.collect::<Vec<_>>().join("\n\n"))
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
fn servers(of: &Measurement<'_>) -> anyhow::Result<String> {
    let Prepared { folder, notes, graph } = prepare(of.database, "load", NOTES_UNDER_LOAD)?;
    let mut page = format!(
        "{} clients, {NOTES_UNDER_LOAD} notes; a read is `get_node` or `search_docs`, a write `edit_node` or \
         `create_entity`.\n\n| servers | reads/s | p50 ms | p99 ms | writes/s | p50 ms | p99 ms | connections |\n|---|---|---|---|---|---|---|---|\n",
        load::CLIENTS
    );
    let measure = |urls: &[String]| -> anyhow::Result<[f64; 6]> {
        let ([a, b, c], [d, e, f]) =
            (load::run(urls, &notes, load::Kind::Read)?, load::run(urls, &notes, load::Kind::Write)?);
        Ok([a, b, c, d, e, f])
    };
    let row = |name: &str, [a, b, c, d, e, f]: [f64; 6], connections: f64| {
        format!("| {name} | {a:.0} | {b:.1} | {c:.1} | {d:.0} | {e:.1} | {f:.1} | {connections} |\n")
    };
    let mut rows = Vec::new();
    for count in SERVERS {
        let servers = (0..count).map(|_| started(of.binary, of.url)).collect::<anyhow::Result<Vec<_>>>()?;
        let urls: Vec<String> = servers.iter().map(|server| server.url_of(&graph)).collect();
        for url in &urls {
            await_loaded(url, NOTES_UNDER_LOAD)?;
        }
        let values = measure(&urls)?;
        // Of the pool, and one that listens.
        let open = servers.iter().map(|server| server.metric("quipu_database_connections"));
        let open = open.sum::<anyhow::Result<f64>>()? + count as f64;
        page += &row(&count.to_string(), values, open);
        let [a, b, c, d, e, f] = values;
        rows.push((count as f64, [a, b, c, d, e, f, open]));
    }
    let (server, _) = Server::start_in(of.binary, &[], folder, tempfile::tempdir()?)?;
    await_loaded(&server.url, NOTES_UNDER_LOAD)?;
    page += &row("embedded store", measure(std::slice::from_ref(&server.url))?, 0.0);
    page += &format!("| exponent | {} |\n", exponents(&rows));
    Ok(page)
}

/// Start, memory and visibility by number of notes.
fn notes(of: &Measurement<'_>, bounds: &mut Bounds) -> anyhow::Result<String> {
    let mut page = format!(
        "The first answers are those to clients that connect as soon as the server listens, one client for each tool; they may cover a \
         part of the notes. A write is visible when another server, asked after the acknowledgement, has returned it. The last columns \
         are of a folder.\n\n| notes | database MB | first answer s: {0} | loaded s | resident MB | visible p50 ms | visible p95 ms | \
         embedded: first answer s: {0} | loaded s | resident MB |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        FIRST_CALLS.join(" | ")
    );
    let mut rows: Vec<(f64, [f64; 15])> = Vec::new();
    for size in of.sizes {
        let values = match notes_of(of, *size) {
            Ok(values) => values,
            Err(error) => {
                bounds.not_measured(&format!("{size} notes"), &error);
                break;
            }
        };
        page += &format!("| {size} | {} |\n", values.map(cell).join(" | "));
        for (tool, first) in FIRST_CALLS.iter().zip(&values[1..5]) {
            bounds.first_answer(&format!("`{tool}`, {size} notes"), *first);
        }
        bounds.visible(&format!("{size} notes"), values[8]);
        rows.push((*size as f64, values));
        of.save("Notes", &page)?;
    }
    ensure!(!rows.is_empty(), "no number of notes could be measured");
    if of.write {
        let size = |(notes, values): &(f64, [f64; 15])| GraphSize {
            notes: *notes as usize,
            server_mb: values[6],
            database_mb: values[0],
        };
        sizing::write(&rows.iter().map(size).collect::<Vec<_>>())?;
    }
    page += &format!("| exponent | {} |\n", exponents(&rows));
    if let (Some((few, of_few)), Some((many, of_many))) = (rows.first(), rows.last())
        && few < many
    {
        let each = |column: usize| (of_many[column] - of_few[column]) / (many - few) * 1e5;
        page += &format!(
            "\n100,000 more notes need {:.0} MB more in each server that has the graph open, {:.0} MB in a server of the folder, and \
             {:.0} MB in the database.\n",
            each(6),
            each(14),
            each(0)
        );
    }
    Ok(page)
}

/// The row of a number of notes.
fn notes_of(of: &Measurement<'_>, size: usize) -> anyhow::Result<[f64; 15]> {
    // Not the graph under load, which has more than these notes.
    let before = database_bytes(of.cluster)?;
    let begun = Instant::now();
    let prepared = prepare(of.database, &format!("n{size}"), size)?;
    println!("{size} notes are in the database after {:.0?}", begun.elapsed());
    let stored = database_bytes(of.cluster)? - before;
    let team = start_of_team(of, &prepared, size)?;
    let embedded = start_of_embedded(of.binary, prepared, size)?;
    let (p50, p95) = (load::percentile(&team.visible, 0.5), load::percentile(&team.visible, 0.95));
    let Start { first: [a, b, c, d], loaded, resident } = team.start;
    let Start { first: [e, f, g, h], loaded: loaded_there, resident: resident_there } = embedded;
    let [stored, resident, resident_there] = [stored, resident, resident_there].map(|bytes| bytes / 1e6);
    Ok([stored, a, b, c, d, loaded, resident, p50, p95, e, f, g, h, loaded_there, resident_there])
}

/// A value with three digits or more.
fn cell(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
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
    /// For each of [`FIRST_CALLS`].
    first: [f64; 4],
    loaded: f64,
    resident: f64,
}

struct Team {
    start: Start,
    /// From the acknowledgement until another server has returned the write.
    visible: Vec<Duration>,
}

fn start_of_team(of: &Measurement<'_>, prepared: &Prepared, size: usize) -> anyhow::Result<Team> {
    let begun = Instant::now();
    let server = TeamServer::start(of.binary, of.url.to_owned(), Vec::new())?;
    let (first, loaded) = watch_start(begun, &server.url_of(&prepared.graph), &prepared.notes)?;
    let resident = server.resident_bytes()? as f64;
    let other = started(of.binary, of.url)?;
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
    let (first, loaded) = watch_start(begun, &server.url, &prepared.notes)?;
    ensure!(total(&server.url)? >= size as u64, "the notes are there");
    Ok(Start { first, loaded, resident: crate::load::resident_bytes(server.process.id())? as f64 })
}

/// The tools whose first answers are measured.
const FIRST_CALLS: [&str; 4] = ["list_nodes", "get_node", "search_docs", "ubp_search"];

/// The seconds until the first answers, and until an answer covers all notes.
fn watch_start(begun: Instant, url: &str, notes: &[String]) -> anyhow::Result<([f64; 4], f64)> {
    let arguments = |tool: &str| match tool {
        "list_nodes" => json!({ "limit": 1 }),
        // One of the last that are read.
        "get_node" => json!({ "id": notes[notes.len() - 1] }),
        _ => json!({ "query": generate::word(7) }),
    };
    std::thread::scope(|scope| {
        let ask = |tool| scope.spawn(move || first_answer(begun, url, tool, &arguments(tool)));
        let firsts = FIRST_CALLS.map(ask);
        let loaded = await_loaded(url, notes.len()).map(|()| begun.elapsed().as_secs_f64());
        let mut first = [0.0; 4];
        for (place, asked) in firsts.into_iter().enumerate() {
            first[place] = asked.join().expect("a client returns its errors")?;
        }
        Ok((first, loaded?))
    })
}

/// The seconds until a tool answers.
fn first_answer(begun: Instant, url: &str, tool: &str, arguments: &Value) -> anyhow::Result<f64> {
    loop {
        match Client::connect(url, "").and_then(|mut client| client.call(tool, arguments)) {
            Ok(answer) => {
                ensure!(answer["isError"] == false, "{tool}: {answer}");
                return Ok(begun.elapsed().as_secs_f64());
            }
            Err(error) if begun.elapsed() > LOADING => return Err(error).context("no answer"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
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
    let begun = Instant::now();
    while total(url).ok().is_none_or(|total| total < notes as u64) {
        ensure!(begun.elapsed() < LOADING, "the server does not load {notes} notes");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_is_replaced_in_its_place_and_the_others_are_kept() {
        let page = with_section("# P\n", "", "Graphs", "## Graphs\ng\n");
        let page = with_section("# P\n", &page, "Servers", "## Servers\ns\n\n| a |\n");
        assert_eq!(page, "# P\n\n## Servers\ns\n\n| a |\n\n## Graphs\ng\n");
        let page = with_section("# Q\n", &page, "Servers", "## Servers\nnew\n");
        assert_eq!(page, "# Q\n\n## Servers\nnew\n\n## Graphs\ng\n");
    }
}
