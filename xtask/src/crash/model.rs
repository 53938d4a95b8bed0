//! What the vault may look like after a kill: what was acknowledged, and for each file at most one write that was not.
//!
//! Three kinds of files: plain notes, whose bytes are known exactly, and of whose redacted texts nothing is left; one note that is renamed again and again while three
//! others link to it, which must always point at the name it has; and a folder that is moved again and again, whose notes
//! and picture are all in one place and linked with each other and with a note outside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, bail, ensure};
use quipu_core::model::ContentHash;
use quipu_testkit::generate::{Random, word};
use serde_json::{Value, json};

use super::history;

const NOTES: usize = 40;
const LINKING: usize = 3;
const MOVING: usize = 6;
const PICTURE: &str = "not a note";

/// What may be in one file: `None` where there is none.
type Content = Option<String>;

#[derive(Default)]
pub(super) struct Model {
    /// By note id: what was acknowledged last, and what a write under way would make of it.
    notes: BTreeMap<String, (Content, Option<Content>)>,
    /// By note id: the text before what was acknowledged last, to which the note can be reverted.
    earlier: BTreeMap<String, String>,
    /// The notes that this round's client wrote whole, and so knows.
    known: BTreeSet<String>,
    /// By the id of a note that nothing has changed in this round: its last write, and the text before it.
    undoable: BTreeMap<String, (u64, Content)>,
    /// Marks of texts that were redacted, and of one whose redaction is under way, by note id.
    redacted: BTreeSet<String>,
    redacting: BTreeMap<String, String>,
    /// The number in the renamed note's name, and whether the next one is under way.
    name: u64,
    is_renaming: bool,
    /// The number in the moved folder's path, and whether the next one is under way.
    place: u64,
    is_moving: bool,
}

/// One write to send.
pub(super) struct Write {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) target: Target,
}

/// The subject of a write.
#[derive(Clone)]
pub(super) enum Target {
    Note(String),
    Name,
    Place,
}

impl Model {
    /// Puts the files there that are not made by writes.
    pub(super) fn lay_out(&mut self, vault: &Path) -> io::Result<()> {
        fs::create_dir_all(vault.join("named"))?;
        fs::write(vault.join("named/name 0.md"), "# Renamed again and again\n")?;
        for index in 0..LINKING {
            fs::write(vault.join(format!("named/linking-{index}.md")), linking(0))?;
        }
        fs::create_dir_all(vault.join(folder(0)))?;
        for index in 0..MOVING {
            fs::write(vault.join(moving_path(0, index)), moving(0, index))?;
        }
        fs::write(vault.join(picture_path(0)), PICTURE)?;
        fs::write(vault.join("moved.md"), pointing(0))?;
        Ok(())
    }

