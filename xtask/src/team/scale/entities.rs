//! Memories of growing size: first answer, memory of the server, search and visibility, beside the embedded store.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_core::ports::{Author, Clock, EntityRef, MemoryChange, MemoryStore, NewEntity, SystemClock};
use quipu_store_postgres::{PostgresDatabase, PostgresMemory};
use quipu_testkit::generate::{self, Random};
use serde_json::json;
use tempfile::TempDir;

use super::bounds::Bounds;
use super::load::percentile;
use super::{LOADING, Measurement, WRITES, cell, exponents, started, without_meaning};
use crate::load::client::Client;
use crate::peers::http::Server;
use crate::shell;
use crate::team::server::TeamServer;

/// Entities written by one transaction.
const AT_ONCE: usize = 500;

/// Searches whose time is measured.
const SEARCHES: usize = 60;

/// The measurements of a server.
struct Measured {
    first: f64,
    loaded: f64,
    resident: usize,
    search: Vec<Duration>,
}

impl Measured {
    fn values(&self) -> [f64; 5] {
        let Self { first, loaded, resident, search } = self;
        [*first, *loaded, *resident as f64 / 1e6, percentile(search, 0.5), percentile(search, 0.95)]
    }
}

pub(super) fn measure(of: &Measurement<'_>, bounds: &mut Bounds) -> anyhow::Result<String> {
    let mut page = "Each entity has one observation. The first answer is that of `search_entities` to a client that connects as \
         soon as the server listens; it may cover a part of the entities. An entity is visible when another server, asked after the \
         acknowledgement, has found it.\n\n| entities | first answer s | loaded s | resident MB | search p50 ms | p95 ms | visible p50 ms | \
         visible p95 ms | embedded: first answer s | loaded s | resident MB | search p50 ms | p95 ms \
         |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut rows = Vec::new();
    for size in of.sizes {
        let values = match entities_of(of, *size) {
            Ok(values) => values,
            Err(error) => {
                bounds.not_measured(&format!("{size} entities"), &error);
                break;
            }
        };
        page += &format!("| {size} | {} |\n", values.map(cell).join(" | "));
        bounds.first_answer(&format!("`search_entities`, {size} entities"), values[0]);
        bounds.visible(&format!("{size} entities"), values[6]);
        rows.push((*size as f64, values));
        of.save("Entities", &page)?;
    }
    ensure!(!rows.is_empty(), "no number of entities could be measured");
    page += &format!("| exponent | {} |\n", exponents(&rows));
    Ok(page)
}

/// The row of a number of entities.
fn entities_of(of: &Measurement<'_>, size: usize) -> anyhow::Result<[f64; 12]> {
    let Measurement { binary, url, database, .. } = *of;
    let graph = format!("e{size}");
    let begun = Instant::now();
    fill(database, &graph, size)?;
    println!("{size} entities are in the database after {:.0?}", begun.elapsed());
    let folder = exported(binary, url, &graph)?;
    let begun = Instant::now();
    let server = TeamServer::start(binary, url.to_owned(), Vec::new())?;
    let (first, loaded) = watch_start(begun, &server.url_of(&graph))?;
    let search = searches(&server.url_of(&graph))?;
    let team = Measured { first, loaded, resident: server.resident_bytes()?, search };
    let visible = visibility(&server, &started(binary, url)?, &graph)?;
    drop(server);
    let begun = Instant::now();
    let (server, _) = Server::start_in(binary, &[], folder, tempfile::tempdir()?)?;
    let (first, loaded) = watch_start(begun, &server.url)?;
    let search = searches(&server.url)?;
    let resident = crate::load::resident_bytes(server.process.id())?;
    let embedded = Measured { first, loaded, resident, search };
    let [a, b, c, d, e] = team.values();
    let [f, g, h, i, j] = embedded.values();
    Ok([a, b, c, d, e, percentile(&visible, 0.5), percentile(&visible, 0.95), f, g, h, i, j])
}

