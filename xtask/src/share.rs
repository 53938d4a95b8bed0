//! `cargo xtask share`: eight clients, each with a server of its own on one vault, write notes and memory while the server
//! that owns the vault is killed again and again; then everything is counted.
//!
//! What must hold: a client whose own server lives never sees an error, whichever other process dies; every acknowledged write is there
//! exactly once and to the byte; one that was under way when its own server was killed is there once or not at all; the
//! index says what a fresh one would say; and when the clients leave, no process stays.

mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::generate::Random;
use serde_json::{Value, json};

use crate::crash;
use crate::shell;
use writer::{Expected, Tally, Writer};

/// Kills of an owner by default; as many as the test command has time for.
pub(crate) const KILLS: u64 = 25;

/// No client may wait longer for a write, whichever process is killed, on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);

/// Entities looked at together.
const PER_PAGE: usize = 100;

/// Clients, each with a server of its own.
const CLIENTS: u64 = 8;

pub(crate) fn run(binary: &Path, kills: u64, seed: u64) -> anyhow::Result<()> {
    let home = tempfile::Builder::new().prefix("share").tempdir_in(shell::target())?;
    let vault = home.path().join("vault");
    fs::create_dir(&vault)?;
    let started = Instant::now();
    let outcome = run_load(binary, &vault, kills, seed).and_then(|tallies| {
        let seconds = started.elapsed().as_secs_f64();
        inspect(binary, &vault, &tallies, home.path())?;
        Ok((tallies, seconds))
    });
    let (tallies, seconds) = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let kept = home.keep();
            return Err(error.context(format!("seed {seed}; the vault is kept in {}", kept.display())));
        }
    };
    let acknowledged: usize = tallies.iter().map(|tally| tally.acknowledged).sum();
    let restarts: usize = tallies.iter().map(|tally| tally.restarts).sum();
    let mut waits: Vec<Duration> = tallies.iter().flat_map(|tally| tally.waits.iter().copied()).collect();
    waits.sort();
    let share = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    println!(
        "{kills} owners killed under {CLIENTS} clients, {acknowledged} acknowledged writes, {restarts} clients started again: \
         each write is there once; a write took {:.1} ms (p50), {:.0} ms (p99), {:.0} ms at most; in {seconds:.1} s",
        share(0.5),
        share(0.99),
        share(1.0)
    );
    ensure!(waits.last().is_none_or(|longest| *longest < LONGEST), "a write took {:.0} ms", share(1.0));
    Ok(())
}

/// What the writers and the killer of owners know of each other.
#[derive(Default)]
struct Progress {
    acknowledged: AtomicU64,
    is_over: AtomicBool,
}

/// Lets the clients write until enough owners were killed.
fn run_load(binary: &Path, vault: &Path, kills: u64, seed: u64) -> anyhow::Result<Vec<Tally>> {
    let progress = Progress::default();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let progress = &progress;
                scope.spawn(move || Writer::new(binary, vault, number).write_until(progress))
            })
            .collect();
        let killed = kill_owners(vault, kills, seed, &progress);
        progress.is_over.store(true, Ordering::SeqCst);
        let tallies = writers.into_iter().map(|writer| writer.join().expect("a writer tells its errors"));
        let tallies = tallies.collect::<anyhow::Result<Vec<_>>>();
        killed?;
        tallies
    })
}

/// Kills an owner at a random moment after as many writes as there are clients: a slow machine takes longer, but tests as much.
fn kill_owners(vault: &Path, kills: u64, seed: u64, progress: &Progress) -> anyhow::Result<()> {
    let mut random = Random(seed);
    let patience = Instant::now() + Duration::from_secs(120) + Duration::from_secs(4) * u32::try_from(kills)?;
    let mut killed = Vec::new();
    while (killed.len() as u64) < kills {
        ensure!(Instant::now() < patience, "only {} owners were killed in time", killed.len());
        thread::sleep(Duration::from_millis(20 + random.below(300) as u64));
        if progress.acknowledged.load(Ordering::SeqCst) <= CLIENTS * (killed.len() as u64 + 1) {
            continue;
        }
        let Some(owner) = owner(vault).filter(|owner| killed.last() != Some(owner)) else { continue };
        // Mostly without warning; now and then as a system that shuts down does.
        let signal = if random.below(5) == 0 { "TERM" } else { "KILL" };
        if Command::new("kill").args(["-s", signal, &owner.to_string()]).status()?.success() {
            killed.push(owner);
        }
    }
    Ok(())
}

/// The process that has the vault, as its card says.
fn owner(vault: &Path) -> Option<u64> {
    let card: Value = serde_json::from_slice(&fs::read(vault.join(".quipu/owner.lock")).ok()?).ok()?;
    card["pid"].as_u64()
}

fn inspect(binary: &Path, vault: &Path, tallies: &[Tally], home: &Path) -> anyhow::Result<()> {
    ensure!(!is_anyone_left(vault)?, "a process stayed behind");
    let mut server = crash::serve(binary, vault)?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for page in 1.. {
        let page = server.call("list_entities", &json!({ "page": page, "per_page": PER_PAGE }))?;
        let page = page.value().context("list_entities failed")?;
        let entities = page["entities"].as_array().context("it lists entities")?.clone();
        for entity in &entities {
            let whole = server.call("get_entity", &json!({ "entity_id": entity["entity_id"] }))?;
            let whole = whole.value().context("get_entity failed")?;
            for observation in whole["observations"].as_array().context("it has observations")? {
                *seen.entry(observation["observation_content"].as_str().context("a text")?.to_owned()).or_default() +=
                    1;
            }
        }
        if entities.len() < PER_PAGE {
            break;
        }
    }
    for tally in tallies {
        for (text, expected) in &tally.observations {
            let count = seen.remove(text).unwrap_or_default();
            ensure!(expected.allows_count(count), "{text:?} was {expected:?} and is there {count} times");
        }
        for (id, expected) in &tally.notes {
            let found = fs::read_to_string(vault.join(id)).ok();
            ensure!(expected.allows(found.as_deref()), "{id} holds {found:?}, and was {expected:?}");
        }
    }
    ensure!(seen.is_empty(), "nobody wrote {:?}", seen.keys().next());
    let known: usize = tallies.iter().map(|tally| tally.notes.len()).sum();
    let files = crash::files(vault)?;
    ensure!(files.len() <= known, "{} files, and only {known} notes were ever written", files.len());
    server.close()?;
    crash::compare_with_fresh(binary, vault, home)
}

/// Whether a process still serves the vault. Those of the last clients may need a moment to end.
fn is_anyone_left(vault: &Path) -> anyhow::Result<bool> {
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let found = Command::new("pgrep").arg("-f").arg(format!("serve {}", vault.display())).output()?;
        if found.stdout.is_empty() {
            return Ok(false);
        }
        if Instant::now() > until {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

impl Expected {
    fn allows_count(&self, count: usize) -> bool {
        match self {
            Self::Acknowledged(_) => count == 1,
            Self::UnderWay { .. } => count <= 1,
        }
    }

    fn allows(&self, found: Option<&str>) -> bool {
        match self {
            Self::Acknowledged(text) => found == text.as_deref(),
            Self::UnderWay { before, after } => found == before.as_deref() || found == after.as_deref(),
        }
    }
}
