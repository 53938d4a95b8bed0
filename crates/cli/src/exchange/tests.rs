//! What goes out comes in again as it was.

use quipu_core::memory::{EntityTypes, ObservationId, RelationId};
use quipu_core::model::VaultPath;
use quipu_core::ports::{ChangeNumber, MemoryChange, MemoryStore, NoteTie, TextOwner};
use quipu_store_embedded::MemoryDatabase;
use quipu_testkit::MemMemory;
use quipu_testkit::memory_conformance::{author, create, memory_with_a_past, observe, relate};

use super::import::{Imported, Problem};
use super::{ExportFormat, Importer, export, export_log};

fn lines(store: &dyn MemoryStore) -> String {
    let mut out = Vec::new();
    export(store, ExportFormat::Quipu, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn import(store: &MemMemory, text: &str) -> (Imported, Vec<Problem>) {
    let types = EntityTypes::default();
    let mut import = Importer::new(store, &types);
    import.read(&mut text.as_bytes(), &|_| {}).unwrap();
    let problems = import.problems().to_vec();
    (import.apply(&author(1)).unwrap(), problems)
}

/// Ties a link in each third text.
fn tie_some(store: &MemMemory) {
    let entities = store.entities_from(0, usize::MAX).unwrap().into_iter().map(|entity| TextOwner::Entity(entity.id));
    let observations = store.observations_after(ObservationId(0), usize::MAX).unwrap();
    let owners = entities.chain(observations.into_iter().map(|seen| TextOwner::Observation(seen.id)));
    let tie = |(place, owner)| {
        let path = VaultPath::parse(&format!("notes/{}.md", place % 7)).unwrap();
        NoteTie { owner, target: format!("plan {}", place % 5), path }
    };
    let ties: Vec<NoteTie> = owners.step_by(3).enumerate().map(tie).collect();
    store.repoint_links(&[], &ties).unwrap();
}

#[test]
fn export_and_import_of_any_memory_is_byte_identical() {
    for deeds in (0..400).step_by(20) {
        let memory = memory_with_a_past(deeds);
        tie_some(&memory);
        let (written, copy) = (lines(&memory), MemMemory::default());
        let (_, problems) = import(&copy, &written);
        assert_eq!((lines(&copy), problems), (written.clone(), Vec::new()), "after {deeds} deeds");
        let head = copy.head().unwrap();
        import(&copy, &written);
        assert_eq!((lines(&copy), copy.head().unwrap()), (written, head), "twice is once");
    }
}

fn lines_with_log(store: &dyn MemoryStore) -> String {
    let mut out = Vec::new();
    export(store, ExportFormat::Quipu, &mut out).unwrap();
    export_log(store, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn export_and_import_of_any_log_is_byte_identical() {
    for deeds in (0..400).step_by(20) {
        let memory = memory_with_a_past(deeds);
        tie_some(&memory);
        let (written, copy) = (lines_with_log(&memory), MemMemory::default());
        let (imported, problems) = import(&copy, &written);
        assert_eq!((lines_with_log(&copy), problems), (written.clone(), Vec::new()), "after {deeds} deeds");
        assert_eq!(imported.changes as i64, memory.head().unwrap().0);
        assert_eq!(copy.last_ids(), memory.last_ids());
        let (again, problems) = import(&copy, &written);
        assert_eq!((again.changes, again.changes_left, problems.len()), (0, imported.changes, 0));
        assert_eq!(lines_with_log(&copy), written, "twice is once");
    }
}

/// Takes what is written. Now and then an agent deletes the oldest entity with all that hangs on it, and makes another.
struct Meddled<'a> {
    store: &'a MemoryDatabase,
    out: Vec<u8>,
    writes: usize,
}

impl std::io::Write for Meddled<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.writes.is_multiple_of(2000) {
            let oldest = self.store.entities_from(0, 1).unwrap()[0].id;
            let changes = [MemoryChange::DeleteEntity { id: oldest }, create(&format!("instead of {}", oldest.0))];
            self.store.apply(&changes, &author(2)).unwrap();
        }
        self.writes += 1;
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn export_is_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let store = MemoryDatabase::open(&folder.path().join("memory.db")).unwrap();
    let mut changes: Vec<MemoryChange> = (1..=1500).map(|number| create(&format!("e{number}"))).collect();
    changes.extend((1..=1500).map(|number| observe(number, "seen")));
    changes.extend((1..1500).map(|number| relate(number, number + 1, "before")));
    store.apply(&changes, &author(1)).unwrap();
    for format in [ExportFormat::Quipu, ExportFormat::Reference, ExportFormat::Graphmem] {
        let mut expected = Vec::new();
        export(&store, format, &mut expected).unwrap();
        let mut meddled = Meddled { store: &store, out: Vec::new(), writes: 0 };
        store.at_one_moment(|still| export(still, format, &mut meddled)).unwrap();
        assert!(meddled.out == expected, "{format:?}");
    }
    assert!(store.head().unwrap() > ChangeNumber(20), "much changed meanwhile");
}

#[test]
fn import_into_a_used_memory_assigns_new_ids() {
    let memory = memory_with_a_past(200);
    tie_some(&memory);
    let copy = MemMemory::default();
    import(&copy, r#"{"type":"entity","name":"Was here","entityType":"x","observations":["first"]}"#);
    let (imported, problems) = import(&copy, &lines(&memory));
    assert_eq!(problems, []);
    let counts = memory.counts().unwrap();
    assert_eq!((imported.entities as u64, imported.relations as u64), (counts.entities, counts.relations));
    let ties = |text: &str| text.matches(r#""ties":{"#).count();
    assert_eq!(ties(&lines(&copy)), ties(&lines(&memory)));
    assert_eq!(copy.head().unwrap(), ChangeNumber(2));
}

#[test]
fn invalid_and_maximal_ids_are_replaced() {
    let header = r#"{"type":"quipu-memory","version":1}"#;
    for number in ["0", "-3", "9223372036854775807", "null"] {
        let copy = MemMemory::default();
        import(&copy, &format!("{header}\n{{\"type\":\"entity\",\"name\":\"a\",\"id\":{number}}}"));
        assert_eq!(copy.last_ids().0, 1, "{number}");
    }
}

#[test]
fn concatenated_exports_are_imported_separately() {
    let of = |name: &str| {
        let entity = format!(r#"{{"type":"entity","id":1,"name":"{name}","entity_type":"x"}}"#);
        let seen = format!(r#"{{"type":"observation","id":1,"entity":1,"text":"seen of {name}"}}"#);
        format!("{{\"type\":\"quipu-memory\",\"version\":1}}\n{entity}\n{seen}\n")
    };
    let copy = MemMemory::default();
    import(&copy, &(of("a") + &of("b")));
    let seen = copy.observations_after(ObservationId(0), 9).unwrap();
    let seen: Vec<_> = seen.into_iter().map(|seen| (seen.entity.0, seen.text)).collect();
    assert_eq!(seen, [(1, "seen of a".to_owned()), (2, "seen of b".to_owned())]);
}

#[test]
fn link_target_outside_the_vault_is_refused_with_its_line() {
    let copy = MemMemory::default();
    let entity = r#"{"type":"entity","id":1,"name":"a","ties":{"plan":"../secret.md"}}"#;
    let (imported, problems) = import(&copy, &format!("{{\"type\":\"quipu-memory\"}}\n{entity}\n"));
    let message = r#"its link "plan" is tied to an invalid path"#.to_owned();
    assert_eq!((imported.entities, problems), (0, vec![Problem { line: 2, message }]));
}

/// The names in a memory, and of each line that was not taken its number and why.
fn taken(file: &[u8]) -> (Vec<String>, Vec<(usize, String)>) {
    let (store, types) = (MemMemory::default(), EntityTypes::default());
    let mut import = Importer::new(&store, &types);
    import.read(&mut &*file, &|_| {}).unwrap();
    let problems = import.problems().iter().map(|problem| (problem.line, problem.message.clone())).collect();
    import.apply(&author(1)).unwrap();
    let entities = store.entities_from(0, usize::MAX).unwrap();
    (entities.into_iter().map(|entity| entity.name).collect(), problems)
}

#[test]
fn a_whole_object_on_a_damaged_line_is_kept() {
    let bob = r#"{"type":"entity","name":"Bob","entityType":"x","observations":["{"]}"#;
    for (damage, problems) in [
        (r#"ser","observations":["x"]}"#, 1),
        (r#"{"type":"entity","name":"Al"#, 1),
        (r#"{"type":"entity","name":"Al","observations":[{"text":"a part"},"#, 1),
        (r#""]}{{}"#, 2),
    ] {
        let (names, told) = taken(format!("{damage}{bob}{bob}\n").as_bytes());
        assert_eq!((names.as_slice(), told.len()), (&["Bob".to_owned()][..], problems), "{damage}: {told:?}");
        assert!(
            told.iter().any(|(line, message)| *line == 1 && message.contains("up to the next valid item")),
            "{told:?}"
        );
    }
    let (names, told) = taken(br#"{"type":"entity","name":"Al","observations":[{"name":"no entity"}, {"#);
    assert_eq!(names, [""; 0], "a part of what is damaged is nothing of its own");
    assert_eq!(told[0].1.split(" from ").next(), Some("not JSON: the line is incomplete"));
}

#[test]
fn bytes_that_are_not_utf_8_are_refused_with_their_line() {
    let line = |name: &[u8]| [br#"{"type":"entity","name":""#.as_slice(), name, b"\"}\n"].concat();
    let (names, told) = taken(&[line(b"tea"), line(b"caf\xe9"), line("café".as_bytes())].concat());
    assert_eq!(names, ["tea", "café"]);
    assert_eq!(told, [(2, "not UTF-8 (byte 0xe9); save the file as UTF-8".to_owned())]);
    let document = [b"{\n\"entities\": [\n".to_vec(), line(b"caf\xe9"), b"]}\n".to_vec()].concat();
    let (names, told) = taken(&document);
    assert_eq!((names.len(), told[0].0), (0, 3), "{told:?}");
    let document = [&b"{\"entities\": ["[..], &line(b"caf\xe9"), b",", &line(b"tea"), b"]}\n"].concat();
    let (names, told) = taken(&document);
    assert_eq!((names, told[0].0, told.len()), (vec!["tea".to_owned()], 1, 1));
    assert!(told[0].1.starts_with("entities[0]: not UTF-8"), "{told:?}");
}

const DOCUMENT: &str = r#"{"memory_entities":[
{"id":1,"name":"A","entity_type":"x"},
{"id":2,"name":" ","entity_type":"x"},
{"id":3,"name":"B","entity_type":"x"}
],"memory_relations":[
{"from_entity_id":1,"to_entity_id":3,"relation_type":"knows"},
{"from_entity_id":1,"to_entity_id":9,"relation_type":"knows"},
{"from_entity_id":3,"to_entity_id":1,"relation_type":""},
7,
{"from_entity_id":3,"to_entity_id":1,"relation_type":"knows"}
]}
"#;

/// The line and the message of each problem.
fn places(problems: &[Problem]) -> Vec<(usize, &str)> {
    problems.iter().map(|problem| (problem.line, problem.message.as_str())).collect()
}

#[test]
fn invalid_item_does_not_affect_others_of_its_document() {
    let blank = "memory_entities[1]: its `name` is blank";
    let untyped = "memory_relations[2]: its `relationType` is blank";
    let number = "memory_relations[3]: a number is not an entity, observation or relation";
    let nobody = "memory_relations[1]: a relation refers to entity 9, which is not in the file";
    let expected = [(3, blank), (8, untyped), (9, number), (7, nobody)];
    let (imported, problems) = import(&MemMemory::default(), DOCUMENT);
    assert_eq!((imported.entities, imported.relations), (2, 2));
    assert_eq!(places(&problems), expected);
    let (imported, problems) = import(&MemMemory::default(), &DOCUMENT.replace('\n', ""));
    assert_eq!((imported.entities, imported.relations), (2, 2));
    assert_eq!(places(&problems), expected.map(|(_, message)| (1, message)), "on one line");
    let (imported, problems) = import(&MemMemory::default(), &format!("{{\"graph\":{DOCUMENT}}}"));
    assert_eq!((imported.entities, problems.len()), (2, 4));
    assert!(problems[0].message.starts_with("graph.memory_entities[1]: "), "{problems:?}");
}

#[test]
fn intact_items_of_a_damaged_document_are_imported() {
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(DOCUMENT).unwrap()).unwrap();
    for (good, bad, line, what) in [
        (DOCUMENT, DOCUMENT.replace(r#""name":" ","#, r#""name":"cut"#), 3, "not JSON (expected `,` or `}`)"),
        (DOCUMENT, DOCUMENT.replace(r#"{"id":2,"#, r"{id:2,"), 3, "not JSON (expected a key)"),
        (&pretty, pretty.replace(r#""name": " ","#, r#""name": "cut"#), 8, "not JSON (control character"),
    ] {
        let (imported, problems) = import(&MemMemory::default(), &bad);
        let told = &problems[0];
        assert_eq!((imported.entities, imported.relations, told.line), (2, 2, line), "{problems:?}\n{bad}");
        assert!(told.message.starts_with(&format!("memory_entities[1]: {what}")), "{told:?}");
        assert_eq!(problems.len(), import(&MemMemory::default(), good).1.len());
    }
    let cut = &DOCUMENT[..DOCUMENT.find(r#","relation_type":"""#).unwrap()];
    let (imported, problems) = import(&MemMemory::default(), cut);
    assert_eq!((imported.entities, imported.relations), (2, 1), "{problems:?}");
    let message = r#"memory_relations[2]: not JSON: the document is incomplete from "#;
    assert!(problems.iter().any(|told| told.line == 8 && told.message.starts_with(message)), "{problems:?}");
}

#[test]
fn documents_are_recognized_in_every_layout() {
    let line = |name: &str| format!(r#"{{"name":"{name}"}}"#);
    let (a, b) = (line("A"), line("B"));
    for file in [
        format!("{{\"entities\":[{a},\n{b}]}}\n"),
        format!("\n \n{{\"entities\":[{a},\n{b}]}}"),
        format!("\u{feff}{{\"exported\":\"today\",\n\"entities\":[{a},{b}]}}"),
        format!("[{a},\n{b}\n]"),
        format!("{{\"entities\":[{a}]}}\n\n{{\n\"entities\":[\n{b}\n]}}"),
        format!("{a}\n{{\"entities\":[\n{b}\n]}}"),
        format!("{{\"name\":\"A\",\n\"observations\":[]}}\n{b}"),
        format!("{{\"entities\":[\n{a},\n{b},\n]}}\n"),
    ] {
        assert_eq!(taken(file.as_bytes()), (vec!["A".to_owned(), "B".to_owned()], Vec::new()), "{file}");
    }
    let (names, told) = taken(format!("{{\"type\":\"entity\",\"observations\":[\n{a}\n{b}\n").as_bytes());
    assert_eq!((names.len(), told.len(), told[0].0), (2, 1, 1), "a line that was cut off is no document: {told:?}");
}

#[test]
fn ids_are_local_to_their_document() {
    let of = |from: &str, to: &str| {
        let entities = format!(r#"[{{"id":1,"name":"{from}"}},{{"id":2,"name":"{to}"}}]"#);
        let relations = r#"[{"from_entity_id":1,"to_entity_id":2,"relation_type":"knows"}]"#;
        format!("{{\"memory_entities\":{entities},\n\"memory_relations\":{relations}}}\n")
    };
    let by_name = r#"{"relations":[{"from":"a","to":"c","relationType":"knows"}]}"#;
    for file in
        [of("a", "b") + by_name + &of("c", "d"), of("a", "b").replace('\n', "") + "\n" + by_name + &of("c", "d")]
    {
        let copy = MemMemory::default();
        assert_eq!(import(&copy, &file).1, []);
        let relations = copy.relations_after(RelationId(0), 9).unwrap();
        let ends: Vec<_> = relations.iter().map(|relation| (relation.from.0, relation.to.0)).collect();
        assert_eq!(ends, [(1, 2), (3, 4), (1, 3)], "{file}");
    }
}

#[test]
fn the_same_line_twice_in_one_file_counts_once() {
    let store = MemMemory::default();
    let line = r#"{"type":"entity","name":"Alice","observations":["likes tea","likes tea","sails"]}"#;
    let more = r#"{"type":"entity","name":"Alice","observations":["likes tea","sings"]}"#;
    for (file, observations) in [(format!("{line}\n{line}\n{more}\n"), 4), (format!("{more}\n{line}\n"), 0)] {
        assert_eq!(import(&store, &file).0.observations, observations);
    }
    let written = lines(&store);
    let head = store.head().unwrap();
    import(&store, &(written.clone() + &written));
    assert_eq!((lines(&store), store.head().unwrap()), (written, head), "one export behind the other");
}

/// The entities of a memory: name, type, aliases and description.
fn known(store: &MemMemory) -> Vec<(String, String, Vec<String>, Option<String>)> {
    let entities = store.entities_from(0, usize::MAX).unwrap().into_iter();
    entities.map(|entity| (entity.name, entity.entity_type, entity.aliases, entity.description)).collect()
}

#[test]
fn existing_entity_gets_missing_data() {
    let bare = r#"{"type":"entity","name":"Alice"}"#;
    let more = r#"{"type":"entity","name":"alice","entityType":"person","aliases":[" Al ","al","ALICE",""],
        "description":" Owns [[plan]] ","ties":{"plan":"notes/old.md"}}"#;
    let more = more.replace('\n', "");
    let last = r#"{"type":"entity","name":"ALICE","aliases":["Ally|AL"],"description":"Owns [[plan]]"}"#;
    let own = |entity_type: &str| {
        let aliases = vec!["Al".to_owned(), "Ally".to_owned()];
        [("Alice".to_owned(), entity_type.to_owned(), aliases, Some("Owns [[plan]]".to_owned()))]
    };
    let file = format!("{bare}\n{more}\n{last}\n");
    let in_one_file = MemMemory::default();
    assert_eq!(import(&in_one_file, &file).1, []);
    assert_eq!(known(&in_one_file), own("User"));
    let in_memory = MemMemory::default();
    import(&in_memory, bare);
    let (imported, problems) = import(&in_memory, &format!("{more}\n{last}"));
    assert_eq!((imported.entities, imported.known, imported.completed, problems), (0, 2, 1, Vec::new()));
    assert_eq!(known(&in_memory), own("Thing"));
    for store in [&in_one_file, &in_memory] {
        let ties = store.ties_of(&[TextOwner::Entity(store.entities_from(0, 1).unwrap()[0].id)]).unwrap();
        assert_eq!(ties[0].len(), 1, "a tie comes with the description it is of");
        let head = store.head().unwrap();
        let (imported, problems) = import(store, &file);
        assert_eq!((imported.completed, problems, store.head().unwrap()), (0, Vec::new(), head), "twice is once");
    }
}

#[test]
fn different_description_is_reported_and_not_imported() {
    let of = |text: &str| format!(r#"{{"type":"entity","name":"A","description":"{text}"}}"#);
    let told = r#""A" already has another description, which is kept"#;
    let store = MemMemory::default();
    let (_, problems) = import(&store, &format!("{}\n{}\n{}\n", of(" "), of("first"), of("second")));
    assert_eq!(places(&problems), [(3, told)]);
    let head = store.head().unwrap();
    assert_eq!(places(&import(&store, &of("third")).1), [(1, told)]);
    assert_eq!(import(&store, &of("")).1, [], "no description is no other description");
    assert_eq!((known(&store)[0].3.as_deref(), store.head().unwrap()), (Some("first"), head));
}

#[test]
fn invalid_items_are_reported() {
    for (line, message) in [
        (r#"{"type":"wat","name":"Q"}"#, r#"its `type` is "wat", not "entity", "observation" or "relation""#),
        (r#"{"type":"entity","entityType":"x"}"#, "it is an entity without a `name`"),
        (r#"{"type":"relation","from":"A","to":"A"}"#, "it is a relation without a `relationType`"),
        (r#"{"type":"relation","from":"A","to":"A","relationType":" "}"#, "its `relationType` is blank"),
        (r#"{"type":"observation","entity":"A","text":" "}"#, "its `text` is blank"),
        (
            r#"{"type":"observation","entity":"B","text":"x"}"#,
            r#"an observation refers to "B", which is neither in the file nor in memory"#,
        ),
        (
            r#"{"type":"entity","name":"a","entityType":"company"}"#,
            r#""a" has type Task on line 1 and company here; the first is used"#,
        ),
    ] {
        let (names, told) =
            taken(format!("{{\"type\":\"entity\",\"name\":\"A\",\"entityType\":\"todo\"}}\n{line}\n").as_bytes());
        assert_eq!((names, told), (vec!["A".to_owned()], vec![(2, message.to_owned())]));
    }
    let (_, told) =
        taken(b"{\"type\":\"entity\",\"name\":\"A\",\"entityType\":\"todo\"}\n{\"type\":\"entity\",\"name\":\"A\"}\n");
    assert_eq!(told, [], "no type is no other type");
}

#[test]
fn a_newer_format_version_is_rejected() {
    let (store, types) = (MemMemory::default(), EntityTypes::default());
    let mut import = Importer::new(&store, &types);
    let file = b"{\"type\":\"quipu-memory\",\"version\":2}\n{\"type\":\"entity\",\"name\":\"A\"}\n";
    let refused = import.read(&mut file.as_slice(), &|_| {}).unwrap_err().to_string();
    let message = "cannot import line 1: its format version is 2, and this program reads up to version 1; update quipu";
    assert_eq!(refused, message);
}

#[test]
fn invalid_observation_does_not_affect_others_of_its_entity() {
    let file = r#"{"type":"entity","name":"F","entityType":"thing","observations":["one",null,"two"]}
{"type":"entity","name":"H","entityType":"thing","observations":"single"}
{"type":"relation","from":"F","to":"H","relationType":"knows"}
"#;
    let store = MemMemory::default();
    let (imported, problems) = import(&store, file);
    assert_eq!((imported.entities, imported.observations, imported.relations), (2, 2, 1));
    let told: Vec<(usize, &str)> = problems.iter().map(|problem| (problem.line, problem.message.as_str())).collect();
    assert_eq!(
        told,
        [
            (1, r#""F": an observation is null, not a string; the rest of the entity is imported"#),
            (2, r#""H": its `observations` are a string, not a list; the rest of the entity is imported"#),
        ]
    );
}