/// Names as unlike each other as can be: what is alike is held for the same.
fn name(random: &mut Random) -> String {
    format!("{} {:016x}", generate::word(random.below(500)), random.next_u64())
}

/// Creates a graph with so many entities.
fn fill(database: &Arc<PostgresDatabase>, graph: &str, size: usize) -> anyhow::Result<()> {
    let memory = PostgresMemory::new(database.clone(), &database.create_graph(graph)?);
    let mut random = Random(size as u64);
    let author = Author { client: "scale".into(), tool: "fill".into(), at_ns: SystemClock.now_ns(), request: None };
    let mut left = size;
    while left > 0 {
        let count = left.min(AT_ONCE);
        let entity = |number: usize| {
            let entity = NewEntity { name: name(&mut random), entity_type: "Concept".into(), ..NewEntity::default() };
            let text = format!("{} and {}", generate::word(random.below(500)), generate::word(random.below(500)));
            let observation = MemoryChange::AddObservation { entity: EntityRef::Made(number * 2), text };
            [MemoryChange::CreateEntity(entity), observation]
        };
        memory.apply(&(0..count).flat_map(entity).collect::<Vec<_>>(), &author)?;
        left -= count;
    }
    Ok(())
}

/// A folder with the memory of a graph.
fn exported(binary: &Path, url: &str, graph: &str) -> anyhow::Result<TempDir> {
    let folder = without_meaning(tempfile::tempdir()?)?;
    let mut export = shell::command(binary, &["export", "--graph", graph]);
    let document = shell::output(export.env("QUIPU_DATABASE_URL", url))?;
    let file = folder.path().join("memory.jsonl");
    fs::write(&file, document)?;
    let mut import = shell::command(binary, &["--vault"]);
    shell::output(import.arg(folder.path()).arg("import").arg(&file))?;
    Ok(folder)
}

fn search(client: &mut Client, query: &str) -> anyhow::Result<String> {
    let found = client.call("search_entities", &json!({ "query": query, "limit": 10 }))?;
    ensure!(found["isError"] == false, "{found}");
    Ok(found.to_string())
}

/// The seconds until the first answer, and until an answer covers all entities.
fn watch_start(begun: Instant, url: &str) -> anyhow::Result<(f64, f64)> {
    let mut first = None;
    loop {
        let answer = Client::connect(url, "").and_then(|mut client| search(&mut client, &generate::word(1)));
        match answer {
            Ok(answer) => {
                let now = begun.elapsed().as_secs_f64();
                let first = *first.get_or_insert(now);
                if !answer.contains("still being read") {
                    return Ok((first, now));
                }
            }
            Err(error) if begun.elapsed() > LOADING => return Err(error).context("no answer"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn searches(url: &str) -> anyhow::Result<Vec<Duration>> {
    let mut client = Client::connect(url, "")?;
    let mut took = Vec::new();
    for number in 0..SEARCHES {
        let asked = Instant::now();
        search(&mut client, &generate::word(number * 7))?;
        took.push(asked.elapsed());
    }
    Ok(took)
}

/// From the acknowledgement of new entities until another server has found them.
fn visibility(server: &TeamServer, other: &TeamServer, graph: &str) -> anyhow::Result<Vec<Duration>> {
    watch_start(Instant::now(), &other.url_of(graph))?;
    let mut writer = Client::connect(&server.url_of(graph), "")?;
    let mut reader = Client::connect(&other.url_of(graph), "")?;
    let (mut random, mut visible) = (Random(99), Vec::new());
    for _ in 0..WRITES {
        let name = name(&mut random);
        let made = writer.call("create_entity", &json!({ "name": name, "entity_type": "Concept" }))?;
        ensure!(made["isError"] == false, "{made}");
        let acknowledged = Instant::now();
        let found = search(&mut reader, &name)?;
        ensure!(found.contains(&name), "{name} is not visible: {found}");
        visible.push(acknowledged.elapsed());
    }
    Ok(visible)
}
