//! One client: it writes, remembers the responses, and starts its server again when that is the one that was killed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use quipu_core::model::ContentHash;
use quipu_testkit::client::{Answer, Client};
use quipu_testkit::generate::Random;
use serde_json::{Value, json};

use super::Progress;
use crate::crash;

/// Starts in a row that a killing may spoil.
const MAX_FAILED: usize = 5;

/// What must be found of a write: a note's text, or none where it was deleted.
#[derive(Debug, Clone)]
pub(super) enum Expected {
    /// The last response to the client.
    Acknowledged(Option<String>),
    /// The client's own server was killed over it.
    UnderWay {
        /// The text before the write.
        before: Option<String>,
        /// The text that the write was to leave.
        after: Option<String>,
    },
}

/// The work of one client.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) acknowledged: usize,
    pub(super) restarts: usize,
    pub(super) waits: Vec<Duration>,
    pub(super) observations: BTreeMap<String, Expected>,
    pub(super) notes: BTreeMap<String, Expected>,
}

pub(super) struct Writer<'a> {
    binary: &'a Path,
    vault: &'a Path,
    number: u64,
    random: Random,
    tally: Tally,
    /// By note id: the text before the last write, while nothing else can have changed it.
    earlier: BTreeMap<String, String>,
}

/// Why a write has no answer.
enum Silence {
    /// The client's own server is gone.
    Gone,
    /// Something that must not happen.
    Wrong(anyhow::Error),
}

impl<'a> Writer<'a> {
    pub(super) fn new(binary: &'a Path, vault: &'a Path, number: u64) -> Self {
        Self { binary, vault, number, random: Random(number + 1), tally: Tally::default(), earlier: BTreeMap::new() }
    }

    pub(super) fn write_until(mut self, progress: &Progress) -> anyhow::Result<Tally> {
        let (mut steps, mut failed) = (0_u64, 0);
        'server: loop {
            // One that is killed as it starts is started again. It cannot be always the one that is killed.
            let Ok(mut client) = crash::serve(self.binary, self.vault) else {
                self.tally.restarts += 1;
                failed += 1;
                ensure!(failed < MAX_FAILED, "client {}: its server did not start {failed} times", self.number);
                continue;
            };
            failed = 0;
            let mut entity = None;
            loop {
                if progress.is_over.load(Ordering::SeqCst) {
                    drop(client.close());
                    return Ok(self.tally);
                }
                steps += 1;
                let outcome = match self.random.below(6) {
                    0 | 1 => self.remember(&mut client, &mut entity, steps),
                    2 | 3 => self.change_a_note(&mut client, steps),
                    4 => self.move_a_note(&mut client),
                    _ => self.move_a_folder(&mut client),
                };
                match outcome {
                    Ok(()) => {
                        self.tally.acknowledged += 1;
                        progress.acknowledged.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(Silence::Gone) => {
                        let (mut child, wire) = client.into_parts();
                        drop(wire);
                        child.wait()?;
                        self.tally.restarts += 1;
                        continue 'server;
                    }
                    Err(Silence::Wrong(error)) => return Err(error.context(format!("client {}", self.number))),
                }
            }
        }
    }

    /// A new observation, of an entity of this client's own.
    fn remember(&mut self, client: &mut Client, entity: &mut Option<Value>, step: u64) -> Result<(), Silence> {
        let text = format!("client {} step {step}", self.number);
        let Some(id) = entity.clone() else {
            let name = format!("Entity {} of client {}", step, self.number);
            self.tally.observations.insert(text.clone(), Expected::UnderWay { before: None, after: None });
            let arguments =
                json!({ "name": name, "entity_type": "Task", "observations": [text.clone()], "force": true });
            let made = self.call(client, "create_entity", &arguments)?;
            self.tally.observations.insert(text, Expected::Acknowledged(None));
            *entity = Some(made["entity_id"].clone());
            return if entity.as_ref().is_some_and(Value::is_i64) {
                Ok(())
            } else {
                Err(Silence::Wrong(anyhow::anyhow!("{name} was not made: {made}")))
            };
        };
        self.tally.observations.insert(text.clone(), Expected::UnderWay { before: None, after: None });
        let made = self.call(client, "create_observation", &json!({ "entity_id": id, "text_content": text }))?;
        self.tally.observations.insert(text.clone(), Expected::Acknowledged(None));
        match self.random.below(6) {
            0 => self.correct(client, &made["observation_id"], &text),
            1 => self.merge_and_undo(client, &id, step),
            _ => Ok(()),
        }
    }

