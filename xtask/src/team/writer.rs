//! A client that writes notes and memory through any server, repeats a call whose answer it did not get, and checks that no
//! answer is older than what it was shown before: what it reads itself, and what it finds through the index.

use std::collections::BTreeMap;
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

/// The errors for a call that may be retried.
const LATER: [&str; 5] = [
    "still being indexed",
    "the database has been unreachable",
    "disk is full",
    "the database was busy",
    "the database is read-only",
];

/// The warnings of an answer that may be out of date, or does not cover all notes yet.
const OUTDATED: [&str; 2] = ["may be out of date", "still being indexed"];

const CHANGED: &str = "changed elsewhere";

/// The work of one client.
#[derive(Default)]
pub(super) struct Done {
    /// Lines of the client's own note, those of the shared one, and observations of its entity, as acknowledged.
    pub(super) own: Vec<String>,
    pub(super) shared: Vec<String>,
    pub(super) observations: Vec<String>,
    /// The other notes of the client: the path of each, and the word in it.
    pub(super) notes: BTreeMap<String, String>,
    /// The other entities of the client: the id of each, and the word observed of it.
    pub(super) things: BTreeMap<i64, String>,
    /// The words of the note and of the entity that were deleted last.
    pub(super) gone_note: Option<String>,
    pub(super) gone_thing: Option<String>,
    pub(super) waits: Vec<Duration>,
    pub(super) reads: usize,
    /// Answers that said that they may be out of date.
    pub(super) outdated: usize,
    /// Writes that were refused because another client had written first.
    pub(super) refused: usize,
}

pub(super) struct Writer<'t> {
    pub(super) number: usize,
    servers: &'t [TeamServer],
    pub(super) random: Random,
    pub(super) entity: i64,
    /// Lines of the shared note that this client was shown.
    pub(super) told: Vec<String>,
    /// Notes and entities made so far.
    pub(super) made: usize,
    connection: Option<(usize, Client)>,
    pub(super) done: Done,
}

/// The result of a call that was answered.
pub(super) enum Answer {
    Done(Value),
    /// Refused because of another write.
    Changed,
}

impl<'t> Writer<'t> {
    pub(super) fn new(number: usize, servers: &'t [TeamServer], seed: u64, entity: i64) -> Self {
        let random = Random(seed.wrapping_mul(1000).wrapping_add(number as u64 + 1));
        let (told, made, connection, done) = (Vec::new(), 0, None, Done::default());
        Self { number, servers, random, entity, told, made, connection, done }
    }

    pub(super) fn write_until(mut self, is_over: &AtomicBool) -> anyhow::Result<Done> {
        while !is_over.load(Ordering::Relaxed) {
            let started = Instant::now();
            match self.random.below(16) {
                0..3 => self.append_own()?,
                3..6 => self.observe()?,
                6 | 7 => self.append_shared()?,
                8 | 9 => self.change_notes()?,
                10 | 11 => self.change_things()?,
                read => {
                    match read {
                        12 => self.check_own()?,
                        13 => self.check_found_notes()?,
                        14 => self.check_listed_notes()?,
                        _ => self.check_found_things()?,
                    }
                    continue;
                }
            }
            self.done.waits.push(started.elapsed());
        }
        Ok(self.done)
    }

    /// A word that is in one text of this client, and part of no other word.
    pub(super) fn word(&self, kind: &str, count: usize) -> String {
        word(self.number, kind, count)
    }

    /// The answer of a tool that reads; `None` if it says that it may be out of date.
    pub(super) fn read(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Option<Value>> {
        let Answer::Done(answer) = self.call(tool, arguments, None)? else { bail!("a read was refused") };
        self.done.reads += 1;
        if is_outdated(&answer) {
            self.done.outdated += 1;
            return Ok(None);
        }
        Ok(Some(answer["structuredContent"].clone()))
    }

    /// The answer to a write of something that only this client changes.
    pub(super) fn write_own(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        match self.write(tool, arguments)? {
            Answer::Done(answer) => Ok(answer["structuredContent"].clone()),
            Answer::Changed => bail!("{tool} {arguments} was refused"),
        }
    }

    pub(super) fn write(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
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

/// Whether an answer says that it may be out of date.
pub(super) fn is_outdated(answer: &Value) -> bool {
    let warnings = answer["_meta"]["quipu/warnings"].to_string();
    OUTDATED.iter().any(|outdated| warnings.contains(outdated))
}

/// A word of a client that is in one text, and part of no other word.
pub(super) fn word(client: usize, kind: &str, count: usize) -> String {
    format!("client{client}{kind}{count}end")
}

/// The key of one call: a UUID of version 7.
fn request_key(random: &mut Random) -> String {
    let ms = u128::try_from(SystemClock.now_ns() / 1_000_000).unwrap_or_default();
    let random = u128::from(random.next_u64());
    let text = format!("{:032x}", ms << 80 | 0x7 << 76 | 0x2 << 62 | random & ((1 << 62) - 1));
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
