//! What tests of tools share: a vault in one string, a call, and the JSON that must come back.

use std::sync::Arc;

use quipu_core::parse::TitleRule;
use quipu_core::search::{Effort, Meaning, Round};
use quipu_core::{Knowledge, Parts, Session};
use quipu_embed::Builtin;
use quipu_testkit::store_conformance::Shelf;
use quipu_testkit::{FixedClock, MemShelf, MemSources, MemVault, mem_memory};
use serde_json::{Value, json};

use crate::{Registry, RegistryOptions, Reply, ToolResponse};

/// A vault in memory with its tools, and one client.
pub(crate) struct Desk {
    pub(crate) vault: Arc<MemVault>,
    pub(crate) sources: Arc<MemSources>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) registry: Registry,
    pub(crate) session: Session,
}

impl Desk {
    /// A desk at an indexed vault.
    pub(crate) fn new(fixture: &str) -> Self {
        let desk = Self::not_started(fixture);
        desk.knowledge.start(&|_| {}).expect("a vault in memory can be read");
        desk
    }

    /// A desk at a vault that the builtin model may read.
    pub(crate) fn before_embedding(fixture: &str) -> Self {
        let desk = Self::composed(fixture, true);
        desk.knowledge.start(&|_| {}).expect("a vault in memory can be read");
        desk
    }

    /// A desk at a vault that the builtin model has read.
    pub(crate) fn with_meaning(fixture: &str) -> Self {
        let desk = Self::before_embedding(fixture);
        while desk.knowledge.embed_some(16, Effort::OneThread).expect("the builtin model does not fail") != Round::Idle
        {
        }
        desk
    }

    /// A desk at a vault nobody has looked at yet.
    pub(crate) fn not_started(fixture: &str) -> Self {
        Self::composed(fixture, false)
    }

    fn composed(fixture: &str, has_meaning: bool) -> Self {
        let clock = Arc::new(FixedClock::default());
        let vault = Arc::new(MemVault::from_fixture(clock.clone(), fixture));
        // So that files do not count as just written.
        clock.advance(10_000_000_000);
        let sources = Arc::new(MemSources::new(clock.clone()));
        let store = Arc::new(MemShelf::default().open());
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
        let registry = Registry::with_memory(knowledge.clone(), memory, RegistryOptions::default());
        Self { vault, sources, clock, knowledge, registry, session: Session::named("desk") }
    }

    /// Calls a tool as this client. Every answer is checked against the tool's output schema.
    pub(crate) fn called(&self, tool: &str, arguments: Value) -> ToolResponse {
        self.called_by(&self.session, tool, arguments)
    }

    /// The same as another client.
    pub(crate) fn called_by(&self, session: &Session, tool: &str, arguments: Value) -> ToolResponse {
        let tool = match self.registry.find(tool) {
            Ok(tool) => tool,
            Err(reply) => return reply.into(),
        };
        let response = self.registry.call(tool, arguments, session, None);
        if let Reply::Answer(answer) = &response.reply {
            let validator = jsonschema::validator_for(&tool.output_schema).expect("the output schema is a schema");
            let errors: Vec<String> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{} answered {answer} against its schema: {errors:?}", tool.name);
        }
        response
    }

    /// The answer; a failure as `{"failed": …}`, where JSON is read and other text is text.
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
    let got = Desk::new(fixture).call(tool, arguments.clone());
    assert!(got == expected, "{tool} {arguments}\n     got {got}\nexpected {expected}");
}