    /// Another text for an observation: the old one is gone then.
    fn correct(&mut self, client: &mut Client, observation: &Value, text: &str) -> Result<(), Silence> {
        let corrected = format!("{text} corrected");
        for either in [text.to_owned(), corrected.clone()] {
            self.tally.observations.insert(either, Expected::UnderWay { before: None, after: None });
        }
        let arguments = json!({ "observation_id": observation, "text_content": corrected });
        self.call(client, "update_observation", &arguments)?;
        self.tally.observations.remove(text);
        self.tally.observations.insert(corrected, Expected::Acknowledged(None));
        Ok(())
    }

    /// Another entity, merged into this client's own and taken out again. Done twice, each of the two is refused.
    fn merge_and_undo(&mut self, client: &mut Client, into: &Value, step: u64) -> Result<(), Silence> {
        let text = format!("client {} double {step}", self.number);
        self.tally.observations.insert(text.clone(), Expected::UnderWay { before: None, after: None });
        let name = format!("Double {step} of client {}", self.number);
        let arguments = json!({ "name": name, "entity_type": "Task", "observations": [text.clone()], "force": true });
        let made = self.call(client, "create_entity", &arguments)?;
        self.tally.observations.insert(text, Expected::Acknowledged(None));
        let merge = json!({ "entity_id": made["entity_id"], "into_entity_id": into });
        let merged = self.call(client, "merge_entities", &merge)?;
        let undone = self.call(client, "undo_change", &json!({ "change": merged["change"] }))?;
        match undone["undone_by"].is_i64() {
            true => Ok(()),
            false => Err(Silence::Wrong(anyhow::anyhow!("{name} was not taken out again: {undone}"))),
        }
    }

    /// A note of this client's own that nothing links to, made or moved to its other folder.
    fn move_a_note(&mut self, client: &mut Client) -> Result<(), Silence> {
        let paths = ["a", "b"].map(|folder| format!("client{}/{folder}/alone{0}.md", self.number));
        let text = format!("moved by client {}\n", self.number);
        let found = [self.settled(&paths[0])?, self.settled(&paths[1])?];
        let (from, to) = match &found {
            [None, None] => (None, &paths[0]),
            [Some(_), None] => (Some(&paths[0]), &paths[1]),
            [None, Some(_)] => (Some(&paths[1]), &paths[0]),
            [Some(_), Some(_)] => return Err(Silence::Wrong(anyhow::anyhow!("{paths:?} are both there after a move"))),
        };
        let text = Some(text);
        for (path, before, after) in from.iter().map(|from| (*from, &text, &None)).chain([(to, &None, &text)]) {
            let expected = Expected::UnderWay { before: before.clone(), after: after.clone() };
            self.tally.notes.insert(path.clone(), expected);
        }
        match from {
            None => self.call(client, "create_node", &json!({ "id": to, "content": text }))?,
            Some(from) => self.call(client, "move_node", &json!({ "id": from, "to": to }))?,
        };
        if let Some(from) = from {
            self.tally.notes.insert(from.clone(), Expected::Acknowledged(None));
        }
        self.tally.notes.insert(to.clone(), Expected::Acknowledged(text));
        Ok(())
    }

    /// A folder of this client's own, with two notes that nothing else links to, made or moved to its other place.
    fn move_a_folder(&mut self, client: &mut Client) -> Result<(), Silence> {
        let (me, number) = (format!("client{}", self.number), self.number);
        let folders = ["here", "deep/there"].map(|place| format!("{me}/{place}"));
        let notes = [("part", format!("[[whole{number}]]\n")), ("whole", format!("[[part{number}]]\n"))];
        let path = |folder: &str, name: &str| format!("{folder}/{name}{number}.md");
        let mut found = Vec::new();
        for (folder, (name, _)) in folders.iter().flat_map(|folder| notes.iter().map(move |note| (folder, note))) {
            if self.settled(&path(folder, name))?.is_some() {
                found.push(folder.clone());
            }
        }
        if found.iter().any(|folder| *folder != found[0]) {
            return Err(Silence::Wrong(anyhow::anyhow!("a moved folder is in two places: {found:?}")));
        }
        if found.len() < notes.len() {
            let folder = found.first().unwrap_or(&folders[0]);
            for (name, text) in &notes {
                let id = path(folder, name);
                if self.settled(&id)?.is_none() {
                    self.expect(&id, None, Some(text));
                    self.call(client, "create_node", &json!({ "id": id, "content": text }))?;
                    self.tally.notes.insert(id, Expected::Acknowledged(Some(text.clone())));
                }
            }
            return Ok(());
        }
        let (from, to) = if found[0] == folders[0] { (&folders[0], &folders[1]) } else { (&folders[1], &folders[0]) };
        for (name, text) in &notes {
            self.expect(&path(from, name), Some(text), None);
            self.expect(&path(to, name), None, Some(text));
        }
        let moved = json!({ "id": format!("{from}/"), "to": format!("{to}/") });
        self.call(client, "move_node", &moved)?;
        for (name, text) in notes {
            self.tally.notes.insert(path(from, name), Expected::Acknowledged(None));
            self.tally.notes.insert(path(to, name), Expected::Acknowledged(Some(text)));
        }
        Ok(())
    }