    /// A write to something that has none under way.
    pub(super) fn next_write(&mut self, random: &mut Random) -> Write {
        if !self.is_renaming && random.below(8) == 0 {
            self.is_renaming = true;
            let (id, title) = (format!("named/name {}.md", self.name), format!("name {}", self.name + 1));
            let arguments = json!({ "id": id, "title": title, "update_links": true });
            return Write { tool: "update_node", arguments, target: Target::Name };
        }
        if !self.is_moving && random.below(8) == 0 {
            self.is_moving = true;
            let (id, to) = (format!("{}/", folder(self.place)), format!("{}/", folder(self.place + 1)));
            return Write { tool: "move_node", arguments: json!({ "id": id, "to": to }), target: Target::Place };
        }
        loop {
            let number = random.below(NOTES);
            let id = format!("storm/{}/note-{number}.md", number % 5);
            let (now, coming) = self.notes.entry(id.clone()).or_default();
            if coming.is_some() {
                continue;
            }
            let undoable = self.undoable.remove(&id).filter(|_| random.below(3) == 0);
            let earlier = self.earlier.get(&id).filter(|_| self.known.contains(&id));
            let (tool, arguments, becomes) = match (&*now, earlier, undoable) {
                (_, _, Some((number, before))) => ("undo_change", json!({ "change": format!("n{number}") }), before),
                (Some(now), ..) if random.below(30) == 0 => {
                    self.redacting.insert(id.clone(), mark(now).to_owned());
                    ("redact", json!({ "kind": "note", "id": id, "reason": "a secret" }), None)
                }
                (Some(_), ..) if random.below(4) == 0 => ("delete_node", json!({ "id": id }), None),
                (Some(now), ..) if self.known.contains(&id) && random.below(3) == 0 => {
                    let line = format!("edited {}", random.below(1000));
                    let edits =
                        json!([{"op": "append", "text": line}, {"op": "set_property", "key": "round", "value": line}]);
                    let becomes = with_property(now, &line) + &line + "\n";
                    ("edit_node", json!({ "id": id, "edits": edits }), Some(becomes))
                }
                (Some(now), Some(earlier), _) if now != earlier && random.below(2) == 0 => {
                    let version = ContentHash::of(earlier.as_bytes()).to_string();
                    ("revert_node", json!({ "id": id, "version": version }), Some(earlier.clone()))
                }
                (existing, ..) => {
                    let text = text(random);
                    let tool = if existing.is_some() { "update_node" } else { "create_node" };
                    // An update keeps the frontmatter.
                    let becomes = existing.as_deref().map_or("", frontmatter).to_owned() + &text;
                    self.known.insert(id.clone());
                    (tool, json!({ "id": id, "content": text }), Some(becomes))
                }
            };
            *coming = Some(becomes);
            return Write { tool, arguments, target: Target::Note(id) };
        }
    }

    /// A write was acknowledged.
    pub(super) fn acknowledge(&mut self, target: &Target) {
        match target {
            Target::Name => {
                self.is_renaming = false;
                self.name += 1;
            }
            Target::Place => {
                self.is_moving = false;
                self.place += 1;
            }
            Target::Note(id) => {
                let (now, coming) = self.notes.get_mut(id).expect("it was sent");
                let before = std::mem::replace(now, coming.take().expect("it was under way"));
                if let Some(mark) = self.redacting.remove(id) {
                    self.earlier.remove(id);
                    self.redacted.insert(mark);
                } else if let Some(text) = before {
                    self.earlier.insert(id.clone(), text);
                }
            }
        }
    }

    /// Compares with the vault and takes over what became of the writes that were under way.
    pub(super) fn settle(&mut self, vault: &Path) -> anyhow::Result<()> {
        let mut unexplained = super::files(vault)?;
        self.known.clear();
        for (id, (now, coming)) in &mut self.notes {
            let found = match fs::read_to_string(vault.join(id)) {
                Ok(text) => Some(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error).context(id.clone()),
            };
            let coming = coming.take();
            ensure!(
                found == *now || coming.as_ref() == Some(&found),
                "{id} is neither as acknowledged nor as sent:\n{found:?}\nacknowledged:\n{now:?}"
            );
            if found != *now {
                self.earlier.remove(id);
            }
            *now = found;
            unexplained.retain(|path| path != Path::new(id));
        }
        self.name += u64::from(self.is_renaming && !vault.join(format!("named/name {}.md", self.name)).exists());
        self.is_renaming = false;
        let renamed = format!("named/name {}.md", self.name);
        ensure!(vault.join(&renamed).exists(), "{renamed} is gone");
        unexplained.retain(|path| path != Path::new(&renamed));
        for index in 0..LINKING {
            let path = format!("named/linking-{index}.md");
            let text = fs::read_to_string(vault.join(&path)).with_context(|| path.clone())?;
            ensure!(text == linking(self.name), "{path} does not point at {renamed}:\n{text}");
            unexplained.retain(|other| other != Path::new(&path));
        }
        self.settle_place(vault, &mut unexplained)?;
        for (id, mark) in std::mem::take(&mut self.redacting) {
            // Whole or not at all.
            if self.notes[&id].0.is_none() {
                self.redacted.insert(mark);
            }
        }
        for mark in std::mem::take(&mut self.redacted) {
            ensure!(!is_left(vault, mark.as_bytes())?, "{mark} was redacted and is still below the vault");
        }
        self.undoable = history::undoable(vault)?;
        self.undoable.retain(|id, _| self.notes.contains_key(id));
        if !unexplained.is_empty() {
            bail!("left in the vault: {unexplained:?}");
        }
        Ok(())
    }
}

