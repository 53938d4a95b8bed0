//! Every tool by name, and the one way to call any of them: MCP, command line and web all come through here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::memory::Memory;
use quipu_core::{Knowledge, RequestKey, Session, on_one_line};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{Misfit, fit};
use crate::fault::{Fault, FaultKind};
use crate::nearest::nearest;
use crate::schema::{input_schema, output_schema};
use crate::tool::{Access, Call, Tool, ToolInfo, Toolset};
use crate::truncate::{MAX_WARNING, echoed, truncate};
use crate::{docs, memory, notes, pages};

/// JSON-RPC's code for arguments that name nothing.
pub(crate) const INVALID_PARAMS: i32 = -32602;

/// Every tool there is, in the order in which they are listed. A new tool is one line.
fn every_tool() -> Vec<Entry> {
    use Toolset::{Docs, Memory, Notes, Pages};
    vec![
        Entry::new::<notes::Search>(Notes),
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
        Entry::new::<pages::SearchPages>(Pages),
        Entry::new::<pages::GetPage>(Pages),
        Entry::new::<pages::GetContext>(Pages),
        Entry::new::<pages::FulltextSearch>(Pages),
        Entry::new::<pages::ListPages>(Pages),
        Entry::new::<pages::GetGraph>(Pages),
        Entry::new::<memory::GetVersion>(Memory),
        Entry::new::<memory::GetCurrentTime>(Memory),
        Entry::new::<memory::CreateEntity>(Memory),
        Entry::new::<memory::GetEntity>(Memory),
        Entry::new::<memory::UpdateEntity>(Memory),
        Entry::new::<memory::DeleteEntity>(Memory),
        Entry::new::<memory::CreateObservation>(Memory),
        Entry::new::<memory::DeleteObservation>(Memory),
        Entry::new::<memory::CreateRelation>(Memory),
        Entry::new::<memory::DeleteRelation>(Memory),
        Entry::new::<memory::FindRelations>(Memory),
        Entry::new::<memory::SearchEntities>(Memory),
        Entry::new::<memory::ListEntities>(Memory),
        Entry::new::<memory::SearchSubgraph>(Memory),
        Entry::new::<memory::GetSubgraphByIds>(Memory),
        Entry::new::<memory::SetContext>(Memory),
        Entry::new::<memory::GetContext>(Memory),
        Entry::new::<memory::ClearContext>(Memory),
        Entry::new::<memory::BulkUpdate>(Memory),
        Entry::new::<memory::SuggestMerges>(Memory),
    ]
}

/// The tools of one vault.
pub struct Registry {
    pub(crate) knowledge: Arc<Knowledge>,
    memory: Result<Arc<Memory>, String>,
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

impl RegistryOptions {
    /// Which tools they admit.
    pub(crate) fn into_rule(self) -> impl Fn(&ToolInfo) -> bool {
        move |tool| (!self.read_only || tool.access == Access::Read) && self.toolsets.contains(&tool.toolset)
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The answer.
    pub reply: Reply,
    /// What else this client should know. Told once.
    pub warnings: Vec<String>,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// How long a call waits for the first index. Clients give up after a minute at the earliest.
    pub const PATIENCE: Duration = Duration::from_secs(20);

    /// The tools of a vault, those left out whose need is missing.
    pub fn new(knowledge: Arc<Knowledge>, options: RegistryOptions) -> Self {
        let toolsets = options.toolsets.into_iter().filter(|toolset| *toolset != Toolset::Memory).collect();
        let options = RegistryOptions { toolsets, ..options };
        Self::over(knowledge, Err("there is no memory".to_owned()), options)
    }

    /// The tools of a vault whose memory cannot be had: those of memory are there too, and each says why it fails. The
    /// reason is safe to show to a client.
    pub fn without_memory(knowledge: Arc<Knowledge>, why: String, options: RegistryOptions) -> Self {
        Self::over(knowledge, Err(why), options)
    }

    /// The tools of a vault that has a memory.
    pub fn with_memory(knowledge: Arc<Knowledge>, memory: Arc<Memory>, options: RegistryOptions) -> Self {
        Self::over(knowledge, Ok(memory), options)
    }

    fn over(knowledge: Arc<Knowledge>, memory: Result<Arc<Memory>, String>, options: RegistryOptions) -> Self {
        let admits = options.into_rule();
        let mut entries = every_tool();
        entries.retain(|entry| admits(&entry.info) && (entry.needs_met)(&knowledge));
        Self { knowledge, memory, entries, patience: Self::PATIENCE }
    }

    /// What there is to call, always in the same order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolInfo> {
        self.entries.iter().map(|entry| &entry.info)
    }

    /// Calls a tool and waits for its answer. Never panics: a fault inside a tool is a failed call.
    pub fn call(&self, name: &str, arguments: Value, session: &Session) -> Called {
        self.call_for(None, name, arguments, session)
    }

