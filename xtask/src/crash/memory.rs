//! The same for memory: eight writers over one connection, each with one call under way, and the server killed again and
//! again until all are through. Every acknowledged change is there exactly once; one under way, at most once and whole.

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
    done: usize,
    is_under_way: bool,
    /// The observation that was acknowledged last: its id and its text.
    last: Option<(i64, String)>,
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
    while writers.iter().any(|writer| writer.done < WRITES) {
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
         {lucky} that were not acknowledged there whole, in {seconds:.1} s"
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
                if !writer.is_under_way && writer.done < WRITES {
                    let (tool, arguments) = call(number, writer);
                    sent.insert(wire.send_call(tool, &arguments)?, number);
                    writer.is_under_way = true;
                }
            }
            if sent.is_empty() {
                return Ok(());
            }
            let answer = wire.receive()?;
            let number = sent.remove(&answer.id).context("an answer to nothing that was asked")?;
            let made = answer.value().with_context(|| format!("a write failed: {}", answer.message))?;
            ensure!(made.get("warning").is_none(), "a write was held back: {made}");
            writers[number].is_under_way = false;
            if let (Some(id), Some(text)) = (made["observation_id"].as_i64(), made["observation_content"].as_str()) {
                writers[number].last = Some((id, text.to_owned()));
            }
            writers[number].done += 1;
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

/// What one write says: marks that stand nowhere else.
fn marks(writer: usize, number: usize) -> Vec<String> {
    let mark = |part: &str| format!("mark {writer}x{number}x{part}");
    match number % 5 {
        0 => vec![mark("name")],
        1 | 2 => vec![mark("seen")],
        3 => vec![mark("fix")],
        _ => vec![mark("name"), mark("seen"), mark("more")],
    }
}

fn call(writer: usize, state: &Writer) -> (&'static str, Value) {
    let number = state.done;
    match marks(writer, number).as_slice() {
        [fix] if number % 5 == 3 && state.last.is_some() => {
            let (id, text) = state.last.as_ref().expect("just checked");
            ("update_observation", json!({ "observation_id": id, "text_content": format!("{text} {fix}") }))
        }
        [name, seen, more] => (
            "bulk_update",
            json!({
                "entities": [{ "name": name, "entity_type": "Mark", "observations": [seen] }],
                "observations": [{ "entity_id": name, "text_content": more }],
                "relations": [{ "from_entity_id": name, "to_entity_id": writer + 1, "relation_type": "of" }],
            }),
        ),
        [name] if number.is_multiple_of(5) => {
            ("create_entity", json!({ "name": name, "entity_type": "Mark", "force": true }))
        }
        seen => ("create_observation", json!({ "entity_id": writer + 1, "text_content": seen[0] })),
    }
}

/// Opens what the kill left and counts every mark in it.
fn inspect(binary: &Path, vault: &Path, writers: &mut [Writer], lucky: &mut usize) -> anyhow::Result<()> {
    let quipu = |arguments: &[&str]| -> anyhow::Result<String> {
        let mut command = Command::new(binary);
        command.args(arguments).current_dir(vault).env_remove("QUIPU_VAULT");
        shell::output(&mut command)
    };
    let found = counted(&quipu(&["export"])?);
    let mut explained = 0;
    for (number, writer) in writers.iter_mut().enumerate() {
        for write in 0..writer.done {
            for mark in marks(number, write) {
                let times = found.get(&mark).copied().unwrap_or_default();
                ensure!(times == 1, "{mark} was acknowledged and is there {times} times");
                explained += 1;
            }
        }
        if std::mem::take(&mut writer.is_under_way) {
            // Its text may have changed.
            writer.last = None;
            let marks = marks(number, writer.done);
            let there = marks.iter().filter(|mark| found.get(*mark) == Some(&1)).count();
            if there != 0 && there != marks.len() {
                bail!("of a write that was under way {there} of {} parts are there: {marks:?}", marks.len());
            }
            if there > 0 {
                explained += there;
                writer.done += 1;
                *lucky += 1;
            }
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
