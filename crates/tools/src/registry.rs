//! Every tool by name, and the one way to call it: [`Registry::find`], then [`Registry::call`], which checks the arguments
//! against the tool's schema and runs the tool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use quipu_core::memory::Memory;
use quipu_core::{Knowledge, RequestKey, Session, on_one_line};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::check_arguments;
use crate::nearest::nearest;
use crate::tool::{Access, Call, ToolInfo, Toolset};
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::{MAX_WARNING, echoed, truncate};
use crate::{docs, memory, notes, pages, upkeep, work};

/// JSON-RPC's code for invalid arguments.
pub(crate) const INVALID_PARAMS: i32 = -32602;

/// Every tool in the order of `tools/list`. A new tool is one line.
pub fn every_tool() -> &'static [ToolInfo] {
    static TOOLS: LazyLock<Vec<ToolInfo>> = LazyLock::new(list_tools);
    &TOOLS
}

fn list_tools() -> Vec<ToolInfo> {
    use Toolset::{Docs, Memory, Notes, Pages, Upkeep, Work};
    vec![
        ToolInfo::of::<notes::search::Search>(Notes),
        ToolInfo::of::<notes::get_node::GetNode>(Notes),
        ToolInfo::of::<notes::get_neighbors::GetNeighbors>(Notes),
        ToolInfo::of::<notes::find_path::FindPath>(Notes),
        ToolInfo::of::<notes::get_hubs::GetHubs>(Notes),
        ToolInfo::of::<notes::search_by_tags::SearchByTags>(Notes),
        ToolInfo::of::<notes::random_node::RandomNode>(Notes),
        ToolInfo::of::<notes::list_nodes::ListNodes>(Notes),
        ToolInfo::of::<notes::resolve_nodes::ResolveNodes>(Notes),
        ToolInfo::of::<notes::nodes_exist::NodesExist>(Notes),
        ToolInfo::of::<notes::create_node::CreateNode>(Notes),
        ToolInfo::of::<notes::update_node::UpdateNode>(Notes),
        ToolInfo::of::<notes::delete_node::DeleteNode>(Notes),
        ToolInfo::of::<docs::list_documents::ListDocuments>(Docs),
        ToolInfo::of::<docs::get_document::GetDocument>(Docs),
        ToolInfo::of::<docs::search_docs::SearchDocs>(Docs),
        ToolInfo::of::<pages::ubp_search::SearchPages>(Pages),
        ToolInfo::of::<pages::ubp_get_page::GetPage>(Pages),
        ToolInfo::of::<pages::ubp_get_context::GetContext>(Pages),
        ToolInfo::of::<pages::ubp_fulltext_search::FulltextSearch>(Pages),
        ToolInfo::of::<pages::ubp_list_pages::ListPages>(Pages),
        ToolInfo::of::<pages::ubp_get_graph::GetGraph>(Pages),
        ToolInfo::of::<memory::get_version::GetVersion>(Memory),
        ToolInfo::of::<memory::get_current_time::GetCurrentTime>(Memory),
        ToolInfo::of::<memory::create_entity::CreateEntity>(Memory),
        ToolInfo::of::<memory::get_entity::GetEntity>(Memory),
        ToolInfo::of::<memory::update_entity::UpdateEntity>(Memory),
        ToolInfo::of::<memory::delete_entity::DeleteEntity>(Memory),
        ToolInfo::of::<memory::create_observation::CreateObservation>(Memory),
        ToolInfo::of::<memory::delete_observation::DeleteObservation>(Memory),
        ToolInfo::of::<memory::create_relation::CreateRelation>(Memory),
        ToolInfo::of::<memory::delete_relation::DeleteRelation>(Memory),
        ToolInfo::of::<memory::find_relations::FindRelations>(Memory),
        ToolInfo::of::<memory::search_entities::SearchEntities>(Memory),
        ToolInfo::of::<memory::list_entities::ListEntities>(Memory),
        ToolInfo::of::<memory::search_subgraph::SearchSubgraph>(Memory),
        ToolInfo::of::<memory::get_subgraph_by_ids::GetSubgraphByIds>(Memory),
        ToolInfo::of::<memory::set_context::SetContext>(Memory),
        ToolInfo::of::<memory::get_context::GetContext>(Memory),
        ToolInfo::of::<memory::clear_context::ClearContext>(Memory),
        ToolInfo::of::<memory::bulk_update::BulkUpdate>(Memory),
        ToolInfo::of::<memory::suggest_merges::SuggestMerges>(Memory),
        ToolInfo::of::<work::edit_node::EditNode>(Work),
        ToolInfo::of::<work::move_node::MoveNode>(Work),
        ToolInfo::of::<work::query_nodes::QueryNodes>(Work),
        ToolInfo::of::<work::recent_changes::RecentChanges>(Work),
        ToolInfo::of::<work::node_history::NodeHistory>(Work),
        ToolInfo::of::<work::diff_node::DiffNode>(Work),
        ToolInfo::of::<work::revert_node::RevertNode>(Work),
        ToolInfo::of::<work::summarize_node::SummarizeNode>(Work),
        ToolInfo::of::<work::suggest_tags::SuggestTags>(Work),
        ToolInfo::of::<work::extract_entities::ExtractEntities>(Work),
        ToolInfo::of::<upkeep::merge_entities::MergeEntities>(Upkeep),
        ToolInfo::of::<upkeep::update_observation::UpdateObservation>(Upkeep),
        ToolInfo::of::<upkeep::undo_change::UndoChange>(Upkeep),
        ToolInfo::of::<upkeep::redact::Redact>(Upkeep),
    ]
}