    /// The same for a call that may be made again: what it did it does not do twice. A write that is older than what was
    /// done is remembered for is refused.
    pub fn call_for(&self, request: Option<RequestKey>, name: &str, arguments: Value, session: &Session) -> Called {
        let Some(entry) = self.entries.iter().find(|entry| entry.info.name == name) else {
            return Called { reply: unknown_tool(name, self.tools()), warnings: Vec::new() };
        };
        let memory = self.memory.as_deref().map_err(String::as_str);
        let call = Call::new(&self.knowledge, memory, session).asked_by(request);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if entry.info.access != Access::Read && request.is_some_and(|key| key.is_expired(self.knowledge.now_ns())) {
                return Err(too_late(name));
            }
            let arguments = (entry.fit)(&entry.info.input_schema, arguments)?;
            // Memory does not depend on the notes: it answers while they are still being read.
            if entry.info.toolset != Toolset::Memory {
                self.wait_for_index(&call);
            }
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
        // What is odd in the vault waits for a call that is about the vault.
        if entry.info.toolset != Toolset::Memory {
            warnings.extend(self.knowledge.warnings(session));
        }
        let warnings = warnings.iter().map(|warning| truncate(&on_one_line(warning), MAX_WARNING)).collect();
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
}

/// That none of these tools has the name.
pub(crate) fn unknown_tool<'a>(name: &str, tools: impl Iterator<Item = &'a ToolInfo>) -> Reply {
    let hint =
        nearest(name, tools.map(|tool| tool.name)).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Reply::Protocol { code: INVALID_PARAMS, message: format!("Unknown tool: {}{hint}", echoed(name)) }
}

/// What is told of every tool there is.
pub fn every_tool_info() -> impl Iterator<Item = ToolInfo> {
    every_tool().into_iter().map(|entry| entry.info)
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
            description: T::DESCRIPTION.into(),
            access: T::ACCESS,
            idempotent: T::IDEMPOTENT,
            shows_notes: T::SHOWS_NOTES,
            input_schema: input_schema::<T::Params>(),
            answers_object: output_schema.get("type").and_then(Value::as_str) == Some("object"),
            output_schema,
        };
        Self { info, needs_met: T::needs_met, fit: fit_for::<T>, run: run::<T> }
    }
}

fn fit_for<T: Tool>(schema: &Value, arguments: Value) -> Result<Value, Fault> {
    fit(schema, arguments).map_err(|misfit| match misfit {
        Misfit::Missing { name, message, beside } => {
            let message = T::missing(&name).map_or(message, str::to_owned);
            Fault::invalid(beside.map_or(message.clone(), |beside| format!("{message}; {beside}")))
        }
        Misfit::Wrong { message } => Fault::invalid(message),
    })
}

fn run<T: Tool>(call: &Call<'_>, arguments: Value) -> Result<Value, Fault> {
    // What passed the schema can only fail here for a number too big for its type.
    let params: T::Params = serde_json::from_value(arguments).map_err(|error| Fault::invalid(error.to_string()))?;
    let output = T::call(call, params)?;
    Ok(serde_json::to_value(output).expect("answers have string keys and no failing serializer"))
}

