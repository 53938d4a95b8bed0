//! Random arguments: every call gets an answer or an error about its arguments, and nothing is written outside the vault.

use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::parse::TitleRule;
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault, mem_memory, schema};
use quipu_tools::{Registry, RegistryOptions, Reply, Toolset};
use serde_json::{Map, Value, json};

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        prop::sample::select(
            &["a.md", "A.MD", "b.md", "../x.md", "d/new.md", "all", "both", "", "x", "1e9", "-0.0"][..]
        )
        .prop_map(str::to_owned),
        "\\PC{0,12}",
        "[a-z/.\\x00-\\x1f]{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3..60_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,3}", inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_call_is_answered(calls in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(value(), 8)), 1..12)) {
        let clock = Arc::new(FixedClock::default());
        let vault = Arc::new(MemVault::from_fixture(clock.clone(), "//- a.md\n---\ntags: [x]\n---\n[[b]]\n//- b.md\n[[a]]\n"));
        let store = Arc::new(MemNoteStorage::default().open());
        let memory = Arc::new(mem_memory(clock.clone()));
        let parts = Parts { vault: vault.clone(), store, clock, sources: Arc::new(MemSources::default()), title_rule: TitleRule::default(), stale_after: Knowledge::STALE_AFTER };
        let knowledge = Arc::new(Knowledge::new(parts));
        knowledge.start(&|_| {}).expect("a vault in memory can be read");
        let registry = Registry::with_memory(knowledge, memory, RegistryOptions::default());
        let tools: Vec<_> = registry.tools().cloned().collect();
        let session = Session::default();

        for (number, values) in calls {
            let tool = number.get(&tools).clone();
            let names = tool.input_schema["properties"].as_object().expect("every tool lists its arguments").keys().cloned();
            let arguments: Map<String, Value> = names.zip(values).collect();
            let called = registry.call(&tool, arguments.clone().into(), &session, None);
            match called.reply {
                Reply::Answer(answer) => {
                    let checked = schema::check(&tool.output_schema, &answer);
                    prop_assert!(checked.is_ok(), "{} {arguments:?} answered {answer}: {checked:?}", tool.name);
                }
                Reply::Failure(text) => prop_assert!(!text.contains("internal error"), "{} {arguments:?}", tool.name),
                // Pages report invalid arguments as JSON-RPC errors.
                Reply::Protocol { code, message } => {
                    prop_assert!(tool.toolset == Toolset::Pages && code == -32602, "{}: {code} {message}", tool.name);
                }
            }
        }
        prop_assert!(vault.paths().iter().all(|path| !path.starts_with('.') && path.to_lowercase().ends_with(".md")));
    }
}
