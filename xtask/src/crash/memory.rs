//! Kills the server during writes to memory, again and again until eight writers over one connection, each with one call under
//! way, are through. Every acknowledged change is there exactly once; one under way, at most once and whole.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use quipu_testkit::client::Client;
use quipu_testkit::generate::Random;
use serde_json::{Value, json};

use super::write_load::is_hung_up;
use crate::shell;

const WRITERS: usize = 8;
const WRITES: usize = 200;
/// Answers of one round before its kill, at most, and how long after the last of them: by answers, since a fast machine would
/// else be through before the first kill.
const MOST_ANSWERS: usize = 250;
const LONGEST: Duration = Duration::from_millis(4);

/// One writer's place in its work, and the call of it that is under way.
#[derive(Default)]
struct Writer {
    done: Vec<Write>,
    under_way: Option<Write>,
    /// The observation that was acknowledged last: its id and its text.
    last: Option<(i64, String)>,
    /// The id and the name of the entity that was acknowledged last, and the number of the change that merged it.
    entity: Option<(i64, String)>,
    merge: Option<i64>,
}

/// A write to memory, and the state that it leaves.
#[derive(Debug, Clone)]
enum Write {
    /// Texts that stand nowhere else, each once.
    Marks(Vec<String>),
    /// The entity of this name is an alias of the writer's entity, and no entity itself.
    Merge(String),
    /// The entity of this name is one again.
    Undo(String),
}

pub(crate) fn run(binary: &Path, seed: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    let home = tempfile::Builder::new().prefix("crash-memory").tempdir_in(shell::target())?;
    let mut random = Random(seed);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::default()).collect();
    // The first entities of a memory have the first numbers, so writers know theirs without asking.
    let mut client = super::serve(binary, home.path())?;
    for number in 0..WRITERS {
        client.call(
            "create_entity",
            &json!({ "name": format!("writer {number}"), "entity_type": "Writer", "force": true }),
        )?;
    }
    client.close()?;
    let (mut kills, mut lucky) = (0, 0);
    while writers.iter().any(|writer| writer.done.len() < WRITES) {
        let outcome = write_until_killed(binary, home.path(), &mut writers, &mut random)
            .and_then(|()| inspect(binary, home.path(), &mut writers, &mut lucky));
        if let Err(error) = outcome {
            let kept = home.keep();
            return Err(error.context(format!("kill {kills}, seed {seed}; the vault is kept in {}", kept.display())));
        }
        kills += 1;
    }
    let mut verify = Command::new(binary);
    shell::output(verify.arg("verify").current_dir(home.path()).env_remove("QUIPU_VAULT"))?;
    ensure!(kills > 3, "only {kills} kills: this tested nothing");
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "memory: {WRITERS} writers × {WRITES} writes, {kills} kills, every acknowledged change there exactly once, \
         merges and their undos as acknowledged, {lucky} that were not acknowledged there whole, in {seconds:.1} s"
    );
    Ok(())
}

/// Writes until the server is killed or everything is written.
fn write_until_killed(binary: &Path, vault: &Path, writers: &mut [Writer], random: &mut Random) -> anyhow::Result<()> {
    let mut server = super::server(binary, vault);
    let (child, mut wire) = Client::start(server.stderr(std::process::Stdio::null()))?.into_parts();
    wire.shake_hands()?;
    let moment = Duration::from_micros(random.below(LONGEST.as_micros() as usize) as u64);
    let wanted = 1 + random.below(MOST_ANSWERS);
    let kill = move |mut child: Child| {
        thread::spawn(move || {
            thread::sleep(moment);
            child.kill().and_then(|()| child.wait())
        })
    };
    let (mut child, mut killer, mut answers) = (Some(child), None, 0);
    let mut write = || -> anyhow::Result<()> {
        let mut sent: HashMap<u64, usize> = HashMap::new();
        loop {
            for (number, writer) in writers.iter_mut().enumerate() {
                if writer.under_way.is_none() && writer.done.len() < WRITES {
                    let (tool, arguments, write) = call(number, writer);
                    sent.insert(wire.send_call(tool, &arguments)?, number);
                    writer.under_way = Some(write);
                }
            }
            if sent.is_empty() {
                return Ok(());
            }
            let answer = wire.receive()?;
            let number = sent.remove(&answer.id).context("an answer to nothing that was asked")?;
            let made = answer.value().with_context(|| format!("a write failed: {}", answer.message))?;
            ensure!(made.get("warning").is_none(), "a write was held back: {made}");
            writers[number].acknowledged(&made);
            answers += 1;
            if answers == wanted {
                killer = child.take().map(kill);
            }
        }
    };
    let outcome = write();
    let killer = killer.or_else(|| child.map(kill)).expect("the server was started");
    killer.join().expect("the killer does not panic").context("the server could not be killed")?;
    match outcome {
        Err(error) if !is_hung_up(&error) => Err(error),
        _ => Ok(()),
    }
}