    /// A write of a note is under way.
    fn expect(&mut self, id: &str, before: Option<&String>, after: Option<&String>) {
        let expected = Expected::UnderWay { before: before.cloned(), after: after.cloned() };
        self.tally.notes.insert(id.to_owned(), expected);
    }

    /// A note of this client's own made, changed, deleted, redacted, or given an earlier text.
    fn change_a_note(&mut self, client: &mut Client, step: u64) -> Result<(), Silence> {
        let id = format!("client{}/note{}.md", self.number, self.random.below(6));
        let before = self.settled(&id)?;
        let text = format!("storm {step} of client {}\n\n[[note{}]]\n", self.number, self.random.below(6));
        let (tool, arguments, after) = match &before {
            None => ("create_node", json!({ "id": id, "content": text }), Some(text.clone())),
            Some(_) if self.random.below(4) == 0 => ("delete_node", json!({ "id": id }), None),
            Some(_) if self.random.below(12) == 0 => {
                ("redact", json!({ "kind": "note", "id": id, "reason": "a secret" }), None)
            }
            Some(_) if self.earlier.contains_key(&id) && self.random.below(2) == 0 => {
                let earlier = self.earlier[&id].clone();
                self.go_back(client, &id, &earlier)?
            }
            // Done twice, the line is there twice.
            Some(before) if self.random.below(2) == 0 => {
                let line = format!("edit {step}");
                let edits = json!([{ "op": "append", "text": line }]);
                ("edit_node", json!({ "id": id, "edits": edits }), Some(format!("{before}{line}\n")))
            }
            Some(_) => {
                // A client that started again has not read it, and after an edit it knows a part only.
                self.call(client, "get_node", &json!({ "id": id }))?;
                ("update_node", json!({ "id": id, "content": text }), Some(text.clone()))
            }
        };
        self.earlier.remove(&id);
        self.expect(&id, before.as_ref(), after.as_ref());
        let answer = self.call(client, tool, &arguments)?;
        if tool == "delete_node" && answer["deleted"] != true {
            return Err(Silence::Wrong(anyhow::anyhow!("{id} was not deleted: {answer}")));
        }
        if let Some(before) = before.filter(|_| tool != "redact") {
            self.earlier.insert(id.clone(), before);
        }
        self.tally.notes.insert(id, Expected::Acknowledged(after));
        Ok(())
    }

    /// A call by which a note gets the text that it had before this client's last write.
    fn go_back(
        &mut self,
        client: &mut Client,
        id: &str,
        earlier: &str,
    ) -> Result<(&'static str, Value, Option<String>), Silence> {
        let after = Some(earlier.to_owned());
        // The history shows the note, which it must have been to be written.
        let history = self.call(client, "node_history", &json!({ "id": id, "limit": 1 }))?;
        let change = &history["versions"][0]["change"];
        if change.is_string() && self.random.below(2) == 0 {
            // Done twice, it is refused.
            return Ok(("undo_change", json!({ "change": change }), after));
        }
        let version = ContentHash::of(earlier.as_bytes()).to_string();
        Ok(("revert_node", json!({ "id": id, "version": version }), after))
    }

    /// What a note of this client's own holds now: one that was under way is looked at, as a person would.
    fn settled(&self, id: &str) -> Result<Option<String>, Silence> {
        match self.tally.notes.get(id) {
            None => Ok(None),
            Some(Expected::Acknowledged(text)) => Ok(text.clone()),
            Some(expected @ Expected::UnderWay { before, after }) => {
                let found = std::fs::read_to_string(self.vault.join(id)).ok();
                if found != *before && found != *after {
                    return Err(Silence::Wrong(anyhow::anyhow!("{id} holds {found:?}, and was {expected:?}")));
                }
                Ok(found)
            }
        }
    }

    fn call(&mut self, client: &mut Client, tool: &str, arguments: &Value) -> Result<Value, Silence> {
        let started = Instant::now();
        let answer = match client.call(tool, arguments) {
            Ok(answer) => answer,
            Err(error) if is_gone(&error) => return Err(Silence::Gone),
            Err(error) => return Err(Silence::Wrong(error.into())),
        };
        self.tally.waits.push(started.elapsed());
        value(&answer, tool, arguments).map_err(Silence::Wrong)
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn value(answer: &Answer, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
    let Some(value) = answer.value() else {
        bail!("{tool} {arguments} failed: {}", answer.message);
    };
    Ok(value)
}