impl Model {
    /// The moved folder is in one place, whole, with every link.
    fn settle_place(&mut self, vault: &Path, unexplained: &mut Vec<PathBuf>) -> anyhow::Result<()> {
        self.place += u64::from(self.is_moving && !vault.join(moving_path(self.place, 0)).exists());
        self.is_moving = false;
        let mut expected: Vec<(String, String)> =
            (0..MOVING).map(|index| (moving_path(self.place, index), moving(self.place, index))).collect();
        expected.push(("moved.md".to_owned(), pointing(self.place)));
        expected.push((picture_path(self.place), PICTURE.to_owned()));
        for (path, text) in expected {
            let found = fs::read_to_string(vault.join(&path)).with_context(|| path.clone())?;
            ensure!(found == text, "{path} does not fit a folder at {}:\n{found}", folder(self.place));
            unexplained.retain(|other| other != Path::new(&path));
        }
        Ok(())
    }
}

/// The path of the moved folder, at changing depths.
fn folder(place: u64) -> String {
    format!("{}place {place}", "deep/".repeat((place % 3) as usize))
}

fn moving_path(place: u64, index: usize) -> String {
    format!("{}/part-{index}.md", folder(place))
}

/// A file of the moved folder that is not a note.
fn picture_path(place: u64) -> String {
    format!("{}/picture.png", folder(place))
}

/// A note of the moved folder: links to a neighbour, to the note outside and back to itself.
fn moving(place: u64, index: usize) -> String {
    let up = "../".repeat(folder(place).split('/').count());
    let next = (index + 1) % MOVING;
    format!(
        "![p](picture.png) [next](part-{next}.md) [[part-{next}]] [outside]({up}moved.md) [[part-{index}|itself]]\n"
    )
}

/// The note outside.
fn pointing(place: u64) -> String {
    let folder = folder(place);
    let encoded = folder.replace(' ', "%20");
    format!("[first]({encoded}/part-0.md) ![p]({encoded}/picture.png) [[part-1]] ![[{folder}/part-2|embedded]]\n")
}

fn linking(name: u64) -> String {
    format!("Points at [[name {name}]] and, with a label, at [[named/name {name}|it]].\n")
}

/// The frontmatter that an edit made.
fn frontmatter(text: &str) -> &str {
    const END: &str = "\n---\n";
    let end = text.starts_with("---\n").then(|| text.find(END)).flatten();
    &text[..end.map_or(0, |end| end + END.len())]
}

/// A text with the property that an edit sets.
fn with_property(text: &str, value: &str) -> String {
    format!("---\nround: {value}\n---\n{}", &text[frontmatter(text).len()..])
}

/// The mark of a text: its last line, which no other text has.
fn mark(text: &str) -> &str {
    text.lines().rfind(|line| line.starts_with("mark ")).unwrap_or(text)
}

/// Whether a file at or below a path has these bytes.
fn is_left(path: &Path, bytes: &[u8]) -> anyhow::Result<bool> {
    if !path.is_dir() {
        let found = fs::read(path).with_context(|| path.display().to_string())?;
        return Ok(memchr::memmem::find(&found, bytes).is_some());
    }
    for entry in fs::read_dir(path)? {
        if is_left(&entry?.path(), bytes)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A note with links, tags and a mark. Now and then a long one, since a long write is easier to catch half done.
fn text(random: &mut Random) -> String {
    let words = if random.below(10) == 0 { 5_000 } else { 5 + random.below(100) };
    let mut text = format!("# {}\n\n", word(random.below(1000)));
    for place in 0..words {
        match random.below(20) {
            0 => text.push_str(&format!("[[note-{}]] ", random.below(NOTES))),
            1 if place < 20 => text.push_str(&format!("#tag{} ", random.below(6))),
            _ => text.push_str(["storm ", "anchor ", "knot ", "嵐の夜 "][random.below(4)]),
        }
    }
    text.push_str(&format!("\nmark {:08x}{:08x}\n", random.below(1 << 32), random.below(1 << 32)));
    text
}
