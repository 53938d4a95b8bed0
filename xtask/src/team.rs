//! `cargo xtask team`: four servers on one database, sixteen clients that write notes and memory through any of them, and
//! faults: servers killed and stopped, connections to the database cut, delayed and refused, the primary killed and its
//! standby promoted, the disk of the database full.
//!
//! What must hold: every acknowledged write is there exactly once, whichever server acknowledged it; all servers give the same
//! answers, and find through their index what is there, by its present words and path; no answer is older than what its client
//! had been shown, unless it says so; a write to something that only its client changes is never refused, and one to a note
//! that all change never overwrites what its client has not read.

mod cluster;
mod inspect;
mod notes;
mod proxy;
pub(crate) mod scale;
mod server;
mod things;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::generate::Random;
use serde_json::json;

use crate::data;
use crate::load::client::Client;
use crate::postgres;
use crate::shell;
use cluster::Cluster;
use notes::SHARED;
use server::TeamServer;
use writer::{Done, Writer};

/// Faults by default; as many as the test command has time for.
pub(crate) const ROUNDS: u64 = 14;
pub(crate) const SEED: u64 = 16;

const SERVERS: usize = 4;
const CLIENTS: usize = 16;

/// Every so many faults, the primary is killed; and once in as many, its disk is full.
const FAIL_OVER_EVERY: u64 = 7;

/// The faults that were injected.
#[derive(Debug, Default)]
struct Faults {
    killed: usize,
    stopped: usize,
    cut: usize,
    delayed: usize,
    refused: usize,
    failed_over: usize,
    full_disks: usize,
}

pub(crate) fn run(binary: &Path, rounds: u64, seed: u64) -> anyhow::Result<()> {
    let mut cluster = Cluster::start(&postgres::installed()?)?;
    let url = cluster::url(&cluster.ports());
    for arguments in [&["db", "init"][..], &["graph", "create", "team"]] {
        let mut quipu = shell::command(binary, arguments);
        shell::output(quipu.env("QUIPU_DATABASE_URL", &url))?;
    }
    let servers = (0..SERVERS).map(|_| TeamServer::behind_proxies(binary, cluster.ports()));
    let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
    let entities = prepare(&servers[0])?;
    let started = Instant::now();
    let (done, faults) =
        run_rounds(&mut cluster, &servers, &entities, (rounds, seed)).with_context(|| format!("seed {seed}"))?;
    let took = started.elapsed();
    for server in &servers {
        server.await_ready()?;
    }
    inspect::inspect(&servers, &done, &entities).with_context(|| format!("seed {seed}"))?;
    report(&done, &faults, took);
    if let Some(why) = &cluster.why_no_full_disk {
        println!("skipped: full disks ({why})");
    }
    Ok(())
}

/// Compares so many random calls for each real vault with the same calls to a folder.
pub(crate) fn answers(calls: u64) -> anyhow::Result<()> {
    let data = data::unpacked()?.context("there is no ../shared/data")?;
    let mut test = shell::cargo(&["test", "--package", "quipu", "--locked", "--test", "e2e", "team::answers"]);
    test.env("QUIPU_DATA", data).env("QUIPU_POSTGRES", postgres::installed()?);
    shell::run(test.env("QUIPU_TEST_STEPS", calls.to_string()))
}

/// Creates the notes and the entities; returns the ids of these.
fn prepare(server: &TeamServer) -> anyhow::Result<Vec<i64>> {
    let mut client = Client::connect(&server.url(), "")?;
    let notes = (0..CLIENTS).map(notes::own_note).chain([SHARED.to_owned()]);
    for note in notes {
        let made = client.call("create_node", &json!({ "id": note, "content": "start\n" }))?;
        ensure!(made["isError"] == false, "{made}");
    }
    let entity = |number: usize| {
        let name = format!("Client {number} {:x}", Random(number as u64).next_u64());
        let made = client.call("create_entity", &json!({ "name": name, "entity_type": "Agent", "force": true }))?;
        ensure!(made["isError"] == false, "{made}");
        made["structuredContent"]["entity_id"].as_i64().context("an entity has an id")
    };
    (0..CLIENTS).map(entity).collect()
}

