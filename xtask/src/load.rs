//! `cargo xtask load`: many clients at once, over HTTP and each with a server of its own on standard input and output,
//! reading and writing, and what became of every call.
//!
//! Each client over HTTP has a token and a connection of its own; all ask as fast as they are answered. Afterwards every write that was
//! acknowledged must be there once, nothing may have failed, and the server must not have grown without end.

pub(crate) mod client;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::client::Client as StdioClient;
use quipu_testkit::generate::{self, Random};
use serde_json::{Value, json};

use crate::crash;
use crate::peers::http::Server;
use client::Client;

/// Clients, and how long they ask.
pub(crate) const CLIENTS: u64 = 64;
pub(crate) const SECONDS: u64 = 20;

/// Clients that start a server of their own, which asks the one over HTTP.
const STDIO_CLIENTS: usize = 8;

/// Notes in the vault at the start, and what they are made from.
const NOTES: usize = 1000;
const SEED: u64 = 5;

/// A server of this load that needs more has lost its bounds.
const MOST_BYTES: usize = 500_000_000;

/// How a client asks.
enum Way {
    Http(Client),
    Stdio(StdioClient),
}

impl Way {
    /// The result of a call.
    fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        match self {
            Self::Http(client) => client.call(tool, arguments),
            Self::Stdio(client) => {
                let answer = client.call(tool, arguments)?.message;
                ensure!(answer["error"].is_null(), "{}", answer["error"]);
                Ok(answer["result"].clone())
            }
        }
    }
}

/// The counts of one client.
#[derive(Default)]
struct Done {
    /// How long each call took, by tool.
    took: BTreeMap<&'static str, Vec<Duration>>,
    /// Names of entities, and notes with the text last written.
    entities: Vec<String>,
    notes: BTreeMap<String, String>,
    /// The first call that failed.
    failure: Option<String>,
}

pub(crate) fn run(binary: &Path, clients: u64, seconds: u64) -> anyhow::Result<()> {
    let (vault, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let notes = Arc::new(generate::vault(vault.path(), NOTES, SEED)?);
    let names: Vec<String> = (0..clients).map(|number| format!("client-{number}")).collect();
    let (server, tokens) =
        Server::start_in(binary, &names.iter().map(String::as_str).collect::<Vec<_>>(), vault, user)?;
    println!("{clients} clients over HTTP, {STDIO_CLIENTS} on stdio, {NOTES} notes, {seconds} s");
    let mut first = Client::connect(&server.url, &tokens[0])?;
    // Answered once the vault is indexed: the measuring begins after.
    first.call("list_nodes", &json!({ "limit": 1 }))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let over_http = tokens.iter().map(|token| Ok(Way::Http(Client::connect(&server.url, token)?)));
    let own = (0..STDIO_CLIENTS).map(|_| Ok(Way::Stdio(crash::serve(binary, server.vault.path())?)));
    let ways = over_http.chain(own).collect::<anyhow::Result<Vec<Way>>>()?;
    let workers: Vec<_> = ways
        .into_iter()
        .enumerate()
        .map(|(number, way)| {
            let (notes, is_over) = (notes.clone(), is_over.clone());
            std::thread::spawn(move || work(way, number, &notes, &is_over))
        })
        .collect();
    let mut most = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        most = most.max(resident_bytes(server.process.id())?);
        std::thread::sleep(Duration::from_millis(100));
    }
    is_over.store(true, Ordering::Relaxed);
    let done: Vec<Done> = workers.into_iter().map(|worker| worker.join().expect("a client does not panic")).collect();
    let took = begun.elapsed();
    report(&done, took, most);
    let failed: Vec<&String> = done.iter().filter_map(|done| done.failure.as_ref()).collect();
    ensure!(failed.is_empty(), "{} clients saw a call fail; the first: {}", failed.len(), failed[0]);
    ensure!(most < MOST_BYTES, "the server took {most} bytes");
    check(&server, &mut Client::connect(&server.url, &tokens[0])?, &done)
}

