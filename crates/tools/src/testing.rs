//! Test support: a vault in a string, a call, and the expected JSON.

use std::sync::Arc;

use quipu_core::memory::Memory;
use quipu_core::parse::TitleRule;
use quipu_core::search::{Effort, Meaning, Round};
use quipu_core::{Knowledge, Parts, Session};
use quipu_embed::Builtin;
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault, mem_memory, schema};
use serde_json::{Value, json};

use crate::{Registry, RegistryOptions, Reply, ToolResponse};

/// A vault in memory with its tools and one client.
pub(crate) struct Harness {
    pub(crate) vault: Arc<MemVault>,
    pub(crate) sources: Arc<MemSources>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) registry: Registry,
    pub(crate) session: Session,
}

impl Harness {
    /// An indexed vault.
    pub(crate) fn new(fixture: &str) -> Self {
        let harness = Self::not_started(fixture);
        harness.knowledge.start(&|_| {}).expect("a vault in memory can be read");
        harness
    }

    /// An indexed vault with the builtin model, not embedded yet.
    pub(crate) fn before_embedding(fixture: &str) -> Self {
        let harness = Self::composed(fixture, true);
        harness.knowledge.start(&|_| {}).expect("a vault in memory can be read");
        harness
    }

    /// A vault embedded by the builtin model.
    pub(crate) fn with_meaning(fixture: &str) -> Self {
        let harness = Self::before_embedding(fixture);
        while harness.knowledge.embed_some(16, Effort::OneThread).expect("the builtin model does not fail")
            != Round::Idle
        {}
        harness
    }

    /// A vault that is not indexed yet.
    pub(crate) fn not_started(fixture: &str) -> Self {
        Self::composed(fixture, false)
    }

    fn composed(fixture: &str, has_meaning: bool) -> Self {
        let clock = Arc::new(FixedClock::default());
        let vault = Arc::new(MemVault::from_fixture(clock.clone(), fixture));
        // Modification times younger than two seconds are not trusted.
        clock.advance(10_000_000_000);
        let sources = Arc::new(MemSources::new(clock.clone()));
        let store = Arc::new(MemNoteStorage::default().open());
        let knowledge = Knowledge::new(Parts {
            vault: vault.clone(),
            store: store.clone(),
            sources: sources.clone(),
            clock: clock.clone(),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        });
        let memory = Arc::new(mem_memory(clock.clone()));
        let knowledge = knowledge.with_memory(memory.clone());
        let knowledge = Arc::new(match has_meaning {
            true => knowledge.with_meaning(Meaning::new(Arc::new(Builtin::new()), store)),
            false => knowledge,
        });
        let registry = Registry::with_memory(knowledge.clone(), memory.clone(), RegistryOptions::default());
        Self { vault, sources, clock, knowledge, memory, registry, session: Session::named("harness") }
    }

    /// Calls a tool as this client. Every answer is checked against the tool's output schema.
    pub(crate) fn called(&self, tool: &str, arguments: Value) -> ToolResponse {
        self.called_by(&self.session, tool, arguments)
    }

    /// Calls a tool as another client. Every answer is checked against the tool's output schema.
    pub(crate) fn called_by(&self, session: &Session, tool: &str, arguments: Value) -> ToolResponse {
        let tool = match self.registry.find(tool) {
            Ok(tool) => tool,
            Err(reply) => return reply.into(),
        };
        let response = self.registry.call(tool, arguments, session, None);
        if let Reply::Answer(answer) = &response.reply
            && let Err(error) = schema::check(&tool.output_schema, answer)
        {
            panic!("{} answered {answer} against its schema: {error}", tool.name);
        }
        response
    }

    /// The answer; a failure as `{"failed": …}` with its JSON or text.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        match self.called(tool, arguments).reply {
            Reply::Answer(answer) => answer,
            Reply::Failure(text) => json!({"failed": serde_json::from_str(&text).unwrap_or(Value::String(text))}),
            Reply::Protocol { code, message } => json!({"protocol": {"code": code, "message": message}}),
        }
    }

    /// The code and message of a failed call of the notes toolset.
    pub(crate) fn fails(&self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.call(tool, arguments);
        let error = &answer["failed"]["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("{answer} is no failure")).to_owned();
        (text("code"), text("message"))
    }
}

/// Calls a tool on a fresh vault.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a test writes `json!` at the call")]
pub(crate) fn check(fixture: &str, tool: &str, arguments: Value, expected: Value) {
    let got = Harness::new(fixture).call(tool, arguments.clone());
    assert!(got == expected, "{tool} {arguments}\n     got {got}\nexpected {expected}");
}
