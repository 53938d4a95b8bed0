//! A client that writes notes and memory through any server, repeats a call whose answer it did not get, and checks that no
//! answer is older than what it was told before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use quipu_core::ports::{Clock, SystemClock};
use quipu_testkit::generate::Random;
use serde_json::{Value, json};

use super::server::TeamServer;
use crate::load::client::Client;

/// After this time without an answer, a client asks another server.
const PATIENCE: Duration = Duration::from_secs(4);

/// A client gives up the whole run after waiting so long for one write.
const LONGEST: Duration = Duration::from_secs(120);

/// The note that all clients write.
pub(super) const SHARED: &str = "shared.md";

/// The error for a call that may be retried, and the warning of an answer that may be out of date.
const LATER: [&str; 5] = [
    "still being indexed",
    "the database has been unreachable",
    "disk is full",
    "the database was busy",
    "the database is read-only",
];
const OUTDATED: &str = "may be out of date";
const CHANGED: &str = "changed elsewhere";

/// The work of one client.
#[derive(Default)]
pub(super) struct Done {
    /// Lines of the client's own note, those of the shared one, and observations, as acknowledged.
    pub(super) own: Vec<String>,
    pub(super) shared: Vec<String>,
    pub(super) observations: Vec<String>,
    pub(super) waits: Vec<Duration>,
    pub(super) reads: usize,
    /// Answers that said that they may be out of date.
    pub(super) outdated: usize,
    /// Writes that were refused because another client had written first.
    pub(super) refused: usize,
}

pub(super) struct Writer<'t> {
    number: usize,
    servers: &'t [TeamServer],
    random: Random,
    entity: Value,
    /// Lines of the shared note that this client was told of.
    told: Vec<String>,
    connection: Option<(usize, Client)>,
    done: Done,
}

/// The result of a call that was answered.
enum Answer {
    Done(Value),
    /// Refused because of another write.
    Changed,
}

impl<'t> Writer<'t> {
    pub(super) fn new(number: usize, servers: &'t [TeamServer], seed: u64, entity: Value) -> Self {
        let random = Random(seed.wrapping_mul(1000).wrapping_add(number as u64 + 1));
        let (told, connection, done) = (Vec::new(), None, Done::default());
        Self { number, servers, random, entity, told, connection, done }
    }

    /// The client's own note.
    pub(super) fn own_note(number: usize) -> String {
        format!("log{number}.md")
    }

    pub(super) fn write_until(mut self, is_over: &AtomicBool) -> anyhow::Result<Done> {
        while !is_over.load(Ordering::Relaxed) {
            let started = Instant::now();
            match self.random.below(6) {
                0 | 1 => self.append_own()?,
                2 | 3 => self.observe()?,
                4 => self.append_shared()?,
                _ => {
                    self.check_own()?;
                    continue;
                }
            }
            self.done.waits.push(started.elapsed());
        }
        Ok(self.done)
    }

    fn append_own(&mut self) -> anyhow::Result<()> {
        let line = format!("client{}-{}", self.number, self.done.own.len());
        let arguments = append(&Self::own_note(self.number), &line);
        // Only this client writes the note, and every server knows what any server showed to it.
        match self.write("edit_node", &arguments)? {
            Answer::Done(_) => self.done.own.push(line),
            Answer::Changed => bail!("a write to {} was refused", Self::own_note(self.number)),
        }
        Ok(())
    }

    fn observe(&mut self) -> anyhow::Result<()> {
        let text = format!("client{} saw {}", self.number, self.done.observations.len());
        let arguments = json!({ "entity_id": self.entity, "text_content": text });
        match self.write("create_observation", &arguments)? {
            Answer::Done(_) => self.done.observations.push(text),
            Answer::Changed => bail!("an observation was refused"),
        }
        Ok(())
    }

