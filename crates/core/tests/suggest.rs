//! Suggestions about texts that are made to be slow.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_core::memory::{DuplicateRule, EntityTypes, Memory, MemoryParts};
use quipu_core::parse::TitleRule;
use quipu_core::{Knowledge, Parts};
use quipu_testkit::memory_conformance::MemoryStorage;
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemMemoryStorage, MemNoteStorage, MemSources, MemVault};

/// Bytes of each text: the most that `extract_entities` takes.
const BYTES: usize = 100_000;

/// For one call, without optimization. Calls whose time grew by the square of the text took minutes.
const LONGEST: Duration = Duration::from_secs(10);

/// A text that repeats a part; `#` in it is a number.
fn repeated(start: &str, part: &str) -> String {
    let mut text = start.to_owned();
    for number in 0.. {
        if text.len() + part.len() + 5 > BYTES {
            break;
        }
        match part.split_once('#') {
            Some((before, after)) => write!(text, "{before}{number}{after}").unwrap(),
            None => text.push_str(part),
        }
    }
    text
}

fn knowledge(vault: Arc<MemVault>, clock: &Arc<FixedClock>) -> Knowledge {
    let memory = Memory::new(MemoryParts {
        store: Arc::new(MemMemoryStorage::default().open()),
        embedder: None,
        clock: clock.clone(),
        types: EntityTypes::default(),
        rule: DuplicateRule::default(),
    });
    let knowledge = Knowledge::new(Parts {
        vault,
        store: Arc::new(MemNoteStorage::default().open()),
        clock: clock.clone(),
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    let knowledge = knowledge.with_memory(Arc::new(memory));
    knowledge.start(&|_| {}).unwrap();
    knowledge
}

#[test]
fn time_for_suggestions_is_bounded_whatever_the_text() {
    let spaces = " ".repeat(BYTES / 2);
    let shapes = [
        ("A ab.", ")"),
        ("A ab.", " "),
        ("", "A ab. )"),
        ("", "A "),
        ("", "a <!A "),
        ("", "Ada A "),
        ("", "A van "),
        ("", "Ada Lovelace "),
        ("", "Ada B#, "),
        ("see ", "Aa Ab-#, "),
        (spaces.as_str(), "Ada Bab-#, "),
        (spaces.as_str(), "w# "),
        ("", "[[n#]]\n"),
        ("", "[[n#]] "),
        ("", "[[n]] "),
        ("", "[[n\n"),
        ("", "[x](n#.md)\n"),
        ("", "](x)"),
        ("", "http "),
        ("", "`Aa` "),
        ("", "@a# "),
        ("", "w#\n"),
        ("", "\n"),
        ("", "a "),
        ("", "w"),
        ("", "A-"),
        ("", "e.g. "),
        ("", "- "),
        ("", "> "),
        ("", "*a_ "),
        ("", "a\u{300}"),
        ("", "雨"),
        ("", "雨。"),
        ("", "The gauge # measures rain. "),
    ];
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::from_fixture(clock.clone(), "//- tagged.md\n#rain #snow\n"));
    for (number, (start, part)) in shapes.iter().enumerate() {
        vault.put(&format!("n{number}.md"), repeated(start, part));
    }
    let knowledge = knowledge(vault.clone(), &clock);
    let snapshot = knowledge.snapshot();
    let mut times: Vec<(Duration, String)> = Vec::new();
    for (number, (_, part)) in shapes.iter().enumerate() {
        let path = format!("n{number}.md");
        let (key, text) = (snapshot.lookup(&path)[0], vault.text(&path).unwrap());
        let calls: [(&str, &dyn Fn()); 4] = [
            ("summarize_node", &|| drop(knowledge.summarize("Title", &text, 1_000))),
            ("suggest_tags", &|| drop(knowledge.suggest_tags(&snapshot, key, &text, 10).unwrap())),
            ("extract_entities of a note", &|| {
                drop(knowledge.extract_entities(Some((&snapshot, key)), &text, 50).unwrap());
            }),
            ("extract_entities of a text", &|| drop(knowledge.extract_entities(None, &text, 50).unwrap())),
        ];
        for (name, call) in calls {
            let started = Instant::now();
            call();
            times.push((started.elapsed(), format!("{name}: {part:?}")));
        }
    }
    times.sort_unstable();
    times.reverse();
    assert!(times[0].0 < LONGEST, "{:#?}", &times[..12]);
}

#[test]
fn linked_notes_and_missing_ones_are_mentioned_where_their_names_first_are() {
    let clock = Arc::new(FixedClock::default());
    let text = "Rain.\n\nThe GAUGE leaks.\n[[gauge]], [[gauge|it]], [[Hut]]\nhut\n";
    let vault = Arc::new(MemVault::from_fixture(clock.clone(), &format!("//- gauge.md\nTin.\n//- a.md\n{text}")));
    let knowledge = knowledge(vault, &clock);
    let snapshot = knowledge.snapshot();
    for note in [None, Some((&*snapshot, snapshot.lookup("a.md")[0]))] {
        let entities = knowledge.extract_entities(note, text, 50).unwrap().entities;
        let found = |name: &str| {
            let entity = entities.iter().find(|entity| entity.name == name);
            let entity = entity.unwrap_or_else(|| panic!("{name}: {entities:?}"));
            entity.mentions.iter().map(|mention| (mention.line, mention.text.as_str())).collect::<Vec<_>>()
        };
        assert_eq!(found("Gauge"), [(3, "The GAUGE leaks.")]);
        assert_eq!(found("Hut"), [(4, "[[gauge]], [[gauge|it]], [[Hut]]")]);
    }
}
