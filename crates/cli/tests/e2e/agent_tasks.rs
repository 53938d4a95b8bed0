//! Everyday tasks of an agent, with the calls and characters they cost: `docs/agents.md` has the table. Each task is done
//! twice, with the tools that take and return whole notes and with those for parts; both must have the same effect.
//!
//! A new task is one function and one line in [`TASKS`]; `cargo xtask docs` writes the table again.

#![expect(clippy::disallowed_methods, reason = "compares a page of the repository")]

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, QUIPU, vault};

/// One task: its name, the vault, and the two ways to do it. Each way returns what must be equal.
type Task = (&'static str, fn() -> TempDir, fn(&mut Meter) -> String, fn(&mut Meter) -> String);

const TASKS: [Task; 9] = [
    ("fix one line in a 50 KB note", long_note, fix_line_whole, fix_line),
    ("append to a daily note of 3 KB", daily_note, append_whole, append),
    ("tick a task in a note of 3 KB", daily_note, tick_whole, tick),
    ("read one section of a 500 KB page", long_page, section_whole, section),
    ("all notes with status: draft changed this week, of 300", many_notes, drafts_whole, drafts),
    ("all orphans of 300 notes", many_notes, orphans_whole, orphans),
    ("tags with counts of 300 notes", many_notes, tags_whole, tags),
    ("rename a property in 200 of 300 notes", many_notes, rename_property_whole, rename_property),
    ("undo what another agent did an hour ago to a 50 KB note", edited_note, undo_whole, undo),
];

/// Counts what a client sends and gets: the arguments and the text of every answer.
struct Meter {
    client: Client,
    calls: usize,
    chars: usize,
}

impl Meter {
    fn open(vault: TempDir) -> Self {
        Self { client: Client::open_in(vault, &[]), calls: 0, chars: 0 }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.calls += 1;
        self.chars += tool.len() + arguments.to_string().chars().count();
        let result = self.client.call(tool, arguments);
        let blocks = result["content"].as_array().unwrap();
        let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
        self.chars += texts.map(|text| text.chars().count()).sum::<usize>();
        assert!(result["isError"] != true, "{tool}: {result}");
        serde_json::from_str(blocks[0]["text"].as_str().unwrap()).unwrap()
    }
}

#[test]
fn the_table_of_tasks_is_up_to_date() {
    let mut table =
        String::from("| task | whole notes: calls | characters | parts: calls | characters |\n|---|---|---|---|---|\n");
    for (name, fixture, before, after) in TASKS {
        let (mut old, mut new) = (Meter::open(fixture()), Meter::open(fixture()));
        assert_eq!(before(&mut old), after(&mut new), "{name}");
        assert!(new.chars < old.chars, "{name}: {} and {} characters", old.chars, new.chars);
        writeln!(table, "| {name} | {} | {} | {} | {} |", old.calls, old.chars, new.calls, new.chars).unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once("<!-- tasks -->\n").unwrap();
    let (kept, tail) = rest.split_once("<!-- end -->\n").unwrap();
    if std::env::var_os("QUIPU_WRITE_DOCS").is_some() {
        std::fs::write(&file, format!("{head}<!-- tasks -->\n{table}<!-- end -->\n{tail}")).unwrap();
        return;
    }
    assert_eq!(kept, table, "docs/agents.md is out of date; run `cargo xtask docs`");
}

/// Paragraphs of so many characters.
fn prose(chars: usize) -> String {
    let paragraph = "Notes are written in paragraphs like this one, which says nothing but fills a line.\n\n";
    paragraph.repeat(chars / paragraph.len())
}

fn long_note() -> TempDir {
    vault(&format!("//- note.md\n# Note\n\n{}The meeting is on Monday.\n\n{}", prose(25_000), prose(25_000)))
}

fn daily_note() -> TempDir {
    vault(&format!("//- note.md\n# 2026-11-16\n\n{}- [ ] call Ada\n- [x] mail Bob\n", prose(3_000)))
}

fn long_page() -> TempDir {
    let sections: String = (0..100).map(|n| format!("## Part {n}\n\n{}", prose(5_000))).collect();
    vault(&format!("//- note.md\n# Page\n\n{sections}"))
}

/// The long note after two edits of another agent: one of three hours ago, which stays, and one of an hour ago, which is wrong.
fn edited_note() -> TempDir {
    let folder = long_note();
    for (old, new) in [("# Note", "# Plan"), ("on Monday", "cancelled")] {
        let edits = json!({ "id": "note.md", "edits": [{ "op": "replace", "old": old, "new": new }] });
        let mut command = Command::new(QUIPU);
        command.arg("--vault").arg(folder.path()).args(["call", "edit_node", &edits.to_string()]);
        assert!(command.output().unwrap().status.success());
    }
    let history = folder.path().join(".quipu/history.jsonl");
    let text = std::fs::read_to_string(&history).unwrap();
    let aged = text.lines().zip([3, 1]).map(|(line, hours)| {
        let mut write: Value = serde_json::from_str(line).unwrap();
        write["at"] = (write["at"].as_i64().unwrap() - hours * 3_600_000_000_000).into();
        format!("{write}\n")
    });
    let aged: String = aged.collect();
    assert_eq!(aged.lines().count(), text.lines().count(), "two edits, two lines");
    std::fs::write(history, aged).unwrap();
    folder
}

/// Reads a whole note, changes its text and writes it back, as an agent without other tools must.
fn rewrite(meter: &mut Meter, change: impl Fn(&str) -> String) -> String {
    let content = meter.call("get_document", json!({ "path": "note.md" }))["content"].as_str().unwrap().to_owned();
    meter.call("update_node", json!({ "id": "note.md", "content": change(&content) }));
    meter.client.read("note.md")
}

fn edit(meter: &mut Meter, edit: &Value) -> String {
    meter.call("edit_node", json!({ "id": "note.md", "edits": [edit] }));
    meter.client.read("note.md")
}

fn fix_line_whole(meter: &mut Meter) -> String {
    rewrite(meter, |text| text.replace("on Monday", "on Tuesday"))
}

fn fix_line(meter: &mut Meter) -> String {
    edit(meter, &json!({ "op": "replace", "old": "on Monday", "new": "on Tuesday" }))
}

fn append_whole(meter: &mut Meter) -> String {
    rewrite(meter, |text| format!("{text}- 15:30 call with Ada\n"))
}

fn append(meter: &mut Meter) -> String {
    edit(meter, &json!({ "op": "append", "text": "- 15:30 call with Ada" }))
}

fn tick_whole(meter: &mut Meter) -> String {
    rewrite(meter, |text| text.replace("[ ] call Ada", "[x] call Ada"))
}

fn tick(meter: &mut Meter) -> String {
    edit(meter, &json!({ "op": "set_task", "text": "call Ada", "done": true }))
}

fn section_whole(meter: &mut Meter) -> String {
    let page = meter.call("ubp_get_page", json!({ "filepath": "note.md" }));
    let sections = page["sections"].as_array().unwrap();
    let found = sections.iter().find(|section| section["heading"] == "Part 71").unwrap();
    found["content"].as_str().unwrap().trim().to_owned()
}

fn section(meter: &mut Meter) -> String {
    let page = meter.call("ubp_get_page", json!({ "filepath": "note.md", "outline": true }));
    assert_eq!(page["outline"][72]["heading"], "Part 71");
    let page = meter.call("ubp_get_page", json!({ "filepath": "note.md", "section": "Part 71" }));
    page["content"].as_str().unwrap().trim_start_matches("## Part 71").trim().to_owned()
}

/// 300 notes of 2 KB: two of three have a status, every third is an orphan, and three of five were last changed a month ago.
fn many_notes() -> TempDir {
    let note = |n: usize| {
        let status = if n % 3 < 2 { format!("status: {}\n", ["draft", "done"][n % 2]) } else { String::new() };
        let link = if n.is_multiple_of(3) { String::new() } else { format!("[[note-{:03}]]\n", n ^ 3) };
        format!("//- note-{n:03}.md\n---\n{status}tags: [t{}]\n---\n{link}{}", n % 7, prose(2_000))
    };
    let folder = vault(&(0..300).map(note).collect::<String>());
    let month_ago = SystemTime::now() - Duration::from_secs(30 * 24 * 60 * 60);
    for n in (0..300).filter(|n| n % 5 < 3) {
        let note = File::options().write(true).open(folder.path().join(format!("note-{n:03}.md"))).unwrap();
        note.set_modified(month_ago).unwrap();
    }
    folder
}

/// The ids of all notes, a page at a time.
fn all_ids(meter: &mut Meter) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = meter.call("list_nodes", json!({ "limit": 1000, "offset": ids.len() }));
        let nodes = page["nodes"].as_array().unwrap();
        ids.extend(nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()));
        if nodes.is_empty() || ids.len() as u64 >= page["total"].as_u64().unwrap() {
            return ids;
        }
    }
}

