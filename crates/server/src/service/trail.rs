//! The live trail: the newest calls and changes of a vault, for people who watch. Kept in memory by the process that owns the vault,
//! so it shows the agents of every process; each entry has a number, by which a reader resumes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::memory::relation_by_name;
use quipu_core::model::NoteId;
use quipu_core::ports::{ChangeNumber, LoggedChange, MemoryFailure, MemoryItem, MemoryStore};
use quipu_tools::{Access, Reply, ToolInfo, ToolResponse, every_tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::last_hour::{LastHour, MinuteLog, Reading, percentile};

/// The client name of the explorer. Its own reads are left out: a person who watches does not watch himself.
pub const EXPLORER: &str = "explorer";

/// Entries kept. A reader that was away for longer misses the oldest.
const KEPT: usize = 1000;

/// Durations kept of each tool, for its median and 95th percentile.
const DURATIONS: usize = 256;

/// Clients remembered; the one that called least recently goes first.
const CLIENTS: usize = 64;

/// Changes of memory read at a time: of an import the last ones are enough.
const LOGGED: usize = 50;

/// Characters of an argument that an entry shows.
const SHOWN_CHARS: usize = 160;

/// One entry of the trail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrailEntry {
    /// Grows by one with every entry.
    pub number: u64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The client's name; empty for a change of files by another program.
    pub who: String,
    pub kind: TrailEntryKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The note that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// One line.
    pub text: String,
    /// The entity that a change to memory is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<i64>,
    /// The name of a change to memory, for `undo_change`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    #[serde(default)]
    pub failed: bool,
    #[serde(default)]
    pub writes: bool,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrailEntryKind {
    /// A tool was called.
    Call,
    /// A note's file changed, by any program.
    Note,
    /// Memory changed, whichever process changed it.
    Memory,
}

/// Entries behind a number, and what is known of clients and tools.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrailPage {
    /// Oldest first.
    pub traces: Vec<TrailEntry>,
    /// To ask for the next.
    pub next: u64,
    /// How often texts were cleared: after a change, earlier pages have texts that may no longer be shown.
    #[serde(default)]
    pub clearings: u64,
}

/// How often a client called, and how long ago.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCalls {
    pub name: String,
    pub calls: u64,
    pub last_s: u64,
}

/// How long the calls of a tool take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolLatency {
    pub tool: String,
    pub calls: u64,
    pub failed: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
}

/// The newest entries, and counts.
#[derive(Default)]
pub struct Trail(Mutex<TrailState>);

#[derive(Default)]
struct TrailState {
    next: u64,
    traces: VecDeque<TrailEntry>,
    clients: BTreeMap<String, (u64, i64)>,
    tools: BTreeMap<&'static str, Durations>,
    minutes: MinuteLog,
    /// The newest entry of memory's log that is in the trail.
    memory_head: Option<ChangeNumber>,
    clearings: u64,
}

/// A call that has begun.
pub struct StartedCall {
    summary: ArgumentSummary,
    /// The number of clearings by then.
    clearings: u64,
}

#[derive(Default)]
struct Durations {
    calls: u64,
    failed: u64,
    /// The newest, in milliseconds.
    newest: VecDeque<f32>,
}

impl Trail {
    /// To be called before a call that [`Self::called`] adds.
    pub fn started(&self, arguments: &Value) -> StartedCall {
        StartedCall { summary: ArgumentSummary::of(arguments), clearings: self.0.lock().clearings }
    }

    /// Removes the texts of calls and of changes to memory: one of them may be what was redacted. Which cannot be known, since a
    /// search for a part of it has it too. The paths of changed notes stay.
    pub fn clear_texts(&self) {
        self.0.lock().clear_texts();
    }

    /// Adds a call that was answered. If it redacted something, earlier texts are removed.
    pub fn called(
        &self,
        tool: &ToolInfo,
        call: StartedCall,
        who: &str,
        response: &ToolResponse,
        took: Duration,
        now_ns: i64,
    ) {
        let failed = !matches!(response.reply, Reply::Answer(_));
        let ms = took.as_secs_f64() * 1000.0;
        let writes = tool.access != Access::Read;
        let at = now_ns / 1_000_000;
        let mut inner = self.0.lock();
        let StartedCall { mut summary, clearings } = call;
        // It may have had the text before that was redacted meanwhile.
        if clearings != inner.clearings {
            summary = ArgumentSummary::EMPTY;
        }
        if tool.access == Access::Erase && !failed {
            inner.clear_texts();
        }
        let durations = inner.tools.entry(tool.name).or_default();
        durations.calls += 1;
        durations.failed += u64::from(failed);
        if durations.newest.len() == DURATIONS {
            durations.newest.pop_front();
        }
        durations.newest.push_back(ms as f32);
        let is_watching = who == EXPLORER && !writes;
        inner.minutes.called(tool.name, ms as f32, who != EXPLORER, now_ns);
        if is_watching {
            return;
        }
        inner.heard_of(who, at);
        let ArgumentSummary { object, text } = summary;
        inner.push(TrailEntry {
            number: 0,
            at,
            who: if who.is_empty() { "a client".to_owned() } else { who.to_owned() },
            kind: TrailEntryKind::Call,
            tool: Some(tool.name.to_owned()),
            object,
            text,
            entity: None,
            change: None,
            ms: Some((ms * 100.0).round() / 100.0),
            failed,
            writes,
        });
    }