/// One client: two calls in three read, one writes.
fn work(mut way: Way, number: usize, notes: &[String], is_over: &AtomicBool) -> Done {
    let mut done = Done::default();
    let mut random = Random(number as u64 + 1);
    let mut go = || -> anyhow::Result<()> {
        for turn in 0.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let (tool, arguments) = next_call(&done, &mut random, notes, number, turn);
            let asked = Instant::now();
            let answer = way.call(tool, &arguments)?;
            done.took.entry(tool).or_default().push(asked.elapsed());
            ensure!(answer["isError"] != true, "{tool} {arguments}: {answer}");
            match tool {
                "create_entity" => done.entities.push(arguments["name"].as_str().unwrap_or_default().to_owned()),
                "create_node" | "update_node" => {
                    let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
                    done.notes.insert(text("id"), text("content"));
                }
                _ => {}
            }
        }
        Ok(())
    };
    let failure = go().err().map(|error| format!("client {number}: {error:#}"));
    Done { failure, ..done }
}

fn next_call(done: &Done, random: &mut Random, notes: &[String], number: usize, turn: usize) -> (&'static str, Value) {
    let own = format!("load/{number}.md");
    match random.below(9) {
        0 => ("search_docs", json!({ "query": generate::word(random.below(200)), "maxResults": 5 })),
        1 => ("get_node", json!({ "id": notes[random.below(notes.len())] })),
        2 => ("list_nodes", json!({ "limit": 20 })),
        3 => ("get_hubs", json!({ "limit": 5 })),
        4 => ("search_entities", json!({ "query": "load", "limit": 5 })),
        5 => ("nodes_exist", json!({ "ids": [own] })),
        6 if !done.notes.contains_key(&own) => {
            ("create_node", json!({ "id": own, "content": format!("turn {turn}\n") }))
        }
        6 => ("update_node", json!({ "id": own, "content": format!("turn {turn}\n") })),
        _ => {
            // Names as unlike each other as can be: what is alike is held for the same.
            let name = format!("{:016x} of {number}", random.next_u64());
            (
                "create_entity",
                json!({ "name": name, "entity_type": "Component", "observations": [format!("load {turn}")] }),
            )
        }
    }
}

fn report(done: &[Done], took: Duration, most: usize) {
    let mut by_tool: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for (tool, times) in done.iter().flat_map(|done| &done.took) {
        by_tool.entry(tool).or_default().extend(times);
    }
    let mut all: Vec<Duration> = by_tool.values().flatten().copied().collect();
    println!("\n| call | number | p50 ms | p99 ms | longest ms |\n|---|---|---|---|---|");
    let row = |name: &str, times: &mut Vec<Duration>| {
        times.sort_unstable();
        let at = |share: f64| {
            let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
            times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        println!("| {name} | {} | {:.1} | {:.1} | {:.1} |", times.len(), at(0.5), at(0.99), at(1.0));
    };
    by_tool.iter_mut().for_each(|(tool, times)| row(&format!("`{tool}`"), times));
    row("all", &mut all);
    let rate = all.len() as f64 / took.as_secs_f64();
    println!("\n{rate:.0} calls per second, at most {} MB resident", most / 1_000_000);
}

/// Every acknowledged write is there, once.
fn check(server: &Server, client: &mut Client, done: &[Done]) -> anyhow::Result<()> {
    let mut notes = 0;
    for (id, text) in done.iter().flat_map(|done| &done.notes) {
        let found = std::fs::read_to_string(server.vault.path().join(id)).with_context(|| id.clone())?;
        ensure!(found == *text, "{id} is {found:?}, and {text:?} was acknowledged");
        notes += 1;
    }
    let mut wanted: Vec<&str> = done.iter().flat_map(|done| &done.entities).map(String::as_str).collect();
    let mut found = Vec::new();
    for page in 1.. {
        let listed = client.call("list_entities", &json!({ "page": page, "per_page": 100 }))?;
        let entities = listed["structuredContent"]["entities"].as_array().context("a page of entities")?;
        if entities.is_empty() {
            break;
        }
        found.extend(entities.iter().map(|entity| entity["name"].as_str().unwrap_or_default().to_owned()));
    }
    wanted.sort_unstable();
    found.sort_unstable();
    ensure!(found == wanted, "{} entities are there, and {} were acknowledged", found.len(), wanted.len());
    println!("all {notes} notes and {} entities that were acknowledged are there, once", wanted.len());
    Ok(())
}

pub(crate) fn resident_bytes(process: u32) -> anyhow::Result<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("the server is gone")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the server is gone")?;
    let kilobytes: usize =
        line.split_whitespace().next().and_then(|number| number.parse().ok()).context("no number")?;
    Ok(kilobytes * 1024)
}
