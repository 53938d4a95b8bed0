//! Several servers on one database, and a database that drops its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use quipu_core::RequestKey;
use quipu_core::memory::EntityId;
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    ApplyError, ChangeNumber, EntityUpdate, FileChange, FileContent, MemoryChange, MemoryStore, NamePeriod, NewEntity,
    NoteFeed, NoteHistory, Refusal, VaultFiles, WriteError, WriteNumber, WriteOrigin,
};
use quipu_store_postgres::{GraphError, PostgresDatabase, PostgresMemory, PostgresVault};
use quipu_testkit::memory_conformance::{author, create, observe};
use quipu_testkit::postgres;

/// The memory of the graph `team` as a server of its own has it open.
fn server(url: &str) -> PostgresMemory {
    let database = PostgresDatabase::connect(url).expect("the database can be reached");
    database.migrate().expect("the schema can be made");
    let graph = match database.create_graph("team") {
        Err(GraphError::Exists(_)) => database.graph("team").expect("graphs can be read").expect("it exists"),
        created => created.expect("the name is good"),
    };
    PostgresMemory::new(Arc::new(database), &graph)
}

#[test]
fn concurrent_servers_create_the_schema_once() {
    let Some(url) = postgres::database() else { return };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| server(&url).head().expect("memory can be read"));
        }
    });
    let schema = PostgresDatabase::connect(&url).expect("reachable").schema().expect("the version can be read");
    assert!(schema.check().is_ok() && schema.current == schema.newest, "{schema:?}");
    postgres::sql(&url, "INSERT INTO quipu.migration (number, needs) VALUES (99, 1)");
    let database = PostgresDatabase::connect(&url).expect("reachable");
    assert!(database.schema().expect("readable").check().is_ok(), "a newer schema that older programs may use");
    postgres::sql(&url, "UPDATE quipu.migration SET needs = 99 WHERE number = 99");
    assert!(database.schema().expect("readable").check().is_err());
}

#[test]
fn address_that_is_no_address_is_not_repeated() {
    let error = PostgresDatabase::connect("postgresql://ada:secret@[/x").expect_err("no address").to_string();
    assert!(!error.contains("secret"), "{error}");
}

/// Every change is seen once, in the order of its number, by a follower on another server.
#[test]
fn follower_misses_no_change_of_concurrent_writers() {
    const WRITERS: i64 = 4;
    const CHANGES: i64 = 25;
    let Some(url) = postgres::database() else { return };
    server(&url).apply(&[create("log")], &author(1)).expect("the first change");
    let seen = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let memory = server(&url);
            scope.spawn(move || {
                for change in 0..CHANGES {
                    let observed = [observe(1, &format!("{writer} {change}"))];
                    memory.apply(&observed, &author(change)).expect("no other writer is in the way");
                }
            });
        }
        let follower = server(&url);
        let (mut at, mut seen) = (ChangeNumber(1), Vec::new());
        while at.0 < 1 + WRITERS * CHANGES {
            let changed = follower.changed_since(at).expect("the feed can be read");
            // Changes above `head` are reported again by the next read.
            let mut new = changed.observations;
            new.retain(|id| !seen.contains(id) && id.0 < changed.head.0);
            assert_eq!(
                new.len() as i64,
                changed.head.0 - at.0,
                "one observation for each change up to {:?}",
                changed.head
            );
            seen.extend(new);
            at = changed.head;
        }
        seen
    });
    assert_eq!(seen.len() as i64, WRITERS * CHANGES);
}

/// Writes whose connection is lost are made again, and made once.
#[test]
fn lost_connections_lose_and_repeat_nothing() {
    const WRITERS: usize = 3;
    const KILLS: u64 = 40;
    let Some(url) = postgres::database() else { return };
    server(&url).apply(&[create("log")], &author(1)).expect("the first change");
    let kills = AtomicU64::new(0);
    let write = &|writer: usize| {
        let memory = server(&url);
        let mut written = Vec::new();
        while kills.load(Ordering::Relaxed) < KILLS {
            let text = format!("{writer} {}", written.len());
            memory.apply(&[observe(1, &text)], &author(1)).expect("it is made again");
            memory.head().expect("it is asked again");
            written.push(text);
        }
        written
    };
    let mut written: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        while kills.load(Ordering::Relaxed) < KILLS {
            let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                        WHERE datname = current_database() AND application_name = 'quipu'";
            kills.fetch_add(postgres::sql(&url, kill).parse().expect("a number"), Ordering::Relaxed);
        }
        writers.into_iter().flat_map(|writer| writer.join().expect("no write failed")).collect()
    });
    let memory = server(&url);
    let stored = memory.observations_of(&[EntityId(1)]).expect("readable").remove(0);
    let mut stored: Vec<String> = stored.into_iter().map(|seen| seen.text).collect();
    written.sort();
    stored.sort();
    assert_eq!(stored, written, "every write once");
    assert_eq!(memory.head().expect("readable").0, 1 + written.len() as i64);
    assert_eq!(memory.check().expect("readable"), [""; 0]);
}