    /// Adds notes whose files changed.
    pub fn changed<'n>(&self, notes: impl Iterator<Item = &'n NoteId>, now_ns: i64) {
        let mut inner = self.0.lock();
        for id in notes.take(KEPT) {
            inner.push(TrailEntry {
                number: 0,
                at: now_ns / 1_000_000,
                who: String::new(),
                kind: TrailEntryKind::Note,
                tool: None,
                object: Some(id.to_string()),
                text: id.to_string(),
                entity: None,
                change: None,
                ms: None,
                failed: false,
                writes: true,
            });
        }
    }

    /// Adds changes to memory that are in its log and not yet in the trail, up to some number.
    pub fn remembered(&self, memory: &dyn MemoryStore) -> Result<(), MemoryFailure> {
        let head = memory.head()?;
        let (last, clearings) = {
            let mut inner = self.0.lock();
            (inner.memory_head.replace(head), inner.clearings)
        };
        // What was there before the process began is history.
        let Some(last) = last.filter(|last| *last < head) else { return Ok(()) };
        let mut entries = memory.log_before(ChangeNumber(head.0 + 1), LOGGED)?;
        entries.retain(|entry| entry.number > last);
        let texts = entries.iter().map(|entry| described(memory, entry)).collect::<Result<Vec<_>, _>>()?;
        let is_redaction = |entry: &LoggedChange| {
            every_tool().iter().any(|info| info.access == Access::Erase && info.name == entry.author.tool)
        };
        let mut inner = self.0.lock();
        // They may have been read before something was redacted.
        let is_cleared = clearings != inner.clearings;
        // By another process, such as that of another account; or perhaps, in entries that are left out.
        if head.0 - last.0 > LOGGED as i64 || entries.iter().any(is_redaction) {
            inner.clear_texts();
        }
        for (entry, text) in entries.iter().zip(texts).rev() {
            inner.push(TrailEntry {
                number: 0,
                at: entry.author.at_ns / 1_000_000,
                who: entry.author.client.clone(),
                kind: TrailEntryKind::Memory,
                tool: Some(entry.author.tool.clone()),
                object: None,
                text: if is_cleared { String::new() } else { text },
                entity: entity_of(entry),
                change: Some(entry.number.0),
                ms: None,
                failed: false,
                writes: true,
            });
        }
        Ok(())
    }

    /// The entries from a number on; those that are no longer kept are left out. A number from before a restart, which is too
    /// high, gets everything.
    pub fn since(&self, number: u64) -> TrailPage {
        let inner = self.0.lock();
        let from = if number > inner.next { 0 } else { number };
        TrailPage {
            traces: inner.traces.iter().filter(|trace| trace.number >= from).cloned().collect(),
            next: inner.next,
            clearings: inner.clearings,
        }
    }

    /// Clients that called, most recent first.
    pub fn clients(&self, now_ns: i64) -> Vec<ClientCalls> {
        let inner = self.0.lock();
        let now = now_ns / 1_000_000;
        let client = |(name, (calls, last)): (&String, &(u64, i64))| ClientCalls {
            name: name.clone(),
            calls: *calls,
            last_s: u64::try_from((now - last) / 1000).unwrap_or(0),
        };
        let mut clients: Vec<ClientCalls> = inner.clients.iter().map(client).collect();
        clients.sort_by(|a, b| a.last_s.cmp(&b.last_s).then_with(|| a.name.cmp(&b.name)));
        clients
    }

    /// The tools that were called, by name.
    pub fn latencies(&self) -> Vec<ToolLatency> {
        let inner = self.0.lock();
        let latency = |(tool, durations): (&&'static str, &Durations)| ToolLatency {
            tool: (*tool).to_owned(),
            calls: durations.calls,
            failed: durations.failed,
            p50_ms: percentile(&durations.newest, 50),
            p95_ms: percentile(&durations.newest, 95),
        };
        inner.tools.iter().map(latency).collect()
    }

    /// Files wait for the index.
    pub fn queued(&self, files: usize, now_ns: i64) {
        self.0.lock().minutes.queued(files, now_ns);
    }

    /// The last hour, this minute with some newest values.
    pub fn last_hour(&self, newest: Reading, now_ns: i64) -> LastHour {
        let minutes = &mut self.0.lock().minutes;
        minutes.read(newest, now_ns);
        minutes.last_hour(now_ns)
    }
}