/// The client is gone by now, or has waited through a suspended machine.
fn too_late(tool: &str) -> Fault {
    let minutes = RequestKey::MAX_AGE_NS / 60_000_000_000;
    let message = format!(
        "cannot run {tool}: the request is more than {minutes} minutes old, and an earlier attempt may have succeeded; look \
         whether it did, and call again if not"
    );
    Fault::new(FaultKind::Provider, message)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Desk;

    #[test]
    fn an_unknown_tool_is_an_error_of_the_protocol() {
        let desk = Desk::new("");
        for (name, message) in [
            ("get_nodes", "Unknown tool: get_nodes; did you mean get_node?"),
            ("search", "Unknown tool: search; did you mean search_docs?"),
            ("rm -rf", "Unknown tool: rm -rf"),
            ("", "Unknown tool: "),
        ] {
            let expected = json!({"protocol": {"code": -32602, "message": message}});
            assert_eq!(desk.call(name, json!({})), expected);
        }
    }

    #[test]
    fn only_what_is_wanted_exists() {
        let desk = Desk::new("");
        let names = |toolsets: &[Toolset], read_only| -> Vec<&str> {
            let options = RegistryOptions { toolsets: toolsets.to_vec(), read_only };
            Registry::new(desk.knowledge.clone(), options).tools().map(|tool| tool.name).collect()
        };
        assert_eq!(names(&[Toolset::Docs], false), ["list_documents", "get_document", "search_docs"]);
        assert_eq!(names(&[], false), [""; 0]);
        let reading = names(&[Toolset::Docs, Toolset::Notes], true);
        assert_eq!((reading.len(), reading[0], reading[11]), (12, "get_node", "search_docs"));
        let options = RegistryOptions { read_only: true, ..RegistryOptions::default() };
        let called = Registry::new(desk.knowledge.clone(), options).call("create_node", json!({}), &desk.session);
        assert!(matches!(called.reply, Reply::Protocol { code: -32602, .. }));
    }

    #[test]
    fn a_warning_is_told_once_to_each_client() {
        let desk = Desk::new("//- a.md\n[[nowhere]]\n//- b.md\n---\ntags: [x\n---\n");
        let told = |session: &Session| desk.registry.call("get_hubs", json!({}), session).warnings;
        let first = told(&desk.session);
        assert_eq!(first.len(), 2, "{first:?}");
        assert_eq!(first[0], "\"a.md\": broken link to \"nowhere\"");
        assert!(told(&desk.session).is_empty());
        assert_eq!(told(&Session::default()), first, "another client has not heard it yet");
    }

    #[test]
    fn a_change_behind_the_back_is_told_to_those_who_read_it() {
        let desk = Desk::new("//- a.md\nold\n");
        desk.call("get_node", json!({"id": "a.md"}));
        desk.vault.put("a.md", "new\n");
        desk.knowledge.sync(&quipu_core::index::Scope::EveryByte, &|_| {}).unwrap();
        let warnings = desk.called("list_nodes", json!({})).warnings;
        assert_eq!(warnings, ["\"a.md\": changed on disk since you read it; read it again before writing"]);
        assert!(desk.called("list_nodes", json!({})).warnings.is_empty());
    }

    #[test]
    fn a_call_before_the_first_index_is_answered_and_says_so() {
        let mut desk = Desk::not_started("//- a.md\n");
        desk.registry.patience = Duration::ZERO;
        let called = desk.called("list_nodes", json!({}));
        assert_eq!(called.reply, Reply::Answer(json!({"nodes": [], "total": 0})));
        assert!(called.warnings[0].starts_with("the vault is still being indexed: 0 files are known"), "{called:?}");
        desk.knowledge.start(&|_| {}).unwrap();
        assert_eq!(desk.called("list_nodes", json!({})).warnings, [""; 0]);
    }

    #[test]
    fn a_call_waits_for_the_first_index() {
        let desk = Desk::not_started("//- a.md\n");
        std::thread::scope(|scope| {
            let call = scope.spawn(|| desk.registry.call("list_nodes", json!({}), &desk.session));
            desk.knowledge.start(&|_| {}).unwrap();
            let called = call.join().unwrap();
            assert_eq!(called.reply, Reply::Answer(json!({"nodes": [{"id": "a.md", "title": "A"}], "total": 1})));
        });
    }

    #[test]
    fn an_error_is_not_as_long_as_what_it_complains_of() {
        let desk = Desk::new("//- a.md\n");
        let long = "x".repeat(100_000);
        let path = format!("{}x.md", ".hidden/".repeat(400));
        for (tool, arguments) in [
            (long.as_str(), json!({})),
            ("create_node", json!({"id": long, "content": ""})),
            ("create_node", json!({"id": format!("\u{1}{long}.md"), "content": ""})),
            ("create_node", json!({"id": path, "content": ""})),
            ("update_node", json!({"id": long, "content": ""})),
            ("update_node", json!({"id": "a.md", "title": long})),
            ("get_neighbors", json!({"id": long, "direction": long})),
            ("get_document", json!({"path": long})),
            ("get_hubs", json!({long.as_str(): 1})),
            ("list_nodes", json!({"limit": long})),
        ] {
            let answer = desk.call(tool, arguments).to_string();
            assert!(
                answer.starts_with(r#"{"failed""#) || answer.starts_with(r#"{"protocol""#),
                "{tool}: {answer:.200}"
            );
            assert!(answer.len() < 500, "{tool}: {} characters", answer.len());
        }
    }

    struct Panics;

    impl Tool for Panics {
        type Params = std::collections::BTreeMap<String, u8>;
        type Output = u8;
        const NAME: &'static str = "panics";
        const DESCRIPTION: &'static str = "For the test below.";
        const ACCESS: Access = Access::Read;
        const IDEMPOTENT: bool = true;

        fn call(_call: &Call<'_>, _params: Self::Params) -> Result<u8, Fault> {
            panic!("secret path /home/ada")
        }
    }

    #[test]
    fn a_panic_inside_a_tool_stays_inside() {
        for (toolset, text) in [
            (Toolset::Notes, r#"{"error":{"code":"PROVIDER_ERROR","message":"internal error"}}"#),
            (Toolset::Docs, "Error: internal error"),
        ] {
            let mut desk = Desk::new("");
            desk.registry.entries.push(Entry::new::<Panics>(toolset));
            let called = desk.registry.call("panics", json!({}), &desk.session);
            assert_eq!(called.reply, Reply::Failure(text.into()));
            assert_eq!(desk.call("get_hubs", json!({})), json!([]), "the next call is answered");
        }
    }
}