impl Writer {
    fn acknowledged(&mut self, made: &Value) {
        if let (Some(id), Some(text)) = (made["observation_id"].as_i64(), made["observation_content"].as_str()) {
            self.last = Some((id, text.to_owned()));
        }
        match self.under_way.as_ref() {
            Some(Write::Merge(_)) => self.merge = made["change"].as_i64(),
            Some(Write::Undo(_)) => self.merge = None,
            _ => {
                if let (Some(id), Some(name)) = (made["entity_id"].as_i64(), made["name"].as_str()) {
                    (self.entity, self.merge) = (Some((id, name.to_owned())), None);
                }
            }
        }
        self.done.extend(self.under_way.take());
    }
}

/// The next call of a writer, and what it leaves. Where the ids of a call are not known after a kill, it is an observation.
fn call(writer: usize, state: &Writer) -> (&'static str, Value, Write) {
    let number = state.done.len();
    let mark = |part: &str| format!("mark {writer}x{number}x{part}");
    let (name, seen, more) = (mark("name"), mark("seen"), mark("more"));
    let marks = |marks: &[&String]| Write::Marks(marks.iter().map(|mark| (*mark).clone()).collect());
    match (number % 7, &state.last, &state.entity, state.merge) {
        (0, ..) => ("create_entity", json!({ "name": name, "entity_type": "Mark", "force": true }), marks(&[&name])),
        (3, Some((id, text)), ..) => {
            let fixed = json!({ "observation_id": id, "text_content": format!("{text} {more}") });
            ("update_observation", fixed, marks(&[&more]))
        }
        (4, ..) => {
            let arguments = json!({
                "entities": [{ "name": name, "entity_type": "Mark", "observations": [seen] }],
                "observations": [{ "entity_id": name, "text_content": more }],
                "relations": [{ "from_entity_id": name, "to_entity_id": writer + 1, "relation_type": "of" }],
            });
            ("bulk_update", arguments, marks(&[&name, &seen, &more]))
        }
        (5, _, Some((id, name)), None) => {
            let merge = json!({ "entity_id": id, "into_entity_id": writer + 1 });
            ("merge_entities", merge, Write::Merge(name.clone()))
        }
        // Every other merge stays.
        (6, _, Some((_, name)), Some(change)) if number.is_multiple_of(2) => {
            ("undo_change", json!({ "change": change }), Write::Undo(name.clone()))
        }
        _ => ("create_observation", json!({ "entity_id": writer + 1, "text_content": seen }), marks(&[&seen])),
    }
}

/// Opens what the kill left and counts every mark in it.
fn inspect(binary: &Path, vault: &Path, writers: &mut [Writer], lucky: &mut usize) -> anyhow::Result<()> {
    let quipu = |arguments: &[&str]| -> anyhow::Result<String> {
        let mut command = Command::new(binary);
        command.args(arguments).current_dir(vault).env_remove("QUIPU_VAULT");
        shell::output(&mut command)
    };
    let export = quipu(&["export"])?;
    let found = counted(&export);
    let is_entity = |name: &String| export.contains(&format!("\"name\":\"{name}\""));
    let mut explained = 0;
    for writer in writers.iter_mut() {
        // Of an entity the last write counts.
        let mut merged: BTreeMap<String, bool> = BTreeMap::new();
        for write in &writer.done {
            match write {
                Write::Marks(marks) => {
                    for mark in marks {
                        let times = found.get(mark).copied().unwrap_or_default();
                        ensure!(times == 1, "{mark} was acknowledged and is there {times} times");
                        explained += 1;
                    }
                }
                Write::Merge(name) => drop(merged.insert(name.clone(), true)),
                Write::Undo(name) => drop(merged.insert(name.clone(), false)),
            }
        }
        let under_way = writer.under_way.take();
        let changing = match &under_way {
            Some(Write::Merge(name) | Write::Undo(name)) => Some(name),
            _ => None,
        };
        for (name, is_merged) in merged.iter().filter(|(name, _)| Some(*name) != changing) {
            ensure!(
                is_entity(name) != *is_merged,
                "{name}: its merge or the undo of it was acknowledged and is not there"
            );
        }
        let Some(write) = under_way else { continue };
        let is_there = match &write {
            Write::Marks(marks) => {
                let there = marks.iter().filter(|mark| found.get(*mark) == Some(&1)).count();
                if there != 0 && there != marks.len() {
                    bail!("of a write that was under way {there} of {} parts are there: {marks:?}", marks.len());
                }
                explained += there;
                there > 0
            }
            Write::Merge(name) => !is_entity(name),
            Write::Undo(name) => is_entity(name),
        };
        // Texts, ids and numbers of changes may be others than the writer knows.
        (writer.last, writer.entity, writer.merge) = (None, None, None);
        if is_there {
            writer.done.push(write);
            *lucky += 1;
        }
    }
    ensure!(found.len() == explained, "{} marks are there and {explained} were sent", found.len());
    Ok(())
}

/// Every mark of an export, and how often it stands there.
fn counted(export: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut rest = export;
    while let Some(at) = rest.find("mark ") {
        rest = &rest[at..];
        let end = rest[5..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest.len(), |end| end + 5);
        *found.entry(rest[..end].to_owned()).or_default() += 1;
        rest = &rest[end..];
    }
    found
}
