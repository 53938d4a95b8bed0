//! Compares what every server has, after the faults, with what was acknowledged: by reading it, and by finding it through the
//! index.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::notes::{self, SHARED};
use super::server::TeamServer;
use super::things;
use super::writer::{Done, is_outdated};
use crate::load::client::Client;

/// Observations read at once.
const PER_PAGE: usize = 500;

pub(super) fn inspect(servers: &[TeamServer], done: &[Done], entities: &[i64]) -> anyhow::Result<()> {
    for (place, server) in servers.iter().enumerate() {
        let mut client = Client::connect(&server.url(), "")?;
        for (number, (done, entity)) in done.iter().zip(entities).enumerate() {
            // First what the index has: reading a note repairs its entry.
            let of_client = || format!("server {place}, client {number}");
            index(&mut client, number, done, *entity).with_context(of_client)?;
            contents(&mut client, number, done, *entity).with_context(of_client)?;
        }
        let notes = 1 + done.iter().map(|done| 1 + done.notes.len()).sum::<usize>();
        let total = answer(&mut client, "list_nodes", &json!({ "limit": 1 }))?["total"].clone();
        ensure!(total == notes, "server {place}: {total} notes, not {notes}");
        let mut shared = lines(&mut client, SHARED)?;
        let mut expected: Vec<String> = done.iter().flat_map(|done| done.shared.iter().cloned()).collect();
        shared.sort();
        expected.sort();
        ensure!(shared == expected, "server {place}: {} lines in {SHARED}, not {}", shared.len(), expected.len());
    }
    Ok(())
}

/// What is found through the index.
fn index(client: &mut Client, number: usize, done: &Done, entity: i64) -> anyhow::Result<()> {
    let own = done.own.last().map(|line| (line, Some(notes::own_note(number))));
    let shared = done.shared.last().map(|line| (line, Some(SHARED.to_owned())));
    let kept = done.notes.iter().map(|(path, word)| (word, Some(path.clone())));
    let gone = done.gone_note.iter().map(|word| (word, None));
    for (word, expected) in own.into_iter().chain(shared).chain(kept).chain(gone) {
        let found = answer(client, "search_docs", &json!({ "query": word }))?;
        notes::check_paths("search_docs", word, &notes::found_paths(&found), expected)?;
    }
    for (tool, arguments) in notes::listings(number) {
        let listed = answer(client, tool, &arguments)?;
        notes::check_paths(tool, "its notes", &notes::listed_paths(&listed), done.notes.keys().cloned())?;
    }
    let last = done.observations.last().map(|text| (text, Some(entity)));
    let kept = done.things.iter().map(|(id, word)| (word, Some(*id)));
    let gone = done.gone_thing.iter().map(|word| (word, None));
    for (word, expected) in last.into_iter().chain(kept).chain(gone) {
        things::check_found(word, &answer(client, "search_entities", &json!({ "query": word }))?, expected)?;
    }
    let related = answer(client, "find_relations", &things::related_to(entity))?;
    things::check_related(&related, done.things.keys().copied())
}

/// What is read itself.
fn contents(client: &mut Client, number: usize, done: &Done, entity: i64) -> anyhow::Result<()> {
    let lines = lines(client, &notes::own_note(number))?;
    ensure!(lines == done.own, "its log has {} lines, not {}", lines.len(), done.own.len());
    for (path, word) in &done.notes {
        let note = answer(client, "get_node", &json!({ "id": path }))?;
        ensure!(note["content"].as_str().is_some_and(|text| text.contains(word)), "{path} lacks {word}: {note}");
    }
    let found = observations(client, entity)?;
    let expected: BTreeMap<String, usize> = done.observations.iter().map(|text| (text.clone(), 1)).collect();
    ensure!(found == expected, "memory has {found:?}, not {expected:?}");
    Ok(())
}

fn answer(client: &mut Client, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
    let answer = client.call(tool, arguments)?;
    ensure!(answer["isError"] == false && !is_outdated(&answer), "{tool} {arguments}: {answer}");
    Ok(answer["structuredContent"].clone())
}

/// The lines of a note after its first.
fn lines(client: &mut Client, note: &str) -> anyhow::Result<Vec<String>> {
    let (mut text, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let read = answer(client, "get_node", &json!({ "id": note, "offset": from }))?;
        text.push_str(read["content"].as_str().with_context(|| format!("{read}"))?);
        offset = read["truncated"]["next_offset"].as_u64();
    }
    Ok(notes::lines_of(&text))
}

/// The observations of an entity, and how often each is there.
fn observations(client: &mut Client, entity: i64) -> anyhow::Result<BTreeMap<String, usize>> {
    let (mut found, mut skipped) = (BTreeMap::new(), 0);
    loop {
        let arguments = json!({ "entity_id": entity, "observations_offset": skipped, "limit": PER_PAGE });
        let read = answer(client, "get_entity", &arguments)?;
        let listed = read["observations"].as_array().with_context(|| format!("{read}"))?;
        for observation in listed {
            let text = observation["observation_content"].as_str().context("a text")?;
            *found.entry(text.to_owned()).or_default() += 1;
        }
        skipped += listed.len() as u64;
        if listed.is_empty() || Some(skipped) >= read["observations_total"].as_u64() {
            return Ok(found);
        }
    }
}
