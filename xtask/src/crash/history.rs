//! The history after a kill: a chain of versions for every path, and the kept bytes of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_core::model::ContentHash;
use serde_json::Value;

/// Checks the history of a vault that only the write load changes; returns the number of its writes.
pub(super) fn inspect(vault: &Path) -> anyhow::Result<u64> {
    let text = match fs::read_to_string(vault.join(".quipu/history.jsonl")) {
        // Killed before the first write.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        text => text?,
    };
    let mut versions: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut count = 0;
    for line in text.lines() {
        let write: Value = serde_json::from_str(line).with_context(|| format!("a line of the history: {line}"))?;
        count += 1;
        ensure!(write["n"] == count, "write {count} has the number {}", write["n"]);
        for file in write["files"].as_array().context("a write has files")? {
            follow(vault, file, &mut versions).with_context(|| line.to_owned())?;
        }
    }
    for (path, version) in versions {
        let found = fs::read(vault.join(&path)).ok().map(|bytes| hex(&bytes));
        ensure!(found == version, "{path} is not the version that the history has last");
    }
    Ok(count)
}

/// The paths whose last write changed nothing else and can be undone, each with the number of that write and the text before it.
pub(super) fn undoable(vault: &Path) -> anyhow::Result<BTreeMap<String, (u64, Option<String>)>> {
    let text = fs::read_to_string(vault.join(".quipu/history.jsonl")).unwrap_or_default();
    let mut last: BTreeMap<String, Option<(u64, Value)>> = BTreeMap::new();
    for line in text.lines() {
        let write: Value = serde_json::from_str(line).with_context(|| format!("a line of the history: {line}"))?;
        let files = write["files"].as_array().context("a write has files")?;
        for path in files.iter().flat_map(|file| [&file["path"], &file["from"]]).filter_map(Value::as_str) {
            let is_plain = |file: &Value| matches!(file["do"].as_str(), Some("create" | "edit" | "delete" | "revert"));
            let alone = files.first().filter(|file| files.len() == 1 && is_plain(file));
            last.insert(path.to_owned(), alone.cloned().zip(write["n"].as_u64()).map(|(file, number)| (number, file)));
        }
    }
    let mut undoable = BTreeMap::new();
    for (path, (number, file)) in last.into_iter().filter_map(|(path, write)| Some((path, write?))) {
        let kept = file["old"].is_object().then(|| file["kept"].as_str().context("an old version is kept"));
        let before = kept.transpose()?.map(|kept| fs::read_to_string(vault.join(".quipu/trash").join(kept)));
        undoable.insert(path, (number, before.transpose()?));
    }
    Ok(undoable)
}

/// Waits until a server that has just started has finished the redactions that a kill interrupted: it answers before that.
pub(super) fn await_redactions(vault: &Path) -> anyhow::Result<()> {
    let interrupted = interrupted_redactions(vault)?;
    let until = Instant::now() + Duration::from_secs(30);
    let is_there = |(path, placeholder): &(String, String)| {
        fs::read(vault.join(path)).is_ok_and(|bytes| hex(&bytes) == *placeholder)
    };
    // A write in the journal may be one that begins a redaction.
    let is_recovering = || vault.join(".quipu/journal.json").exists();
    while is_recovering() || !interrupted_redactions(vault)?.is_empty() || interrupted.iter().any(is_there) {
        ensure!(Instant::now() < until, "the redaction of {interrupted:?} is not finished after a start");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The paths of redactions whose line in the history still has a new text, with its hash.
fn interrupted_redactions(vault: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let text = fs::read_to_string(vault.join(".quipu/history.jsonl")).unwrap_or_default();
    let mut found = Vec::new();
    // The last line may be half written while the server runs.
    for write in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        for file in write["files"].as_array().context("a write has files")? {
            if let ("redact", Some(hash)) = (file["do"].as_str().unwrap_or_default(), file["new"]["hash"].as_str()) {
                found.push((file["path"].as_str().context("a file has a path")?.to_owned(), hash.to_owned()));
            }
        }
    }
    Ok(found)
}

/// Follows one file of a write: it must continue where the last one about its path ended.
fn follow(vault: &Path, file: &Value, versions: &mut BTreeMap<String, Option<String>>) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let path = text(&file["path"]).context("a file has a path")?;
    let from = text(&file["from"]).unwrap_or_else(|| path.clone());
    let (old, new) = (text(&file["old"]["hash"]), text(&file["new"]["hash"]));
    if old.is_none() && new.is_none() {
        // A file that is not a note was renamed.
        return Ok(());
    }
    if let Some(known) = versions.get(&from) {
        ensure!(*known == old, "{from} was {known:?} before");
    }
    if let Some(old) = &old {
        let kept = text(&file["kept"]).context("an old version is kept")?;
        let bytes = fs::read(vault.join(".quipu/trash").join(&kept)).with_context(|| kept.clone())?;
        ensure!(hex(&bytes) == *old, "{kept} is another version");
    }
    versions.insert(from, None);
    versions.insert(path, new);
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    ContentHash::of(bytes).0.iter().map(|byte| format!("{byte:02x}")).collect()
}