/// Lets the clients write until there were enough faults.
fn run_rounds(
    cluster: &mut Cluster,
    servers: &[TeamServer],
    entities: &[i64],
    (rounds, seed): (u64, u64),
) -> anyhow::Result<(Vec<Done>, Faults)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let writers: Vec<_> = entities
            .iter()
            .enumerate()
            .map(|(number, entity)| {
                let writer = Writer::new(number, servers, seed, *entity);
                scope.spawn(move || writer.write_until(is_over).with_context(|| format!("client {number}")))
            })
            .collect();
        let (mut random, mut faults) = (Random(seed), Faults::default());
        let mut outcome = Ok(());
        for round in 1..=rounds {
            thread::sleep(Duration::from_millis(100 + random.below(500) as u64));
            outcome = disturb(cluster, servers, &mut random, round, &mut faults);
            // A client ends early only with an error.
            if outcome.is_err() || writers.iter().any(thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        thread::sleep(Duration::from_secs(1));
        is_over.store(true, Ordering::Relaxed);
        let done = writers.into_iter().map(|writer| writer.join().expect("a client returns its errors"));
        let done = done.collect::<anyhow::Result<Vec<_>>>();
        outcome?;
        Ok((done?, faults))
    })
}

/// One fault, and its end.
fn disturb(
    cluster: &mut Cluster,
    servers: &[TeamServer],
    random: &mut Random,
    round: u64,
    faults: &mut Faults,
) -> anyhow::Result<()> {
    let server = &servers[random.below(servers.len())];
    let a_while = Duration::from_millis(200 + random.below(1500) as u64);
    if round.is_multiple_of(FAIL_OVER_EVERY) {
        cluster.fail_over()?;
        faults.failed_over += 1;
        thread::sleep(a_while);
        return cluster.add_standby();
    }
    if round % FAIL_OVER_EVERY == FAIL_OVER_EVERY / 2 && cluster.why_no_full_disk.is_none() {
        faults.full_disks += 1;
        return cluster.with_full_disk(|| thread::sleep(a_while));
    }
    match random.below(5) {
        0 => {
            server.kill()?;
            thread::sleep(a_while / 4);
            server.launch()?;
            faults.killed += 1;
        }
        1 => {
            server.signal("STOP")?;
            thread::sleep(a_while * 3);
            server.signal("CONT")?;
            faults.stopped += 1;
        }
        2 => {
            server.proxies.iter().for_each(proxy::Proxy::cut);
            faults.cut += 1;
        }
        3 => {
            let delay = Duration::from_millis(10 + random.below(150) as u64);
            server.proxies.iter().for_each(|proxy| proxy.delay(delay));
            thread::sleep(a_while);
            server.proxies.iter().for_each(|proxy| proxy.delay(Duration::ZERO));
            faults.delayed += 1;
        }
        _ => {
            server.proxies.iter().for_each(|proxy| proxy.refuse(true));
            thread::sleep(a_while);
            server.proxies.iter().for_each(|proxy| proxy.refuse(false));
            faults.refused += 1;
        }
    }
    Ok(())
}

fn report(done: &[Done], faults: &Faults, took: Duration) {
    let mut waits: Vec<Duration> = done.iter().flat_map(|done| done.waits.iter().copied()).collect();
    waits.sort();
    let share = |part: f64| {
        let place = (waits.len().saturating_sub(1)) as f64 * part;
        waits.get(place as usize).map_or(0.0, |wait| wait.as_secs_f64() * 1000.0)
    };
    let sum = |count: fn(&Done) -> usize| done.iter().map(count).sum::<usize>();
    println!(
        "{SERVERS} servers, {CLIENTS} clients, {took:.1?}: {} acknowledged writes, each there once on every server; {} reads, {} \
         of them with a warning; {} writes refused because another client was first",
        waits.len(),
        sum(|done| done.reads),
        sum(|done| done.outdated),
        sum(|done| done.refused),
    );
    println!(
        "a write took {:.1} ms (p50), {:.0} ms (p99), {:.0} ms at most; {faults:?}",
        share(0.5),
        share(0.99),
        share(1.0)
    );
}