    /// Reads the note that all write, and adds a line to the version that was read; again when another client was faster.
    fn append_shared(&mut self) -> anyhow::Result<()> {
        let line = format!("client{}-shared{}", self.number, self.done.shared.len());
        loop {
            let lines = self.read(SHARED)?;
            let Some(lines) = lines else { continue };
            let missing = self.told.iter().find(|told| !lines.contains(told));
            ensure!(missing.is_none(), "{SHARED} lacks {missing:?}, which client {} was told of", self.number);
            self.told = lines;
            match self.write("edit_node", &append(SHARED, &line))? {
                Answer::Done(_) => break,
                Answer::Changed => self.done.refused += 1,
            }
        }
        self.told.push(line.clone());
        self.done.shared.push(line);
        Ok(())
    }

    /// Reads the client's own note: all that was acknowledged is in it, in order, and nothing else.
    fn check_own(&mut self) -> anyhow::Result<()> {
        let note = Self::own_note(self.number);
        if let Some(lines) = self.read(&note)? {
            ensure!(lines == self.done.own, "{note} has {} lines of {}: {lines:?}", lines.len(), self.done.own.len());
        }
        Ok(())
    }

    /// The lines of a note; `None` if the answer says that it may be out of date.
    fn read(&mut self, note: &str) -> anyhow::Result<Option<Vec<String>>> {
        let (mut lines, mut offset) = (String::new(), Some(0));
        while let Some(from) = offset {
            let Answer::Done(answer) = self.call("get_node", &json!({ "id": note, "offset": from }), None)? else {
                bail!("a read was refused");
            };
            self.done.reads += 1;
            if answer["_meta"]["quipu/warnings"].to_string().contains(OUTDATED) {
                self.done.outdated += 1;
                return Ok(None);
            }
            let content = &answer["structuredContent"];
            lines.push_str(content["content"].as_str().with_context(|| format!("{answer}"))?);
            offset = content["truncated"]["next_offset"].as_u64();
        }
        let lines = lines.lines().skip(1).filter(|line| !line.is_empty());
        Ok(Some(lines.map(str::to_owned).collect()))
    }

    fn write(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
        let key = request_key(&mut self.random);
        self.call(tool, arguments, Some(&key))
    }

    /// Calls a tool at any server until one answers.
    fn call(&mut self, tool: &str, arguments: &Value, key: Option<&str>) -> anyhow::Result<Answer> {
        let started = Instant::now();
        loop {
            ensure!(started.elapsed() < LONGEST, "no answer to {tool} for {} s", LONGEST.as_secs());
            // Mostly another server than the last time.
            let at = self.random.below(self.servers.len());
            match self.call_at(at, tool, arguments, key) {
                Ok(result) if result["isError"] == json!(false) => return Ok(Answer::Done(result)),
                Ok(result) => {
                    let text = result.to_string();
                    if text.contains(CHANGED) {
                        return Ok(Answer::Changed);
                    }
                    ensure!(LATER.iter().any(|later| text.contains(later)), "{tool} {arguments}: {text}");
                }
                // No answer: the call may have taken effect.
                Err(_) => self.connection = None,
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn call_at(&mut self, at: usize, tool: &str, arguments: &Value, key: Option<&str>) -> anyhow::Result<Value> {
        if !matches!(&self.connection, Some((to, _)) if *to == at) {
            let name = format!("client{}", self.number);
            self.connection = Some((at, Client::connect_as(&name, &self.servers[at].url(), "", PATIENCE)?));
        }
        let (_, client) = self.connection.as_mut().context("just connected")?;
        client.call_once(tool, arguments, key)
    }
}

fn append(note: &str, line: &str) -> Value {
    json!({ "id": note, "edits": [{ "op": "append", "text": line }] })
}

/// The key of one call: a UUID of version 7.
fn request_key(random: &mut Random) -> String {
    let ms = u128::try_from(SystemClock.now_ns() / 1_000_000).unwrap_or_default();
    let random = u128::from(random.next_u64());
    let text = format!("{:032x}", ms << 80 | 0x7 << 76 | 0x2 << 62 | random & ((1 << 62) - 1));
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