#[test]
fn name_is_given_once_by_concurrent_servers() {
    let Some(url) = postgres::database() else { return };
    let servers: Vec<_> = (0..4).map(|_| server(&url)).collect();
    let outcomes = thread::scope(|scope| {
        let tries: Vec<_> =
            servers.iter().map(|memory| scope.spawn(|| memory.apply(&[create("Ada")], &author(1)))).collect();
        tries.into_iter().map(|made| made.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    let taken = Refusal::NameTaken { by: EntityId(1) };
    let is_taken = |error: &ApplyError| matches!(error, ApplyError::Refused { refusal, .. } if *refusal == taken);
    assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(is_taken), "{outcomes:?}");
}

#[test]
fn graphs_do_not_see_each_other() {
    let Some(url) = postgres::database() else { return };
    let database = PostgresDatabase::connect(&url).expect("reachable");
    database.migrate().expect("the schema can be made");
    let graphs = ["one", "two"].map(|name| database.create_graph(name).expect("free"));
    assert!(matches!(database.create_graph("one"), Err(GraphError::Exists(_))));
    for name in ["", "One", "a/b", "1", "a'; DROP TABLE graph", &"a".repeat(65)] {
        assert!(matches!(database.create_graph(name), Err(GraphError::Name(_))), "{name}");
    }
    let database = Arc::new(database);
    let [one, two] = graphs.map(|graph| PostgresMemory::new(database.clone(), &graph));
    one.apply(&[create("Ada"), observe(1, "sails")], &author(1)).expect("an empty graph");
    assert_eq!((two.head().expect("readable"), two.entity_count().expect("readable")), (ChangeNumber(0), 0));
    let refused = two.apply(&[observe(1, "x")], &author(1));
    assert!(matches!(refused, Err(ApplyError::Refused { refusal: Refusal::NoEntity(_), .. })), "{refused:?}");
    two.apply(&[create("Ada")], &author(1)).expect("a name of another graph is free");
    assert_eq!(two.observations_of(&[EntityId(1)]).expect("readable"), [vec![]]);
}

/// Whatever a client may send is stored and found as it was sent.
#[test]
fn every_text_is_stored_as_it_is() {
    let Some(url) = postgres::database() else { return };
    let memory = server(&url);
    let name = "nul \0, quote ', backslash \\, \u{10FFFF}0".to_owned();
    let aliases = vec!["\0".to_owned(), "x".repeat(5000), "'; DROP TABLE entity; --".to_owned()];
    let new = NewEntity { name: name.clone(), entity_type: "a\0".into(), aliases, description: Some("\0\0".into()) };
    memory.apply(&[MemoryChange::CreateEntity(new.clone()), observe(1, "\0 [[x\0]]")], &author(1)).expect("stored");
    let stored = memory.entities(&[EntityId(1)]).expect("readable").remove(0).expect("it exists");
    assert_eq!((&stored.name, &stored.aliases, &stored.description), (&new.name, &new.aliases, &new.description));
    assert_eq!(stored.entity_type, "a\0");
    let called = new.aliases.iter().chain([&name]).map(|name| quipu_core::memory::name_key(name));
    let found = memory.entities_called(&called.collect::<Vec<_>>()).expect("readable");
    assert_eq!(found, vec![vec![EntityId(1)]; 4]);
    assert_eq!(memory.observations_of(&[EntityId(1)]).expect("readable")[0][0].text, "\0 [[x\0]]");
    let update = EntityUpdate { description: Some(None), ..EntityUpdate::default() };
    memory.apply(&[MemoryChange::UpdateEntity { id: EntityId(1), update }], &author(2)).expect("stored");
    memory.undo(ChangeNumber(2), &author(3)).expect("nothing depends on it");
    let back = memory.entities(&[EntityId(1)]).expect("readable").remove(0).expect("it exists");
    assert_eq!(back.description.as_deref(), Some("\0\0"));
    assert_eq!(memory.check().expect("readable"), [""; 0]);
}

/// The notes of the graph `team` as a server of its own has them open.
fn notes(url: &str) -> PostgresVault {
    server(url);
    let database = PostgresDatabase::connect(url).expect("reachable");
    let graph = database.graph("team").expect("readable").expect("it was created");
    PostgresVault::new(Arc::new(database), &graph)
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).expect("a test's path is a vault path")
}

/// Writers on several servers append to one note and create others: every write is there once, nothing is overwritten, and the
/// feed names every path.
#[test]
fn notes_of_concurrent_servers_lose_no_write() {
    const WRITERS: usize = 3;
    const LINES: usize = 12;
    let Some(url) = postgres::database() else { return };
    notes(&url).apply(&[FileChange::Create { path: path("log.md"), bytes: Vec::new() }]).expect("the path is free");
    let write = &|writer: usize| {
        let vault = notes(&url);
        for line in 0..LINES {
            let own = FileChange::Create { path: path(&format!("own/{writer}-{line}.md")), bytes: b"x".to_vec() };
            vault.apply(&[own]).expect("the path is free");
            loop {
                let FileContent { mut bytes, hash: expected, .. } =
                    vault.read(&path("log.md")).expect("readable").expect("it exists");
                bytes.extend(format!("{writer} {line}\n").bytes());
                match vault.apply(&[FileChange::Replace { path: path("log.md"), expected, bytes }]) {
                    Ok(_) => break,
                    Err(WriteError::Changed { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    };
    thread::scope(|scope| (0..WRITERS).for_each(|writer| drop(scope.spawn(move || write(writer)))));
    let vault = notes(&url);
    let log = vault.read(&path("log.md")).expect("readable").expect("it exists").bytes;
    let mut lines: Vec<_> = String::from_utf8(log).expect("text").lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), WRITERS * LINES);
    assert_eq!(vault.trashed().expect("readable").len(), WRITERS * LINES, "every replaced version is kept");
    let changes = vault.changes_since(0).expect("readable");
    assert_eq!((changes.paths.len(), changes.head), (1 + WRITERS * LINES, 1 + 2 * (WRITERS * LINES) as i64));
    assert_eq!(vault.changes_since(changes.head).expect("readable").paths, []);
}

/// Bytes that are no text, and paths that could be SQL, come back as they were.
#[test]
fn every_note_is_stored_as_it_is() {
    let Some(url) = postgres::database() else { return };
    let vault = notes(&url);
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for at in ["a'; DROP TABLE quipu.note; --.md", "50%_[x].md", "\u{10FFFF}1.md", "日本/ノート.md"] {
        vault.apply(&[FileChange::Create { path: path(at), bytes: bytes.clone() }]).expect("the path is free");
        assert_eq!(vault.read(&path(at)).expect("readable").expect("it exists").bytes, bytes, "{at}");
        assert_eq!(vault.find_any_case(&path(&at.to_uppercase())).expect("readable"), [path(at)]);
    }
    assert_eq!(vault.list().expect("readable").files.len(), 4);
    let long = format!("{}a.md", "deep/".repeat(400));
    let refused = vault.apply(&[FileChange::Create { path: path(&long), bytes: Vec::new() }]);
    assert!(matches!(refused, Err(WriteError::Refused { .. })), "{refused:?}");
}

/// A write whose commit was not answered is made again; meanwhile another server may have deleted the note.
#[test]
fn repeated_write_of_a_note_that_was_deleted_since_has_its_stat() {
    let Some(url) = postgres::database() else { return };
    let vault = notes(&url);
    let create = [FileChange::Create { path: path("a.md"), bytes: b"text".to_vec() }];
    let origin = WriteOrigin::retried(RequestKey(7));
    let first = vault.apply_for(&create, &origin).expect("the path is free");
    let hash = vault.read(&path("a.md")).expect("readable").expect("it exists").hash;
    vault.apply(&[FileChange::Delete { path: path("a.md"), expected: hash }]).expect("it exists");
    assert_eq!(vault.apply_for(&create, &origin).expect("it was applied"), first);
    assert_eq!(vault.read(&path("a.md")).expect("readable").map(|note| note.bytes), None, "and is not made again");
    let name = NamePeriod { path: path("a.md"), since_ns: 0, until_ns: i64::MAX };
    assert_eq!(vault.forget(&[name], WriteNumber(0)).expect("writable"), 1);
    assert_eq!(vault.applied_request(RequestKey(7)).expect("readable"), None, "a path may contain the redacted text");
}

/// A client whose change was refused makes its change in another call; a server that was stopped must not make it too.
#[test]
fn refused_request_is_not_applied_by_a_slower_server() {
    let Some(url) = postgres::database() else { return };
    let (one, slower) = (notes(&url), notes(&url));
    let create = |at: &str| [FileChange::Create { path: path(at), bytes: b"text".to_vec() }];
    assert_eq!(one.refuse_request(RequestKey(7)).expect("writable"), None);
    let refused = slower.apply_for(&create("a.md"), &WriteOrigin::retried(RequestKey(7)));
    assert!(matches!(refused, Err(WriteError::Changed { .. })), "{refused:?}");
    assert_eq!(one.applied_request(RequestKey(7)).expect("readable"), None);
    one.apply_for(&create("b.md"), &WriteOrigin::retried(RequestKey(8))).expect("the path is free");
    assert_eq!(slower.refuse_request(RequestKey(8)).expect("writable"), Some(path("b.md")), "it was applied before");
    slower.apply_for(&create("b.md"), &WriteOrigin::retried(RequestKey(8))).expect("it was applied");
}

/// Two servers delete old versions at once, some at a time, while another writes.
#[test]
fn old_versions_are_deleted_beside_writes() {
    const VERSIONS: usize = 1300;
    let Some(url) = postgres::database() else { return };
    let vault = notes(&url);
    vault.apply(&[FileChange::Create { path: path("a.md"), bytes: b"0".to_vec() }]).expect("the path is free");
    let kept = format!(
        "INSERT INTO quipu.note_version (graph, change, position, path, bytes, hash, modified_ns, reason, at_ns) \
         SELECT 1, -n, 1, 'a.md', 'x', sha256('x'), n, 'replaced', n FROM generate_series(1, {VERSIONS}) n; \
         INSERT INTO quipu.note_write (graph, change, at_ns, client) \
         SELECT 1, -n, n, 'old' FROM generate_series(1, {VERSIONS}) n"
    );
    postgres::sql(&url, &kept);
    let pruned: usize = thread::scope(|scope| {
        let pruning: Vec<_> = (0..2).map(|_| scope.spawn(|| notes(&url).prune(1_000_000).expect("writable"))).collect();
        for number in 1..20 {
            let FileContent { hash: expected, .. } = vault.read(&path("a.md")).expect("readable").expect("it exists");
            let bytes = number.to_string().into_bytes();
            vault.apply(&[FileChange::Replace { path: path("a.md"), expected, bytes }]).expect("no lock is in the way");
        }
        pruning.into_iter().map(|pruned| pruned.join().expect("no panic")).sum()
    });
    assert_eq!(pruned, VERSIONS);
    let left = "SELECT (SELECT count(*) FROM quipu.note_version) || ' ' || (SELECT count(*) FROM quipu.note_write)";
    assert_eq!(postgres::sql(&url, left), "19 20", "newer ones stay");
}

/// Every server of a graph prunes it once a day, at about the same time.
#[test]
fn old_versions_are_pruned_once_by_concurrent_servers() {
    const NOTES: usize = 700;
    let Some(url) = postgres::database() else { return };
    drop(server(&url));
    let vault = || {
        let database = PostgresDatabase::connect(&url).expect("reachable");
        let graph = database.graph("team").expect("readable").expect("it exists");
        PostgresVault::new(Arc::new(database), &graph)
    };
    let writer = vault();
    let path = |number: usize| VaultPath::parse(&format!("note{number}.md")).expect("a path");
    let create = |number| FileChange::Create { path: path(number), bytes: b"old".to_vec() };
    writer.apply(&(0..NOTES).map(create).collect::<Vec<_>>()).expect("the paths are free");
    let expected = writer.read(&path(0)).expect("readable").expect("it exists").hash;
    let replace = |number| FileChange::Replace { path: path(number), expected, bytes: b"new".to_vec() };
    writer.apply(&(0..NOTES).map(replace).collect::<Vec<_>>()).expect("nothing changed meanwhile");
    let pruned: usize = thread::scope(|scope| {
        let servers: Vec<_> = (0..3).map(|_| scope.spawn(|| vault().prune(i64::MAX).expect("it prunes"))).collect();
        servers.into_iter().map(|server| server.join().expect("it ends")).sum()
    });
    assert_eq!(pruned, NOTES);
    let counts = "SELECT (SELECT count(*) FROM quipu.note_version), (SELECT count(*) FROM quipu.note_write), \
                  (SELECT kept_bytes FROM quipu.note_head), (SELECT count(*) FROM quipu.note)";
    assert_eq!(postgres::sql(&url, counts), format!("0|0|0|{NOTES}"), "and the bytes were counted once");
}
