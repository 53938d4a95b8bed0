//! `cargo xtask memory wire`: whole calls over stdio, beside the reference memory server from npm, on the same entities in the
//! same run. The other server rewrites its file at each change, so it is given up at a size where that takes too long.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use quipu_testkit::client::Client;
use quipu_testkit::generate::{Random, word};
use serde_json::{Value, json};

use crate::shell::{self, Profile};
use crate::{crash, peers};

/// Calls of each kind.
const ROUNDS: usize = 60;
const BULKS: usize = 20;

/// A kind of call that takes longer than this in all is cut short, and its figures are of the calls made until then.
const PATIENCE: Duration = Duration::from_secs(40);

/// What is measured, in the order of the rows.
const KINDS: [&str; 6] = ["create", "observe", "relate", "search", "subgraph", "bulk of 50"];

/// The tool and the arguments for one call of a kind.
type Asking = fn(kind: &str, round: usize, random: &mut Random) -> (&'static str, Value);

pub(crate) fn run(sizes: &[usize]) -> anyhow::Result<()> {
    let binary = shell::build_binary(Profile::Release)?;
    peers::install_node()?;
    println!("| call over stdio, p50 / p95 ms | entities | Quipu | reference server |\n|---|---|---|---|");
    for entities in sizes {
        let home = tempfile::Builder::new().prefix("memory").tempdir_in(shell::target())?;
        let file = home.path().join("reference.jsonl");
        fill(&file, *entities)?;
        let vault = home.path().join("vault");
        fs::create_dir(&vault)?;
        let mut import = shell::command(&binary, &["import", "--json"]);
        shell::output(import.arg(&file).current_dir(&vault).env_remove("QUIPU_VAULT"))?;
        let mut ours = crash::serve(&binary, &vault)?;
        let ours = measure(&mut ours, ours_asks)?;
        let mut reference = peers::node();
        reference.arg(peers::place("node/node_modules/@modelcontextprotocol/server-memory/dist/index.js"));
        reference.env("MEMORY_FILE_PATH", &file).stderr(std::process::Stdio::null());
        let mut theirs = Client::spawn(&mut reference).context("the reference server did not start")?;
        let theirs = measure(&mut theirs, reference_asks)?;
        for ((kind, ours), theirs) in KINDS.iter().zip(ours).zip(theirs) {
            println!("| {kind} | {entities} | {ours} | {theirs} |");
        }
    }
    Ok(())
}

/// p50 and p95 of each kind of call, in milliseconds.
fn measure(client: &mut Client, asks: Asking) -> anyhow::Result<Vec<String>> {
    // The first question of a process reads everything; that is measured by `memory speed`.
    let (tool, arguments) = asks("search", 0, &mut Random(99));
    client.call(tool, &arguments)?;
    let mut cells = Vec::new();
    for kind in KINDS {
        let mut random = Random(7);
        let rounds = if kind == KINDS[5] { BULKS } else { ROUNDS };
        let (mut times, started) = (Vec::new(), Instant::now());
        for round in 0..rounds {
            let (tool, arguments) = asks(kind, round, &mut random);
            let asked = Instant::now();
            let answer = client.call(tool, &arguments)?;
            times.push(asked.elapsed().as_secs_f64() * 1000.0);
            answer.value().with_context(|| format!("{tool} {arguments} failed: {}", answer.message))?;
            if started.elapsed() > PATIENCE {
                break;
            }
        }
        let cut = if times.len() < rounds { format!(" ({} calls)", times.len()) } else { String::new() };
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        cells.push(format!("{:.1} / {:.1}{cut}", at(0.5), at(0.95)));
    }
    Ok(cells)
}

fn ours_asks(kind: &str, round: usize, random: &mut Random) -> (&'static str, Value) {
    let id = round + 1;
    match kind {
        "create" => (
            "create_entity",
            json!({ "name": new_name(round, random), "entity_type": "Thing", "observations": [sentence(random, 14)] }),
        ),
        "observe" => ("create_observation", json!({ "entity_id": id, "text_content": sentence(random, 14) })),
        "relate" => {
            ("create_relation", json!({ "from_entity_id": id, "to_entity_id": id + 1, "relation_type": "next" }))
        }
        "search" => ("search_entities", json!({ "query": sentence(random, 3) })),
        "subgraph" => ("get_subgraph_by_ids", json!({ "entity_ids": (id..id + 10).collect::<Vec<_>>() })),
        _ => {
            let new = |number| json!({ "name": format!("bulk {round} {number}"), "entity_type": "Thing", "observations": ["made in one step"] });
            ("bulk_update", json!({ "entities": (0..50).map(new).collect::<Vec<_>>() }))
        }
    }
}

fn reference_asks(kind: &str, round: usize, random: &mut Random) -> (&'static str, Value) {
    let new = |name: String, seen: String| json!({ "name": name, "entityType": "Thing", "observations": [seen] });
    match kind {
        "create" => {
            let name = new_name(round, random);
            ("create_entities", json!({ "entities": [new(name, sentence(random, 14))] }))
        }
        "observe" => {
            let observation = json!({ "entityName": name(round), "contents": [sentence(random, 14)] });
            ("add_observations", json!({ "observations": [observation] }))
        }
        "relate" => {
            let relation = json!({ "from": name(round), "to": name(round + 1), "relationType": "next" });
            ("create_relations", json!({ "relations": [relation] }))
        }
        "search" => ("search_nodes", json!({ "query": sentence(random, 3) })),
        "subgraph" => ("open_nodes", json!({ "names": (round..round + 10).map(name).collect::<Vec<_>>() })),
        _ => {
            let entity = |number| new(format!("bulk {round} {number}"), "made in one step".to_owned());
            ("create_entities", json!({ "entities": (0..50).map(entity).collect::<Vec<_>>() }))
        }
    }
}

/// Entities with three observations and a relation each, as the reference server keeps them.
fn fill(file: &Path, entities: usize) -> anyhow::Result<()> {
    let mut random = Random(1);
    let mut out = std::io::BufWriter::new(fs::File::create(file)?);
    for number in 0..entities {
        let observations: Vec<String> = (0..3).map(|_| sentence(&mut random, 14)).collect();
        let entity =
            json!({ "type": "entity", "name": name(number), "entityType": "Thing", "observations": observations });
        writeln!(out, "{entity}")?;
    }
    for number in 0..entities {
        let to = name(number / 2);
        writeln!(out, "{}", json!({ "type": "relation", "from": name(number), "to": to, "relationType": "part_of" }))?;
    }
    Ok(out.flush()?)
}

fn name(number: usize) -> String {
    format!("{} {} {number}", word(number % 9000), word(number / 9000))
}

fn new_name(round: usize, random: &mut Random) -> String {
    format!("{} new {round}", sentence(random, 2))
}

/// Words of which some are much more common than others.
fn sentence(random: &mut Random, words: usize) -> String {
    let word = |_| {
        let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
        word((share.powi(3) * 9000.0) as usize)
    };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}