impl TrailState {
    fn clear_texts(&mut self) {
        for trace in self.traces.iter_mut().filter(|trace| trace.kind != TrailEntryKind::Note) {
            (trace.object, trace.text) = (None, String::new());
        }
        self.clearings += 1;
    }

    fn push(&mut self, trace: TrailEntry) {
        if self.traces.len() == KEPT {
            self.traces.pop_front();
        }
        self.traces.push_back(TrailEntry { number: self.next, ..trace });
        self.next += 1;
    }

    fn heard_of(&mut self, who: &str, at: i64) {
        if !self.clients.contains_key(who) && self.clients.len() == CLIENTS {
            let oldest = self.clients.iter().min_by_key(|(_, (_, last))| *last).map(|(name, _)| name.clone());
            oldest.map(|name| self.clients.remove(&name));
        }
        let (calls, last) = self.clients.entry(who.to_owned()).or_default();
        *calls += 1;
        *last = at;
    }
}

/// A change to memory in one line: the first thing that changed, and how many more.
fn described(memory: &dyn MemoryStore, change: &LoggedChange) -> Result<String, MemoryFailure> {
    let name = |item: &MemoryItem| match item {
        MemoryItem::Entity(entity) => Ok(format!("{} ({})", entity.name, entity.entity_type)),
        MemoryItem::Observation(observation) => Ok(observation.text.clone()),
        MemoryItem::Relation(relation) => relation_by_name(memory, relation),
    };
    let first = match change.steps.first() {
        Some((None, Some(made))) => format!("+ {}", name(made)?),
        Some((Some(gone), None)) => format!("− {}", name(gone)?),
        Some((Some(_), Some(item))) => format!("~ {}", name(item)?),
        Some((None, None)) | None => String::new(),
    };
    let more = change.steps.len().saturating_sub(1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(cut(&(first + &more)))
}

/// The entity that the first step of a change is about, as long as there is one.
fn entity_of(change: &LoggedChange) -> Option<i64> {
    let entity = match change.steps.first()?.1.as_ref()? {
        MemoryItem::Entity(entity) => entity.id,
        MemoryItem::Observation(observation) => observation.entity,
        MemoryItem::Relation(relation) => relation.from,
    };
    Some(entity.0)
}

/// The arguments of a call in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ArgumentSummary {
    object: Option<String>,
    text: String,
}

/// Arguments that say what a call is about, most telling first.
const TELLING: [&str; 14] = [
    "query",
    "id",
    "filepath",
    "source",
    "center",
    "name",
    "title",
    "text_content",
    "entity_id",
    "path",
    "typed",
    "tags",
    "tag",
    "change",
];

/// Arguments that name a note.
const NOTES: [&str; 5] = ["id", "filepath", "center", "source", "path"];

impl ArgumentSummary {
    const EMPTY: Self = Self { object: None, text: String::new() };

    fn of(arguments: &Value) -> Self {
        let value = |name: &&str| arguments.get(*name).filter(|value| !value.is_null());
        let object = NOTES.iter().find_map(value).and_then(Value::as_str).map(cut);
        let named = TELLING.iter().filter_map(|name| Some((*name, value(name)?)));
        let mut parts: Vec<String> = named.take(2).map(|(name, value)| shown(name, value)).collect();
        if let (Some(from), Some(to), Some(kind)) =
            (value(&"from_entity_id"), value(&"to_entity_id"), value(&"relation_type"))
        {
            parts = vec![plain(from), plain(kind), plain(to)];
        }
        if let Some(target) = arguments.get("target").and_then(Value::as_str) {
            parts.push(format!("→ {}", cut(target)));
        }
        if parts.is_empty() {
            parts.push(counted(arguments));
        }
        Self { object, text: parts.join(" ") }
    }
}

/// How many things a call of many has: `3 entities, 2 relations`.
fn counted(arguments: &Value) -> String {
    let lists = arguments.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let count = value.as_array()?.len();
        Some(format!("{count} {}", name.replace('_', " ")))
    });
    cut(&lists.collect::<Vec<_>>().join(", "))
}

