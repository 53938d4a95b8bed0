//! Clients that read or write as fast as they are answered.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use quipu_core::ports::{Clock, SystemClock};
use quipu_testkit::generate::{self, Random};
use serde_json::{Value, json};

use crate::load::client::Client;

/// Clients, and how long they ask.
pub(super) const CLIENTS: usize = 8;
const TIME: Duration = Duration::from_secs(6);

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Read,
    Write,
}

/// Has clients call the servers, each one server. Returns calls a second, and how long they took in ms, p50 and p99.
pub(super) fn run(urls: &[String], notes: &[String], kind: Kind) -> anyhow::Result<[f64; 3]> {
    let begun = Instant::now();
    let took = thread::scope(|scope| {
        let client = |number: usize| {
            let url = &urls[number % urls.len()];
            scope.spawn(move || ask(url, number, notes, kind))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let took = clients.into_iter().map(|client| client.join().expect("a client returns its errors"));
        took.collect::<anyhow::Result<Vec<_>>>()
    })?;
    let took: Vec<Duration> = took.into_iter().flatten().collect();
    let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
    Ok([rate, percentile(&took, 0.5), percentile(&took, 0.99)])
}

fn ask(url: &str, number: usize, notes: &[String], kind: Kind) -> anyhow::Result<Vec<Duration>> {
    let name = format!("scale{number}");
    let mut client = Client::connect_as(&name, url, "", Duration::from_secs(60))?;
    let mut random = Random(number as u64 + 1);
    // A note of its own in every run.
    let own = format!("load/{number}-{:x}.md", SystemClock.now_ns());
    if matches!(kind, Kind::Write) {
        let _ = client.call("create_node", &json!({ "id": own, "content": "start\n" }))?;
    }
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < TIME {
        let (tool, arguments) = call(kind, &own, notes, &mut random);
        let asked = Instant::now();
        let answer = client.call(tool, &arguments)?;
        took.push(asked.elapsed());
        ensure!(answer["isError"] == false, "{tool} {arguments}: {answer}");
    }
    Ok(took)
}

fn call(kind: Kind, own: &str, notes: &[String], random: &mut Random) -> (&'static str, Value) {
    match (kind, random.below(2)) {
        (Kind::Read, 0) => ("get_node", json!({ "id": notes[random.below(notes.len())] })),
        (Kind::Read, _) => ("search_docs", json!({ "query": generate::word(random.below(200)), "maxResults": 5 })),
        (Kind::Write, 0) => {
            let line = format!("{:x}", random.next_u64());
            ("edit_node", json!({ "id": own, "edits": [{ "op": "append", "text": line }] }))
        }
        (Kind::Write, _) => {
            // Names that differ as much as possible, so that none is refused as a duplicate.
            let name = format!("{:016x} {:016x}", random.next_u64(), random.next_u64());
            ("create_entity", json!({ "name": name, "entity_type": "Component", "force": true }))
        }
    }
}

/// The time below which this share of the calls was answered, in milliseconds.
pub(super) fn percentile(times: &[Duration], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}