/// The tools of the toolset `essential`: find, read, edit, move, undo, query, recall, remember. At most 14, since models choose badly
/// among many tools and clients limit their number.
pub(crate) const ESSENTIAL: [&str; 13] = [
    "ubp_search",
    "get_node",
    "query_nodes",
    "recent_changes",
    "create_node",
    "edit_node",
    "move_node",
    "undo_change",
    "search_entities",
    "get_entity",
    "create_entity",
    "create_observation",
    "create_relation",
];

/// The tools of one open vault.
pub struct Registry {
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) memory: Result<Arc<Memory>, String>,
    tools: Vec<&'static ToolInfo>,
    patience: Duration,
}

/// Which tools a registry or an offer has.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// The toolsets to include.
    pub toolsets: Vec<Toolset>,
    /// Leave out the tools that write.
    pub read_only: bool,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self { toolsets: Toolset::ALL.to_vec(), read_only: false }
    }
}

impl RegistryOptions {
    pub(crate) fn admit(&self, tool: &ToolInfo) -> bool {
        self.allows(tool) && self.chooses(tool)
    }

    /// Whether the tool may be used as far as writing is concerned.
    pub(crate) fn allows(&self, tool: &ToolInfo) -> bool {
        !self.read_only || tool.access == Access::Read
    }

    /// Whether a chosen toolset has the tool.
    pub(crate) fn chooses(&self, tool: &ToolInfo) -> bool {
        let is_essential = || self.toolsets.contains(&Toolset::Essential) && ESSENTIAL.contains(&tool.name);
        self.toolsets.contains(&tool.toolset) || is_essential()
    }
}

/// The response to a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResponse {
    /// The answer or the error.
    pub reply: Reply,
    /// Warnings for this client, each sent once.
    pub warnings: Vec<String>,
}

impl From<Reply> for ToolResponse {
    fn from(reply: Reply) -> Self {
        Self { reply, warnings: Vec::new() }
    }
}

/// An answer or an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The tool's answer.
    Answer(Value),
    /// The tool failed; the text is the whole error as its toolset writes it.
    Failure(String),
    /// A JSON-RPC error.
    Protocol {
        /// JSON-RPC's code.
        code: i32,
        message: String,
    },
}

impl Registry {
    /// How long a call waits for the first index. Clients give up after a minute at the earliest.
    pub const PATIENCE: Duration = Duration::from_secs(20);

    /// The tools of a vault without memory. Tools whose requirement is missing are left out, here and below.
    pub fn new(knowledge: Arc<Knowledge>, mut options: RegistryOptions) -> Self {
        options.toolsets.retain(|toolset| !toolset.is_about_memory());
        let mut registry = Self::build(knowledge, Err("this vault has no memory".to_owned()), options);
        registry.tools.retain(|tool| !tool.toolset.is_about_memory());
        registry
    }

