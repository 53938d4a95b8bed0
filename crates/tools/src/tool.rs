//! The trait that every tool implements, and the call it is given.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use quipu_core::index::Snapshot;
use quipu_core::memory::Memory;
use quipu_core::model::{NoteKey, VaultPath};
use quipu_core::ports::Author;
use quipu_core::search::SearchResults;
use quipu_core::{Knowledge, ReadNote, RequestKey, Session, quoted};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::schema::{input_schema, output_schema};
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::echoed;

/// Notes named in a warning about an ambiguous path.
const MAX_OTHERS: usize = 5;

/// One tool: a unit struct in the file named after the tool.
pub(crate) trait Tool: 'static {
    /// The arguments. The doc comment, default and range of each field become the input schema, which is also the check.
    type Params: DeserializeOwned + JsonSchema;
    /// The fields of the response.
    type Output: Serialize + JsonSchema;

    /// The name clients call.
    const NAME: &'static str;
    /// What it returns and when to prefer it over its neighbours, for a model with little context.
    const DESCRIPTION: &'static str;
    /// The access to the vault that the tool needs.
    const ACCESS: Access;
    /// Whether repeating a call with the same arguments changes nothing further.
    const IDEMPOTENT: bool = matches!(Self::ACCESS, Access::Read);
    /// Whether calls of a memory tool wait for the index and get the warnings about notes; `quipu call` then updates the index
    /// first. Calls of the other tools always do.
    const NEEDS_INDEX: bool = false;

    /// Whether hosts with MCP Apps show its answers as a picture or list.
    const HAS_VIEW: bool = false;

    /// The error text for a missing required argument, where the contract fixes one.
    const MISSING_ARGUMENT: Option<&'static str> = None;

    /// What it needs that a vault may not have, and what to do then: to follow a colon.
    const NEED: Option<&'static str> = None;

    /// Whether the vault has what the tool requires. A tool that is not available is not listed.
    fn is_available(_knowledge: &Knowledge) -> bool {
        true
    }

    /// Runs the tool.
    fn call(call: &Call<'_>, params: Self::Params) -> Result<Self::Output, ToolError>;
}

/// A group of tools that share their vocabulary and error format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Toolset {
    /// Notes as a graph of nodes.
    Notes,
    /// Notes as documents.
    Docs,
    /// Notes as pages in sections, with typed links and how fresh they are.
    Pages,
    /// What agents remember: entities, observations, relations.
    Memory,
    /// Daily work on notes: edit a part, move, query, history.
    Work,
    /// Corrections: merge and correct in memory, undo and redact in notes and memory.
    Upkeep,
    /// A short list from the others, for clients with little room: see [`crate::registry::ESSENTIAL`]. No tool has it.
    Essential,
}

impl Toolset {
    /// Every toolset, in the order in which their tools are listed.
    pub const ALL: [Self; 6] = [Self::Notes, Self::Docs, Self::Pages, Self::Memory, Self::Work, Self::Upkeep];

    /// Every toolset and the short list: what a user can choose from.
    pub const CHOICES: [Self; 7] =
        [Self::Notes, Self::Docs, Self::Pages, Self::Memory, Self::Work, Self::Upkeep, Self::Essential];

    /// Whether its tools work on memory, and answer before the vault is indexed.
    pub fn is_about_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Upkeep)
    }

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notes => "notes",
            Self::Docs => "docs",
            Self::Pages => "pages",
            Self::Memory => "memory",
            Self::Work => "work",
            Self::Upkeep => "upkeep",
            Self::Essential => "essential",
        }
    }

    /// The toolset of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::CHOICES.into_iter().find(|toolset| toolset.name() == name)
    }
}

/// The access to the vault that a tool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Changes nothing.
    Read,
    /// Writes, but never changes or removes an existing note, entity, observation or relation.
    Write,
    /// May replace or remove existing data.
    Destroy,
    /// Removes data permanently: no version of it is kept. Over HTTP this needs the scope `admin`.
    Erase,
}

/// A tool as clients see it, and how the registry runs it.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    /// The name clients call.
    pub name: &'static str,
    /// The toolset it belongs to.
    pub toolset: Toolset,
    /// For the model that chooses among tools.
    pub description: Cow<'static, str>,
    /// The access to the vault that the tool needs.
    pub access: Access,
    /// Whether repeating a call changes nothing further.
    pub idempotent: bool,
    /// Whether a call waits for the index and gets the warnings about notes. The other tools work on a vault that is not indexed.
    pub needs_index: bool,
    /// Whether hosts that can show a view of its answers get one.
    pub has_view: bool,
    /// JSON Schema of its arguments, and the check of them. Shared: a server offers the same tools in every graph and protocol.
    pub input_schema: Arc<Map<String, Value>>,
    /// JSON Schema of its answers.
    pub output_schema: Arc<Map<String, Value>>,
    /// Whether every answer is an object, as protocols before 2026-07-28 require.
    pub answers_object: bool,
    pub(crate) missing_argument: Option<&'static str>,
    pub(crate) need: Option<&'static str>,
    pub(crate) is_available: fn(&Knowledge) -> bool,
    pub(crate) run: fn(&Call<'_>, Value) -> Result<Value, ToolError>,
}

