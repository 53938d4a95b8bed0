//! Every tool by name, and the one way to call any of them: MCP, command line and web all come through here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::{Knowledge, Session};
use serde_json::Value;

use crate::arguments::{Misfit, fit, nearest};
use crate::fault::{Fault, FaultKind};
use crate::schema::{input_schema, output_schema};
use crate::tool::{Access, Call, Tool, ToolInfo, Toolset};
use crate::truncate::truncate;
use crate::{docs, notes};

/// How long a call waits for the first index. Clients give up after a minute at the earliest.
const PATIENCE: Duration = Duration::from_secs(20);

/// JSON-RPC's code for arguments that name nothing.
const INVALID_PARAMS: i32 = -32602;

/// Every tool there is, in the order in which they are listed. A new tool is one line.
fn every_tool() -> Vec<Entry> {
    use Toolset::{Docs, Notes};
    vec![
        // `search` belongs first: it comes with the embedder that it needs.
        Entry::new::<notes::GetNode>(Notes),
        Entry::new::<notes::GetNeighbors>(Notes),
        Entry::new::<notes::FindPath>(Notes),
        Entry::new::<notes::GetHubs>(Notes),
        Entry::new::<notes::SearchByTags>(Notes),
        Entry::new::<notes::RandomNode>(Notes),
        Entry::new::<notes::ListNodes>(Notes),
        Entry::new::<notes::ResolveNodes>(Notes),
        Entry::new::<notes::NodesExist>(Notes),
        Entry::new::<notes::CreateNode>(Notes),
        Entry::new::<notes::UpdateNode>(Notes),
        Entry::new::<notes::DeleteNode>(Notes),
        Entry::new::<docs::ListDocuments>(Docs),
        Entry::new::<docs::GetDocument>(Docs),
        Entry::new::<docs::SearchDocs>(Docs),
    ]
}

/// The tools of one vault.
pub struct Registry {
    pub(crate) knowledge: Arc<Knowledge>,
    entries: Vec<Entry>,
    patience: Duration,
}

/// Which tools there shall be.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// Whose tools.
    pub toolsets: Vec<Toolset>,
    /// Without the tools that write.
    pub read_only: bool,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self { toolsets: Toolset::ALL.to_vec(), read_only: false }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The answer.
    pub reply: Reply,
    /// What else this client should know. Told once.
    pub warnings: Vec<String>,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The tool's answer.
    Answer(Value),
    /// The tool failed, and says so in this one text.
    Failure(String),
    /// The call itself was wrong: an error of the protocol.
    Protocol {
        /// JSON-RPC's code.
        code: i32,
        /// What was wrong.
        message: String,
    },
}

impl Registry {
    /// The tools of a vault, those left out whose need is missing.
    pub fn new(knowledge: Arc<Knowledge>, options: RegistryOptions) -> Self {
        let RegistryOptions { toolsets, read_only } = options;
        let mut entries = every_tool();
        entries.retain(|entry| {
            let may = !read_only || entry.info.access == Access::Read;
            may && toolsets.contains(&entry.info.toolset) && (entry.needs_met)(&knowledge)
        });
        Self { knowledge, entries, patience: PATIENCE }
    }

    /// What there is to call, always in the same order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolInfo> {
        self.entries.iter().map(|entry| &entry.info)
    }

    /// Calls a tool and waits for its answer. Never panics: a fault inside a tool is a failed call.
    pub fn call(&self, name: &str, arguments: Value, session: &Session) -> Called {
        let Some(entry) = self.entries.iter().find(|entry| entry.info.name == name) else {
            return Called { reply: self.unknown_tool(name), warnings: Vec::new() };
        };
        let call = Call::new(&self.knowledge, session);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let arguments = (entry.fit)(&entry.info.input_schema, arguments)?;
            self.wait_for_index(&call);
            (entry.run)(&call, arguments)
        }));
        let outcome = outcome.unwrap_or_else(|panic| {
            tracing::error!(tool = name, panic = panic_text(&*panic), "a tool panicked");
            Err(Fault::new(FaultKind::Provider, "internal error"))
        });
        let reply = match outcome {
            Ok(answer) => Reply::Answer(answer),
            Err(fault) => fault.reply(entry.info.toolset),
        };
        let mut warnings = call.into_warnings();
        warnings.extend(self.knowledge.warnings(session));
        Called { reply, warnings }
    }

    fn wait_for_index(&self, call: &Call<'_>) {
        if !self.knowledge.wait_ready(self.patience) {
            let known = self.knowledge.snapshot().files().len();
            call.warn(format!(
                "the vault is still being indexed: {known} files are known so far, and this answer may miss the rest; ask again later"
            ));
        }
    }

    fn unknown_tool(&self, name: &str) -> Reply {
        let names: Vec<&str> = self.tools().map(|tool| tool.name).collect();
        let hint = nearest(name, &names).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        Reply::Protocol { code: INVALID_PARAMS, message: format!("Unknown tool: {}{hint}", truncate(name, 100)) }
    }
}

/// A tool with its types erased.
struct Entry {
    info: ToolInfo,
    needs_met: fn(&Knowledge) -> bool,
    fit: fn(&Value, Value) -> Result<Value, Fault>,
    run: fn(&Call<'_>, Value) -> Result<Value, Fault>,
}

impl Entry {
    fn new<T: Tool>(toolset: Toolset) -> Self {
        let output_schema = output_schema::<T::Output>();
        let info = ToolInfo {
            name: T::NAME,
            toolset,
            description: T::DESCRIPTION,
            access: T::ACCESS,
            idempotent: T::IDEMPOTENT,
            input_schema: input_schema::<T::Params>(),
            answers_object: output_schema.get("type").and_then(Value::as_str) == Some("object"),
            output_schema,
        };
        Self { info, needs_met: T::needs_met, fit: fit_for::<T>, run: run::<T> }
    }
}

fn fit_for<T: Tool>(schema: &Value, arguments: Value) -> Result<Value, Fault> {
    fit(schema, arguments).map_err(|misfit| match misfit {
        Misfit::Missing { name, message } => Fault::invalid(T::missing(&name).map_or(message, str::to_owned)),
        Misfit::Wrong { message } => Fault::invalid(message),
    })
}

fn run<T: Tool>(call: &Call<'_>, arguments: Value) -> Result<Value, Fault> {
    // What passed the schema can only fail here for a number too big for its type.
    let params: T::Params = serde_json::from_value(arguments).map_err(|error| Fault::invalid(error.to_string()))?;
    let output = T::call(call, params)?;
    Ok(serde_json::to_value(output).expect("answers have string keys and no failing serializer"))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}