    /// The tools of a vault whose memory cannot be opened: the memory tools are listed, and each fails with this reason,
    /// which must be safe to show to a client.
    pub fn without_memory(knowledge: Arc<Knowledge>, reason: String, options: RegistryOptions) -> Self {
        Self::build(knowledge, Err(reason), options)
    }

    /// The tools of a vault with its memory.
    pub fn with_memory(knowledge: Arc<Knowledge>, memory: Arc<Memory>, options: RegistryOptions) -> Self {
        Self::build(knowledge, Ok(memory), options)
    }

    fn build(knowledge: Arc<Knowledge>, memory: Result<Arc<Memory>, String>, options: RegistryOptions) -> Self {
        let admits = move |tool: &ToolInfo| options.admit(tool);
        let tools = every_tool().iter().filter(|tool| admits(tool) && (tool.is_available)(&knowledge)).collect();
        Self { knowledge, memory, tools, patience: Self::PATIENCE }
    }

    /// Sets how long calls wait for the first index.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// See [`Knowledge::command_session`].
    pub fn command_session(&self, client: &str) -> Session {
        self.knowledge.command_session(client)
    }

    /// The tools, always in the same order.
    pub fn tools(&self) -> impl Iterator<Item = &'static ToolInfo> {
        self.tools.iter().copied()
    }

    /// The tool of this name, or the error for a client that asked for it.
    pub fn find(&self, name: &str) -> Result<&'static ToolInfo, Reply> {
        self.tools().find(|tool| tool.name == name).ok_or_else(|| unknown_tool(name, self.tools()))
    }

    /// Calls a tool. A panic inside it is a failed call. A call with a `request` key can be repeated: what it has done is
    /// not done twice, and a write whose key is too old to be remembered is refused.
    pub fn call(
        &self,
        tool: &ToolInfo,
        arguments: Value,
        session: &Session,
        request: Option<RequestKey>,
    ) -> ToolResponse {
        // A client may have looked the tool up before another process, with other settings, took the vault over.
        if !(tool.is_available)(&self.knowledge) {
            return unknown_tool(tool.name, self.tools()).into();
        }
        let memory = self.memory.as_deref().map_err(String::as_str);
        let call = Call::new(&self.knowledge, memory, session, request, Instant::now() + self.patience);
        let revision = session.revision();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if let Some(key) = request.filter(|_| tool.access != Access::Read) {
                refuse_untimely(tool.name, key, self.knowledge.now_ns())?;
            }
            let arguments = check_arguments(tool, arguments)?;
            let incomplete = if tool.needs_index { self.wait_for_index(&arguments)? } else { None };
            incomplete.into_iter().for_each(|why| call.mark_incomplete(why));
            let answer = (tool.run)(&call, arguments)?;
            Ok(match call.incomplete() {
                // An answer that maps ids to values has no room for a field.
                Some(why) if tool.output_schema.get("additionalProperties").is_none() => marked_incomplete(answer, why),
                _ => answer,
            })
        }));
        let outcome = outcome.unwrap_or_else(|panic| {
            tracing::error!(tool = tool.name, panic = panic_text(&*panic), "a tool panicked");
            Err(ToolError::new(ToolErrorKind::Provider, "internal error"))
        });
        let reply = outcome.map_or_else(|error| error.reply(tool.toolset), Reply::Answer);
        // A write is refused; what is read may be of either file.
        if tool.toolset.is_about_memory()
            && matches!(reply, Reply::Answer(_))
            && let Some(what) = self.memory.as_ref().ok().and_then(|memory| memory.store().replaced())
        {
            call.warn(what);
        }
        let mut warnings = call.into_warnings();
        if tool.needs_index {
            warnings.extend(self.knowledge.warnings(session, &session.touched_since(revision)));
        }
        let warnings = warnings.iter().map(|warning| truncate(&on_one_line(warning), MAX_WARNING)).collect();
        ToolResponse { reply, warnings }
    }

    /// Waits for the first index; after a while, makes sure that the index has the notes that the arguments name, and returns what
    /// the answer must say.
    fn wait_for_index(&self, arguments: &Value) -> Result<Option<String>, ToolError> {
        let named = texts_of(arguments);
        // Before the wait: on a server that has just started, a write need not wait for the other notes.
        self.knowledge.index_first(&named)?;
        if self.knowledge.wait_ready(self.patience) {
            return Ok(None);
        }
        if self.knowledge.has_panicked() {
            let why = "cannot index the vault: internal error; the server's log has the details, restart it";
            return Err(ToolError::new(ToolErrorKind::Provider, why));
        }
        let known = self.knowledge.snapshot().files().len();
        Ok(Some(format!(
            "the vault is still being indexed: {known} files are indexed so far, and this answer covers only those; retry later"
        )))
    }
}