/// Every note, read one by one, as an agent without queries must.
fn all_nodes(meter: &mut Meter) -> Vec<Value> {
    all_ids(meter).into_iter().map(|id| meter.call("get_node", json!({ "id": id }))).collect()
}

fn ids_of<'n>(nodes: impl IntoIterator<Item = &'n Value>) -> String {
    let mut ids: Vec<&str> = nodes.into_iter().map(|node| node["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.join(" ")
}

fn query(meter: &mut Meter, arguments: Value) -> Vec<Value> {
    let mut all = arguments;
    all["limit"] = json!(1000);
    meter.call("query_nodes", all)["nodes"].as_array().unwrap().clone()
}

fn drafts_whole(meter: &mut Meter) -> String {
    // Times are in the list of documents, properties in the notes.
    let documents = meter.call("list_documents", json!({ "limit": 1000 }))["documents"].clone();
    let week_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(7 * 24);
    let is_recent =
        |document: &&Value| document["lastModified"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap() >= week_ago;
    let recent: Vec<&Value> = documents.as_array().unwrap().iter().filter(is_recent).collect();
    let nodes: Vec<Value> =
        recent.iter().map(|document| meter.call("get_node", json!({ "id": document["path"] }))).collect();
    assert_eq!(nodes.len(), 120, "the others are old");
    ids_of(nodes.iter().filter(|node| node["properties"]["status"] == "draft"))
}

fn drafts(meter: &mut Meter) -> String {
    let draft = json!({ "field": "property.status", "op": "eq", "value": "draft" });
    let recent = json!({ "field": "modified", "op": "within", "value": "7d" });
    ids_of(&query(meter, json!({ "where": [draft, recent] })))
}

fn orphans_whole(meter: &mut Meter) -> String {
    let nodes = all_nodes(meter);
    let linked: Vec<&Value> = nodes.iter().flat_map(|node| node["links"].as_array().unwrap()).collect();
    let is_linked = |node: &Value| linked.iter().any(|link| link["id"] == node["id"]);
    ids_of(nodes.iter().filter(|node| node["links"].as_array().unwrap().is_empty() && !is_linked(node)))
}

fn orphans(meter: &mut Meter) -> String {
    let none = |field: &str| json!({ "field": field, "op": "eq", "value": 0 });
    ids_of(&query(meter, json!({ "where": [none("links_in"), none("links_out")] })))
}

fn tags_whole(meter: &mut Meter) -> String {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for node in all_nodes(meter) {
        for tag in node["tags"].as_array().unwrap() {
            *counts.entry(tag.as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    counts.iter().map(|(tag, count)| format!("{tag} {count}\n")).collect()
}

fn tags(meter: &mut Meter) -> String {
    let answer = meter.call("query_nodes", json!({ "group_by": "tags" }));
    let groups = answer["groups"].as_array().unwrap().iter();
    let mut lines: Vec<String> =
        groups.map(|group| format!("{} {}\n", group["value"].as_str().unwrap(), group["count"])).collect();
    lines.sort_unstable();
    lines.concat()
}

fn with_property(meter: &Meter) -> String {
    let files = (0..300).map(|n| meter.client.read(&format!("note-{n:03}.md")));
    files.map(|text| text.lines().take(4).collect::<Vec<_>>().join("|") + "\n").collect()
}

fn rename_property_whole(meter: &mut Meter) -> String {
    for id in all_ids(meter) {
        let content = meter.call("get_node", json!({ "id": id }));
        let Some(status) = content["properties"]["status"].as_str() else { continue };
        let tags = content["tags"][0].as_str().unwrap();
        let front = format!("---\ntags: [{tags}]\nstate: {status}\n---\n");
        let text = front + content["content"].as_str().unwrap();
        meter.call("update_node", json!({ "id": id, "content": text }));
    }
    with_property(meter)
}

fn rename_property(meter: &mut Meter) -> String {
    let has_status =
        json!({ "where": [{ "field": "property.status", "op": "exists" }], "fields": ["property.status"] });
    for node in query(meter, has_status) {
        let edits = json!([
            { "op": "set_property", "key": "state", "value": node["property.status"] },
            { "op": "remove_property", "key": "status" },
        ]);
        meter.call("edit_node", json!({ "id": node["id"], "edits": edits }));
    }
    with_property(meter)
}

/// Without the history, an agent must know the old text and write it back.
fn undo_whole(meter: &mut Meter) -> String {
    rewrite(meter, |text| text.replace("is cancelled", "is on Monday"))
}

fn undo(meter: &mut Meter) -> String {
    let changes = meter.call("recent_changes", json!({ "since": "2h", "kinds": ["note"] }))["changes"].clone();
    assert_eq!(changes.as_array().unwrap().len(), 1, "the older change is not listed: {changes}");
    meter.call("undo_change", json!({ "change": changes[0]["change"] }));
    meter.client.read("note.md")
}
