//! Everyday tasks of an agent, with the calls and characters they cost: `docs/agents.md` has the table. Each task is done
//! twice, with the tools that take and return whole notes and with those for parts; both must have the same effect.
//!
//! A new task is one function and one line in [`TASKS`]; `cargo xtask docs` writes the table again.

#![expect(clippy::disallowed_methods, reason = "compares a page of the repository")]

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Client, vault};

/// One task: its name, the fixture, and the two ways to do it. Each way returns what must be equal.
type Task = (&'static str, fn() -> String, fn(&mut Meter) -> String, fn(&mut Meter) -> String);

const TASKS: [Task; 4] = [
    ("fix one line in a 50 KB note", long_note, fix_line_whole, fix_line),
    ("append to a daily note of 3 KB", daily_note, append_whole, append),
    ("tick a task in a note of 3 KB", daily_note, tick_whole, tick),
    ("read one section of a 500 KB page", long_page, section_whole, section),
];

/// Counts what a client sends and gets: the arguments and the text of every answer.
struct Meter {
    client: Client,
    calls: usize,
    chars: usize,
}

impl Meter {
    fn open(fixture: &str) -> Self {
        Self { client: Client::open_in(vault(fixture), &[]), calls: 0, chars: 0 }
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
        let (mut old, mut new) = (Meter::open(&fixture()), Meter::open(&fixture()));
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

fn long_note() -> String {
    format!("//- note.md\n# Note\n\n{}The meeting is on Monday.\n\n{}", prose(25_000), prose(25_000))
}

fn daily_note() -> String {
    format!("//- note.md\n# 2026-11-16\n\n{}- [ ] call Ada\n- [x] mail Bob\n", prose(3_000))
}

fn long_page() -> String {
    let sections: String = (0..100).map(|n| format!("## Part {n}\n\n{}", prose(5_000))).collect();
    format!("//- note.md\n# Page\n\n{sections}")
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
