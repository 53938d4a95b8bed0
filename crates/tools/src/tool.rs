//! What every tool says of itself, and what it is handed when it is called.

use std::borrow::Cow;
use std::cell::RefCell;

use quipu_core::index::Snapshot;
use quipu_core::memory::Memory;
use quipu_core::model::{NoteKey, VaultPath};
use quipu_core::ports::Author;
use quipu_core::{Knowledge, ReadNote, RequestKey, Session, quoted};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::{Fault, FaultKind};
use crate::truncate::echoed;

/// Other notes of one spelling that are named.
const MAX_OTHERS: usize = 5;

/// One tool. Implemented by one unit struct in the file named as the tool.
pub(crate) trait Tool: 'static {
    /// What it takes. The doc line, default and range of each field become the schema, and the check.
    type Params: DeserializeOwned + JsonSchema;
    /// What it answers.
    type Output: Serialize + JsonSchema;

    /// What clients call it.
    const NAME: &'static str;
    /// What it returns, when to use it and when not, for a model with little context.
    const DESCRIPTION: &'static str;
    /// What it may do to the vault.
    const ACCESS: Access;
    /// Whether calling it twice with the same arguments does no more than calling it once.
    const IDEMPOTENT: bool;
    /// Whether its answers show notes: then the vault should have been read.
    const SHOWS_NOTES: bool = true;

    /// Whether the vault has all it needs. A tool whose need is missing does not exist.
    fn needs_met(_knowledge: &Knowledge) -> bool {
        true
    }

    /// The words for a required argument that was not given, where the tool's contract has its own.
    fn missing(_argument: &str) -> Option<&'static str> {
        None
    }

    /// Translates, asks the vault once, translates back.
    fn call(call: &Call<'_>, params: Self::Params) -> Result<Self::Output, Fault>;
}

/// The family a tool belongs to: which words it uses, and how it tells a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Toolset {
    /// Notes as a graph of nodes.
    Notes,
    /// Notes as documents.
    Docs,
    /// Notes as pages in sections, with typed links and how fresh they are.
    Pages,
    /// What agents learn: entities, observations, relations.
    Memory,
}

impl Toolset {
    /// Every toolset, in the order in which their tools are listed.
    pub const ALL: [Self; 4] = [Self::Notes, Self::Docs, Self::Pages, Self::Memory];

    /// The word for it in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notes => "notes",
            Self::Docs => "docs",
            Self::Pages => "pages",
            Self::Memory => "memory",
        }
    }

    /// The toolset a word names.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|toolset| toolset.name() == name)
    }
}

/// What a tool may do to the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks.
    Read,
    /// Adds; what is there stays as it is.
    Write,
    /// May replace or remove what is there.
    Destroy,
}

/// What a client is told of a tool.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    /// What clients call it.
    pub name: &'static str,
    /// Its family.
    pub toolset: Toolset,
    /// For the model that chooses among tools.
    pub description: Cow<'static, str>,
    /// What it may do.
    pub access: Access,
    /// Whether a repetition does no more.
    pub idempotent: bool,
    /// Whether its answers show notes. Others can be asked of a vault that nobody has read.
    pub shows_notes: bool,
    /// JSON Schema of its arguments. Everything it says is checked.
    pub input_schema: Value,
    /// JSON Schema of its answers.
    pub output_schema: Value,
    /// Whether every answer is an object: never a list, never null. Older protocols want nothing else.
    pub answers_object: bool,
}

/// One call: the vault, who asks, and what is to be told beside the answer.
pub(crate) struct Call<'a> {
    pub(crate) knowledge: &'a Knowledge,
    memory: Result<&'a Memory, &'a str>,
    pub(crate) session: &'a Session,
    /// Names the call, where it may be made again.
    pub(crate) request: Option<RequestKey>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(knowledge: &'a Knowledge, memory: Result<&'a Memory, &'a str>, session: &'a Session) -> Self {
        Self { knowledge, memory, session, request: None, warnings: RefCell::default() }
    }

    pub(crate) fn asked_by(self, request: Option<RequestKey>) -> Self {
        Self { request, ..self }
    }

    /// What agents learned; a failure that says why where it cannot be had.
    pub(crate) fn memory(&self) -> Result<&'a Memory, Fault> {
        self.memory.map_err(|why| Fault::new(FaultKind::Provider, why))
    }

    /// This client, using a tool, now.
    pub(crate) fn author(&self, tool: &str) -> Result<Author, Fault> {
        Ok(self.memory()?.author(self.session, tool, self.request))
    }

    /// The note that an id or path means, as its file is now. Where several match, the client is told of the others.
    pub(crate) fn read(&self, spelled: &str) -> Result<Option<ReadNote>, Fault> {
        let read = self.knowledge.read(self.session, spelled)?;
        if let Some(read) = &read {
            self.warn_of_others(spelled, &read.note().path, read.others.iter());
        }
        Ok(read)
    }

    /// The same among the notes of a snapshot, without reading its file.
    pub(crate) fn find(&self, snapshot: &Snapshot, spelled: &str) -> Option<NoteKey> {
        let found = snapshot.lookup(spelled);
        let (key, others) = found.split_first()?;
        let path = |key: &NoteKey| &snapshot.note(*key).path;
        self.warn_of_others(spelled, path(key), others.iter().map(path));
        Some(*key)
    }

    fn warn_of_others<'p>(
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
            self.warn(format!("{spelled} matches several notes: {path} is answered; the others are {named}{more}"));
        }
    }

    /// Tells the client something beside the answer.
    pub(crate) fn warn(&self, message: String) {
        self.warnings.borrow_mut().push(message);
    }

    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}
