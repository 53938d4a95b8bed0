//! What a client does with notes: its log, the log that all write, and notes that it creates, moves and deletes. The index of each
//! server must follow, so they are looked for by their words, properties and paths.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::writer::{Answer, Writer};

/// The note that all clients write.
pub(super) const SHARED: &str = "shared.md";

/// A client deletes notes when it has this many.
const MOST: usize = 20;

/// The note that a client adds lines to.
pub(super) fn own_note(client: usize) -> String {
    format!("log{client}.md")
}

/// The folder of its other notes.
pub(super) fn folder(client: usize) -> String {
    format!("client{client}/")
}

impl Writer<'_> {
    pub(super) fn append_own(&mut self) -> anyhow::Result<()> {
        let line = self.word("line", self.done.own.len());
        // Only this client writes the note, and every server knows what any server showed to it.
        self.write_own("edit_node", &append(&own_note(self.number), &line))?;
        self.done.own.push(line);
        Ok(())
    }

    /// Reads the note that all write, and adds a line to the version that was read; again when another client was faster.
    pub(super) fn append_shared(&mut self) -> anyhow::Result<()> {
        let line = self.word("shared", self.done.shared.len());
        loop {
            let Some(lines) = self.lines(SHARED)? else { continue };
            let missing = self.told.iter().find(|told| !lines.contains(told));
            ensure!(missing.is_none(), "{SHARED} lacks {missing:?}, which client {} was shown", self.number);
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
    pub(super) fn check_own(&mut self) -> anyhow::Result<()> {
        let note = own_note(self.number);
        if let Some(lines) = self.lines(&note)? {
            ensure!(lines == self.done.own, "{note} has {} lines of {}: {lines:?}", lines.len(), self.done.own.len());
        }
        Ok(())
    }

    /// Creates, moves or deletes a note.
    pub(super) fn change_notes(&mut self) -> anyhow::Result<()> {
        let count = self.done.notes.len();
        self.made += 1;
        if count == 0 || (count < MOST && self.random.below(2) == 0) {
            let (path, word) = (format!("{}new{}.md", folder(self.number), self.made), self.word("note", self.made));
            let content = format!("---\nowner: client{}\n---\nIt has the word {word}.\n", self.number);
            self.write_own("create_node", &json!({ "id": path, "content": content }))?;
            self.done.notes.insert(path, word);
            return Ok(());
        }
        let picked = self.done.notes.keys().nth(self.random.below(count)).cloned().context("a note")?;
        let word = self.done.notes.remove(&picked).context("its word")?;
        if count < MOST && self.random.below(2) == 0 {
            let to = format!("{}moved{}.md", folder(self.number), self.made);
            self.write_own("move_node", &json!({ "id": picked, "to": to }))?;
            self.done.notes.insert(to, word);
        } else {
            let deleted = self.write_own("delete_node", &json!({ "id": picked }))?;
            ensure!(deleted["deleted"] == true, "{picked} did not exist: {deleted}");
            self.done.gone_note = Some(word);
        }
        Ok(())
    }

    /// Looks for the last line of the client's own note, and for the word of a note that was created, moved or deleted.
    pub(super) fn check_found_notes(&mut self) -> anyhow::Result<()> {
        let last = self.done.own.last().cloned().map(|line| (line, Some(own_note(self.number))));
        let any = self.random.below(self.done.notes.len().max(1));
        let kept = self.done.notes.iter().nth(any).map(|(path, word)| (word.clone(), Some(path.clone())));
        let gone = self.done.gone_note.clone().map(|word| (word, None));
        for (word, expected) in [last, kept, gone].into_iter().flatten() {
            if let Some(found) = self.read("search_docs", &json!({ "query": word }))? {
                check_paths("search_docs", &word, &found_paths(&found), expected)?;
            }
        }
        Ok(())
    }

    /// Lists the client's notes by path and by property.
    pub(super) fn check_listed_notes(&mut self) -> anyhow::Result<()> {
        let (client, expected): (_, Vec<String>) = (self.number, self.done.notes.keys().cloned().collect());
        for (tool, arguments) in listings(client) {
            if let Some(listed) = self.read(tool, &arguments)? {
                check_paths(tool, &folder(client), &listed_paths(&listed), expected.iter().cloned())?;
            }
        }
        Ok(())
    }

    /// The lines of a note; `None` if the answer says that it may be out of date.
    fn lines(&mut self, note: &str) -> anyhow::Result<Option<Vec<String>>> {
        let (mut text, mut offset) = (String::new(), Some(0));
        while let Some(from) = offset {
            let Some(content) = self.read("get_node", &json!({ "id": note, "offset": from }))? else {
                return Ok(None);
            };
            text.push_str(content["content"].as_str().with_context(|| format!("{content}"))?);
            offset = content["truncated"]["next_offset"].as_u64();
        }
        Ok(Some(lines_of(&text)))
    }
}

/// The calls that list the notes of a client through the index.
pub(super) fn listings(client: usize) -> [(&'static str, Value); 2] {
    let is_owned = json!({ "field": "property.owner", "op": "eq", "value": format!("client{client}") });
    [
        ("list_nodes", json!({ "path": folder(client), "limit": 1000 })),
        ("query_nodes", json!({ "where": [is_owned], "limit": 1000 })),
    ]
}

pub(super) fn listed_paths(listed: &Value) -> BTreeSet<String> {
    let nodes = listed["nodes"].as_array().into_iter().flatten();
    nodes.filter_map(|node| node["id"].as_str().map(str::to_owned)).collect()
}

pub(super) fn found_paths(found: &Value) -> BTreeSet<String> {
    let results = found["results"].as_array().into_iter().flatten();
    results.filter_map(|result| result["document"]["path"].as_str().map(str::to_owned)).collect()
}

pub(super) fn check_paths(
    tool: &str,
    what: &str,
    found: &BTreeSet<String>,
    expected: impl IntoIterator<Item = String>,
) -> anyhow::Result<()> {
    let expected: BTreeSet<String> = expected.into_iter().collect();
    ensure!(*found == expected, "{tool} finds {found:?} for {what}, not {expected:?}");
    Ok(())
}

/// The lines of a note's text after the first.
pub(super) fn lines_of(text: &str) -> Vec<String> {
    text.lines().skip(1).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn append(note: &str, line: &str) -> Value {
    json!({ "id": note, "edits": [{ "op": "append", "text": line }] })
}