impl ToolInfo {
    pub(crate) fn of<T: Tool>(toolset: Toolset) -> Self {
        let output_schema = output_schema::<T::Output>();
        Self {
            name: T::NAME,
            toolset,
            description: T::DESCRIPTION.into(),
            access: T::ACCESS,
            idempotent: T::IDEMPOTENT,
            needs_index: !toolset.is_about_memory() || T::NEEDS_INDEX,
            has_view: T::HAS_VIEW,
            input_schema: Arc::new(input_schema::<T::Params>()),
            answers_object: output_schema.get("type").and_then(Value::as_str) == Some("object"),
            output_schema: Arc::new(output_schema),
            missing_argument: T::MISSING_ARGUMENT,
            need: T::NEED,
            is_available: T::is_available,
            run: run::<T>,
        }
    }
}

/// Runs a tool on arguments that passed its schema.
fn run<T: Tool>(call: &Call<'_>, arguments: Value) -> Result<Value, ToolError> {
    // Fails only for a number too large for its type.
    let params: T::Params = serde_json::from_value(arguments).map_err(|error| ToolError::invalid(error.to_string()))?;
    let output = T::call(call, params)?;
    Ok(serde_json::to_value(output).expect("answers have string keys and no failing serializer"))
}

/// One call: the vault, the client, and the warnings that go with the answer.
pub(crate) struct Call<'a> {
    pub(crate) knowledge: &'a Knowledge,
    memory: Result<&'a Memory, &'a str>,
    pub(crate) session: &'a Session,
    /// Identifies a call that may be retried.
    pub(crate) request: Option<RequestKey>,
    /// How long it waits for what is still being read.
    until: Instant,
    warnings: RefCell<Vec<String>>,
    /// What the answer does not cover.
    incomplete: RefCell<Option<String>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        knowledge: &'a Knowledge,
        memory: Result<&'a Memory, &'a str>,
        session: &'a Session,
        request: Option<RequestKey>,
        until: Instant,
    ) -> Self {
        Self {
            knowledge,
            memory,
            session,
            request,
            until,
            warnings: RefCell::default(),
            incomplete: RefCell::default(),
        }
    }

    /// Memory, or the error that says why it is not available.
    pub(crate) fn memory(&self) -> Result<&'a Memory, ToolError> {
        self.memory.map_err(|why| ToolError::new(ToolErrorKind::Provider, why))
    }

    /// Memory, to be searched: a while after the start, what has been read of it by then.
    pub(crate) fn memory_to_search(&self) -> Result<&'a Memory, ToolError> {
        let memory = self.memory()?;
        self.await_memory();
        Ok(memory)
    }

    /// Waits until memory can be searched; after a while, notes that the answer covers a part of it.
    pub(crate) fn await_memory(&self) {
        let left = self.until.saturating_duration_since(Instant::now());
        if let Some(Err(known)) = self.memory.ok().map(|memory| memory.wait_read(left)) {
            self.mark_incomplete(format!(
                "memory is still being read: {known} are read so far, and this answer covers only those; retry later"
            ));
        }
    }

    /// Notes that the answer does not cover everything, in a warning and in the answer.
    pub(crate) fn mark_incomplete(&self, why: String) {
        self.warn(why.clone());
        self.incomplete.borrow_mut().get_or_insert(why);
    }

    /// What the answer does not cover.
    pub(crate) fn incomplete(&self) -> Option<String> {
        self.incomplete.borrow().clone()
    }

    /// The author that memory records for a change by this call.
    pub(crate) fn author(&self, tool: &str) -> Result<Author, ToolError> {
        Ok(self.memory()?.author(self.session, tool, self.request))
    }

    /// The note with this id or path, read from its file now. Warns where several notes match.
    pub(crate) fn read(&self, spelled: &str) -> Result<Option<ReadNote>, ToolError> {
        let read = self.knowledge.read(self.session, spelled)?;
        if let Some(read) = &read {
            self.warn_of_others(spelled, &read.note().path, read.others.iter());
        }
        Ok(read)
    }

    /// The note with this id or path in a snapshot; its file is not read. Warns where several notes match.
    pub(crate) fn find(&self, snapshot: &Snapshot, spelled: &str) -> Option<NoteKey> {
        let found = snapshot.lookup(spelled);
        let (key, others) = found.split_first()?;
        let path = |key: &NoteKey| &snapshot.note(*key).path;
        self.warn_of_others(spelled, path(key), others.iter().map(path));
        Some(*key)
    }

    /// Warns that a name has further matches besides the note that the answer is for.
    pub(crate) fn warn_of_others<'p>(
        &self,
        spelled: &str,
        path: &VaultPath,
        others: impl ExactSizeIterator<Item = &'p VaultPath>,
    ) {
        let count = others.len();
        if count > 0 {
            let named: Vec<String> = others.take(MAX_OTHERS).map(|path| quoted(path.as_str())).collect();
            let named = named.join(", ");
            let more = if count > MAX_OTHERS { format!(" and {} more", count - MAX_OTHERS) } else { String::new() };
            let (spelled, path) = (quoted(&echoed(spelled)), quoted(path.as_str()));
            self.warn(format!(
                "{spelled} matches several notes; this answer is for {path}, the others are {named}{more}"
            ));
        }
    }

    /// Warns that a ranking is not what it will be once every passage is embedded: in part in every response, that only the
    /// order may change once in a session.
    pub(crate) fn warn_of_ranking(&self, results: &SearchResults) {
        if let Some(degraded) = &results.degraded {
            self.warn(degraded.clone());
        }
        if let Some(provisional) = &results.provisional
            && self.session.tell_of_provisional_ranking()
        {
            self.warn(provisional.clone());
        }
    }

    /// Adds a warning to the response.
    pub(crate) fn warn(&self, message: String) {
        self.warnings.borrow_mut().push(message);
    }

    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}