/// Field of an answer that does not cover the whole vault.
const INCOMPLETE: &str = "_incomplete";

/// An answer that says itself that it is incomplete: some clients show the structured answer alone. An answer that is no object
/// has the warning beside it.
fn marked_incomplete(mut answer: Value, why: String) -> Value {
    if let Value::Object(fields) = &mut answer {
        fields.insert(INCOMPLETE.to_owned(), why.into());
    }
    answer
}

/// The texts among arguments that may be ids or paths of notes.
fn texts_of(arguments: &Value) -> Vec<&str> {
    /// More bytes are no path.
    const LONGEST_PATH: usize = 4096;
    match arguments {
        Value::String(text) if text.len() <= LONGEST_PATH && !text.contains('\n') => vec![text],
        Value::Array(values) => values.iter().flat_map(texts_of).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn unknown_tool<'a>(name: &str, tools: impl Iterator<Item = &'a ToolInfo>) -> Reply {
    let hint =
        nearest(name, tools.map(|tool| tool.name)).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Reply::Protocol { code: INVALID_PARAMS, message: format!("Unknown tool: {}{hint}", echoed(name)) }
}

/// Refuses a write that was queued for too long, for example through a suspended machine, and one from a clock so far ahead that
/// it could not be recognised when it is repeated.
fn refuse_untimely(tool: &str, key: RequestKey, now_ns: i64) -> Result<(), ToolError> {
    let minutes = RequestKey::MAX_AGE_NS / 60_000_000_000;
    let cause = if key.is_expired(now_ns) {
        format!(
            "the request is more than {minutes} minutes old, and an earlier attempt may have succeeded; check whether it did, \
             and retry if not"
        )
    } else if key.is_ahead(now_ns) {
        format!("the request's key is more than {minutes} minutes ahead of the server's clock; set the client's clock")
    } else {
        return Ok(());
    };
    Err(ToolError::new(ToolErrorKind::Provider, format!("cannot run {tool}: {cause}")))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Harness;
    use crate::tool::Tool;

    #[test]
    fn an_unknown_tool_is_a_protocol_error() {
        let harness = Harness::new("");
        for (name, message) in [
            ("get_nodes", "Unknown tool: get_nodes; did you mean get_node?"),
            ("search", "Unknown tool: search; did you mean search_docs?"),
            ("rm -rf", "Unknown tool: rm -rf"),
            ("", "Unknown tool: "),
        ] {
            let expected = json!({"protocol": {"code": -32602, "message": message}});
            assert_eq!(harness.call(name, json!({})), expected);
        }
    }

    #[test]
    fn calls_fail_at_once_if_the_first_pass_over_the_vault_panicked() {
        let harness = Harness::not_started("//- a.md\n");
        let start = || harness.knowledge.start(&|_| panic!("in a test"));
        assert!(catch_unwind(AssertUnwindSafe(start)).is_err());
        let answer = harness.call("list_nodes", json!({})).to_string();
        assert!(answer.contains("cannot index the vault: internal error"), "{answer}");
    }

    #[test]
    fn a_tool_that_this_vault_cannot_run_is_unknown() {
        let harness = Harness::new("");
        let search = every_tool().iter().find(|tool| tool.name == "search").expect("it needs an embedder");
        let reply = harness.registry.call(search, json!({"query": "x"}), &harness.session, None).reply;
        assert_eq!(reply, harness.registry.find("search").map(|tool| tool.name).unwrap_err());
    }

    #[test]
    fn options_choose_the_tools() {
        let harness = Harness::new("");
        let names = |toolsets: &[Toolset], read_only| -> Vec<&str> {
            let options = RegistryOptions { toolsets: toolsets.to_vec(), read_only };
            Registry::new(harness.knowledge.clone(), options).tools().map(|tool| tool.name).collect()
        };
        assert_eq!(names(&[Toolset::Docs], false), ["list_documents", "get_document", "search_docs"]);
        assert_eq!(names(&[], false), [""; 0]);
        let reading = names(&[Toolset::Docs, Toolset::Notes], true);
        assert_eq!((reading.len(), reading[0], reading[11]), (12, "get_node", "search_docs"));
        let options = RegistryOptions { read_only: true, ..RegistryOptions::default() };
        let registry = Registry::new(harness.knowledge.clone(), options);
        assert!(matches!(registry.find("create_node"), Err(Reply::Protocol { code: -32602, .. })));
    }

    #[test]
    fn essential_tools_are_few_and_short() {
        let options = RegistryOptions { toolsets: vec![Toolset::Essential], read_only: false };
        let offer = crate::Offer::among(every_tool().iter().map(|tool| tool.name), options);
        for name in ESSENTIAL {
            assert!(offer.tools().any(|tool| tool.name == name), "there is no tool {name}");
        }
        let listed = |tool: &ToolInfo| {
            let annotations =
                json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false});
            json!({"name": tool.name, "description": tool.description, "inputSchema": *tool.input_schema, "annotations": annotations})
        };
        let bytes: usize = offer.tools().map(|tool| listed(tool).to_string().len() + 1).sum();
        assert!(offer.tools().count() <= 14 && bytes < 12 * 1024, "{bytes} bytes");
    }

    #[test]
    fn each_client_gets_a_warning_once() {
        let harness = Harness::new("//- a.md\n[[nowhere]]\n//- b.md\n---\ntags: [x\n---\n");
        let told = |session: &Session| harness.called_by(session, "get_hubs", json!({})).warnings;
        let first = told(&harness.session);
        assert_eq!(first.len(), 2, "{first:?}");
        assert_eq!(first[0], "\"a.md\": broken link to \"nowhere\"");
        assert!(told(&harness.session).is_empty());
        assert_eq!(told(&Session::default()), first, "another client has not heard it yet");
    }

    #[test]
    fn clients_that_read_a_note_are_warned_of_outside_changes() {
        let harness = Harness::new("//- a.md\nold\n");
        harness.call("get_node", json!({"id": "a.md"}));
        harness.vault.put("a.md", "new\n");
        harness.knowledge.apply(&quipu_core::index::FileBatch::AllRehashed, &|_| {}).unwrap();
        let warnings = harness.called("list_nodes", json!({})).warnings;
        assert_eq!(warnings, ["\"a.md\": changed since you read it; read it again before writing"]);
        assert!(harness.called("list_nodes", json!({})).warnings.is_empty());
    }

    #[test]
    fn a_call_before_the_first_index_has_a_warning() {
        let mut harness = Harness::not_started("//- a.md\n");
        harness.registry.patience = Duration::ZERO;
        let called = harness.called("list_nodes", json!({}));
        let Reply::Answer(answer) = &called.reply else { panic!("{called:?}") };
        assert_eq!((&answer["nodes"], &answer["total"]), (&json!([]), &json!(0)));
        assert!(called.warnings[0].starts_with("the vault is still being indexed: 0 files are indexed"), "{called:?}");
        assert_eq!(answer["_incomplete"], called.warnings[0], "also for clients that show the structured answer alone");
        harness.knowledge.start(&|_| {}).unwrap();
        assert_eq!(harness.called("list_nodes", json!({})).warnings, [""; 0]);
    }

    #[test]
    fn a_memory_tool_that_shows_notes_waits_for_them_too() {
        let mut harness = Harness::not_started("//- a.md\nsecret\n");
        harness.registry.patience = Duration::ZERO;
        let redact = || harness.called("redact", json!({"kind": "note", "id": "a.md", "reason": "x"}));
        assert!(redact().warnings.iter().any(|warning| warning.starts_with("the vault is still being indexed")));
        harness.knowledge.start(&|_| {}).unwrap();
        let create = json!({"name": "Ada", "entity_type": "Author"});
        assert_eq!((redact().warnings, harness.called("create_entity", create).warnings), (vec![], vec![]));
    }

    #[test]
    fn a_search_of_memory_that_is_not_read_yet_has_a_warning() {
        let mut harness = Harness::new("//- a.md\nSee [[a]].\n");
        harness.registry.patience = Duration::ZERO;
        // Without `force`, memory is read to find duplicates.
        let ada = json!({"name": "Ada", "entity_type": "Author", "observations": ["[[a]]"], "force": true});
        harness.called("create_entity", ada);
        let read_ahead = Memory::read_ahead(&harness.memory);
        let calls = [
            ("search_subgraph", json!({"query": "ada"}), "entities"),
            ("get_node", json!({"id": "a.md", "include_entities": true}), "entities"),
        ];
        for (tool, arguments, list) in &calls {
            let called = harness.called(tool, arguments.clone());
            let Reply::Answer(answer) = &called.reply else { panic!("{called:?}") };
            assert_eq!(answer[list], json!([]));
            let start = "memory is still being read: 0 of 0 entities and observations are read";
            assert!(called.warnings[0].starts_with(start), "{called:?}");
            assert_eq!(answer["_incomplete"], called.warnings[0]);
        }
        assert_eq!(harness.called("search_entities", json!({"query": "ada"})).warnings.len(), 1);
        read_ahead().unwrap();
        for (tool, arguments, list) in calls {
            let called = harness.called(tool, arguments);
            let Reply::Answer(answer) = &called.reply else { panic!("{called:?}") };
            assert_eq!((answer[list][0]["name"].as_str(), called.warnings), (Some("Ada"), vec![]));
        }
    }

    #[test]
    fn a_call_waits_for_the_first_index() {
        let harness = Harness::not_started("//- a.md\n");
        std::thread::scope(|scope| {
            let call = scope.spawn(|| harness.called("list_nodes", json!({})));
            harness.knowledge.start(&|_| {}).unwrap();
            let called = call.join().unwrap();
            assert_eq!(called.reply, Reply::Answer(json!({"nodes": [{"id": "a.md", "title": "A"}], "total": 1})));
        });
    }

    /// The key of a call from another time could be recognised for longer than its record is kept.
    #[test]
    fn write_with_an_old_or_future_key_is_refused() {
        let harness = Harness::new("");
        let create = every_tool().iter().find(|tool| tool.name == "create_node").expect("it exists");
        let minute = 60_000_000_000;
        for (minutes, refused) in [(-6, "minutes old"), (-4, ""), (4, ""), (6, "set the client's clock")] {
            let key = RequestKey::new(harness.knowledge.now_ns() + minutes * minute, 1);
            let note = json!({"id": format!("{}.md", minutes + 10), "content": "x"});
            let reply = format!("{:?}", harness.registry.call(create, note, &harness.session, Some(key)).reply);
            assert!(
                reply.starts_with("Failure") != refused.is_empty() && reply.contains(refused),
                "{minutes}: {reply}"
            );
        }
    }

    #[test]
    fn errors_are_shorter_than_long_arguments() {
        let harness = Harness::new("//- a.md\n");
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
            let answer = harness.call(tool, arguments).to_string();
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

        fn call(_call: &Call<'_>, _params: Self::Params) -> Result<u8, ToolError> {
            panic!("secret path /home/ada")
        }
    }

    #[test]
    fn a_panic_in_a_tool_is_a_failed_call() {
        for (toolset, text) in [
            (Toolset::Notes, r#"{"error":{"code":"PROVIDER_ERROR","message":"internal error"}}"#),
            (Toolset::Docs, "Error: internal error"),
        ] {
            let mut harness = Harness::new("");
            harness.registry.tools.push(Box::leak(Box::new(ToolInfo::of::<Panics>(toolset))));
            assert_eq!(harness.called("panics", json!({})).reply, Reply::Failure(text.into()));
            assert_eq!(harness.call("get_hubs", json!({})), json!([]), "the next call is answered");
        }
    }
}