fn shown(name: &str, value: &Value) -> String {
    match (name, value) {
        ("tags", Value::Array(tags)) => {
            cut(&tags.iter().map(|tag| format!("#{}", plain(tag))).collect::<Vec<_>>().join(" "))
        }
        ("entity_id", Value::Number(number)) => format!("entity {number}"),
        _ => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS + 1).collect();
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::memory::EntityId;
    use quipu_core::ports::{Author, MemoryChange, NewEntity, TextOwner};
    use quipu_testkit::MemMemory;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reader_resumes_where_it_left_off() {
        let trail = Trail::default();
        trail.changed([NoteId::new("a.md")].iter(), 5_000_000);
        let first = trail.since(0);
        assert_eq!((first.traces.len(), first.next), (1, 1));
        assert_eq!(first.traces[0].object.as_deref(), Some("a.md"));
        assert!(trail.since(first.next).traces.is_empty());
        trail.changed([NoteId::new("b.md")].iter(), 6_000_000);
        assert_eq!(trail.since(first.next).traces[0].text, "b.md");
        assert_eq!(trail.since(99).traces.len(), 2, "a number of an earlier process gets all");
    }

    #[test]
    fn old_entries_are_dropped_and_numbers_stay() {
        let trail = Trail::default();
        for n in 0..KEPT + 5 {
            trail.changed([NoteId::new(&format!("{n}.md"))].iter(), 0);
        }
        let page = trail.since(0);
        assert_eq!((page.traces.len(), page.traces[0].number, page.next), (KEPT, 5, KEPT as u64 + 5));
    }

    #[test]
    fn clearing_removes_the_texts_of_calls_and_of_those_that_run() {
        let trail = Trail::default();
        let read = every_tool().iter().find(|info| info.access == Access::Read).unwrap();
        let answered = || ToolResponse::from(Reply::Answer(json!({})));
        let call = |call: StartedCall| trail.called(read, call, "ada", &answered(), Duration::ZERO, 0);
        call(trail.started(&json!({"id": "n.md"})));
        let running = trail.started(&json!({"query": "secret"}));
        trail.changed([NoteId::new("a.md")].iter(), 0);
        trail.clear_texts();
        call(running);
        call(trail.started(&json!({"query": "later"})));
        let page = trail.since(0);
        let shown: Vec<_> = page.traces.iter().map(|trace| (trace.object.as_deref(), trace.text.as_str())).collect();
        assert_eq!(shown, [(None, ""), (Some("a.md"), "a.md"), (None, ""), (None, "later")]);
        assert_eq!(page.clearings, 1);
    }

    #[test]
    fn redaction_by_another_process_removes_texts() {
        let (trail, memory) = (Trail::default(), MemMemory::default());
        let by = |tool: &str| Author { client: String::new(), tool: tool.to_owned(), at_ns: 1, request: None };
        let named = |name: &str| {
            let new = NewEntity { name: name.to_owned(), entity_type: "T".to_owned(), ..NewEntity::default() };
            memory.apply(&[MemoryChange::CreateEntity(new)], &by("create_entity")).unwrap();
        };
        let texts = || {
            trail.remembered(&memory).unwrap();
            trail.since(0).traces.into_iter().map(|trace| trace.text).collect::<Vec<_>>()
        };
        assert!(texts().is_empty());
        named("hunter2");
        assert!(texts()[0].contains("hunter2"));
        memory.redact(TextOwner::Entity(EntityId(1)), "leaked", &by("redact")).unwrap();
        let shown = texts();
        assert!(shown.len() == 2 && !shown.concat().contains("hunter2"), "{shown:?}");
        named("later");
        assert!(texts()[2].contains("later"), "what comes after is shown");
    }

    #[test]
    fn a_summary_is_one_short_line() {
        let long = "x".repeat(1000);
        assert_eq!(ArgumentSummary::of(&json!({"query": "a\nb", "limit": 3})).text, "a b");
        assert_eq!(
            ArgumentSummary::of(&json!({"id": "n.md", "content": long})),
            ArgumentSummary { object: Some("n.md".into()), text: "n.md".into() }
        );
        assert_eq!(ArgumentSummary::of(&json!({"source": "a.md", "target": "b.md"})).text, "a.md → b.md");
        assert_eq!(ArgumentSummary::of(&json!({"query": long})).text.chars().count(), SHOWN_CHARS + 1);
        assert_eq!(ArgumentSummary::of(&json!(["odd"])).text, "");
        assert_eq!(ArgumentSummary::of(&json!({"id": "n.md", "tags": ["a", "b"]})).text, "n.md #a #b");
        assert_eq!(ArgumentSummary::of(&json!({"entity_id": 7})).text, "entity 7");
        let relation = json!({"from_entity_id": 3, "to_entity_id": "Boat", "relation_type": "owns"});
        assert_eq!(ArgumentSummary::of(&relation).text, "3 owns Boat");
        assert_eq!(ArgumentSummary::of(&json!({"entities": [1, 2], "new_links": [3]})).text, "2 entities, 1 new links");
    }
}
